"""Differences of records: changed members as shown, and plans in words.

Which members are secret, masked or personal follows from the declaration of their fields (`Field.disclosure`), for the
plan of a directory file and for the audit (D57).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.rules.directory.names import set_apart
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.sources import WHOLE, RetainedRecord, channel, in_words
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from corpid.rules.fields import Disclosure, fields_of

if TYPE_CHECKING:
    from corpid.rules.directory.document import Key, Kind
    from corpid.rules.directory.records import Change

SHOWN_CHARACTERS: Final = 4
"""of a masked member, its last ones"""


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that changed, before and after.

    An added record has none before, a removed one none after. Values are those of JSON.
    """

    before: dict[str, object] = msgspec.field(default_factory=dict)
    after: dict[str, object] = msgspec.field(default_factory=dict)
    personal: frozenset[str] = frozenset()
    """names of those that belong into the details"""

    @property
    def names(self) -> list[str]:
        """The names of changed members.

        None for a record that is added or removed.
        """
        return [name for name in self.after if name in self.before] if self.before and self.after else []


@cache
def disclosures(record: type[msgspec.Struct]) -> Mapping[str, Disclosure]:
    """Members of a record that are not shown as they are. Source: D57"""
    return {each.name: each.disclosure for each in fields_of(record).values() if each.disclosure is not None}


def visible_members(record: msgspec.Struct | None) -> dict[str, object]:
    """The members of a record without its bookkeeping.

    As they are: secrets, too. Source: D57
    """
    if record is None:
        return {}
    declared = disclosures(type(record))
    names = record.__struct_fields__
    return {name: getattr(record, name) for name in names if declared.get(name) is not Disclosure.BOOKKEEPING}


def compare_members(was: msgspec.Struct | None, becomes: msgspec.Struct | None) -> Members:
    """The members in which two states of a record differ.

    In the form in which they may be shown. None is the state of a record that does not exist. Source: D57
    """
    record = becomes or was
    if record is None:
        return Members()
    declared, old, new = disclosures(type(record)), visible_members(was), visible_members(becomes)
    if was is not None and becomes is not None:
        names = [name for name in new if old[name] != new[name]]
    else:
        names = [name for name, value in (old or new).items() if is_disclosed(declared.get(name), value)]
    return Members(
        before={name: disclose_value(declared.get(name), old[name]) for name in names if name in old},
        after={
            name: disclose_value(declared.get(name), new[name], changed=name in old and _is_set(old[name]))
            for name in names
            if name in new
        },
        personal=frozenset(name for name in names if declared.get(name) in {Disclosure.PERSONAL, Disclosure.MASKED}),
    )


def merge_members(*parts: Members) -> Members:
    """The members of one change that several records have part in. Source: D57"""
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    for part in parts:
        before |= part.before
        after |= part.after
    return Members(before=before, after=after, personal=frozenset().union(*(part.personal for part in parts)))


def disclose_value(how: Disclosure | None, value: object, *, changed: bool = False) -> object:
    """A value as plan and audit may show it, for JSON.

    `changed`: another one was there before. Source: D57
    """
    if how is Disclosure.SECRET:
        return ("changed" if changed else "set") if _is_set(value) else None
    if how is Disclosure.MASKED and isinstance(value, str):
        return mask_text(value)
    plain: object = msgspec.to_builtins(value)
    return plain


def is_disclosed(how: Disclosure | None, value: object) -> bool:
    """Return whether the value of an added or removed record is shown. Source: D57"""
    return bool(value) if how is Disclosure.MARK else _is_set(value)


def mask_text(text: str) -> str:
    """A text with only its end readable.

    Nothing of a short one. Source: D57, D61
    """
    if len(text) <= SHOWN_CHARACTERS:
        return "•" * len(text)
    return "•" * (len(text) - SHOWN_CHARACTERS) + text[-SHOWN_CHARACTERS:]


def masked_address(address: str) -> str:
    """Return a masked e-mail address: `m•••@example.com`."""
    name, _, host = address.rpartition("@")
    return f"{name[:1]}•••@{host}"


_UNSET: Final = ("", None, ())


def _is_set(value: object) -> bool:
    return value not in _UNSET


OTHER_PERSON: Final = (
    "whoever has this user name set up the account themselves, and its e-mail address is not written here. If it is the "
    "same person, write that address; otherwise choose another user name"
)
LONGEST: Final = 80
UNREMOVED_SHOWN: Final = 20
"""remarks on records that pruning leaves to others; further ones are counted"""
_SIGNS: Final[Mapping[str, Literal["+", "~", "-"]]] = {"add": "+", "change": "~", "remove": "-"}


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A changed record: `+`, `~` or `-`, its name, its members.

    The members as `name: old → new` or `name: value`.
    """

    sign: Literal["+", "~", "-"]
    subject: str
    members: tuple[str, ...] = ()


def difference(change: Change, user_names: Mapping[str, str]) -> Difference:
    """A change in words.

    `user_names` is user identifier → user name. Source: docs/directory.md
    """
    members: list[str] = []
    if change.after is not None:
        members = (
            members_set(change.after, change.key)
            if change.before is None
            else members_changed(change.before, change.after)
        )
    members += [f"taken over: {what}from {by}" for what, by in _taken(change, user_names)]
    subject = name_record(change.kind, change.key, user_names)
    return Difference(sign=_SIGNS[change.verb], subject=subject, members=tuple(members))


def _taken(change: Change, user_names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    owner = change.key[0] if change.kind == "user" else ""
    for by in dict.fromkeys(change.taken.values()):
        names = [name for name, had in change.taken.items() if had == by]
        yield "" if WHOLE in names else f"{', '.join(names)}, ", in_words(by, user_names, owner)


class RetainedRecordNote(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a document leaves to others, in words."""

    verb: Literal["add", "change", "remove"]
    subject: str
    members: tuple[str, ...]
    """names of those that the document would change"""
    sources: tuple[str, ...]
    """channels through which others wrote it; none if something of others rests on it"""
    by: tuple[str, ...]
    line: int
    """of the file; 0: it does not name the record"""


