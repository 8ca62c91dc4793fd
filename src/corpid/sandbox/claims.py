"""The claims of the three documents a relying party receives, checked one by one (Spec 2.5, D2, D20, D22, D23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpid.sandbox import jwt
from corpid.sandbox.verification import CLOCK_LEEWAY_SECONDS, times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.sandbox.verification import Checklist

OTHER_PARTY = {"user": ("entity", "entity"), "entity": ("act", "user")}
"""sub_type → the claim that holds the other party, and its sub_type (D2)"""
BLOCKS = {"authinfo": "auth_info", "tpauthinfo": "tp_auth_info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What every document must say, and the moment it is read at."""

    issuer: str
    client_id: str
    now: float


def id_token(
    checks: Checklist, claims: Mapping[str, Any], expected: Expected, *, nonce: str | None, access_token: str
) -> None:
    """The claims of an ID token (OpenID Connect Core §3.1.3.7, D2). Raises CheckFailed."""
    what = "ID token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: nonce", claims.get("nonce"), nonce)
    checks.equal(f"{what}: at_hash", claims.get("at_hash"), jwt.half_digest(access_token))
    _authentication(checks, what, claims, now=expected.now)
    amr = claims.get("amr")
    strings = isinstance(amr, list) and bool(amr) and all(isinstance(one, str) for one in amr)
    checks.that(f"{what}: amr", strings, f"expected a list of methods, got {amr!r}", amr)
    _parties(checks, what, claims)


def access_token(
    checks: Checklist,
    claims: Mapping[str, Any],
    expected: Expected,
    *,
    scope: str,
    jkt: str,
    resource: str,
    identity: Mapping[str, Any],
) -> None:
    """The claims of an access token (RFC 9068 §2.2, RFC 9449 §6.1, D20); `identity` are the ID token's claims.

    Raises CheckFailed.
    """
    what = "access token"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    audience = claims.get("aud")
    names_it = isinstance(audience, list) and resource in audience
    checks.that(f"{what}: aud", names_it, f"expected a list with {resource}, got {audience!r}", audience)
    checks.equal(f"{what}: client_id", claims.get("client_id"), expected.client_id)
    checks.equal(f"{what}: scope", claims.get("scope"), scope)
    times(checks, what, claims, now=expected.now)
    jti = claims.get("jti")
    checks.that(f"{what}: jti", isinstance(jti, str) and bool(jti), f"expected a string, got {jti!r}", jti)
    bound = claims.get("cnf")
    checks.equal(f"{what}: cnf.jkt", bound.get("jkt") if isinstance(bound, dict) else None, jkt)
    _authentication(checks, what, claims, now=expected.now)
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    other, kind = OTHER_PARTY[str(identity["sub_type"])]
    checks.equal(
        f"{what}: {other} as in the ID token", claims.get(other), {"sub": identity[other]["sub"], "sub_type": kind}
    )


def userinfo(checks: Checklist, claims: Mapping[str, Any], expected: Expected, *, sub: str, scope: str) -> None:
    """The claims of a userinfo answer (Spec 2.5, D22, D23). Raises CheckFailed."""
    what = "userinfo"
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), sub)
    times(checks, what, claims, now=expected.now)
    granted = scope.split()
    for name, block in BLOCKS.items():
        checks.that(f"{what}: no {block} without {name}", name in granted or block not in claims, "is there unasked")
    if "authinfo" in granted:
        _services(checks, f"{what}: auth_info", claims.get("auth_info"), _assignments)
    if "tp_auth_info" in claims:
        _services(checks, f"{what}: tp_auth_info", claims["tp_auth_info"], _third_parties)


def _authentication(checks: Checklist, what: str, claims: Mapping[str, Any], *, now: float) -> None:
    acr, auth_time = claims.get("acr"), claims.get("auth_time")
    checks.that(f"{what}: acr", isinstance(acr, str) and bool(acr), f"expected a URN, got {acr!r}", acr)
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
