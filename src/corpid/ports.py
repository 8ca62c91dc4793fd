"""What the flows need from the world.

Registry holds what lasts, TransientStore what lives for minutes. A port exists only where the
world can differ. Times are epoch seconds, lifetimes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractAsyncContextManager

    from corpid.directory.choice import Form
    from corpid.directory.records import (
        Acting,
        Assignment,
        Credentials,
        Entity,
        Membership,
        Record,
        Service,
        ThirdPartyRow,
        User,
    )
    from corpid.jose.keys import ClientKeySet
    from corpid.protocol.records import Client

Clock: TypeAlias = "Callable[[], float]"
R = TypeVar("R", bound="Record")


class StoreUnavailable(Exception):
    """The store cannot be reached or stayed busy; becomes temporarily_unavailable."""


class Conflict(Exception):
    """A change that the registry's rules refuse; the text says which and why. Its transaction is rolled back."""


class NameTaken(Conflict):
    """Another user has this user name, after PRECIS mapping (D51)."""


class NameRefused(Conflict):
    """The user name cannot be mapped: it is empty or has characters that no user name has (D51)."""


class MissingReference(Conflict):
    """The record names another one (an entity, a user, a membership, a service) that does not exist."""


class KeySetUnavailable(Exception):
    """No key set of this client can be had: unreachable or malformed, and no last good one (D27)."""


class SecretUnreadable(Exception):
    """A secret at rest does not open: the key-encryption key is another one, or the row was changed (D43)."""


class PasswordsBusy(Exception):
    """Too many password checks are waiting; becomes temporarily_unavailable."""


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of the change it tells of."""

    actor: str
    """`operator`, `user:{user_id}`, `client:{client_id}`, `system`, or `anonymous` before anybody is known"""
    action: str
    """noun.verb, e.g. `client.disable`, `sign_in.complete`, `key.rotate`"""
    object: str = ""
    client_id: str = ""
    entity_id: str = ""
    outcome: Literal["ok", "refused"] = "ok"
    request_id: str = ""
    detail: dict[str, str] = msgspec.field(default_factory=dict)


class AuditEntry(AuditEvent, frozen=True, kw_only=True):
    """An event as it was written."""

    number: int
    at: int


class SealedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the provider, opened. `use` is `sig` (an EC private JWK) or `mac` (32 bytes, base64url)."""

    kid: str
    use: Literal["sig", "mac"]
    secret: str
    created_at: int
    active_from: int
    retired_at: int | None = None
    revoked_at: int | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A signed-in browser (D30); `expires_at` is absolute."""

    session_id: str
    user_id: str
    browser_id: str
    auth_time: int
    amr: tuple[str, ...]
    level: int
    expires_at: int
    entity_id: str = ""
    """the entity chosen last"""


class FetchedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The last good key set of a jwks_uri, kept across restarts (D27)."""

    jwks_uri: str
    jwks: str
    fetched_at: int


class Upsert(msgspec.Struct, frozen=True):
    """Write this record, whether or not it exists."""

    record: Record | Client


class Delete(msgspec.Struct, frozen=True):
    """Remove this record."""

    record: Record | Client


Change = Upsert | Delete


class Clients(Protocol):
    """Registered clients."""

    async def get(self, client_id: str) -> Client | None: ...
    async def all(self) -> list[Client]: ...
    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None: ...
    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None: ...
    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None: ...


class Directory(Protocol):
    """Entities, users and what ties them. Reads of the request path are single statements on an index."""

    async def acting(self, user_id: str, entity_id: str) -> Acting | None: ...
    async def user(self, user_id: str) -> User | None: ...
    async def user_by_name(self, user_name: str) -> User | None:
        """By user name, compared after PRECIS mapping (D51)."""

    async def credentials(self, user_id: str) -> Credentials | None: ...
    async def usable(self, user_id: str, accepted: AbstractSet[Form]) -> list[str]:
        """At most two entities that a person can act for: enabled in every link, of these types and statuses."""

    async def choices(
        self, user_id: str, accepted: AbstractSet[Form], *, words: Sequence[str], first: str, limit: int
    ) -> tuple[list[tuple[Entity, Membership]], int]:
        """The first so many memberships of a person whose entity matches every word (`choice.search_words`), and
        how many do: usable ones (of these `first`) before the others, then by name."""

    async def services(self, service_ids: Sequence[str]) -> list[Service]: ...
    async def assignments(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[Assignment]: ...
    async def third_party_rows(
        self, user_id: str, entity_id: str, service_ids: Sequence[str]
    ) -> list[ThirdPartyRow]: ...

    async def raise_totp_step(self, user_id: str, step: int, event: AuditEvent) -> bool:
        """Raise the last accepted step in one conditional statement; False if it was not lower (D45)."""

    async def rehash(self, user_id: str, old_hash: str, new_hash: str) -> None:
        """Replace a password hash by a stronger one of the same password, if it is still the old one."""

    async def read(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], R]:
        """The records with these keys; those that do not exist are left out."""

    def scan(self, kind: type[R]) -> AsyncIterator[R]:
        """Every record of a kind, by key."""

    async def write(self, changes: Sequence[Change], event: AuditEvent) -> None:
        """Write changes, many of them in several short transactions; the event goes with the last. Raises Conflict."""


