"""RSA public keys of clients, to which content keys are encrypted (RFC 7518 §6.3.1)."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from corpid.jose.encoding import from_base64url
from corpid.jose.errors import UnusableKey

SMALLEST_BITS: Final = 2048  # RFC 7518 §4.3
LARGEST_BITS: Final = 8192
_EXPONENT_BITS: Final = 32
"""larger ones serve nobody, and cost whoever encrypts"""


def import_rsa_key(jwk: dict[str, object]) -> rsa.RSAPublicKey:
    """The public RSA key of a JWK. Raises UnusableKey (RFC 7518 §6.3.1, §4.3)."""
    modulus, exponent = _number(jwk, "n"), _number(jwk, "e")
    bits = modulus.bit_length()
    if not SMALLEST_BITS <= bits <= LARGEST_BITS:
        raise UnusableKey(f"an RSA key has {SMALLEST_BITS} to {LARGEST_BITS} bits, and this one {bits}")
    if modulus % 2 == 0 or exponent % 2 == 0 or not 3 <= exponent < 1 << _EXPONENT_BITS:
        raise UnusableKey("n and e are no RSA key")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _number(jwk: dict[str, object], name: str) -> int:
    text = jwk.get(name)
    if not isinstance(text, str):
        raise UnusableKey(f"the key has no {name}")
    return int.from_bytes(from_base64url(text), "big")
