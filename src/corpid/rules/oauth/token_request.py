"""Token requests: parameters, PKCE, and match with the grant.

Source: RFC 6749 §4.1.3, RFC 7636 §4.6
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.jose.encoding import MalformedToken, base64url, from_base64url
from corpid.rules.limits import CODE_SECONDS
from corpid.rules.oauth.errors import (
    InvalidDPoPProof,
    InvalidGrant,
    InvalidRequest,
    UnsupportedGrantType,
    abbreviate_hash,
    clip_text,
    shorten_value,
    url_difference,
    without_query,
)
from corpid.rules.oauth.parameters import require_parameter
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.oauth.generations import Generation
    from corpid.rules.oauth.records import Grant

METHOD: Final = "S256"
NO_CHALLENGE: Final = ""
"""the replacement for the S256 of a request that had none"""
_VERIFIER: Final = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
_CHALLENGE_CHARACTERS: Final = 43


def s256(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636 §4.2)."""
    return base64url(hashlib.sha256(verifier.encode("ascii")).digest())


def is_verifier(text: str) -> bool:
    """Return whether a text has the form of a code_verifier.

    43 to 128 unreserved characters. Source: RFC 7636 §4.1
    """
    return _VERIFIER.fullmatch(text) is not None


def read_challenge(parameters: dict[str, str], *, optional: bool) -> str:
    """The code_challenge of an authorization request.

    NO_CHALLENGE if PKCE is `optional` and the request leaves it out.

    Raises InvalidRequest. Source: RFC 7636 §4.3, D18, Spec "LEGACY without PKCE"
    """
    if optional and parameters.keys().isdisjoint(("code_challenge", "code_challenge_method")):
        return NO_CHALLENGE
    return validate_challenge(
        require_parameter(parameters, "code_challenge"), require_parameter(parameters, "code_challenge_method")
    )


def validate_challenge(challenge: str, method: str) -> str:
    """A code_challenge of exactly 43 characters of canonical base64url.

    Raises InvalidRequest (RFC 7636 §4.3, D18).
    """
    if method != METHOD:
        raise InvalidRequest(Reason.CHALLENGE_METHOD, f"code_challenge_method must be {METHOD}").with_cause(
            received=shorten_value(method)
        )
    try:
        from_base64url(challenge)
    except MalformedToken:
        challenge = ""
    if len(challenge) != _CHALLENGE_CHARACTERS:
        raise InvalidRequest(
            Reason.CHALLENGE_MALFORMED, "code_challenge must be the 43 base64url characters of a SHA-256 hash"
        )
    return challenge


