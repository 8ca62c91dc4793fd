"""Sessions with a mail server, shared by successive e-mails (RFC 5321).

A session takes a connection, several commands and, with TLS, a handshake; so the next e-mail within seconds uses the
same one.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import aiosmtplib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.headerregistry import Address

    from corpid.outbound.mail import MailServer

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
