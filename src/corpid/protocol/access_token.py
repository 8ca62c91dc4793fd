"""The access token: what goes in, and how it is read back (RFC 9068, D18, D20)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.jose import compact
from corpid.jose.encoding import base64url, tuple_bytes
from corpid.jose.errors import JoseError
from corpid.protocol import parties
from corpid.protocol.errors import InsufficientScope, InvalidToken
from corpid.protocol.limits import ACCESS_TOKEN_SECONDS
from corpid.protocol.numeric_date import BadClaim, jti, numeric_date, seconds

if TYPE_CHECKING:
    from collections.abc import Collection

    from corpid.jose.key_ring import KeyRing
    from corpid.protocol.records import Grant, SubjectMode

TYPE: Final = "at+jwt"
_TYPES: Final = (TYPE, "application/at+jwt")


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A verified access token; the deny entry of its jti and the live state are still to be looked at."""

    client_id: str
    subject: str
    user_id: str
    entity_id: str
    scopes: tuple[str, ...]
    jti: str
    issued_at: float
    jkt: str | None


def identifier(*, issuer: str, client_id: str, code: str, challenge: str) -> str:
    """The jti of the token that a code yields: known to whoever presents the same code again (D18)."""
    return base64url(hashlib.sha256(tuple_bytes("at", issuer, client_id, code, challenge)).digest())


def claims(
    grant: Grant,
    subject: parties.Parties,
    mode: SubjectMode,
    *,
    issuer: str,
    audience: list[str],
    token_id: str,
    now: int,
) -> dict[str, object]:
    """The claims of a new token (RFC 9068 §2.2, D20)."""
    token: dict[str, object] = {
        "iss": issuer,
        "aud": audience,
        **parties.claims(subject, mode, attributes=False),
        "client_id": grant.client_id,
        "scope": " ".join(grant.scopes),
        "iat": now,
        "exp": now + ACCESS_TOKEN_SECONDS,
        "jti": token_id,
        "auth_time": grant.auth_time,
        "acr": grant.acr,
    }
    if grant.jkt is not None:
        token["cnf"] = {"jkt": grant.jkt}
    return token


def verify(text: str, ring: KeyRing, *, issuer: str, resource_url: str, now: float) -> AccessToken:
    """Verify one of our own tokens for this resource. Raises InvalidToken (RFC 9068 §4, D20)."""
    try:
        token = compact.parse(text)
        if token.header.get("typ") not in _TYPES or token.algorithm != "ES256":
            raise BadClaim("not an access token of this provider")
        ring.verify(token)
        return _read(token.claims, issuer=issuer, resource_url=resource_url, now=now)
    except (JoseError, BadClaim) as error:
        raise InvalidToken(f"access token: {error}") from None


def _read(token: dict[str, object], *, issuer: str, resource_url: str, now: float) -> AccessToken:
    if token.get("iss") != issuer:
        raise BadClaim("issued by another provider")
    audience = token.get("aud")
    if not isinstance(audience, list) or resource_url not in audience:
        raise BadClaim("not for this resource")
    exp, iat, token_id = numeric_date(token, "exp"), numeric_date(token, "iat"), jti(token)
    if exp is None or iat is None or token_id is None:
        raise BadClaim("not an access token of this provider")
    if exp <= now:
        raise BadClaim(f"expired {seconds(now - exp)} ago")
    both, cnf = parties.read(token), token.get("cnf")
    if both is None:
        raise BadClaim("not an access token of this provider")
    jkt = cnf.get("jkt") if isinstance(cnf, dict) else None
    return AccessToken(
        client_id=str(token.get("client_id")),
        subject=str(token["sub"]),
        user_id=both[0],
        entity_id=both[1],
        scopes=tuple(str(token.get("scope", "")).split()),
        jti=token_id,
        issued_at=iat,
        jkt=jkt if isinstance(jkt, str) else None,
    )


def validate_scope(token: AccessToken, scopes: Collection[str]) -> None:
    """The token must carry one of these scopes. Raises InsufficientScope (RFC 6750 §3.1, D26)."""
    if not set(scopes).intersection(token.scopes):
        raise InsufficientScope("the access token carries none of the scopes that this needs", scope=" ".join(scopes))


def validate_binding(token: AccessToken, jkt: str | None) -> None:
    """The proof's key must be the one that the token is bound to; without a proof it must be bound to none.

    Raises InvalidToken. Source: RFC 9449 §7.1, §7.2, D6, D25
    """
    if jkt is None and token.jkt is not None:
        raise InvalidToken("access token: bound to a DPoP key, so it is not accepted as a bearer token")
    if token.jkt != jkt:
        raise InvalidToken("access token: not bound to the key of the DPoP proof")
