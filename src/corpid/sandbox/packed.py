"""A packed subject and the objects beside it: who signed in and for whom, as LEGACY tells it (R-12.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.sandbox.verification import Checklist

MEMBERS: Final = ("s", "uuid", "u", "c")
"""identity number, the user's identifier, the account, the country of identity"""
MEMBER: Final = re.compile(r"([a-z]+)=((?:[!-$&-+\--<>-~]|%[0-9A-F]{2})*)")
"""a name and a value without space, comma and equals sign; % begins an escape"""
USER: Final = ("CPAccType", "CPUID_FullName", "ISSPHOLDER")
ENTITY: Final = ("CPEntID", "CPEnt_TYPE", "CPEnt_Status", "CPNonUEN_Country", "CPNonUEN_RegNo", "CPNonUEN_Name")
ENTITY_TYPES: Final = ("UEN", "NON-UEN", "GSTN")
STATUSES: Final = ("Registered", "De-Registered", "Withdrawn", "")


def members(sub: str) -> dict[str, str]:
    """What a packed subject says, unescaped. Raises ValueError if it is none."""
    found = [MEMBER.fullmatch(part) for part in sub.split(",")]
    if None in found:
        raise ValueError(f"{sub!r} is not made of key=value")
    said = [(match[1], unquote(match[2], errors="strict")) for match in found if match is not None]
    if sorted(name for name, _ in said) != sorted(MEMBERS):
        raise ValueError(f"it names {', '.join(name for name, _ in said)}, not each of {', '.join(MEMBERS)} once")
    return dict(said)


def parties(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    """sub, userInfo and entityInfo of an ID token: every member is there, blank rather than absent. Raises CheckFailed."""
    sub = claims.get("sub")
    try:
        said = members(sub) if isinstance(sub, str) else {}
    except ValueError as error:
        raise checks.failed(f"{what}: sub", str(error)) from error
    checks.that(f"{what}: sub", bool(said.get("uuid")), f"tells no uuid: {sub!r}", sub)
    user = _texts(checks, f"{what}: userInfo", claims.get("userInfo"), USER)
    entity = _texts(checks, f"{what}: entityInfo", claims.get("entityInfo"), ENTITY)
    _one_of(checks, f"{what}: ISSPHOLDER", user["ISSPHOLDER"], ("YES", "NO"))
    checks.equal(f"{what}: CPAccType", user["CPAccType"], "User")
    checks.that(f"{what}: CPEntID", bool(entity["CPEntID"]), "is blank", entity["CPEntID"])
    kind = entity["CPEnt_TYPE"]
    _one_of(checks, f"{what}: CPEnt_TYPE", kind, ENTITY_TYPES)
    _one_of(checks, f"{what}: CPEnt_Status", entity["CPEnt_Status"], ("",) if kind == "NON-UEN" else STATUSES)
    told = [name for name in ENTITY if name.startswith("CPNonUEN_") and entity[name]]
    checks.that(f"{what}: CPNonUEN_* blank for UEN", kind != "UEN" or not told, f"tells {', '.join(told)}")


def _texts(checks: Checklist, name: str, found: Any, expected: tuple[str, ...]) -> dict[str, str]:
    shaped = isinstance(found, dict) and set(found) == set(expected) and all(isinstance(v, str) for v in found.values())
    checks.that(name, shaped, f"expected the texts {', '.join(expected)}, got {found!r}", found)
    return dict(found)


def _one_of(checks: Checklist, name: str, value: str, allowed: tuple[str, ...]) -> None:
    checks.that(name, value in allowed, f"{value!r} is none of {', '.join(map(repr, allowed))}", value)
