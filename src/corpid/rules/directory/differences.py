"""A plan as text, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.rules.directory.members import disclosures, mask_text, visible_members
from corpid.rules.directory.names import set_apart
from corpid.rules.directory.nodes import FileProblem
from corpid.rules.directory.sources import WHOLE, RetainedRecord, channel, in_words
from corpid.rules.directory.values import Parameter, ParameterDefinition, RoleDescription
from corpid.rules.fields import Disclosure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from corpid.rules.directory.document import Key, Kind
    from corpid.rules.directory.records import Change


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
