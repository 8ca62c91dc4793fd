"""Keys and tokens made by joserfc, so that what we read was written by somebody else."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

CURVES: Final = {"ES256": "P-256", "ES256K": "secp256k1", "ES384": "P-384", "ES512": "P-521"}
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # SEC 2 §2.4.2
REGISTRY: Final = jws.JWSRegistry(algorithms=list(CURVES), strict_check_header=False)


@cache
def _made(curve: str, _number: int) -> ECKey:
    return ECKey.generate_key(curve)


def key(curve: str = "P-256", number: int = 0) -> ECKey:
    """A private key, the same one for the same arguments."""
    return _made(curve, number)


@cache
def rsa_key(bits: int = 2048, _number: int = 0) -> RSAKey:
    """A private RSA key, the same one for the same arguments."""
    return RSAKey.generate_key(bits)


def public_jwk(private: ECKey | RSAKey, **members: Any) -> dict[str, Any]:
    return {**private.as_dict(private=False), **members}


def private_jwk(private: ECKey, **members: Any) -> dict[str, Any]:
    return {**private.as_dict(private=True), **members}


def key_set(*keys: object) -> str:
    return json.dumps({"keys": keys})


def sign(claims: dict[str, Any] | bytes, private: ECKey | None = None, *, alg: str = "ES256", **header: Any) -> str:
    """A compact JWS by joserfc; bytes are signed as they are."""
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return jws.serialize_compact({"alg": alg, **header}, payload, private or key(CURVES[alg]), registry=REGISTRY)


def openssl_accepts(public: ec.EllipticCurvePublicKey, message: bytes, signature: bytes) -> bool:
    """Whether OpenSSL takes a signature in DER for one of this message by ES256."""
    try:
        public.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def b64(value: bytes | str | dict[str, Any]) -> str:
    """base64url by the standard library."""
    text = json.dumps(value) if isinstance(value, dict) else value
    raw = text.encode() if isinstance(text, str) else text
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unsigned(header: bytes | str | dict[str, Any], payload: bytes | str | dict[str, Any] = "{}") -> str:
    """A compact form whose signature is 64 bytes of nothing."""
    return f"{b64(header)}.{b64(payload)}.{b64(bytes(64))}"


def tuple_of(*parts: str) -> bytes:
    """A MessagePack array of texts, written by hand from its specification: each with its length before it."""
    written = bytes([0x90 | len(parts)])
    for raw in (part.encode() for part in parts):
        written += (bytes([0xA0 | len(raw)]) if len(raw) < 32 else bytes([0xD9, len(raw)])) + raw
    return written
