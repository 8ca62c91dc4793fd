"""The interface of mail, mail without a server, and a server's address."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, Protocol
from urllib.parse import unquote, urlsplit

from corpid.event_log import log
from corpid.rules.failures import MailDelayed

if TYPE_CHECKING:
    from corpid.rules.emails import Email

_PORTS: Final = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A mail server; only servers on this machine may do without `starttls`."""

    host: str
    port: int
    security: Literal["tls", "starttls", "none"]
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)


def mail_server(url: str) -> MailServer:
    """The server of `smtp://USER:PASSWORD@HOST:PORT` (STARTTLS) or `smtps://…`; both without USER, too.

    Raises ValueError, which repeats nothing of the address, since it may hold a password. Source: RFC 8314 §3
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("its port is none: write smtp://USER:PASSWORD@HOST:587") from None
    host = parts.hostname or ""
    if parts.scheme not in _PORTS or not host or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError("it is no mail server: write smtp://USER:PASSWORD@HOST:587 or smtps://USER:PASSWORD@HOST:465")
    if (parts.username is None) != (parts.password is None):
        raise ValueError("USER and PASSWORD belong together: write both, with special characters as %XX, or neither")
    security: Literal["tls", "starttls", "none"] = "none" if _is_this_machine(host) else "starttls"
    return MailServer(
        host=host,
        port=port or _PORTS[parts.scheme],
        security="tls" if parts.scheme == "smtps" else security,
        user_name=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Mail(Protocol):
    """Sending of e-mails: in the background, or waited for.

    A page sends in the background, so that its timing does not reveal it.
    """

    @property
    def works(self) -> bool:
        """True if this deployment sends mail at all."""

    def post(self, email: Email) -> None:
        """Queue an e-mail.

        A full queue drops it, which the log says. Never waits, never raises.
        """

    async def deliver(self, email: Email) -> None:
        """Hand an e-mail to the server, in one attempt.

        For background tasks, which try again. Raises MailDelayed, SenderRefused, EmailDelayed, MailRefused.
        """


class NoMail:
    """A Mail of a deployment without a mail server."""

    works = False

    def post(self, email: Email) -> None:  # noqa: ARG002 - the signature of Mail
        """Log that an e-mail was not sent, without its contents.

        Source: D48
        """
        log().info("mail_not_sent", detail="no mail server is set: mail_url")

    async def deliver(self, email: Email) -> None:  # noqa: ARG002 - the signature of Mail
        """Raises MailDelayed: a server may be set later."""
        raise MailDelayed("no mail server is set: mail_url")