TOKEN_PARAMETERS: Final = frozenset(
    {
        "grant_type", "code", "redirect_uri", "client_id", "client_assertion_type", "client_assertion",
        "code_verifier", "client_secret",
    }
)  # fmt: skip
FAILED: Final = (
    "the code is unknown, expired or already used, or client, redirect_uri, code_verifier or key are not "
    "those of its authorization request"
)
_CODE_CHARACTERS: Final = 512


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete token request; nothing is proven."""

    code: str
    redirect_uri: str
    challenge: str
    """S256 of the presented verifier, or NO_CHALLENGE"""


def validate_token_request(parameters: dict[str, str], generation: Generation) -> TokenRequest:
    """Presence and syntax.

    Whether code_verifier may be missing is for `require_verifier`, once the client is known.

    Raises InvalidRequest, InvalidGrant or UnsupportedGrantType. Source: RFC 6749 §4.1.3, Spec 4.3
    """
    if require_parameter(parameters, "grant_type") != "authorization_code":
        raise UnsupportedGrantType(Reason.GRANT_TYPE, "grant_type must be authorization_code").with_cause(
            received=shorten_value(parameters["grant_type"])
        )
    code = require_parameter(parameters, "code")
    redirect_uri = require_parameter(parameters, "redirect_uri")
    verifier = parameters.get("code_verifier")
    if verifier is None and generation.pkce_optional:
        challenge = NO_CHALLENGE
    elif verifier is None or not is_verifier(verifier):
        raise _bad_verifier(generation)
    else:
        challenge = s256(verifier)
    if len(code) > _CODE_CHARACTERS:
        raise InvalidGrant(Reason.CODE_MALFORMED, FAILED).with_cause(
            cause="no code of this provider is that long",
            received=f"{len(code)} characters",
            expected=f"at most {_CODE_CHARACTERS}",
        )
    return TokenRequest(code=code, redirect_uri=redirect_uri, challenge=challenge)


def require_verifier(request: TokenRequest, generation: Generation, *, pkce_optional: bool) -> None:
    """Refuse a request without code_verifier unless its client may leave PKCE out.

    Raises InvalidRequest or InvalidGrant. Source: RFC 7636 §4.5, Spec "LEGACY without PKCE"
    """
    if request.challenge == NO_CHALLENGE and not pkce_optional:
        raise _bad_verifier(generation)


def _bad_verifier(generation: Generation) -> InvalidGrant | InvalidRequest:
    refusal = InvalidGrant if generation.bad_verifier_code == InvalidGrant.code else InvalidRequest
    return refusal(Reason.VERIFIER_MALFORMED, "code_verifier must be 43 to 128 letters, digits and - . _ ~")


@dataclass(slots=True)
class IssuedCode:
    """A code that this process issued: its client, its code_challenge and when."""

    client_id: str
    challenge: str
    at: float
    redeemed: bool = False


def not_found(issued: IssuedCode | None, request: TokenRequest, client_id: str, *, now: float) -> InvalidGrant:
    """The refusal of a code that the store does not have.

    `issued` is what this process knows of the code, None if it did not issue it. Source: D18, D19, D28
    """
    if issued is None:
        cause = "no such code of this client with this verifier, and this process did not issue it"
        return InvalidGrant(Reason.CODE_UNKNOWN, FAILED).with_cause(cause=cause)
    if issued.client_id != client_id:
        return InvalidGrant(Reason.CODE_OF_ANOTHER_CLIENT, FAILED).with_cause(
            cause="the code was issued to another client",
            received=f"client_id {clip_text(client_id)}",
            expected=clip_text(issued.client_id),
        )
    age = f"{now - issued.at:.0f} s after it was issued"
    if issued.redeemed:
        return InvalidGrant(Reason.CODE_REDEEMED, FAILED).with_cause(
            cause="the code was already presented, and works once", received=f"the code again, {age}"
        )
    if now >= issued.at + CODE_SECONDS:
        return InvalidGrant(Reason.CODE_EXPIRED, FAILED).with_cause(
            cause="the code has expired", received=f"the code {age}", expected=f"less than {CODE_SECONDS} s"
        )
    if issued.challenge != request.challenge:
        return InvalidGrant(Reason.CODE_VERIFIER, FAILED).with_cause(
            cause="code_verifier is not that of the authorization request",
            received=f"a verifier with the S256 {abbreviate_hash(request.challenge)}"
            if request.challenge
            else "no code_verifier",
            expected=f"the code_challenge {abbreviate_hash(issued.challenge)}"
            if issued.challenge
            else "no code_verifier",
        )
    cause = "the code is no longer stored, though it has not expired: the store may have lost its data"
    return InvalidGrant(Reason.CODE_UNKNOWN, FAILED).with_cause(cause=cause)


_OTHER_KEY: Final = (
    "DPoP proof: its key is not the one that was bound at the authorization request; use one key from PAR to userinfo"
)
_MISMATCHES: Final[Mapping[str, tuple[type[InvalidGrant | InvalidDPoPProof], str]]] = {
    InvalidGrant.code: (InvalidGrant, FAILED),
    InvalidDPoPProof.code: (InvalidDPoPProof, _OTHER_KEY),
}
"""error of another key → its class, and its description: an invalid_grant says no more than others (D19)"""


def redeem(grant: Grant, request: TokenRequest, *, jkt: str | None, mismatch_code: str) -> Grant:
    """Compare the grant of a code with the token request.

    Returns the grant, bound to the key of this request's proof.

    Raises InvalidGrant; for another key than the one that was bound, the error with `mismatch_code`.
    Source: RFC 6749 §5.2, RFC 9449 §5, D6, D18-D20
    """
    if grant.redirect_uri != request.redirect_uri:
        difference = url_difference(request.redirect_uri, [grant.redirect_uri])
        raise InvalidGrant(Reason.CODE_REDIRECT_URI, FAILED).with_cause(
            cause=f"another redirect_uri than in the authorization request{difference and f': {difference}'}",
            received=without_query(request.redirect_uri),
            expected=without_query(grant.redirect_uri),
        )
    if grant.jkt is not None and grant.jkt != jkt:
        refusal, sentence = _MISMATCHES[mismatch_code]
        raise refusal(Reason.CODE_KEY, sentence).with_cause(
            cause="another DPoP key than the one bound at the authorization request",
            received=f"the thumbprint {abbreviate_hash(jkt)}",
            expected=abbreviate_hash(grant.jkt),
        )
    return msgspec.structs.replace(grant, jkt=jkt)
