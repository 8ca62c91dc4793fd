"""Export of records as a directory file, without secrets.

Applying it to the same directory changes nothing.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import yaml

from corpid.rules.directory.records import Parameter, ParameterDefinition
from corpid.rules.directory.sections import NOTHING, OWN_FACTORS, SECTIONS
from corpid.rules.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from corpid.rules.directory.records import Membership, User
    from corpid.rules.directory.sections import Key


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """A YAML dumper that quotes texts with escaped characters."""


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if printable(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # type: ignore[no-any-return]


_Dumper.add_representer(str, _represented)


def entry_text(section_name: str, record: msgspec.Struct, user_names: Mapping[str, str]) -> str:
    """A record as an entry of its section, indented by two spaces.

    `user_names` is user identifier → user name, for the kinds of rows that name users. Source: docs/directory.md
    """
    section = SECTIONS[section_name]
    members = {
        name: _value(key, getattr(record, key.member), user_names)
        for name, key in section.keys.items()
        if key.member in record.__struct_fields__
    }
    if section.identifier is None:
        stated = {name: value for name, value in members.items() if value != ""}
        return indent("- " + _yaml(stated, flow=True), "  " * (section_name.count(".") + 1))
    stated = {name: value for name, value in members.items() if value is not None}
    return indent(_yaml({getattr(record, section.identity[0]): stated}, flow=None), "  ")


def user_text(user: User, memberships: Sequence[Membership]) -> str:
    """A user as an entry of `users`, without factors.

    With the list of memberships. Source: D51.
    """
    members = {
        name: getattr(user, key.member)
        for name, key in SECTIONS["users"].keys.items()
        if key.member in user.__struct_fields__ and name not in OWN_FACTORS
    }
    members["memberships"] = [{"entity": held.entity_id, "enabled": held.enabled} for held in memberships]
    return indent(_yaml({user.user_name: members}, flow=None), "  ")


def _value(key: Key, value: object, user_names: Mapping[str, str]) -> object:
    if key.member == "user_id":
        return user_names[str(value)]
    if key.clearable:
        return NOTHING if value is None else value
    if key.member == "parameters" and isinstance(value, tuple):
        return _parameters(value)
    return list(value) if isinstance(value, tuple) else value


def _parameters(parameters: tuple[Parameter | ParameterDefinition, ...]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for parameter in parameters:
        if isinstance(parameter, ParameterDefinition):
            shown[parameter.name] = {"kind": parameter.kind, "mandatory": parameter.mandatory}
        else:
            values = shown.setdefault(parameter.name, [])
            values.append(parameter.value)  # type: ignore[attr-defined]
    return shown


def _yaml(value: object, *, flow: bool | None) -> str:
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100_000, default_flow_style=flow)
    return printable_lines(str(text))  # YAML itself writes bidirectional and zero-width characters as they are


def one_entry(section_name: str, key: str, members: Mapping[str, object]) -> bytes:
    """A directory file of a single entry.

    For the commands that add one record. Source: docs/directory.md
    """
    stated = {name: value for name, value in members.items() if value is not None}
    return _yaml({section_name: {key: stated}}, flow=None).encode()
