"""Audit events, entries, and the interface of the audit table (D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.rules.audit_seals import AuditEnds, Seal


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A security event, written in the transaction of its change.

    The store adds members before and after: it is what sees the record that is replaced. Source: D57
    """

    actor: str
    """a kind of `actors.ACTOR_KINDS`, and a name after a colon if it has one, e.g. `user:{user_id}`"""
    action: str
    """noun.verb, e.g. `client.disable`, `sign_in.complete`, `key.rotate`"""
    object: str = ""
    client_id: str = ""
    entity_id: str = ""
    other_entity_id: str = ""
    """the other entity of an event about two: an authorisation of a third party, and roles under it (D56)"""
    outcome: Literal["ok", "refused"] = "ok"
    request_id: str = ""
    detail: dict[str, str] = msgspec.field(default_factory=dict)


class AuditEntry(AuditEvent, frozen=True, kw_only=True):
    """An event as it was written."""

    number: int
    at: int
    before: dict[str, object] = msgspec.field(default_factory=dict)
    """members of the changed record, as they may be shown; empty if it was added"""
    after: dict[str, object] = msgspec.field(default_factory=dict)
    erased: bool = False
    """whether the entry had details that were erased: addresses, personal members"""


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions on entries; those that are not set fit every one."""

    actor: str = ""
    user_id: str = ""
    """the actor or the object"""
    entity_id: str = ""
    client_id: str = ""
    actions: tuple[str, ...] = ()
    """any of these; empty: every action"""
    object: str = ""
    since: int = 0
    """epoch seconds"""
    before: int = 0
    """entries of lower numbers; 0: of any"""


class AuditPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the entries that fit, the latest first."""

    entries: list[AuditEntry]
    before: int
    """the number before which to go on; 0: there is no more"""


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as it is stored, with its details."""

    row: dict[str, str | int]
    """column → value"""
    salt: str | None
    """None, as `detail`: it has no details, or they were erased"""
    detail: str | None


class AuditSeals(Protocol):
    """The seals of the audit table, and their entries (D58)."""

    async def settled_number(self) -> int:
        """A number up to which no entry can appear any more."""

    async def rows(self, *, after: int, last: int, limit: int) -> list[StoredEntry]:
        """Entries after a number, up to another, in order."""

    async def unsealed(self, *, after: int) -> tuple[int, int, int]:
        """The number of later entries, the first and the last.

        0 if there is none.
        """

    async def last(self) -> Seal | None:
        """The last seal, without its digests."""

    async def page(self, *, after: int, limit: int) -> list[Seal]:
        """The seals after a number, in order."""

    async def ends(self) -> AuditEnds:
        """The highest number in each table of the audit."""

    async def add(self, seal: Seal, latest: Mapping[str, int]) -> bool:
        """Store the next seal.

        `latest` are the moments of its lists. False if another process has stored one meanwhile.
        """


class StreamFailed(Exception):
    """Entries could not be handed over; the message says why."""


class StreamInterrupted(Exception):
    """The receiver ended the connection while nothing was sent.

    It may not have read the last entries.
    """

    def __init__(self, *, is_reset: bool = False) -> None:
        super().__init__("the connection ended")
        self.is_reset = is_reset
        """the receiver had certainly not read everything"""


class AuditTarget(Protocol):
    """A file or server that the audit is streamed to (docs/decisions/0030)."""

    @property
    def name(self) -> str:
        """Of the target, for the log."""

    @property
    def is_lasting(self) -> bool:
        """True if confirmed entries outlive the receiver."""

    async def send(self, entries: Sequence[AuditEntry]) -> None:
        """Pass entries on, in order.

        Raises StreamFailed, and StreamInterrupted before anything was sent.
        """

    async def confirm(self) -> None:
        """Return when what was sent has been handed over. Raises StreamFailed."""

    async def close(self) -> None:
        """Let go of file or connection."""


class Audit(Protocol):
    """The append-only audit table."""

    async def write(self, event: AuditEvent, *, now: float) -> None: ...
    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """Entries after a number, the oldest first, without gaps."""

    async def between(self, *, after: int, last: int | None = None, limit: int) -> list[AuditEntry]:
        """Visible entries after a number, up to another, in order.

        None: up to the last one. Without gaps if `last` is settled (`AuditSeals.settled_number`).
        """

    async def latest(self, query: AuditQuery, *, limit: int) -> list[AuditEntry]:
        """The last entries that fit, the latest first."""

    async def part(self, query: AuditQuery, *, limit: int, examined: int) -> AuditPart:
        """The same, from so many entries of each way."""

    async def list_by_action(self, actions: Sequence[str], *, after: int, last: int, limit: int) -> list[AuditEntry]:
        """Entries with one of these actions, in order.

        They come after a number, up to another.
        """

    async def sign_ins_of(self, user_id: str, *, limit: int) -> list[AuditEntry]:
        """The last completed sign-ins of a person, the latest first."""
