"""The registry's interface: clients, directory, sessions, usage.

With changes of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import msgspec

from corpid.ports.audit import AuditEvent
from corpid.ports.directory_lists import DirectoryLists
from corpid.rules.authentication.records import Credentials, Passkey
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import Membership, Record, ThirdPartyGrant
from corpid.rules.directory.sources import Sources
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from corpid.ports.access_reviews import AccessReviews
    from corpid.ports.audit import Audit, AuditSeals
    from corpid.ports.client_clocks import ClientClocks
    from corpid.ports.client_refusals import ClientRefusals
    from corpid.ports.clients import ApiClients, Clients
    from corpid.ports.consents import Consents
    from corpid.ports.deployment import Deployment
    from corpid.ports.email_changes import EmailChanges
    from corpid.ports.hourly_counts import HourlyCounts
    from corpid.ports.idempotency import IdempotencyKeys
    from corpid.ports.invitations import Invitations
    from corpid.ports.keys import Keys
    from corpid.ports.notices import Notices
    from corpid.ports.provisioning import Provisioning
    from corpid.ports.records import Account, Link, Session, SessionFactors
    from corpid.ports.server_processes import ServerProcesses
    from corpid.ports.usage import Usage
    from corpid.rules.authentication.throttling import CodeGuesses
    from corpid.rules.directory.entity_choice import Form
    from corpid.rules.directory.records import (
        ActingPerson,
        Administrator,
        AppointmentStatus,
        Assignment,
        Entity,
        Operator,
        OperatorLevel,
        Service,
        ThirdPartyRow,
        User,
    )
    from corpid.rules.directory.sources import SourcedRecord


Written: TypeAlias = Record | Client | RegisteredApiClient | RegisteredProvisioningToken


class Upsert(msgspec.Struct, frozen=True):
    """Write this record, whether or not it exists."""

    record: Written
    event: AuditEvent | None = None
    """written in the same transaction; its actor becomes the source of what changes (D65)"""
    taken: frozenset[str] = frozenset()
    """members whose source the actor becomes, with the value that they have (`sources.sources_after`)"""
    seen: Sources | None = None
    """if the record has other sources by then, nothing is written"""


class Delete(msgspec.Struct, frozen=True):
    """Remove this record."""

    record: Written
    event: AuditEvent | None = None
    """written in the same transaction"""
    seen: Sources | None = None
    """if the record has other sources by then, or another one refers to it, nothing is written"""


class SignOut(msgspec.Struct, frozen=True):
    """End a person's sessions and the links for setting their factors.

    All of them end with the last change of that person's record or credentials, in the same transaction.
    """

    user_id: str


class Precondition(msgspec.Struct, frozen=True):
    """A record that a decision was made on.

    If it is no longer as it was read, nothing is written.
    """

    kind: type[Written]
    key: tuple[str, ...]
    record: Written | None
    """None: there was none"""


class LastOwnerInvariant(msgspec.Struct, frozen=True):
    """A person with all rights who must remain after the changes (D53, D54)."""

    entity_id: str = ""
    """an owner of this entity; empty: an operator of the deployment"""


class RolesUnder(msgspec.Struct, frozen=True):
    """Roles of a third party's people that end with the removed grant (D56).

    They are read after the removal, in its transaction, so that one which was given meanwhile ends, too.
    """

    grant: ThirdPartyGrant
    event: AuditEvent
    """of each of them, without its object"""
    planned: bool = False
    """whether the changes have those that are to end: if there is another one, nothing is written"""


class AccessUnder(msgspec.Struct, frozen=True):
    """Level and roles that end because their invitation goes to another address (D68).

    They are read in the transaction of that change, so that one which was given meanwhile ends, too.
    """

    invited: Membership
    events: Mapping[type[Written], AuditEvent]
    """of each kind of record, without its object"""


class Accept(msgspec.Struct, frozen=True):
    """Move an invited membership to the account that accepts it.

    Its level and roles go with it, and the placeholder ends. If the invitation is no longer as it was read, or the
    person belongs to the entity by then, nothing is written. Source: D60
    """

    invited: Membership
    becomes: Membership
    event: AuditEvent


Change = Upsert | Delete | SignOut | Precondition | LastOwnerInvariant | RolesUnder | AccessUnder | Accept


class FactorChange(msgspec.Struct, frozen=True, kw_only=True):
    """A person's change of their own factors, written atomically; omitted members stay."""

    before: Credentials
    """as they were read: if they have changed since, nothing is written"""
    after: Credentials
    session_id: str = ""
    """the session in which the person acts: if it has ended, nothing is written; empty for a link or an operator"""
    add_passkey: Passkey | None = None
    remove_passkey: str = ""
    """a credential id"""
    remove_passkeys: bool = False
    """whether every one goes"""
    passkey_remains: bool = False
    """if no passkey would be left after it, nothing is written: it would be the last way in"""
    passkeys_at_most: int = 0
    """if there would be more passkeys than these after it, nothing is written; 0: no limit"""
    recovery_codes: tuple[str, ...] | None = None
    """hashes that replace those there are"""
    spend_link: str = ""
    """the hash of the link that led here: if it is gone, nothing is written"""
    end_sessions_but: str | None = None
    """ends every other session of the person; empty: every one"""


