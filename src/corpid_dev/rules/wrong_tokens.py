"""Tokens that are signed or encrypted wrongly in one way (D66)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpid.jose import compact, encryption
from corpid.jose.algorithms import ALGORITHMS, BY_CURVE
from corpid.jose.encoding import base64url, from_base64url, json_object
from corpid.jose.keys import EncryptionKey

if TYPE_CHECKING:
    from corpid.jose.key_ring import SigningKey

_ES256: Final = ALGORITHMS["ES256"]
_RSA_BITS: Final = 2048


def sign_token(key: SigningKey, payload: bytes, typ: str) -> str:
    """A compact JWS by any key, under its kid (RFC 7515 §5.1)."""
    return compact.sign(key.headers[typ], payload, key.private, _ES256)


def with_bad_signature(token: str) -> str:
    """The token with a signature that does not verify (RFC 7515 §5.2)."""
    head, _, signature = token.rpartition(".")
    octets = bytearray(from_base64url(signature))
    octets[len(octets) // 2] ^= 0x01
    return f"{head}.{base64url(bytes(octets))}"


def unsigned_token(key: SigningKey, payload: bytes, typ: str) -> str:
    """A token whose algorithm is `none` (RFC 7518 §3.6)."""
    return f"{_head('none', key.kid, typ)}.{base64url(payload)}."


def by_published_key(key: SigningKey, payload: bytes, typ: str) -> str:
    """A token by HS256, whose secret is the published key as PEM (RFC 8725 §2.1)."""
    message = f"{_head('HS256', key.kid, typ)}.{base64url(payload)}"
    secret = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{message}.{base64url(hmac.digest(secret, message.encode('ascii'), 'sha256'))}"


def _head(alg: str, kid: str, typ: str) -> str:
    return base64url(msgspec.json.encode({"alg": alg, "kid": kid, "typ": typ}))


def is_encrypted(token: str) -> bool:
    """Return whether it has the five parts of a compact JWE (RFC 7516 §3.1)."""
    return token.count(".") == 4


def encrypted_to_another(token: str, nested: str) -> str:
    """The JWS, encrypted to a new key under the kid of `token`.

    The algorithms are those of its header. Source: RFC 7516 §5.1
    """
    header: dict[str, Any] = json_object(from_base64url(token.partition(".")[0]))
    alg, enc, curve = str(header["alg"]), str(header["enc"]), str(header.get("epk", {}).get("crv", ""))
    public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey
    if curve:
        public = ec.generate_private_key(BY_CURVE[curve].curve).public_key()
    else:
        public = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS).public_key()
    key = EncryptionKey(kid=str(header["kid"]), wrap=alg, curve_name=curve, public=public)
    repeated: dict[str, str] = {name: str(header[name]) for name in ("iss", "aud") if name in header}
    return encryption.encrypt(nested, key, enc, claims=repeated)
