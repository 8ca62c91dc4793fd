"""Proof Key for Code Exchange, S256 only (RFC 7636)."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from corpid.jose.encoding import base64url, from_base64url
from corpid.jose.errors import MalformedToken
from corpid.protocol.errors import InvalidRequest
from corpid.protocol.parameters import required

METHOD: Final = "S256"
NO_CHALLENGE: Final = ""
"""what stands for the S256 of a request that had none"""
_VERIFIER: Final = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
_CHALLENGE_CHARACTERS: Final = 43


def s256(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636 §4.2)."""
    return base64url(hashlib.sha256(verifier.encode("ascii")).digest())


def is_verifier(text: str) -> bool:
    """Whether a text has the form of a code_verifier: 43 to 128 unreserved characters (RFC 7636 §4.1)."""
    return _VERIFIER.fullmatch(text) is not None


def challenge(parameters: dict[str, str], *, optional: bool) -> str:
    """The code_challenge of an authorization request; NO_CHALLENGE if PKCE is `optional` and the request leaves it out.

    Raises InvalidRequest. Source: RFC 7636 §4.3, D18, decisions.md "LEGACY without PKCE"
    """
    if optional and parameters.keys().isdisjoint(("code_challenge", "code_challenge_method")):
        return NO_CHALLENGE
    return validate_challenge(required(parameters, "code_challenge"), required(parameters, "code_challenge_method"))


def validate_challenge(challenge: str, method: str) -> str:
    """A code_challenge of exactly 43 characters of canonical base64url. Raises InvalidRequest (RFC 7636 §4.3, D18)."""
    if method != METHOD:
        raise InvalidRequest(f"code_challenge_method must be {METHOD}")
    try:
        from_base64url(challenge)
    except MalformedToken:
        challenge = ""
    if len(challenge) != _CHALLENGE_CHARACTERS:
        raise InvalidRequest("code_challenge must be the 43 base64url characters of a SHA-256 hash")
    return challenge
