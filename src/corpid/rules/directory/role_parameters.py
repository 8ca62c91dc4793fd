"""Parameters of roles: definitions and values (R-14.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.nodes import Items, Node, Pairs, quoted
from corpid.rules.directory.records import Parameter, ParameterDefinition, ParameterKind
from corpid.rules.directory.values import Malformed, Reader, line_of_text, name, one_of, real_day, suggestion, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_CHARACTERS: Final = 30
VALUE_CHARACTERS: Final = 200

_NAME: Final = name(NAME_CHARACTERS)
_VALUE: Final = line_of_text(VALUE_CHARACTERS)
_KIND: Final = one_of("text", "alpha", "number", "date", "year")
_PATTERNS: Final[Mapping[str, tuple[str, str]]] = {
    "alpha": (r"[^\W\d_]+([ '.-][^\W\d_]+)*\.?", "letters"),
    "number": (r"-?[0-9]{1,18}(\.[0-9]{1,9})?", "a number"),
    "year": (r"[0-9]{4}", "a year of four digits"),
}
_DEFINITION_KEYS: Final[Mapping[str, Reader]] = {"kind": _KIND, "mandatory": yes_or_no}


def definitions(node: Node) -> tuple[ParameterDefinition, ...]:
    """The parameters of a service: name → kind, mandatory or not.

    Raises Malformed. Source: R-14.1
    """
    if not isinstance(node, Pairs):
        raise Malformed(node.line, "write each parameter as its name and its kind: Effective Year: {kind: year}")
    found = []
    for key, value in node.entries:
        if not isinstance(value, Pairs):
            raise Malformed(value.line, f"write the definition as a mapping: {key.text}: {{kind: text}}")
        found.append(ParameterDefinition(name=str(_NAME(key)), **_definition(value)))  # type: ignore[arg-type]
    return tuple(found)


def _definition(node: Pairs) -> dict[str, object]:
    members = {}
    for key, value in node.entries:
        if key.text not in _DEFINITION_KEYS:
            hint = suggestion(key.text, _DEFINITION_KEYS)
            raise Malformed(key.line, f"{quoted(key.text)} is no key of a parameter definition{hint}")
        members[key.text] = _DEFINITION_KEYS[key.text](value)
    return members


def values(node: Node) -> tuple[Parameter, ...]:
    """The parameters of a row: name → value or list.

    A list if a name repeats. Raises Malformed. Source: R-14.1
    """
    if not isinstance(node, Pairs):
        raise Malformed(node.line, "write parameters as a mapping: {Effective Year: 2026}")
    found: list[Parameter] = []
    for key, value in node.entries:
        each = value.nodes if isinstance(value, Items) else (value,)
        found.extend(Parameter(name=str(_NAME(key)), value=str(_VALUE(item))) for item in each)
    return tuple(found)


def unfit(kind: ParameterKind, value: str) -> str:
    """Why a value is not of a kind, in words.

    Empty when it is, and for an unset value. Source: R-20
    """
    if not value or kind == "text":
        return ""
    if kind == "date":
        return _unreal(value)
    pattern, described = _PATTERNS[kind]
    return "" if re.fullmatch(pattern, value) else f"{quoted(value)} is not {described}"


def _unreal(value: str) -> str:
    try:
        real_day(value)
    except ValueError as error:
        return str(error)
    return ""
