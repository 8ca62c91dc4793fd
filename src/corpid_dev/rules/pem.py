"""Public keys in PEM text, as JWKs (RFC 7468 §5, §13)."""

from __future__ import annotations

import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from corpid.jose.algorithms import BY_CURVE, public_jwk
from corpid.jose.encoding import JoseError, base64url

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]{1,16384}-----END \1-----")
_CERTIFICATE: Final = "CERTIFICATE"
MAX_BLOCKS: Final = 8


class PemRefused(JoseError):
    """PEM text without a public key that can be used here."""


def public_jwks(text: str) -> list[dict[str, object]]:
    """The keys of PEM text, public keys and certificates, in order.

    They have no use, alg or kid. Raises PemRefused. Source: RFC 7468
    """
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        raise PemRefused("it has no complete block, from -----BEGIN to -----END")
    if len(blocks) > MAX_BLOCKS:
        raise PemRefused(f"it has more than {MAX_BLOCKS} blocks")
    return [_jwk(number, block) for number, block in enumerate(blocks, start=1)]


def _jwk(number: int, block: re.Match[str]) -> dict[str, object]:
    try:
        if block[1] == _CERTIFICATE:
            public: object = x509.load_pem_x509_certificate(block[0].encode()).public_key()
        else:
            public = load_pem_public_key(block[0].encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise PemRefused(f"block {number} ({block[1]}) is no public key and no certificate") from None
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        return {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise PemRefused(f"block {number} is neither an EC nor an RSA key")
    for name, algorithm in BY_CURVE.items():
        if isinstance(public.curve, type(algorithm.curve)):
            return public_jwk(name, public)
    raise PemRefused(f"block {number} is on the curve {public.curve.name}, which no algorithm here uses")


def _number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))
