"""Sending of mail by SMTP in the background, with retries (RFC 5321).

The log never says to whom a letter went, nor anything of it (D48).
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import TYPE_CHECKING, Final

import aiosmtplib
import structlog

from corpid.ports import LetterDelayed, MailDelayed, MailRefused, SenderRefused

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from corpid.outbound.mail import MailServer
    from corpid.ports import Letter
    from corpid.texts import Phrase

    Say = Callable[[Phrase, str], tuple[str, str]]

WAITING: Final = 1000
"""letters that wait at most; a further one is dropped"""
PAUSES: Final = (1.0, 5.0, 30.0)
"""seconds before each further attempt"""
_SENDERS: Final = 4
_SECONDS: Final = 20.0
"""for one attempt"""
_DELIVERY_SECONDS: Final = 120.0
"""for one letter that is waited for, with all commands"""
_CANCEL_SECONDS: Final = 0.1
_PERMANENT: Final = 500
"""from this reply code on trying again is no use (RFC 5321 §4.2.1)"""
_NO_MAILBOX: Final = frozenset({521, 550, 551, 552, 553, 556})
"""replies to a recipient that mean: no such mailbox (RFC 5321 §4.2.3, RFC 7504 §4)"""
_SUBJECT: Final = re.compile(r"5\.(\d{1,3})\.\d")
"""the subject of an enhanced code: 1 address, 2 mailbox, 4 route, 6 content, 7 policy (RFC 3463 §3)"""
_OF_RECIPIENT: Final = frozenset({"1", "2", "4"})
_OF_LETTER: Final = frozenset({*_OF_RECIPIENT, "3", "6"})


class SmtpMail:
    """Mail by SMTP.

    `say` translates a phrase and returns the language tag used.

    `sender` is a plain address. To be opened in a running loop, and closed.
    """

    works = True

    def __init__(
        self,
        server: MailServer,
        *,
        sender: str,
        name: str,
        say: Say,
        clock: Callable[[], float],
        pauses: Sequence[float] = PAUSES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`name` is the sender's display name.

        `tls` replaces the certificates that the system trusts.
        """
        self._server = server
        self._sender = Address(name, addr_spec=sender)
        self._say = say
        self._clock = clock
        self._pauses = pauses
        self._tls = tls
        self._letters: asyncio.Queue[Letter] = asyncio.Queue(WAITING)
        self._senders = [asyncio.create_task(self._send_all()) for _ in range(_SENDERS)]

    def post(self, letter: Letter) -> None:
        try:
            self._letters.put_nowait(letter)
        except asyncio.QueueFull:
            _log("mail_dropped", f"{WAITING} letters are waiting already")

    async def deliver(self, letter: Letter) -> None:
        """Send a letter now.

        Raises as ports.Mail says. An answer that blames neither address nor letter delays it: the fault may be our own.
        Source: RFC 3463 §3
        """
        try:
            message = self._written(letter)
        except (ValueError, IndexError) as error:
            raise MailRefused(_reason(error)) from None
        try:
            async with asyncio.timeout(_DELIVERY_SECONDS):
                await self._hand_over(message, letter.to)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _kind(error)(_reason(error)) from None

    async def close(self, seconds: float) -> None:
        """Send the waiting letters, for so many seconds at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._letters.join(), seconds)
        left = set(self._senders)
        while left:
            for sender in left:
                sender.cancel()
            # Python 3.11's wait_for, which the library uses, loses a cancellation that comes together with an answer
            _, left = await asyncio.wait(left, timeout=_CANCEL_SECONDS)
        if not self._letters.empty():
            _log("mail_dropped", f"{self._letters.qsize()} letters were waiting when CorpID stopped")

    async def _send_all(self) -> None:
        while True:
            letter = await self._letters.get()
            try:
                await self._deliver(letter)
            except Exception as error:  # noqa: BLE001 - no letter may end the sending of all others
                _log("mail_failed", _reason(error))
            finally:
                self._letters.task_done()

    async def _deliver(self, letter: Letter) -> None:
        message = self._written(letter)
        for pause in self._pauses:
            try:
                await self._hand_over(message, letter.to)
            except (aiosmtplib.SMTPException, OSError) as error:
                if _code(error) >= _PERMANENT:
                    raise
                _log("mail_delayed", _reason(error))
                await asyncio.sleep(pause)
            else:
                return
        await self._hand_over(message, letter.to)

    async def _hand_over(self, message: EmailMessage, to: str) -> None:
        server = self._server
        await aiosmtplib.send(
            message,
            sender=self._sender.addr_spec,
            recipients=[to],
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

    def _written(self, letter: Letter) -> EmailMessage:
        """The message of a letter.

        Raises ValueError and its like for an address that is none, or is several.
        """
        message = EmailMessage(policy=SMTP)
        message["From"] = self._sender
        message["To"] = Address(addr_spec=letter.to)
        message["Subject"] = " ".join(self._say(letter.subject, letter.language)[0].split())
        message["Date"] = format_datetime(datetime.fromtimestamp(int(self._clock()), UTC))
        message["Message-ID"] = make_msgid(domain=self._sender.domain)
        message["Auto-Submitted"] = "auto-generated"
        text, language = self._say(letter.text, letter.language)
        message.set_content(text + "\n", cte="quoted-printable")
        message["Content-Language"] = language
        return message


def _code(error: Exception) -> int:
    """The server's reply code, 0 if there is none.

    Of several refused recipients the first one's (RFC 5321 §4.2).
    """
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return error.recipients[0].code
    return error.code if isinstance(error, aiosmtplib.SMTPResponseException) else 0


def _kind(error: Exception) -> type[Exception]:
    """The exception of `deliver` for an error of the library.

    At a recipient or at the content, a server that gives no clear reason may mean the one letter or CorpID; before
    them it means CorpID. Source: RFC 5321 §4.2.3, RFC 3463 §3
    """
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        first = error.recipients[0]
        subject = _SUBJECT.match(first.message)
        is_final = subject[1] in _OF_RECIPIENT if subject else first.code in _NO_MAILBOX
        return MailRefused if is_final and first.code >= _PERMANENT else LetterDelayed
    if isinstance(error, aiosmtplib.SMTPDataError):
        subject = _SUBJECT.match(error.message)
        return MailRefused if subject and subject[1] in _OF_LETTER else LetterDelayed
    return SenderRefused if _code(error) >= _PERMANENT else MailDelayed


def _reason(error: Exception) -> str:
    """A reason fit for the log.

    A server's reply may repeat the address. Source: D48
    """
    return f"{type(error).__name__} {_code(error) or ''}".strip()


def _log(event: str, detail: str) -> None:
    structlog.get_logger().warning(event, detail=detail)
