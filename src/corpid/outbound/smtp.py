"""Mail by SMTP, sent in the background with retries (RFC 5321, RFC 5322).

`SmtpMail` sends what waits; `SmtpSessions` are its sessions with the server: one takes a connection, several commands
and, with TLS, a handshake, so the next e-mail within seconds uses the same one. `MessageWriter` writes the bytes of an
e-mail: the standard library's message objects parse what they are given, and parse it again to fold it, ten times the
work of writing the few fields that every e-mail has. The log never says to whom an e-mail went, nor anything of it
(D48).
"""

from __future__ import annotations

import asyncio
import re
import ssl
from binascii import b2a_base64, b2a_qp
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import aiosmtplib

from corpid.event_log import log
from corpid.rules.directory import values
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from corpid.outbound.mail import MailServer
    from corpid.rules.emails import Email, RenderedEmail

    Render = Callable[[Email], RenderedEmail]

WAITING: Final = 1000
"""e-mails that wait at most; a further one is dropped"""
PAUSES: Final = (1.0, 5.0, 30.0)
"""seconds before each further attempt"""
_SENDERS: Final = 4
_DELIVERY_SECONDS: Final = 120.0
"""for one e-mail that is waited for, with all commands"""
_CANCEL_SECONDS: Final = 0.1
_PERMANENT: Final = 500
"""from this reply code on trying again is no use (RFC 5321 §4.2.1)"""
_NO_MAILBOX: Final = frozenset({521, 550, 551, 552, 553, 556})
"""replies to a recipient that mean: no such mailbox (RFC 5321 §4.2.3, RFC 7504 §4)"""
_SUBJECT: Final = re.compile(r"5\.(\d{1,3})\.\d")
"""the subject of an enhanced code: 1 address, 2 mailbox, 4 route, 6 content, 7 policy (RFC 3463 §3)"""
_OF_RECIPIENT: Final = frozenset({"1", "2", "4"})
_OF_EMAIL: Final = frozenset({*_OF_RECIPIENT, "3", "6"})
IDLE_SECONDS: Final = 5.0
"""a session stays open this long for a further e-mail"""
AGE_SECONDS: Final = 300.0
"""the longest life of a session, so that a new address of the server is noticed"""
_SECONDS: Final = 20.0
"""for the answer to one command"""
_QUIT_SECONDS: Final = 1.0
"""for the answers to the last commands when CorpID stops"""
_ACCEPTED: Final = frozenset({250, 251})
"""replies to a recipient that mean: yes (RFC 5321 §4.3.2)"""
_CLOSING: Final = 421
"""the reply of a server that ends the session (RFC 5321 §3.8)"""
_LINE: Final = 76
"""characters of a line (RFC 5322 §2.1.1, RFC 2045 §6.7, RFC 2047 §2)"""
_WORD_BYTES: Final = 39
"""of text in an encoded word: 52 characters of base64, so that the first fits behind the field's name (RFC 2047 §2)"""
_PLAIN_WORD: Final = re.compile(r"[!-~]{1,60}(?: [!-~]{1,60})*")
"""ASCII words with single spaces between them"""
_BOUNDARY: Final = "=_next"
"""occurs in no quoted-printable text, where a hexadecimal digit or a line's end follows every equals sign (RFC 2045
§6.7)"""
_FIXED: Final = f'Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="{_BOUNDARY}"\r\n'
_PART: Final = (
    "--{boundary}\r\n"
    'Content-Type: text/{subtype}; charset="utf-8"\r\n'
    "Content-Transfer-Encoding: quoted-printable\r\n"
    "\r\n"
)
_TEXT: Final = _PART.format(boundary=_BOUNDARY, subtype="plain").encode()
_HTML: Final = b"\r\n" + _PART.format(boundary=_BOUNDARY, subtype="html").encode()
_END: Final = f"\r\n--{_BOUNDARY}--\r\n".encode()


