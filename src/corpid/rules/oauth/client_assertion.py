"""Client authentication by a signed JWT: private_key_jwt.

Two steps, so that a key set is fetched only for an assertion whose claims hold (D27): `read` gives
a Candidate that nothing has verified, `verify` alone makes an Assertion.
Source: RFC 7523, OpenID Connect Core §9
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import JoseError, MalformedToken
from corpid.rules.limits import CLOCK_AHEAD_SECONDS, SPENT_MARGIN_SECONDS
from corpid.rules.oauth.errors import (
    Explanation,
    InvalidClient,
    InvalidRequest,
    list_values,
    shorten_value,
    without_query,
)
from corpid.rules.oauth.jwt_claims import CHECK_CLOCK, BadClaim, ahead, are_milliseconds, jti, numeric_date, seconds
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.jose.keys import ClientKeySet, VerificationKey
    from corpid.rules.oauth.generations import AuthenticationRules
    from corpid.rules.oauth.records import Client

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
FAILED: Final = "client authentication failed: unknown client_id, or the signature of client_assertion is not valid"
_ONLY_METHOD: Final = "this provider knows private_key_jwt only, and has no client secrets"
_TYPES: Final = (None, "JWT", "jwt", "client-authentication+jwt")


class KeyNotFound(Exception):
    """No key of the set verifies the assertion; refetching may help."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An assertion with valid claims and an unverified signature."""

    client_id: str
    token: compact.Unverified
    jti: str | None
    issued_at: float
    """iat; without one, as long before exp as the rules allow"""
    has_iat: bool
    expires_at: float
    names_endpoint: bool
    """its aud holds the endpoint that it was sent to, which only a client that may do so is let through with (D64)"""


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """A verified assertion; its jti is still to be spent."""

    client_id: str
    jti: str | None
    issued_at: float
    has_iat: bool
    remember_seconds: float
    """how long a spent jti is remembered"""
    lifetime: float
    """from iat to exp, seconds"""
    names_endpoint: bool


def read(
    parameters: Mapping[str, str],
    authorization: Sequence[bytes] = (),
    *,
    issuer: str,
    endpoint: str,
    rules: AuthenticationRules,
    now: float,
) -> Candidate:
    """Parse the assertion among the parameters and validate its claims.

    `authorization` are the request's Authorization headers: another method in addition to the assertion is refused.
    `issuer` is the authorization server's, `endpoint` the URL that it was sent to.

    What it names as audience is for `may_name_its_audience`, once the client is known. Raises InvalidRequest, and
    InvalidClient in words that speak only of what the caller sent. Source: RFC 7523 §3, D5, D8, D64, D70
    """
    text = parameters.get("client_assertion")
    other = _other_method(parameters, authorization)
    if text is not None and other:
        raise InvalidRequest(
            Reason.CLIENT_AUTHENTICATION_TWICE,
            "use client_assertion alone, without client_secret or an Authorization header",
        ).with_cause(received=other)
    if parameters.get("client_assertion_type") != ASSERTION_TYPE:
        raise InvalidClient(Reason.ASSERTION_TYPE, f"client_assertion_type must be {ASSERTION_TYPE}").with_cause(
            cause=f"client_assertion_type must be {ASSERTION_TYPE}: {_ONLY_METHOD}",
            received=other or shorten_value(parameters.get("client_assertion_type")),
        )
    if text is None:
        raise InvalidClient(Reason.ASSERTION_MISSING, "client_assertion is missing").with_cause(
            cause=f"client_assertion is missing: {_ONLY_METHOD}", received=other
        )
    try:
        token = compact.parse(text)
        candidate = _validate(token, issuer=issuer, endpoint=endpoint, rules=rules, now=now)
    except MalformedToken as error:
        raise InvalidClient(Reason.ASSERTION_MALFORMED, f"client_assertion: {error}") from None
    except BadClaim as error:
        reason = error.reason or Reason.ASSERTION_MALFORMED
        cause = f"client_assertion: {error}; {error.advice}" if error.advice else ""
        refusal = InvalidClient(reason, f"client_assertion: {error}")
        raise refusal.with_cause(cause=cause, received=error.received) from None
    if parameters.get("client_id", candidate.client_id) != candidate.client_id:
        raise InvalidClient(
            Reason.ASSERTION_CLIENT_ID, "client_id differs from the sub of client_assertion"
        ).with_cause(
            received=f"client_id {shorten_value(parameters['client_id'])}", expected=shorten_value(candidate.client_id)
        )
    return candidate


