"""DPoP proofs, verified for a request and its token (RFC 9449)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import JoseError, base64url
from corpid.jose.keys import UnusableKey, Verifier, import_verifier, private_members, thumbprint
from corpid.rules.limits import CLOCK_AHEAD_SECONDS, PROOF_AGE_SECONDS, SPENT_MARGIN_SECONDS
from corpid.rules.oauth.errors import InvalidDPoPProof, InvalidRequest, abbreviate_hash, shorten_value, without_query
from corpid.rules.oauth.jwt_claims import CHECK_CLOCK, BadClaim, ahead, jti, numeric_date, seconds
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.urls import DEFAULT_PORTS

_JKT: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_URL: Final = re.compile(r"[!-~]+")


class ProofTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a proof must be for.

    `url` is base_url + path (D7).
    """

    method: str
    url: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A verified proof.

    Its jti is still to be spent, its nonce still to be looked at.
    """

    jkt: str
    jti: str
    issued_at: float
    nonce: str | None
    remember_seconds: float
    """how long a spent jti is remembered"""


def verify(
    text: str, target: ProofTarget, *, algorithms: Sequence[str], now: float, access_token: str | None = None
) -> Proof:
    """Verify a proof for this request and access token, if any.

    Raises InvalidDPoPProof, naming what was expected. Source: RFC 9449 §4.3, D6, D7
    """
    try:
        token = compact.parse(text)
        _validate_header(token, algorithms)
        key = (_cached_key if compact.is_cacheable(token.encoded_header) else _key)(token.encoded_header)
        identifier, issued_at = _validate_claims(token.claims, target, now)
        if access_token is not None:
            _validate_ath(token.claims, access_token)
        compact.verify(token, key.verifier)
    except (JoseError, BadClaim) as error:
        received, advice = (error.received, error.advice) if isinstance(error, BadClaim) else ("", "")
        refusal, cause = InvalidDPoPProof(_reason(error), f"DPoP proof: {error}"), f"DPoP proof: {error}; {advice}"
        raise refusal.with_cause(cause=cause if advice else "", received=received) from None
    nonce = token.claims.get("nonce")
    return Proof(
        jkt=key.thumbprint,
        jti=identifier,
        issued_at=issued_at,
        nonce=nonce if isinstance(nonce, str) else None,
        remember_seconds=issued_at + PROOF_AGE_SECONDS - now + SPENT_MARGIN_SECONDS,
    )


class _Key(NamedTuple):
    verifier: Verifier
    thumbprint: str


def _key(encoded_header: bytes) -> _Key:
    jwk = compact.header(encoded_header)["jwk"]
    assert isinstance(jwk, dict)  # noqa: S101 - `_validate_header` has seen to it
    return _Key(import_verifier(jwk), thumbprint(jwk))


_cached_key: Final = lru_cache(compact.CACHED_HEADERS)(_key)
"""A client proves a flow's requests by one key, and many clients all of their flows."""


def _reason(error: JoseError | BadClaim) -> Reason:
    if isinstance(error, BadClaim):
        return error.reason or Reason.PROOF_MALFORMED
    if isinstance(error, BadSignature):
        return Reason.PROOF_SIGNATURE
    return Reason.PROOF_KEY if isinstance(error, UnusableKey) else Reason.PROOF_MALFORMED


def _validate_header(token: compact.Unverified, algorithms: Sequence[str]) -> None:
    if token.header.get("typ") != "dpop+jwt":
        raise BadClaim("typ must be dpop+jwt", Reason.PROOF_JWT_TYPE, received=shorten_value(token.header.get("typ")))
    if token.algorithm not in algorithms:
        received = shorten_value(token.algorithm)
        raise BadClaim(f"alg must be one of {', '.join(algorithms)}", Reason.PROOF_ALGORITHM, received=received)
    jwk = token.header.get("jwk")
    if not isinstance(jwk, dict):
        raise BadClaim("the header has no jwk", Reason.PROOF_KEY)
    private = private_members(jwk)
    if private:
        raise BadClaim(f"jwk must be a public key but has {min(private)}", Reason.PROOF_KEY)