class SmtpMail:
    """Mail by SMTP.

    `render` makes an e-mail's text and HTML.

    `sender` is a plain address. To be opened in a running loop, and closed.
    """

    works = True

    def __init__(
        self,
        server: MailServer,
        *,
        sender: str,
        name: str,
        render: Render,
        clock: Callable[[], float],
        reply_to: str = "",
        pauses: Sequence[float] = PAUSES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`name` is the sender's display name; `reply_to` gets the answers.

        `tls` replaces the certificates that the system trusts.
        """
        address = Address(" ".join(name.split()), addr_spec=sender)
        self._writer = MessageWriter(address, reply_to=reply_to)
        self._sessions = SmtpSessions(server, sender=address, tls=tls)
        self._render = render
        self._clock = clock
        self._pauses = pauses
        self._emails: asyncio.Queue[Email] = asyncio.Queue(WAITING)
        self._senders = [asyncio.create_task(self._send_all()) for _ in range(_SENDERS)]

    def post(self, email: Email) -> None:
        try:
            self._emails.put_nowait(email)
        except asyncio.QueueFull:
            _log("mail_dropped", f"{WAITING} e-mails are waiting already")

    async def deliver(self, email: Email) -> None:
        """Send an e-mail now.

        Raises as Mail says. An answer that blames neither address nor e-mail delays it: the fault may be our own.
        Source: RFC 3463 §3
        """
        try:
            message = self._written(email)
        except ValueError as error:
            raise MailRefused(_reason(error)) from None
        try:
            async with asyncio.timeout(_DELIVERY_SECONDS):
                await self._sessions.send(message, email.to)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _kind(error)(_reason(error)) from None

    async def close(self, seconds: float) -> None:
        """Send the waiting e-mails, for so many seconds at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._emails.join(), seconds)
        left = set(self._senders)
        while left:
            for sender in left:
                sender.cancel()
            # Python 3.11's wait_for, which the library uses, loses a cancellation that comes together with an answer
            _, left = await asyncio.wait(left, timeout=_CANCEL_SECONDS)
        await self._sessions.close()
        if not self._emails.empty():
            _log("mail_dropped", f"{self._emails.qsize()} e-mails were waiting when CorpID stopped")

    async def _send_all(self) -> None:
        while True:
            email = await self._emails.get()
            try:
                await self._deliver(email)
            except Exception as error:  # noqa: BLE001 - no e-mail may end the sending of all others
                _log("mail_failed", _reason(error))
            finally:
                self._emails.task_done()

    async def _deliver(self, email: Email) -> None:
        message = self._written(email)
        for pause in self._pauses:
            try:
                await self._sessions.send(message, email.to)
            except (aiosmtplib.SMTPException, OSError) as error:
                if reply_code(error) >= _PERMANENT:
                    raise
                _log("mail_delayed", _reason(error))
                await asyncio.sleep(pause)
            else:
                return
        await self._sessions.send(message, email.to)

    def _written(self, email: Email) -> bytes:
        """The message of an e-mail.

        Raises ValueError for an address that is none, or is several.
        """
        return self._writer.write_message(self._render(email), to=email.to, now=self._clock())


def _kind(error: Exception) -> type[Exception]:
    """The exception of `deliver` for an error of the library.

    At a recipient or at the content, a server that gives no clear reason may mean the one e-mail or CorpID; before
    them it means CorpID.
    """
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        first = error.recipients[0]
        subject = _SUBJECT.match(first.message)
        is_final = subject[1] in _OF_RECIPIENT if subject else first.code in _NO_MAILBOX
        return MailRefused if is_final and first.code >= _PERMANENT else EmailDelayed
    if isinstance(error, aiosmtplib.SMTPDataError):
        subject = _SUBJECT.match(error.message)
        return MailRefused if subject and subject[1] in _OF_EMAIL else EmailDelayed
    return SenderRefused if reply_code(error) >= _PERMANENT else MailDelayed


def _reason(error: Exception) -> str:
    """A reason fit for the log.

    A server's reply may repeat the address.
    """
    return f"{type(error).__name__} {reply_code(error) or ''}".strip()


def _log(event: str, detail: str) -> None:
    log().warning(event, detail=detail)


@dataclass(slots=True, eq=False)
class _Session:
    client: aiosmtplib.SMTP
    ends_at: float
    """by the loop's clock"""
    timer: asyncio.TimerHandle | None = None
    """ends the session if it stays idle"""


