"""Sending of mail by SMTP in the background, with retries (RFC 5321).

The log never says to whom an e-mail went, nor anything of it (D48).
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from email.headerregistry import Address
from typing import TYPE_CHECKING, Final

import aiosmtplib

from corpid.event_log import log
from corpid.outbound.mail_messages import MessageWriter
from corpid.outbound.smtp_sessions import SmtpSessions, reply_code
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

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
