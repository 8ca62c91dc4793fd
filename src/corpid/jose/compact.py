"""Compact JWS: parsed once, believed only after `verify` (RFC 7515 §3.1).

Header members that would change how a token is read or which key verifies it are refused; others that are not
known mean nothing (D7, D8).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from corpid.jose.encoding import JoseError, MalformedToken, base64url_bytes, from_base64url, json_object, without_null

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

    from corpid.jose.keys import Algorithm, Verifier

MAX_BYTES: Final = 8192  # D33
_REFUSED_HEADERS: Final = frozenset({"crit", "zip", "b64", "jku", "x5u"})


class BadSignature(JoseError):
    """The signature does not fit the key."""


CACHED_HEADER_BYTES: Final = 640
"""of an encoded header that is cached after it was parsed; one with the key of a DPoP proof has 250"""
CACHED_HEADERS: Final = 1024


class Unverified(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed compact JWS that nothing has verified."""

    encoded_header: bytes
    header: Mapping[str, object]
    """shared by all tokens with this header"""
    claims: dict[str, object]
    algorithm: str
    kid: str | None
    signing_input: bytes
    signature: bytes


def parse(token: str) -> Unverified:
    """Parse a compact JWS whose payload is a JSON object.

    At most 8192 bytes. A member that is null counts as absent.

    Raises MalformedToken with a public text. Source: RFC 7515 §5.2, D8, D33, D85
    """
    if len(token) > MAX_BYTES:
        raise MalformedToken(f"longer than {MAX_BYTES} bytes")
    try:
        raw = token.encode("ascii")
    except UnicodeEncodeError:
        raise MalformedToken("not base64url") from None
    parts = raw.split(b".")
    if len(parts) != 3:
        raise MalformedToken("not a compact JWS of three parts")
    encoded, payload, signature = parts
    header = _cached_header(encoded) if is_cacheable(encoded) else _header(encoded)
    return Unverified(
        encoded_header=encoded,
        header=header.members,
        claims=without_null(json_object(from_base64url(payload))),
        algorithm=header.algorithm,
        kid=header.kid,
        signing_input=raw[: len(encoded) + 1 + len(payload)],
        signature=from_base64url(signature),
    )


class _Header(NamedTuple):
    members: dict[str, object]
    algorithm: str
    kid: str | None


def _header(encoded: bytes) -> _Header:
    members = without_null(json_object(from_base64url(encoded)))
    refused = _REFUSED_HEADERS.intersection(members)
    if refused:
        raise MalformedToken(f"header member {min(refused)} is not accepted")
    algorithm, kid = members.get("alg"), members.get("kid", "")
    if not isinstance(algorithm, str):
        raise MalformedToken("header has no alg")
    if not isinstance(kid, str):
        raise MalformedToken("kid is not a string")
    return _Header(members, algorithm, kid if "kid" in members else None)


def is_cacheable(encoded_header: bytes) -> bool:
    """Return whether an encoded header is short enough to be cached. Source: D33"""
    return len(encoded_header) <= CACHED_HEADER_BYTES


def header(encoded: bytes) -> Mapping[str, object]:
    """The members of an encoded header, as `parse` returns them. Raises MalformedToken. Source: RFC 7515 §4"""
    return (_cached_header if is_cacheable(encoded) else _header)(encoded).members


_cached_header: Final = lru_cache(CACHED_HEADERS)(_header)
"""A client sends the same header with each assertion, and with each proof by one key. What is refused is not cached."""


def verify(token: Unverified, key: Verifier) -> None:
    """Verify the signature with this key and its algorithm.

    Whatever the header names. Raises BadSignature. Source: RFC 7515 §5.2, RFC 7518 §3.4
    """
    algorithm = key.algorithm
    size = algorithm.size
    raw = token.signature
    if token.algorithm != algorithm.name or len(raw) != 2 * size:
        raise BadSignature(unfit_signature(raw, algorithm) or "the signature does not fit the algorithm of the key")
    der = encode_dss_signature(int.from_bytes(raw[:size]), int.from_bytes(raw[size:]))
    if not key.accepts(token.signing_input, der):
        raise BadSignature("the signature is not valid")


def unfit_signature(signature: bytes, algorithm: Algorithm) -> str:
    """The mistake in the form of a signature, empty if unknown.

    Many libraries sign in DER, and JWS does not. Source: RFC 7518 §3.4
    """
    try:
        decode_dss_signature(signature)
    except ValueError:
        return ""
    if len(signature) == 2 * algorithm.size:
        return ""
    return f"the signature is in DER: {algorithm.name} needs r and s alone, {algorithm.size} bytes each"


def sign(encoded_header: bytes, payload: bytes, private: ec.EllipticCurvePrivateKey, algorithm: Algorithm) -> str:
    """Sign.

    `encoded_header` is the base64url header, made once per key (RFC 7515 §5.1).
    """
    return serialize_token(*sign_payload(encoded_header, payload, private, algorithm))


def sign_payload(
    encoded_header: bytes, payload: bytes, private: ec.EllipticCurvePrivateKey, algorithm: Algorithm
) -> tuple[bytes, bytes]:
    """The signing input of a token, and its signature.

    Both as `parse` returns them. Source: RFC 7515 §5.1
    """
    signing_input = encoded_header + b"." + base64url_bytes(payload)
    r, s = decode_dss_signature(private.sign(signing_input, algorithm.ecdsa))
    size = algorithm.size
    return signing_input, r.to_bytes(size) + s.to_bytes(size)


def serialize_token(signing_input: bytes, signature: bytes) -> str:
    """The compact serialization.

    Source: RFC 7515 §7.1
    """
    return (signing_input + b"." + base64url_bytes(signature)).decode("ascii")
