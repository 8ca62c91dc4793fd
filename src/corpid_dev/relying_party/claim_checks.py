"""Checks of the claims that a relying party receives.

Source: Spec 2.5, 2.6, R-12.2
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from corpid_dev.relying_party import jwt, verification
from corpid_dev.relying_party.verification import CLOCK_LEEWAY_SECONDS, times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpid_dev.relying_party.interfaces import Reading
    from corpid_dev.relying_party.verification import Checklist


def objects(checks: Checklist, what: str, block: Any, *, stringified: bool) -> Any:
    """A block as an object, parsed if the client registered text.

    Source: D22
    """
    if not stringified:
        return block
    checks.that(f"{what}: text", isinstance(block, str), f"expected a text that holds JSON, got {type(block).__name__}")
    return verification.json_object(checks, what, block)


def assignments(checks: Checklist, what: str, block: Any) -> None:
    """The roles for the entity itself. Raises CheckFailed."""
    _services(checks, what, block, _assignments)


def third_parties(checks: Checklist, what: str, block: Any) -> None:
    """The roles for other entities. Raises CheckFailed."""
    _services(checks, what, block, _third_parties)


def _services(checks: Checklist, what: str, block: Any, rows_of: Callable[[Mapping[str, Any]], str]) -> None:
    try:
        result_set = block["Result_Set"]
        services = result_set["ESrvc_Result"]
        counted = result_set["ESrvc_Row_Count"] == len(services)
        problem = "" if counted else f"ESrvc_Row_Count is {result_set['ESrvc_Row_Count']}, not {len(services)}"
        for service in services:
            problem = problem or rows_of(service)
    except (KeyError, TypeError) as error:
        raise checks.failed(f"{what}: shape", f"is not as Spec 2.6 says ({error!r})") from error
    checks.that(f"{what}: shape and counts", not problem, problem, f"{len(services)} services")


def _assignments(service: Mapping[str, Any]) -> str:
    return _rows(service["CPESrvcID"], service["Auth_Result_Set"], "CPEntID_SUB")


def _third_parties(service: Mapping[str, Any]) -> str:
    chains = service["Auth_Set"]["TP_Auth"]
    if service["Auth_Set"]["ENT_ROW_COUNT"] != len(chains):
        return f"{service['CPESrvcID']}: ENT_ROW_COUNT does not count TP_Auth"
    problems = (
        _rows(f"{chain['CP_Clnt_ID']} {chain['CP_ClntEnt_TYPE']}", chain["Auth_Result_Set"], "CP_ClntEnt_SUB")
        for chain in chains
    )
    return next(filter(None, problems), "")


def _rows(name: str, result_set: Mapping[str, Any], sub_entity: str) -> str:
    rows = result_set["Row"]
    if result_set["Row_Count"] != len(rows):
        return f"{name}: Row_Count does not count Row"
    members = {sub_entity, "CPRole", "StartDate", "EndDate", "Parameter"}
    return next((f"{name}: a row has {sorted(row)}, not {sorted(members)}" for row in rows if set(row) != members), "")


MEMBERS: Final = ("s", "uuid", "u", "c")
"""identity number, the user's identifier, the account, the country of identity"""
MEMBER: Final = re.compile(r"([a-z]+)=((?:[!-$&-+\--<>-~]|%[0-9A-F]{2})*)")
"""a name and a value without space, comma and equals sign; % begins an escape"""
ACCOUNT_TYPES: Final = ("User", "Sub-Admin", "Admin")
USER: Final = ("CPAccType", "CPUID_FullName", "ISSPHOLDER")
ENTITY: Final = ("CPEntID", "CPEnt_TYPE", "CPEnt_Status", "CPNonUEN_Country", "CPNonUEN_RegNo", "CPNonUEN_Name")
ENTITY_TYPES: Final = ("UEN", "NON-UEN", "GSTN")
STATUSES: Final = ("Registered", "De-Registered", "Withdrawn", "")


def members(sub: str) -> dict[str, str]:
    """The members of a packed subject, unescaped.

    Raises ValueError if it is none.
    """
    found = [MEMBER.fullmatch(part) for part in sub.split(",")]
    if None in found:
        raise ValueError(f"{sub!r} is not made of key=value")
    parts = [(match[1], unquote(match[2], errors="strict")) for match in found if match is not None]
    if sorted(name for name, _ in parts) != sorted(MEMBERS):
        raise ValueError(f"it names {', '.join(name for name, _ in parts)}, not each of {', '.join(MEMBERS)} once")
    return dict(parts)