class SecretUnreadable(Exception):
    """A secret at rest cannot be decrypted.

    The key-encryption key is another one, or the row was changed. Source: D43
    """


R = TypeVar("R", bound="Record")
W = TypeVar("W", bound="Record | Client")


class Directory(DirectoryLists, Protocol):
    """Entities, users and their relations.

    Reads of the request path are single statements on an index.
    """

    async def acting(self, user_id: str, entity_id: str) -> ActingPerson | None: ...
    async def user(self, user_id: str) -> User | None: ...
    async def user_by_name(self, user_name: str) -> User | None:
        """By user name, compared after PRECIS mapping (D51)."""

    async def set_language(self, user_id: str, language: str, event: AuditEvent) -> None:
        """Store the language (a tag) of e-mails to a person.

        Nothing else of the record changes.
        """

    async def usable(self, user_id: str, accepted: frozenset[Form]) -> list[ActingPerson]:
        """Return at most two entities that a person can act for.

        Person, entity and membership are enabled, and the entity is of these types and statuses.
        """

    async def choices(
        self, user_id: str, accepted: frozenset[Form], *, words: Sequence[str], first: str, limit: int
    ) -> tuple[list[tuple[Entity, Membership]], int]:
        """A page of a person's memberships, and the number of matches.

        The entity matches every word (`entity_choice.search_words`). Usable ones (the first `first` of these) come
        before the others, then by name.
        """

    async def services(self, service_ids: Sequence[str]) -> list[Service]: ...
    async def assignments(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[Assignment]: ...
    async def third_party_rows(
        self, user_id: str, entity_id: str, service_ids: Sequence[str]
    ) -> list[ThirdPartyRow]: ...

    async def administered(self, user_id: str) -> list[Administrator]:
        """A person's levels, by entity (D53)."""

    async def administrators(self, entity_id: str) -> list[AppointmentStatus[Administrator]]:
        """An entity's administrators, by person (D53)."""

    async def operators(self, level: OperatorLevel) -> list[AppointmentStatus[Operator]]:
        """The deployment's operators of a level, by person (D53)."""

    async def read(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], R]:
        """The records with these keys.

        Those that do not exist are left out.
        """

    async def sourced(self, kind: type[W], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], SourcedRecord[W]]:
        """The records with these keys, and where they come from (D65)."""

    def scan(self, kind: type[R]) -> AsyncIterator[R]:
        """Every record of a kind, by key."""

    def scan_sourced(self, kind: type[W]) -> AsyncIterator[SourcedRecord[W]]:
        """Every record of a kind, by key, and where it comes from (D65)."""

    async def write(
        self,
        changes: Sequence[Change],
        event: AuditEvent | None = None,
        within: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Write changes, each with its audit event in the same transaction.

        Many changes are written in several short transactions. `event` is about all of them and is written with the
        last one; `within` is awaited there, and what it raises undoes that one. Raises Conflict. Source: D57
        """


class Sessions(Protocol):
    """Signed-in browsers; listed and ended."""

    async def get(self, session_id: str, *, now: float) -> Session | None: ...
    async def with_factors(self, session_id: str, *, passkey: str, now: float) -> SessionFactors | None:
        """A session, and its person's factors now.

        `passkey` is the id of a credential, or empty. Source: D50
        """

    async def list_for_user(self, user_id: str, *, now: float) -> list[Session]:
        """The live sessions of a person, the latest first."""

    async def put(self, session: Session) -> None: ...
    async def put_if_unchanged(
        self, session: Session, seen: Credentials, *, passkey: str = "", stored_secret: str | None = None
    ) -> bool:
        """Store the session of a new sign-in if `is_unchanged` holds.

        `stored_secret` is that of the account that was loaded: it saves decrypting the secret again. Returns False if
        it does not. A later change of that person finds the session and can end it. Source: D50
        """

    async def is_unchanged(self, seen: Credentials, *, passkey: str = "") -> bool:
        """Return whether a person is enabled and has the same factors.

        They are compared with the factors that were seen, and with the passkey of this id, if one is given.
        """

    async def use(self, session_id: str, *, at: int, entity_id: str | None = None) -> bool:
        """Note the last use of a session, and its chosen entity.

        An ended one stays ended: False.
        """

    async def end(self, session_id: str, event: AuditEvent) -> bool:
        """End a session; False if it had ended before."""

    async def end_all(self, user_id: str, event: AuditEvent, *, but_browser: str = "") -> None:
        """End every session of a person, except those of one browser."""

    async def browser_names(self, user_id: str) -> dict[str, str]:
        """The names that a person gave their browsers, by key."""

    async def name_browser(self, user_id: str, browser_key: str, name: str, event: AuditEvent, *, at: int) -> None:
        """Name a browser of a person; an empty name takes it away.

        Of more than `BROWSER_NAMES` the oldest go.
        """

    async def sweep(self, *, now: float) -> int:
        """Remove some expired ones.

        How many went. Called again and again, it finds them all.
        """


class Factors(Protocol):
    """People's factors, and the links for setting them."""

    async def account(self, user_id: str, *, browser: str = "") -> Account | None:
        """Load a person with all data for signing in, in one statement.

        The result is None for unknown people. `browser` is the key that guesses at codes are counted by
        (`CodeGuesses.browser`).
        """

    async def account_by_name(self, user_name: str) -> Account | None:
        """Load the same by user name, compared after PRECIS mapping.

        The guesses are those of unknown browsers. Source: D51
        """

    async def account_by_passkey(self, credential_id: str) -> Account | None:
        """The same by a passkey that is theirs."""

    async def credentials(self, user_id: str) -> Credentials:
        """A person's password and app.

        Neither if none is stored, or for unknown people.
        """

    async def raise_totp_step(self, user_id: str, step: int, event: AuditEvent) -> bool:
        """Raise the last accepted step in one conditional statement.

        False if it was not lower (D45).
        """

    async def rehash(self, user_id: str, old_hash: str, new_hash: str) -> bool:
        """Replace a password hash by a stronger one of the same password.

        False if it is no longer the old one.
        """

    async def passkey(self, credential_id: str) -> Passkey | None: ...
    async def passkeys(self, user_id: str) -> list[Passkey]: ...
    async def use_passkey(self, used: Passkey, before: Passkey, event: AuditEvent) -> bool:
        """Write the counter and moment of a use, in one statement.

        False if the counter is not what it was (D46).
        """

    async def rename_passkey(self, passkey: Passkey, event: AuditEvent) -> bool:
        """Rename a passkey, found by its id and owner.

        False if there is none (D46).
        """

    async def decline_passkey(self, user_id: str, *, at: int) -> None:
        """Write when a person last declined a passkey, in epoch seconds.

        Raises MissingReference for a removed person. Source: D46
        """

    async def recovery_codes_left(self, user_id: str) -> int: ...
    async def take_recovery_code(self, user_id: str, code_hash: str, event: AuditEvent) -> bool:
        """Spend a code; True for the first only (D45)."""

    async def change(self, change: FactorChange, event: AuditEvent) -> bool:
        """Write a person's change of factors, atomically.

        False if the credentials are no longer as they were, the session has ended, the link was spent before, the
        passkey is known, or one of the conditions on how many there are does not hold.
        """

    async def keep_link(self, link: Link, event: AuditEvent, *, spared: str = "") -> None:
        """Store a link.

        Those of the same person and purpose end, except for the one with the hash `spared`.
        """

    async def link(self, link_hash: str) -> Link | None:
        """An unspent link; it may have expired."""

    async def links_of(self, user_id: str) -> list[Link]:
        """Return the unspent links of a person; some may have expired."""


class CodeGuessCounts(Protocol):
    """Code guesses of a person, by browser or group of browsers.

    Source: D45
    """

    async def get(self, user_id: str, browser: str) -> CodeGuesses:
        """The count; zero guesses if none is stored."""

    async def list_for_user(self, user_id: str) -> list[CodeGuesses]:
        """Every count of a person."""

    async def replace(self, seen: CodeGuesses, after: CodeGuesses) -> bool:
        """Replace a count, in one conditional statement.

        False if it is no longer the one that was read.
        """

    async def forget(self, user_id: str, browser: str) -> None: ...
    async def forget_all(self, user_id: str, event: AuditEvent | None = None) -> None:
        """Forget every count of a person; the event is written with it."""


class Registry(Protocol):
    """The durable store."""

    def lost_at(self) -> float:
        """The end of the last loss of changes, in epoch seconds.

        0.0 if nothing was ever lost.
        """

    @property
    def clients(self) -> Clients: ...
    @property
    def api_clients(self) -> ApiClients: ...
    @property
    def directory(self) -> Directory: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def consents(self) -> Consents: ...
    @property
    def email_changes(self) -> EmailChanges: ...
    @property
    def factors(self) -> Factors: ...
    @property
    def invitations(self) -> Invitations: ...
    @property
    def code_guesses(self) -> CodeGuessCounts: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def client_refusals(self) -> ClientRefusals: ...
    @property
    def client_clocks(self) -> ClientClocks: ...
    @property
    def hourly_counts(self) -> HourlyCounts: ...
    @property
    def server_processes(self) -> ServerProcesses: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def seals(self) -> AuditSeals: ...
    @property
    def deployment(self) -> Deployment: ...
    @property
    def idempotency_keys(self) -> IdempotencyKeys: ...
    @property
    def provisioning(self) -> Provisioning: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def access_reviews(self) -> AccessReviews: ...


REGISTRY_PARTS: Final = tuple(name for name, member in vars(Registry).items() if isinstance(member, property))
"""the names of its stores"""