class SmtpSessions:
    """The sessions of one sender with one server.

    Use it in a running loop, and close it.
    """

    def __init__(
        self,
        server: MailServer,
        *,
        sender: Address,
        tls: ssl.SSLContext | None = None,
        idle_seconds: float = IDLE_SECONDS,
        age_seconds: float = AGE_SECONDS,
    ) -> None:
        """`tls` replaces the certificates that the system trusts."""
        self._server = server
        self._sender = sender
        self._tls = tls
        self._idle_seconds = idle_seconds
        self._age_seconds = age_seconds
        self._idle: list[_Session] = []
        self._quitting: set[asyncio.Task[None]] = set()

    async def send(self, message: bytes, to: str) -> None:
        """Hand a message to the server, once.

        Its lines end with CRLF; `to` is an address that a directory takes. An idle session that the server has ended
        meanwhile, or in which it takes no further sender, is replaced at once: the server has received nothing of this
        message. Raises aiosmtplib.SMTPException, OSError. Source: RFC 5321 §3.3, §3.8
        """
        session = self._idle_session()
        if session is None or not await self._begun_again(session, message, to):
            session = await self._opened()
            with self._in_use(session):
                await self._begin(session.client, message, to)
        with self._in_use(session):
            await _finish(session.client, message)
        self._keep(session)

    async def close(self) -> None:
        """End all sessions, in a moment."""
        while self._idle:
            self._end(self._idle[-1])
        if self._quitting:
            _, late = await asyncio.wait(self._quitting, timeout=_QUIT_SECONDS)
            for task in late:
                task.cancel()

    def _idle_session(self) -> _Session | None:
        """The idle session that was used last, if there is one."""
        while self._idle:
            session = self._idle.pop()
            if session.timer is not None:
                session.timer.cancel()
            if session.client.is_connected:
                return session
        return None

    def _keep(self, session: _Session) -> None:
        """Keep a session for the next e-mail, for some seconds."""
        loop = asyncio.get_running_loop()
        if loop.time() < session.ends_at:
            session.timer = loop.call_later(self._idle_seconds, self._end, session)
            self._idle.append(session)
        else:
            self._end(session)

    def _end(self, session: _Session) -> None:
        """End a session, in the background."""
        if session in self._idle:
            self._idle.remove(session)
        if session.timer is not None:
            session.timer.cancel()
        if session.client.is_connected:
            task = asyncio.create_task(_quit(session.client))
            self._quitting.add(task)
            task.add_done_callback(self._quitting.discard)

    @contextmanager
    def _in_use(self, session: _Session) -> Iterator[None]:
        """End a session that fails: after an answer politely, else at once."""
        try:
            yield
        except (aiosmtplib.SMTPResponseException, aiosmtplib.SMTPRecipientsRefused):
            self._end(session)
            raise
        except BaseException:
            session.client.close()
            raise

    async def _begun_again(self, session: _Session, message: bytes, to: str) -> bool:
        """Begin a further e-mail in a session.

        Returns False if the session takes no more.
        """
        try:
            with self._in_use(session):
                await self._begin(session.client, message, to)
        except (OSError, aiosmtplib.SMTPSenderRefused):
            return False
        except (aiosmtplib.SMTPRecipientsRefused, aiosmtplib.SMTPDataError) as error:
            if reply_code(error) != _CLOSING:
                raise
            return False
        return True

    async def _begin(self, client: aiosmtplib.SMTP, message: bytes, to: str) -> None:
        """Announce a message: sender, recipient and size.

        The library's functions for it parse each address again, and search the message for line ends.
        """
        sender = self._sender.addr_spec
        size = [b"SIZE=%d" % len(message)] if client.supports_extension("size") else []
        answer = await client.execute_command(b"MAIL", b"FROM:<%s>" % sender.encode("ascii"), *size)
        if answer.code != aiosmtplib.SMTPStatus.completed:
            raise aiosmtplib.SMTPSenderRefused(answer.code, answer.message, sender)
        answer = await client.execute_command(b"RCPT", b"TO:<%s>" % to.encode("ascii"))
        if answer.code not in _ACCEPTED:
            refused = aiosmtplib.SMTPRecipientRefused(answer.code, answer.message, to)
            raise aiosmtplib.SMTPRecipientsRefused([refused])
        answer = await client.execute_command(b"DATA")
        if answer.code != aiosmtplib.SMTPStatus.start_input:
            raise aiosmtplib.SMTPDataError(answer.code, answer.message)

    async def _opened(self) -> _Session:
        server = self._server
        if self._tls is None and server.security != "none":
            # It reads every certificate that the system trusts.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user_name,
            password=server.password,
            local_hostname=self._sender.domain,
            timeout=_SECONDS,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            tls_context=self._tls,
        )
        await client.connect()
        session = _Session(client, asyncio.get_running_loop().time() + self._age_seconds)
        with self._in_use(session):
            await _greet(client)
        return session