def parties(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    """sub, userInfo and entityInfo of an ID token.

    Every member is there, blank rather than absent. Raises CheckFailed.
    """
    sub = claims.get("sub")
    try:
        parts = members(sub) if isinstance(sub, str) else {}
    except ValueError as error:
        raise checks.failed(f"{what}: sub", str(error)) from error
    checks.that(f"{what}: sub", bool(parts.get("uuid")), f"tells no uuid: {sub!r}", sub)
    user = _texts(checks, f"{what}: userInfo", claims.get("userInfo"), USER)
    entity = _texts(checks, f"{what}: entityInfo", claims.get("entityInfo"), ENTITY)
    _one_of(checks, f"{what}: ISSPHOLDER", user["ISSPHOLDER"], ("YES", "NO"))
    _one_of(checks, f"{what}: CPAccType", user["CPAccType"], ACCOUNT_TYPES)
    checks.that(f"{what}: CPEntID", bool(entity["CPEntID"]), "is blank", entity["CPEntID"])
    kind = entity["CPEnt_TYPE"]
    _one_of(checks, f"{what}: CPEnt_TYPE", kind, ENTITY_TYPES)
    _one_of(checks, f"{what}: CPEnt_Status", entity["CPEnt_Status"], ("",) if kind == "NON-UEN" else STATUSES)
    given = [name for name in ENTITY if name.startswith("CPNonUEN_") and entity[name]]
    checks.that(f"{what}: CPNonUEN_* blank for UEN", kind != "UEN" or not given, f"tells {', '.join(given)}")


def _texts(checks: Checklist, name: str, found: Any, expected: tuple[str, ...]) -> dict[str, str]:
    shaped = isinstance(found, dict) and set(found) == set(expected) and all(isinstance(v, str) for v in found.values())
    checks.that(name, shaped, f"expected the texts {', '.join(expected)}, got {found!r}", found)
    return dict(found)


def _one_of(checks: Checklist, name: str, value: str, allowed: tuple[str, ...]) -> None:
    checks.that(name, value in allowed, f"{value!r} is none of {', '.join(map(repr, allowed))}", value)


OTHER_PARTY = {"user": ("entity", "entity"), "entity": ("act", "user")}
"""sub_type → the claim that holds the other party, and its sub_type (D2)"""
SHAPES = {"authinfo": assignments, "tpauthinfo": third_parties}
"""scope → the check of the block that it grants"""
ALWAYS = frozenset({"authinfo"})
"""the scopes whose block is there even without rows (D23)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedClaims:
    """Expected claims of every document, and the moment of the check."""

    issuer: str
    client_id: str
    now: float
    packed_subject: bool = False
    """`sub` packs the person; userInfo and entityInfo have the rest (R-12.2)"""


def id_token(
    checks: Checklist, claims: Mapping[str, Any], expected: ExpectedClaims, *, nonce: str | None, access_token: str
) -> None:
    """The claims of an ID token (OpenID Connect Core §3.1.3.7, D2, R-12.2).

    Raises CheckFailed.
    """
    what = "ID token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: nonce", claims.get("nonce"), nonce)
    checks.equal(f"{what}: at_hash", claims.get("at_hash"), jwt.half_digest(access_token))
    _auth_time(checks, what, claims, now=expected.now)
    amr = claims.get("amr")
    strings = isinstance(amr, list) and bool(amr) and all(isinstance(one, str) for one in amr)
    checks.that(f"{what}: amr", strings, f"expected a list of methods, got {amr!r}", amr)
    if expected.packed_subject:
        parties(checks, what, claims)
    else:
        _acr(checks, what, claims)
        _parties(checks, what, claims)


def access_token(
    checks: Checklist,
    claims: Mapping[str, Any],
    expected: ExpectedClaims,
    *,
    scope: str,
    jkt: str | None,
    resources: Sequence[str],
    identity: Mapping[str, Any],
) -> None:
    """The claims of an access token.

    `jkt` is the thumbprint of the key it is bound to, None if it is bound to none; `identity` are the ID
    token's claims. Raises CheckFailed.
    Source: RFC 9068 §2.2, RFC 9449 §6.1, D20
    """
    what = "access token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    audience = claims.get("aud")
    names_them = isinstance(audience, list) and set(resources) <= set(audience)
    checks.that(f"{what}: aud", names_them, f"expected a list with {', '.join(resources)}, got {audience!r}", audience)
    checks.equal(f"{what}: client_id", claims.get("client_id"), expected.client_id)
    checks.equal(f"{what}: scope", claims.get("scope"), scope)
    times(checks, what, claims, now=expected.now)
    jti = claims.get("jti")
    checks.that(f"{what}: jti", isinstance(jti, str) and bool(jti), f"expected a string, got {jti!r}", jti)
    if jkt is None:
        checks.that(f"{what}: bound to no key", "cnf" not in claims, "it has a cnf, but is a bearer token")
    else:
        bound = claims.get("cnf")
        checks.equal(f"{what}: cnf.jkt", bound.get("jkt") if isinstance(bound, dict) else None, jkt)
    _acr(checks, what, claims)
    _auth_time(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    if expected.packed_subject:
        other, party = "entity", {"sub": identity["entityInfo"]["CPEntID"], "sub_type": "entity"}
    else:
        other, kind = OTHER_PARTY[str(identity["sub_type"])]
        party = {"sub": identity[other]["sub"], "sub_type": kind}
    checks.equal(f"{what}: {other} as in the ID token", claims.get(other), party)


def envelope(checks: Checklist, what: str, claims: Mapping[str, Any], expected: ExpectedClaims) -> None:
    """Check the claims common to all signed answers of a resource.

    Raises CheckFailed. Source: Spec 2.5, 2.6, D26
    """
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)


def userinfo(
    checks: Checklist, claims: Mapping[str, Any], reading: Reading, *, sub: str, scope: str, stringified: bool
) -> dict[str, Any]:
    """The claims of a userinfo answer, its blocks as objects.

    Raises CheckFailed.

    `stringified` says that this client registered blocks that are texts.
    Source: Spec 2.5, 2.6, D22, D23
    """
    what = reading.name
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), sub)
    granted = scope.split() if reading.scoped else [*reading.blocks]
    for name, block in reading.blocks.items():
        checks.that(f"{what}: no {block} without {name}", name in granted or block not in claims, "is there unasked")
    given = dict(claims)
    for name, block in reading.blocks.items():
        if block in claims or name in ALWAYS.intersection(granted):
            given[block] = objects(checks, f"{what}: {block}", claims.get(block), stringified=stringified)
            SHAPES[name](checks, f"{what}: {block}", given[block])
    return given


def parties_of(claims: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The claims on person and entity in an ID token (D2)."""
    other, _ = OTHER_PARTY[str(claims["sub_type"])]
    return (claims, claims[other]) if claims["sub_type"] == "user" else (claims[other], claims)


def entity_info(checks: Checklist, claims: Mapping[str, Any], what: str, *, identity: Mapping[str, Any]) -> None:
    """The claims of an entity-info answer.

    `identity` are the ID token's claims (D26). Raises CheckFailed.
    """
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    _, entity = parties_of(identity)
    given = claims.get("entity_info")
    checks.equal(f"{what}: entity_info as in the ID token", given, entity.get("sub_attributes", {}))


def _acr(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    acr = claims.get("acr")
    checks.that(f"{what}: acr", isinstance(acr, str) and bool(acr), f"expected a URN, got {acr!r}", acr)


def _auth_time(checks: Checklist, what: str, claims: Mapping[str, Any], *, now: float) -> None:
    auth_time = claims.get("auth_time")
    known = isinstance(auth_time, int) and not isinstance(auth_time, bool) and auth_time <= now + CLOCK_LEEWAY_SECONDS
    checks.that(f"{what}: auth_time", known, f"expected a moment in the past, got {auth_time!r}", auth_time)


def _parties(checks: Checklist, what: str, claims: Mapping[str, Any]) -> None:
    sub, sub_type = claims.get("sub"), claims.get("sub_type")
    checks.that(f"{what}: sub", isinstance(sub, str) and bool(sub), f"expected a string, got {sub!r}", sub)
    checks.that(f"{what}: sub_type", sub_type in OTHER_PARTY, f"expected user or entity, got {sub_type!r}", sub_type)
    name, kind = OTHER_PARTY[str(sub_type)]
    party = claims.get(name)
    shaped = isinstance(party, dict) and isinstance(party.get("sub"), str) and party.get("sub_type") == kind
    checks.that(f"{what}: {name}", shaped, f"expected an object with sub and sub_type {kind}, got {party!r}", party)
