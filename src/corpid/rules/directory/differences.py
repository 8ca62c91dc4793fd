"""A plan as text, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.rules.directory.members import Telling, masked, shown, telling
from corpid.rules.directory.records import Parameter, ParameterDefinition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.sections import Kind

Key: TypeAlias = tuple[str, ...]

LONGEST: Final = 80
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
    key = tuple(user_names.get(part, part) for part in change.key)
    members: Iterable[str] = ()
    if change.was is None:
        members = _added(change)
    elif change.becomes is not None:
        members = members_changed(change.was, change.becomes)
    return Difference(sign=_SIGNS[change.verb], subject=_SUBJECTS[change.kind](key), members=tuple(members))


def _added(change: Change) -> list[str]:
    members, declared = shown(change.becomes), _declared(change)
    named = {name for name, value in members.items() if value in change.key}
    return [
        f"{name}: {_text(declared.get(name), value)}"
        for name, value in members.items()
        if name not in named and _is_set(value)
    ]


def members_changed(record: msgspec.Struct, replaced_by: msgspec.Struct) -> list[str]:
    """The members in which two states of a record differ, in words. Source: docs/directory.md"""
    was, becomes, declared = shown(record), shown(replaced_by), telling(replaced_by)
    return [
        f"{name}: {_text(declared.get(name), was[name])} → {_text(declared.get(name), becomes[name])}"
        for name in becomes
        if was[name] != becomes[name]
    ]


def _declared(change: Change) -> Mapping[str, Telling]:
    record = change.becomes or change.was
    return {} if record is None else telling(record)


def _is_set(value: object) -> bool:
    return value not in ("", None, (), True)


def _text(how: Telling | None, value: object) -> str:
    if how is Telling.SECRET:
        return "(set)" if value else "(none)"
    text = masked(str(value)) if how is Telling.MASKED and value else _plain(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_plain(item) for item in value) or "(none)"
    if isinstance(value, Parameter):
        return f"{value.name} = {value.value}"
    if isinstance(value, ParameterDefinition):
        return f"{value.name} ({value.kind}{', mandatory' if value.mandatory else ''})"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "(none)" if value in {"", None} else str(value)


def _row(service_id: str, role: str, sub_entity: str, ref: str) -> str:
    parts = [f" as {role}" if role else "", f" in {sub_entity}" if sub_entity else "", f" [{ref}]" if ref else ""]
    return f"at {service_id}{''.join(parts)}"


_SUBJECTS: Final[Mapping[Kind, Callable[[Key], str]]] = {
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