def _validate_claims(claims: Mapping[str, object], target: ProofTarget, now: float) -> tuple[str, float]:
    identifier = jti(claims)
    if identifier is None:
        raise BadClaim("jti is missing", Reason.PROOF_JTI_MISSING)
    if claims.get("htm") != target.method:
        raise BadClaim(f"htm must be {target.method}", Reason.PROOF_METHOD, received=shorten_value(claims.get("htm")))
    htu = claims.get("htu")
    if htu != target.url and not (isinstance(htu, str) and _same_url(htu, target.url)):
        raise BadClaim(f"htu must be {target.url}", Reason.PROOF_URL, received=without_query(htu))
    iat, exp, nbf = numeric_date(claims, "iat"), numeric_date(claims, "exp"), numeric_date(claims, "nbf")
    if iat is None:
        raise BadClaim("iat is missing", Reason.PROOF_IAT_MISSING)
    if iat < now - PROOF_AGE_SECONDS:
        raise BadClaim(
            f"iat is {seconds(now - iat)} behind this server's clock; {PROOF_AGE_SECONDS} s are allowed",
            Reason.PROOF_TOO_OLD,
            advice=f"make a new proof for each request, and {CHECK_CLOCK}",
        )
    for name, at in (("iat", iat), ("nbf", nbf)):
        if at is not None and at > now + CLOCK_AHEAD_SECONDS:
            raise BadClaim(ahead(name, at, now), Reason.PROOF_IN_THE_FUTURE, advice=CHECK_CLOCK)
    if exp is not None and exp <= now:
        text = f"expired {seconds(now - exp)} ago by this server's clock"
        raise BadClaim(text, Reason.PROOF_TOO_OLD, advice=CHECK_CLOCK)
    return identifier, iat


def _validate_ath(claims: Mapping[str, object], access_token: str) -> None:
    expected, ath = base64url(hashlib.sha256(access_token.encode("ascii")).digest()), claims.get("ath")
    if ath != expected:
        received = abbreviate_hash(ath) if isinstance(ath, str) else shorten_value(ath)
        raise BadClaim(
            "ath must be the SHA-256 of the access token, base64url",
            Reason.PROOF_TOKEN_HASH,
            received=f"{received} instead of {abbreviate_hash(expected)}",
        )


def _same_url(given: str, expected: str) -> bool:
    try:
        return _normalised(given) == _normalised(expected)
    except ValueError:
        return False


def _normalised(url: str) -> tuple[str, str | None, int | None, str]:
    if not _URL.fullmatch(url):
        raise ValueError("what no URL holds, and urlsplit would leave out")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("credentials in a URL")
    port = DEFAULT_PORTS.get(parts.scheme) if parts.port is None else parts.port
    return parts.scheme, parts.hostname, port, parts.path or "/"


def validate_jkt(text: str) -> str:
    """A dpop_jkt parameter. Raises InvalidRequest (RFC 9449 §10, D6)."""
    if not _JKT.fullmatch(text):
        raise InvalidRequest(
            Reason.JKT_MALFORMED, "dpop_jkt must be the 43 base64url characters of a SHA-256 JWK thumbprint"
        )
    return text


def header(values: Sequence[bytes]) -> str | None:
    """The value of the DPoP header, None if there is none.

    Raises InvalidDPoPProof unless it is exactly one.

    Source: RFC 9449 §4.3 (1)
    """
    if not values:
        return None
    if len(values) > 1:
        raise InvalidDPoPProof(Reason.PROOF_REPEATED_HEADER, "the request has more than one DPoP header")
    try:
        text = values[0].decode("ascii").strip()
    except UnicodeDecodeError:
        raise InvalidDPoPProof(Reason.PROOF_MALFORMED, "DPoP proof: not a compact JWS") from None
    if "," in text:  # also how a proxy joins two headers (RFC 9110 §5.3)
        raise InvalidDPoPProof(Reason.PROOF_REPEATED_HEADER, "the DPoP header holds more than one proof: send one")
    return text
