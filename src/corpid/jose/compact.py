"""Compact JWS: parsed once, believed only after `verify` (RFC 7515 §3.1).

Header members that would change how a token is read or which key verifies it are refused; others that are not
known mean nothing (D7, D8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from corpid.jose.encoding import JoseError, MalformedToken, base64url_bytes, from_base64url, json_object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

    from corpid.jose.keys import Algorithm

MAX_BYTES: Final = 8192  # D33
_REFUSED_HEADERS: Final = frozenset({"crit", "zip", "b64", "jku", "x5u"})


class BadSignature(JoseError):
    """The signature does not fit the key."""


class Unverified(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed compact JWS that nothing has verified."""

    header: dict[str, object]
    claims: dict[str, object]
    algorithm: str
    kid: str | None
    signing_input: bytes
    signature: bytes


def parse(token: str) -> Unverified:
    """Parse a compact JWS whose payload is a JSON object.

    At most 8192 bytes.

    Raises MalformedToken with a public text. Source: RFC 7515 §5.2, D8, D33
    """
    if len(token) > MAX_BYTES:
        raise MalformedToken(f"longer than {MAX_BYTES} bytes")
    parts = token.split(".")
    if len(parts) != 3:
        raise MalformedToken("not a compact JWS of three parts")
    header = json_object(from_base64url(parts[0]))
    refused = _REFUSED_HEADERS.intersection(header)
    if refused:
        raise MalformedToken(f"header member {min(refused)} is not accepted")
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str):
        raise MalformedToken("header has no alg")
    if not isinstance(kid, str):
        raise MalformedToken("kid is not a string")
    return Unverified(
        header=header,
        claims=json_object(from_base64url(parts[1])),
        algorithm=algorithm,
        kid=kid if "kid" in header else None,
        signing_input=token[: token.rindex(".")].encode("ascii"),
        signature=from_base64url(parts[2]),
    )


def verify(token: Unverified, public: ec.EllipticCurvePublicKey, algorithm: Algorithm) -> None:
    """Verify the signature with this key and algorithm.

    Whatever the header names. Raises BadSignature. Source: RFC 7515 §5.2, RFC 7518 §3.4
    """
    size = algorithm.size
    raw = token.signature
    if token.algorithm != algorithm.name or len(raw) != 2 * size:
        raise BadSignature("the signature does not fit the algorithm of the key")
    der = encode_dss_signature(int.from_bytes(raw[:size]), int.from_bytes(raw[size:]))
    try:
        public.verify(der, token.signing_input, algorithm.ecdsa)
    except InvalidSignature:
        raise BadSignature("the signature is not valid") from None


def sign(encoded_header: bytes, payload: bytes, private: ec.EllipticCurvePrivateKey, algorithm: Algorithm) -> str:
    """Sign.

    `encoded_header` is the base64url header, made once per key (RFC 7515 §5.1).
    """
    signing_input = encoded_header + b"." + base64url_bytes(payload)
    r, s = decode_dss_signature(private.sign(signing_input, algorithm.ecdsa))
    size = algorithm.size
    return (signing_input + b"." + base64url_bytes(r.to_bytes(size) + s.to_bytes(size))).decode("ascii")
