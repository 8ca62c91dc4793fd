"""Sources of records, and the rule of who wins (D65).

A record knows the actor that wrote it last, as the audit writes actors. A person's record knows who made it, and of
each member who set it since: the person, an operator and a file may all have part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from corpid.rules.directory.document import DocumentEntry, Key, Kind
from corpid.rules.directory.names import fold_ascii
from corpid.rules.directory.records import Sources, User
from corpid.rules.fields import KeyedRecord

Channel: TypeAlias = Literal["file", "command line", "API", "SCIM", "page", "person", "unknown"]
"""through which a record or a member came"""

CHANNELS: Final[Mapping[str, Channel]] = {
    "file": "file",
    "command": "command line",
    "client": "API",
    "token": "SCIM",
    "operator": "page",
    "user": "page",
}
"""kind of actor → its channel; a user's own record is the person's"""
RELATIONS: Final[tuple[Kind, ...]] = (
    "membership", "administrator", "operator", "assignment", "grant", "third-party row",
)  # fmt: skip
"""kinds that a file does not give again once another channel has removed them"""
WHOLE: Final = "*"
"""stands for the record itself among its members"""

T = TypeVar("T", bound=KeyedRecord)


UNKNOWN: Final = Sources()
"""of records from before sources were stored, from an earlier version, or from CorpID itself"""
ABSENT: Final = Sources(record="absent")
"""of a record that there is not"""


class SourcedRecord(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    record: T
    sources: Sources


def channel(actor: str, owner: str = "") -> Channel:
    """Return the channel of an actor.

    `owner` is the person whose own record it is about, if it is one. Source: D65
    """
    if owner and actor == f"user:{owner}":
        return "person"
    return CHANNELS.get(actor.partition(":")[0], "unknown")


def sources_after(
    actor: str,
    was: KeyedRecord | None,
    becomes: KeyedRecord,
    sources: Sources,
    taken: frozenset[str] = frozenset(),
) -> Sources:
    """Return the sources of a record after an actor has written it.

    `sources` are those before, `taken` members that become the actor's with the value they have. What keeps its value
    keeps its source, and CorpID itself is none. Source: D65
    """
    if actor.partition(":")[0] not in CHANNELS or (was == becomes and not taken):
        return UNKNOWN if was is None else sources
    if was is None or not isinstance(becomes, User):
        return Sources(record=actor)
    maker = actor if WHOLE in taken else sources.record
    members = {
        name: actor if name in taken or getattr(was, name) != getattr(becomes, name) else sources.source_of(name)
        for name in becomes.__struct_fields__
    }
    return Sources(record=maker, members={name: by for name, by in members.items() if by != maker})


def in_words(actor: str, user_names: Mapping[str, str], owner: str = "") -> str:
    """Return an actor in words, to follow "by"; empty if unknown.

    `user_names` is user identifier → user name. Source: D65
    """
    _, _, name = actor.partition(":")
    match channel(actor, owner):
        case "file":
            return f"the file {name.rstrip('/').rpartition('/')[2] or name}"
        case "command line":
            return f"{name} on the command line"
        case "API":
            return f"the API client {name}"
        case "SCIM":
            return f"the provisioning token {name}"
        case "page":
            return f"{user_names.get(name, name)} in the browser"
        case "person":
            return "the person"
    return ""


def is_made_by_person(user: User, sources: Sources) -> bool:
    """Return whether a person set up their account themselves.

    Then they chose its user name, too. Source: D65, D68
    """
    return channel(sources.record, user.user_id) == "person"


def means_another(entry: DocumentEntry | None, user: User, sources: Sources) -> bool:
    """Return whether a document does not mean the account of a name.

    Whoever sets up an account chooses its user name: of the person, only its address is proven. `entry` is the one of
    the user, if there is one. Source: D65, D68
    """
    if not is_made_by_person(user, sources) or (entry is not None and "user_id" in entry.fields):
        return False
    address = str(entry.fields.get("email", "")) if entry is not None else ""
    return fold_ascii(address) != fold_ascii(user.email) or not address


def people(actors: Iterable[str]) -> set[str]:
    """Return the identifiers of the people among actors. Source: D65."""
    split = (actor.partition(":") for actor in actors)
    return {name for kind, _, name in split if kind in {"user", "operator"} and name}


class RetainedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a document leaves alone, contrary to its text."""

    verb: Literal["add", "change", "remove"]
    kind: Kind
    key: Key
    by: tuple[str, ...]
    """whose it is, or who removed it; empty: something of others rests on it, or it rests on what they removed"""
    members: tuple[str, ...] = ()
    """those that the document would change; with nobody in `by`, those in which the person of the account differs"""
    line: int = 0


class WritableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as a document may write it."""

    record: KeyedRecord
    kept: tuple[RetainedRecord, ...] = ()
    taken: dict[str, str] = msgspec.field(default_factory=dict)
    """member → who had set it"""


class Ownership(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of a directory, and the channel of a document."""

    channel: Channel
    sources: dict[Kind, dict[Key, Sources]]
    removed: dict[tuple[Kind, Key], str] = msgspec.field(default_factory=dict)
    """record that there is not → who removed it last"""
    take_over: bool = False

    def sources_of(self, kind: Kind, key: Key) -> Sources:
        return self.sources.get(kind, {}).get(key, UNKNOWN)

    def other_owners(self, kind: Kind, key: Key) -> tuple[str, ...]:
        """Return who else a record belongs to.

        What people set of their own record keeps nobody from removing it. Nobody, if everything is taken over.
        """
        if self.take_over:
            return ()
        held = self.sources_of(kind, key)
        since = (by for by in held.members.values() if channel(by, _owner(kind, key)) != "person")
        return tuple(dict.fromkeys(by for by in (held.record, *since) if self._is_another(by)))

    def remover(self, kind: Kind, key: Key) -> str:
        """Return who else removed a record that there is not.

        Empty if nobody did, or everything is taken over.
        """
        by = self.removed.get((kind, key), "")
        return by if not self.take_over and self._is_another(by) else ""

    def gave(self, kind: Kind, key: Key) -> bool:
        """Return whether a file wrote a record.

        Documents of the API never did: an entity's own client writes through it, too.
        """
        return channel(self.sources_of(kind, key).record) == "file"

    def differs_from(self, entry: DocumentEntry | None, user: msgspec.Struct | None) -> bool:
        """Return whether a document means somebody else than an account.

        `entry` is the one of the user, if there is one. Source: D65, D68
        """
        return isinstance(user, User) and means_another(entry, user, self.sources_of("user", user.key))

    def limit_record(
        self, entry: DocumentEntry, key: Key, existing: KeyedRecord, record: KeyedRecord
    ) -> WritableRecord:
        """Return what a document can change in an existing record.

        What others set stays, unless everything is taken over. Source: D65
        """
        held = self.sources_of(entry.kind, key)
        names = record.__struct_fields__
        if not isinstance(existing, User):
            if not self._is_another(held.record):
                return WritableRecord(record=record)
            if self.take_over:
                return WritableRecord(record=record, taken={WHOLE: held.record})
            members = tuple(name for name in names if getattr(existing, name) != getattr(record, name))
            kept = RetainedRecord(
                verb="change", kind=entry.kind, key=key, by=(held.record,), members=members, line=entry.line
            )
            return WritableRecord(record=existing, kept=(kept,) if existing != record else ())
        named = ("user_name", *(name for name in names if name in entry.fields))
        own = {name: held.source_of(name) for name in named if self._is_another(held.source_of(name))}
        if self.take_over:
            return WritableRecord(
                record=record, taken=({WHOLE: held.record} if self._is_another(held.record) else {}) | own
            )
        stay = {name: getattr(existing, name) for name in own if getattr(existing, name) != getattr(record, name)}
        kept_members = (
            RetainedRecord(
                verb="change", kind=entry.kind, key=key, by=(own[name],), members=(name,), line=entry.line_of(name)
            )
            for name in stay
        )
        return WritableRecord(record=msgspec.structs.replace(record, **stay), kept=tuple(kept_members))

    def _is_another(self, actor: str) -> bool:
        return channel(actor) not in {self.channel, "unknown"}


def _owner(kind: Kind, key: Key) -> str:
    return key[0] if kind == "user" else ""
