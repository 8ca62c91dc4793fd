"""Values of a role's parameters, by the kind that the service defines (R-14.1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.characters import typed_code, typed_number
from corpid.rules.directory.nodes import quote_value
from corpid.rules.directory.records import Assignment, Service, ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.values import real_day

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import TypeAlias

    from corpid.rules.directory.current import Current, Key
    from corpid.rules.directory.document import Entry
    from corpid.rules.directory.records import ParameterKind
    from corpid.rules.directory.sections import Kind

    Records: TypeAlias = MutableMapping[Key, tuple[Entry, msgspec.Struct]]

_PATTERNS: Final[Mapping[ParameterKind, tuple[str, str]]] = {
    "alpha": (r"[^\W\d_]+([ '.-][^\W\d_]+)*\.?", "letters"),
    "number": (r"-?[0-9]{1,18}(\.[0-9]{1,9})?", "a number"),
    "year": (r"[0-9]{4}", "a year of four digits"),
}
_STORED: Final[Mapping[ParameterKind, Callable[[str], str]]] = {
    "number": typed_number,
    "date": typed_number,
    "year": typed_code,
}
_ROWS: Final[tuple[Kind, ...]] = ("assignment", "grant", "third-party row")


def stored_value(kind: ParameterKind, value: str) -> str:
    """The stored form of a value: ASCII digits in years, numbers, dates.

    Source: D75
    """
    return _STORED[kind](value) if kind in _STORED else value


def unfit_parameter(kind: ParameterKind, value: str) -> str:
    """Why a value is not of a kind, in words.

    Empty when it is, and for an unset value. Source: R-20
    """
    if not value or kind == "text":
        return ""
    if kind == "date":
        return _unreal(value)
    pattern, described = _PATTERNS[kind]
    return "" if re.fullmatch(pattern, stored_value(kind, value)) else f"{quote_value(value)} is not {described}"


def _unreal(value: str) -> str:
    try:
        real_day(value)
    except ValueError as error:
        return str(error)
    return ""


def store_values(wanted: Mapping[Kind, Records], current: Current) -> None:
    """Put the values of parameters into their stored form.

    Source: D75
    """
    for kind in _ROWS:
        for key, (entry, row) in wanted[kind].items():
            if not isinstance(row, Assignment | ThirdPartyGrant | ThirdPartyAssignment) or not row.parameters:
                continue
            wished = wanted["service"].get((row.service_id,))
            service = wished[1] if wished is not None else current.records_of("service").get((row.service_id,))
            kinds = {each.name: each.kind for each in service.parameters} if isinstance(service, Service) else {}
            values = tuple(
                msgspec.structs.replace(each, value=stored_value(kinds.get(each.name, "text"), each.value))
                for each in row.parameters
            )
            if values != row.parameters:
                wanted[kind][key] = (entry, msgspec.structs.replace(row, parameters=values))