def _other_method(parameters: Mapping[str, str], authorization: Sequence[bytes]) -> str:
    """A second way in which a request authenticates its client.

    Empty if there is none.
    """
    if "client_secret" in parameters:
        return "the parameter client_secret"
    if not authorization:
        return ""
    return "an Authorization header" if any(map(bytes.strip, authorization)) else "an empty Authorization header"


def _validate(
    token: compact.Unverified, *, issuer: str, endpoint: str, rules: AuthenticationRules, now: float
) -> Candidate:
    claims = token.claims
    if token.header.get("typ") not in _TYPES:
        typ = shorten_value(token.header.get("typ"))
        raise BadClaim("typ must be JWT or client-authentication+jwt", Reason.ASSERTION_JWT_TYPE, received=typ)
    if token.algorithm not in rules.assertion_algorithms:
        raise BadClaim(
            f"alg must be one of {', '.join(rules.assertion_algorithms)}",
            Reason.ASSERTION_ALGORITHM,
            received=shorten_value(token.algorithm),
        )
    client_id = claims.get("sub")
    if not isinstance(client_id, str) or not client_id or claims.get("iss") != client_id:
        received = f"iss {shorten_value(claims.get('iss'))} and sub {shorten_value(client_id)}"
        raise BadClaim("iss and sub must both be the client_id", Reason.ASSERTION_ISSUER, received=received)
    audience = claims.get("aud")
    arrays = rules.audience_arrays
    names_issuer = audience == issuer or (arrays and audience == [issuer])
    names_endpoint = rules.endpoint_audience and (
        audience == endpoint or (arrays and audience in ([issuer, endpoint], [endpoint, issuer]))
    )
    if not (names_issuer or names_endpoint):
        raise BadClaim(_audience(issuer), Reason.ASSERTION_AUDIENCE, received=without_query(audience))
    identifier = jti(claims)
    if identifier is None and rules.assertion_jti_required:
        raise BadClaim("jti is missing", Reason.ASSERTION_JTI_MISSING)
    issued_at, expires_at = _validate_times(claims, rules=rules, now=now)
    return Candidate(
        client_id=client_id,
        token=token,
        jti=identifier,
        issued_at=issued_at,
        has_iat=claims.get("iat") is not None,
        expires_at=expires_at,
        names_endpoint=names_endpoint,
    )


def _audience(issuer: str) -> str:
    return f"aud must be the issuer {issuer}, as one string"


def refuse_assertion(reason: Reason, candidate: Candidate, *, issuer: str, explanation: Explanation) -> InvalidClient:
    """Return the refusal of an assertion without revealing its cause.

    The cause may be an unknown client, a setting or a signature. One sentence covers all of them, so that it does not
    reveal whether a client exists; `reason` and `explanation` are for the log, and for developer mode.
    Source: D28, D64
    """
    more = f", or {_audience(issuer)}" if candidate.names_endpoint else ""
    error = InvalidClient(reason, FAILED + more)
    error.explanation = explanation
    return error


def may_name_its_audience(candidate: Candidate, client: Client, *, today: str) -> bool:
    """Return whether the client may use this audience.

    The issuer, or its endpoint until a day. Source: D8, D64
    """
    until = client.endpoint_audience_until
    return not candidate.names_endpoint or (until is not None and today <= until)