class Keys(Protocol):
    """The provider's own keys, sealed at rest (D42, D43)."""

    async def all(self) -> list[SealedKey]: ...
    async def add(self, key: SealedKey, event: AuditEvent) -> None: ...
    async def add_first(self, keys: Sequence[SealedKey]) -> bool:
        """Store the first keys of a deployment; False if there are keys already."""

    async def update(self, key: SealedKey, event: AuditEvent) -> None: ...


class Sessions(Protocol):
    """Signed-in browsers; listed and ended."""

    async def get(self, session_id: str, *, now: float) -> Session | None: ...
    async def put(self, session: Session) -> None: ...
    async def end(self, session_id: str, event: AuditEvent) -> None: ...
    async def end_all(self, user_id: str, event: AuditEvent) -> None:
        """End every session of a person: who held one has to sign in anew."""


class Audit(Protocol):
    """The append-only audit table."""

    async def write(self, event: AuditEvent, *, now: float) -> None: ...
    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]: ...


class Deployment(Protocol):
    """Switches that all processes see."""

    async def ready(self) -> None:
        """Raise StoreUnavailable unless the store answers."""

    async def maintenance(self) -> bool: ...
    async def set_maintenance(self, on: bool, event: AuditEvent) -> None: ...


class Registry(Protocol):
    """What lasts."""

    @property
    def clients(self) -> Clients: ...
    @property
    def directory(self) -> Directory: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def deployment(self) -> Deployment: ...


class TransientUnit(Protocol):
    """The five verbs, inside one unit. Keys are hashes made by `flows.kinds`."""

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None: ...
    async def get(self, kind: str, key: bytes) -> bytes | None: ...
    async def take(self, kind: str, key: bytes) -> bytes | None:
        """Get and delete, atomically."""

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        """True for the first only, until it expires."""

    async def count(self, kind: str, key: bytes, ttl: float) -> int:
        """Raise a counter and return it; the first raise starts its lifetime."""


class TransientStore(Protocol):
    """What lives for minutes."""

    @property
    def forgotten_at(self) -> float:
        """When this store last lost its memory, epoch seconds: what was issued before must be refused."""

    def unit(self, now: float) -> AbstractAsyncContextManager[TransientUnit]:
        """Several verbs together. Leaving it with an OAuthError commits what was spent; nothing but
        verbs of the stores is awaited inside. Raises StoreUnavailable."""

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        """One look outside a unit."""

    async def sweep(self, *, now: float) -> int:
        """Remove some expired entries; how many went. Called again and again, it finds them all;
        correctness never depends on it."""


class ClientKeys(Protocol):
    """Key sets of clients, inline or by URL, prepared for use (D27)."""

    async def current(self, client: Client, *, now: float) -> ClientKeySet:
        """Raises KeySetUnavailable, and StoreUnavailable where no set is in memory and the registry cannot be asked."""

    async def refetched(self, client: Client, *, now: float) -> ClientKeySet:
        """The set after an unknown kid or a bad signature: fetched again, at most once a minute.
        An inline set is returned as it is. Raises as `current`."""


class Passwords(Protocol):
    """argon2id in threads of its own (D44)."""

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """With None the same work is done for nobody. Raises PasswordsBusy."""

    async def hash(self, password: str) -> str: ...
    def guessable(self) -> AbstractSet[str]:
        """What attackers try first, casefolded: for `password_rules.chosen_password`."""

    def outdated(self, password_hash: str) -> bool: ...
