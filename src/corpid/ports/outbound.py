"""Calls to the outside: key sets of clients, mail, password hashing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from corpid.rules.oauth.errors import Attributed

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from corpid.jose.keys import ClientKeySet
    from corpid.ports.emails import Email


class KeySetUnavailable(Exception):
    """No usable key set of this client, fetched or stored.

    It is unreachable or malformed, and there is no last good one. Source: D27
    """


class HasKeys(Protocol):
    """A relying party, or a client of the admin API."""

    @property
    def client_id(self) -> str: ...
    @property
    def jwks(self) -> str | None: ...
    @property
    def jwks_uri(self) -> str | None: ...


class ClientKeys(Protocol):
    """Key sets of clients, inline or by URL, prepared for use (D27)."""

    async def current(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The set to use now.

        Raises KeySetUnavailable, and StoreUnavailable if no set is in memory and the registry cannot be asked.
        """

    async def refetch(self, client: HasKeys, *, now: float) -> ClientKeySet:
        """The set after an unknown kid or a bad signature.

        It is fetched again, at most once a minute. An inline set is returned as it is. Raises as `current`.
        """

    async def fetch_published(self, url: str) -> bytes:
        """The content published at a URL, which is kept nowhere.

        Raises KeySetUnavailable if nothing was fetched. Source: D27
        """

    async def keep(self, client: HasKeys, content: bytes, *, now: float) -> None:
        """Keep the content that was published at the client's jwks_uri."""


class MailDelayed(Exception):
    """An e-mail that cannot be sent now, but perhaps later."""


class SenderRefused(MailDelayed):
    """An e-mail that waits for an operator.

    The server permanently refuses CorpID itself: its password or its sender address.
    """


class EmailDelayed(MailDelayed):
    """An e-mail that the server does not take now, unlike others perhaps.

    It does not say whether the fault is the recipient's or CorpID's.
    """


class MailRefused(Exception):
    """An e-mail that the server takes neither now nor later."""


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


class NetworkNames(Protocol):
    """Names of networks, for people who look where they signed in from."""

    def name(self, address: str, /) -> str:
        """The name of an address's network; empty if it is not known."""


class HashingSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a hashing request, for a fair queue (D47)."""

    network: str
    """the source network: /24 of IPv4, /48 of IPv6"""
    account: str
    """the user name, in its mapped form"""
    known: bool = False
    """whether the browser is known for the account"""


COMMAND_LINE: Final = HashingSource(network="", account="")
"""a command, whose hashes wait in its process's own queue"""


class PasswordsBusy(Attributed):
    """Too many password checks are waiting; becomes temporarily_unavailable."""


class Passwords(Protocol):
    """argon2id in separate threads (D44)."""

    async def verify(self, password_hash: str | None, password: str, *, source: HashingSource) -> bool:
        """With None the same work is done, and the answer is False.

        Raises PasswordsBusy.
        """

    async def hash(self, password: str, *, source: HashingSource) -> str:
        """The hash to store. Raises PasswordsBusy."""

    def guessable(self) -> AbstractSet[str]:
        """Predictable passwords, casefolded: for `passwords.require_allowed_password`."""

    def is_outdated(self, password_hash: str) -> bool: ...