def _validate_times(claims: Mapping[str, object], *, rules: AuthenticationRules, now: float) -> tuple[float, float]:
    exp, iat, nbf = numeric_date(claims, "exp"), numeric_date(claims, "iat"), numeric_date(claims, "nbf")
    if exp is None:
        raise BadClaim("exp is missing", Reason.ASSERTION_EXP_MISSING)
    if iat is None and rules.assertion_iat_required:
        raise BadClaim("iat is missing", Reason.ASSERTION_IAT_MISSING)
    if exp <= now:
        text = f"expired {seconds(now - exp)} ago by this server's clock"
        advice = f"make a new one for each request, and {CHECK_CLOCK}"
        raise BadClaim(text, Reason.ASSERTION_EXPIRED, advice=advice)
    for name, at in (("iat", iat), ("nbf", nbf)):
        if at is not None and at > now + CLOCK_AHEAD_SECONDS:
            raise BadClaim(ahead(name, at, now), Reason.ASSERTION_IN_THE_FUTURE, advice=CHECK_CLOCK)
    lifetime = exp - (now if iat is None else iat)
    if lifetime > rules.assertion_seconds and are_milliseconds(exp, now):
        raise BadClaim("exp looks like milliseconds: a NumericDate is in seconds", Reason.ASSERTION_LIFETIME)
    if lifetime > rules.assertion_seconds:
        start = "now" if iat is None else "iat"
        raise BadClaim(
            f"exp is {seconds(lifetime)} after {start}; {rules.assertion_seconds} s are allowed",
            Reason.ASSERTION_LIFETIME,
        )
    return (exp - rules.assertion_seconds if iat is None else iat), exp


def _fitting(candidate: Candidate, keys: ClientKeySet) -> list[VerificationKey]:
    kid = candidate.token.kid
    return [
        key
        for key in keys.signing
        if key.verifier.algorithm.name == candidate.token.algorithm and (kid is None or key.kid == kid)
    ]


def verify(candidate: Candidate, keys: ClientKeySet, *, now: float) -> Assertion:
    """Verify the signature by the registered keys.

    By the key that kid names, without kid by every fitting one. Raises KeyNotFound if none fits or verifies, also if
    the set has none to sign. Source: RFC 7523 §3, D8, D27
    """
    for key in _fitting(candidate, keys):
        try:
            compact.verify(candidate.token, key.verifier)
        except BadSignature:
            continue
        return Assertion(
            client_id=candidate.client_id,
            jti=candidate.jti,
            issued_at=candidate.issued_at,
            has_iat=candidate.has_iat,
            remember_seconds=candidate.expires_at - now + CLOCK_AHEAD_SECONDS + SPENT_MARGIN_SECONDS,
            lifetime=candidate.expires_at - candidate.issued_at,
            names_endpoint=candidate.names_endpoint,
        )
    raise KeyNotFound


def unverified_reason(candidate: Candidate, keys: ClientKeySet) -> tuple[Reason, Explanation]:
    """The reason for an assertion that no key verifies.

    Its explanation is for the log. Source: D8, D28
    """
    received = f"kid {shorten_value(candidate.token.kid)}, alg {shorten_value(candidate.token.algorithm)}"
    registered = list_values(f"{key.kid or 'without kid'} ({key.verifier.algorithm.name})" for key in keys.signing)
    if fitting := _fitting(candidate, keys):
        cause = "the registered key with this kid and alg does not verify the signature"
        if fault := compact.unfit_signature(candidate.token.signature, fitting[0].verifier.algorithm):
            cause = f"{cause}: {fault}"
        return Reason.ASSERTION_SIGNATURE, Explanation(cause=cause, received=received, registered=registered)
    cause = "; ".join(("no registered signing key has this kid and alg", *keys.problems))
    return Reason.ASSERTION_KEY, Explanation(cause=cause, received=received, registered=registered)


def claimed_client_id(parameters: Mapping[str, str], authorization: Sequence[bytes]) -> str:
    """Return the client_id that a request claims, empty if none.

    It is taken from the parameters, the client assertion or the access token. It may be invented: it is for the log,
    which bounds and escapes it. Source: D48, D57
    """
    if parameters.get("client_id"):
        return parameters["client_id"]
    assertion = _claim(parameters.get("client_assertion", ""), "sub")
    if assertion or not authorization:
        return assertion
    return _claim(authorization[0].decode("latin-1").strip().partition(" ")[2].strip(), "client_id")


def _claim(text: str, name: str) -> str:
    try:
        value = compact.parse(text).claims.get(name)
    except JoseError:
        return ""
    return value if isinstance(value, str) else ""