async def _greet(client: aiosmtplib.SMTP) -> None:
    """Send EHLO, unless it was sent already.

    A server that does not know EHLO gets HELO.
    """
    if not client.is_ehlo_or_helo_needed:
        return
    try:
        await client.ehlo()
    except aiosmtplib.SMTPHeloError:
        if not client.is_connected:
            raise
        await client.helo()


async def _finish(client: aiosmtplib.SMTP, message: bytes) -> None:
    """Send a message that was announced.

    A dot that begins a line is doubled.
    """
    if client.protocol is None:
        raise aiosmtplib.SMTPServerDisconnected("Connection lost")
    client.protocol.write((b"\r\n" + message).replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n")
    answer = await client.protocol.read_response(timeout=_SECONDS)
    if answer.code != aiosmtplib.SMTPStatus.completed:
        raise aiosmtplib.SMTPDataError(answer.code, answer.message)


def reply_code(error: Exception) -> int:
    """The server's reply code, 0 if there is none.

    Of several refused recipients the first one's (RFC 5321 §4.2).
    """
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return error.recipients[0].code
    return error.code if isinstance(error, aiosmtplib.SMTPResponseException) else 0


async def _quit(client: aiosmtplib.SMTP) -> None:
    try:
        with suppress(aiosmtplib.SMTPException, OSError):
            await client.quit()
    finally:
        client.close()


class MessageWriter:
    """A writer of messages from one sender."""

    def __init__(self, sender: Address, *, reply_to: str) -> None:
        """`reply_to` is a plain address, or empty."""
        message = EmailMessage(policy=SMTP)
        message["From"] = sender
        if reply_to:
            message["Reply-To"] = Address(addr_spec=reply_to)
        self._head = message.as_bytes().removesuffix(b"\r\n").decode("ascii")
        self._domain = sender.domain

    def write_message(self, rendered: RenderedEmail, *, to: str, now: float) -> bytes:
        """A message in lines of ASCII that end with CRLF.

        `now` is in epoch seconds. Raises ValueError if `to` is no address that a directory takes, or the subject has
        more than one line. Source: RFC 5322 §3.6, RFC 3834 §5, RFC 2046 §5.1.4
        """
        if not values.address(to):
            raise ValueError("no address")
        head = (
            self._head,
            _field("To", to),
            _subject(rendered.subject),
            _field("Date", format_datetime(datetime.fromtimestamp(int(now), UTC))),
            _field("Message-ID", make_msgid(domain=self._domain)),
            _FIXED,
            _field("Content-Language", rendered.language),
            "\r\n",
        )
        return b"".join(
            ("".join(head).encode("ascii"), _TEXT, _quoted(rendered.text), _HTML, _quoted(rendered.html), _END)
        )


def _field(name: str, value: str) -> str:
    """A field of a few words.

    If it is long, they stand in a line of their own.
    """
    return f"{name}: {value}\r\n" if len(name) + len(value) + 2 <= _LINE else f"{name}:\r\n {value}\r\n"


def _subject(text: str) -> str:
    """The field of a subject. Raises ValueError for a second line."""
    if "\r" in text or "\n" in text:
        raise ValueError("a subject has one line")
    field = f"Subject: {text}"
    if not _PLAIN_WORD.fullmatch(text) or "=?" in text:
        # Also what a reader would take for encoded words.
        field = " ".join(
            ["Subject:", *(f"=?utf-8?b?{b2a_base64(each, newline=False).decode()}?=" for each in _words(text))]
        )
    lines = [field] if len(field) <= _LINE else wrap(field, _LINE, break_long_words=False, break_on_hyphens=False)
    return "\r\n ".join(lines) + "\r\n"


def _words(text: str) -> list[bytes]:
    """Pieces of a text as UTF-8 that split no character."""
    found, rest = [], text.encode()
    while len(rest) > _WORD_BYTES:
        end = _WORD_BYTES
        while rest[end] & 0b1100_0000 == 0b1000_0000:
            end -= 1
        found.append(rest[:end])
        rest = rest[end:]
    return [*found, rest]


def _quoted(text: str) -> bytes:
    """A text as quoted-printable.

    Every server accepts it, and its lines are short in every script.
    """
    return b2a_qp(b"\r\n".join([*text.encode().splitlines(), b""]))
