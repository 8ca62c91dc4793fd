"""The claims of the documents a relying party receives, checked one by one (Spec 2.5, 2.6, D2, D20, D22, D23, D26)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpid.sandbox import jwt, packed
from corpid.sandbox.blocks import assignments, objects, third_parties
from corpid.sandbox.verification import CLOCK_LEEWAY_SECONDS, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.sandbox.interfaces import Reading
    from corpid.sandbox.verification import Checklist

OTHER_PARTY = {"user": ("entity", "entity"), "entity": ("act", "user")}
"""sub_type → the claim that holds the other party, and its sub_type (D2)"""
SHAPES = {"authinfo": assignments, "tpauthinfo": third_parties}
"""scope → the check of the block that it grants"""
ALWAYS = frozenset({"authinfo"})
"""the scopes whose block is there even without rows (D23)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What every document must say, and the moment it is read at."""

    issuer: str
    client_id: str
    now: float
    packed_subject: bool = False
    """`sub` packs the person; userInfo and entityInfo tell the rest (R-12.2)"""


def id_token(
    checks: Checklist, claims: Mapping[str, Any], expected: Expected, *, nonce: str | None, access_token: str
) -> None:
    """The claims of an ID token (OpenID Connect Core §3.1.3.7, D2, R-12.2). Raises CheckFailed."""
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
        packed.parties(checks, what, claims)
    else:
        _acr(checks, what, claims)
        _parties(checks, what, claims)


def access_token(
    checks: Checklist,
    claims: Mapping[str, Any],
    expected: Expected,
    *,
    scope: str,
    jkt: str | None,
    resources: Sequence[str],
    identity: Mapping[str, Any],
) -> None:
    """The claims of an access token (RFC 9068 §2.2, RFC 9449 §6.1, D20).

    `jkt` is the thumbprint of the key it is bound to, None if it is bound to none; `identity` are the ID
    token's claims. Raises CheckFailed.
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


def envelope(checks: Checklist, what: str, claims: Mapping[str, Any], expected: Expected) -> None:
    """What every signed answer of a resource says, whatever it is about (Spec 2.5, 2.6, D26). Raises CheckFailed."""
    checks.equal(f"{what}: iss", claims.get("iss"), expected.issuer)
    checks.equal(f"{what}: aud", claims.get("aud"), expected.client_id)
    times(checks, what, claims, now=expected.now)


def userinfo(
    checks: Checklist, claims: Mapping[str, Any], reading: Reading, *, sub: str, scope: str, stringified: bool
) -> dict[str, Any]:
    """The claims of a userinfo answer, its blocks as objects (Spec 2.5, 2.6, D22, D23). Raises CheckFailed.

    `stringified` says that this client registered blocks that are texts.
    """
    what = reading.name
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), sub)
    granted = scope.split() if reading.scoped else [*reading.blocks]
    for name, block in reading.blocks.items():
        checks.that(f"{what}: no {block} without {name}", name in granted or block not in claims, "is there unasked")
    told = dict(claims)
    for name, block in reading.blocks.items():
        if block in claims or name in ALWAYS.intersection(granted):
            told[block] = objects(checks, f"{what}: {block}", claims.get(block), stringified=stringified)
            SHAPES[name](checks, f"{what}: {block}", told[block])
    return told


def entity_info(checks: Checklist, claims: Mapping[str, Any], what: str, *, identity: Mapping[str, Any]) -> None:
    """The claims of an entity-info answer; `identity` are the ID token's claims (D26). Raises CheckFailed."""
    checks.equal(f"{what}: sub as in the ID token", claims.get("sub"), identity.get("sub"))
    entity = identity if identity["sub_type"] == "entity" else identity["entity"]
    told = claims.get("entity_info")
    checks.equal(f"{what}: entity_info as in the ID token", told, entity.get("sub_attributes", {}))


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