def kept_record(kept: RetainedRecord, user_names: Mapping[str, str]) -> RetainedRecordNote:
    """A record that is kept, in words.

    `user_names` as in `difference`. Source: D65
    """
    owner = kept.key[0] if kept.kind == "user" else ""
    return RetainedRecordNote(
        verb=kept.verb,
        subject=name_record(kept.kind, kept.key, user_names),
        members=kept.members,
        sources=tuple(channel(by, owner) for by in kept.by),
        by=tuple(in_words(by, user_names, owner) for by in kept.by),
        line=kept.line,
    )


def remarks(every: Sequence[RetainedRecordNote]) -> list[FileProblem]:
    """Remarks on records that a file leaves to others, by line.

    Of records that pruning leaves, the first twenty. Source: D65
    """
    changed = [
        FileProblem(one.line, f"{one.subject}{_why_not_set(one)}")
        for verb in ("change", "add")
        for one in every
        if one.verb == verb
    ]
    unremoved = [one for one in every if one.verb == "remove"]
    shown = [
        FileProblem(0, f"--prune leaves {one.subject}: {_why(one)}; --take-over removes it")
        for one in unremoved[:UNREMOVED_SHOWN]
    ]
    rest = len(unremoved) - len(shown)
    further = [FileProblem(0, f"--prune leaves {rest} more that others wrote: --json lists them")] if rest else []
    return [*changed, *shown, *further]


def _why_not_set(one: RetainedRecordNote) -> str:
    if one.members and not one.by:
        return f" is not {'added' if one.verb == 'add' else 'changed'}: {OTHER_PERSON}"
    if one.verb == "change":
        return f": {', '.join(one.members)} stays as set by {one.by[0]}; --take-over takes it over"
    reason = f"as by {one.by[0]}" if one.by else "because what it depends on was"
    return f" stays removed, {reason}; --take-over adds it again"


def _why(one: RetainedRecordNote) -> str:
    return f"last written by {' and '.join(one.by)}" if one.by else "records of others depend on it"


def name_record(kind: Kind, key: Key, user_names: Mapping[str, str]) -> str:
    """A record by its kind and key. `user_names` as in `difference`. Source: docs/directory.md"""
    return _SUBJECTS[kind](tuple(user_names.get(part, part) for part in key))


def members_set(record: msgspec.Struct, key: Key) -> list[str]:
    """The members of a new record, in words.

    Without those that are its key. Source: docs/directory.md
    """
    members, declared = visible_members(record), disclosures(type(record))
    named = {name for name, value in members.items() if value in key}
    return [
        f"{name}: {_text(declared.get(name), value)}"
        for name, value in members.items()
        if name not in named and _is_worth_showing(declared.get(name), value)
    ]


def members_changed(record: msgspec.Struct, replaced_by: msgspec.Struct) -> list[str]:
    """The members in which two states of a record differ, in words. Source: docs/directory.md"""
    was, becomes, declared = visible_members(record), visible_members(replaced_by), disclosures(type(replaced_by))
    return [
        f"{name}: {_text(declared.get(name), was[name])} → {_text(declared.get(name), becomes[name])}"
        for name in becomes
        if was[name] != becomes[name]
    ]


def _is_worth_showing(how: Disclosure | None, value: object) -> bool:
    return bool(value) if how is Disclosure.MARK else value not in ("", None, (), True)


def _text(how: Disclosure | None, value: object) -> str:
    if how is Disclosure.SECRET:
        return "(set)" if value else "(none)"
    text = mask_text(str(value)) if how is Disclosure.MASKED and value else to_text(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def to_text(value: object) -> str:
    """A value of a member, in words. Source: docs/directory.md"""
    if isinstance(value, tuple | list):
        return ", ".join(to_text(item) for item in value) or "(none)"
    if isinstance(value, Parameter):
        return f"{value.name} = {set_apart(value.value)}"
    if isinstance(value, ParameterDefinition):
        return f"{value.name} ({value.kind}{', mandatory' if value.mandatory else ''})"
    if isinstance(value, RoleDescription):
        return f"{value.name}: {value.description}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "(none)" if value in {"", None} else str(value)


def _row(service_id: str, role: str, sub_entity: str, ref: str) -> str:
    parts = [
        f" as {set_apart(role)}" if role else "",
        f" in {set_apart(sub_entity)}" if sub_entity else "",
        f" [{set_apart(ref)}]" if ref else "",
    ]
    return f"at {service_id}{''.join(parts)}"


_SUBJECTS: Final[Mapping[Kind | Literal["API client"], Callable[[Key], str]]] = {
    "API client": lambda key: f"API client {key[0]}",
    "service": lambda key: f"service {key[0]}",
    "entity": lambda key: f"entity {key[0]}",
    "user": lambda key: f"user {key[0]}",
    "credentials": lambda key: f"factors of {key[0]}",
    "membership": lambda key: f"membership: {key[0]} acts for {key[1]}",
    "administrator": lambda key: f"administrator: {key[0]} at {key[1]}",
    "operator": lambda key: f"operator: {key[0]}",
    "assignment": lambda key: f"assignment: {key[0]} for {key[1]} {_row(*key[2:])}",
    "grant": lambda key: f"grant: {key[0]} lets {key[1]} act {_row(*key[2:])}",
    "third-party row": lambda key: f"third-party row: {key[0]} of {key[1]} for {key[2]} {_row(*key[3:])}",
    "client": lambda key: f"client {key[0]}",
}
