"""Compact JWE towards a client's key: ECDH-ES with key wrapping (RFC 7516, RFC 7518 §4.6)."""

from __future__ import annotations

import hmac
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.keywrap import aes_key_wrap
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpid.jose.encoding import base64url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.jose.keys import EncryptionKey

CONTENT_ENCRYPTIONS: Final = ("A256CBC-HS512", "A256GCM")
_WRAP_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {"ECDH-ES+A128KW": 16, "ECDH-ES+A192KW": 24, "ECDH-ES+A256KW": 32}
)
_TAG_BYTES: Final[Mapping[str, int]] = MappingProxyType({"A256CBC-HS512": 32, "A256GCM": 16})
NO_CLAIMS: Final[Mapping[str, str]] = MappingProxyType({})
_random = AESGCM.generate_key
"""so many random bits, from where the ephemeral key comes from too"""


def encrypt(token: str, key: EncryptionKey, enc: str, *, claims: Mapping[str, str] = NO_CLAIMS) -> str:
    """Nest a signed JWT in a JWE for this key; `enc` is one of CONTENT_ENCRYPTIONS.

    `claims` are those of the JWT that the header repeats. Source: RFC 7519 §5.2, §5.3, RFC 7516 §5.1, D21
    """
    ephemeral = ec.generate_private_key(key.public.curve)
    header = {
        "alg": key.wrap,
        "enc": enc,
        "kid": key.kid,
        "typ": "JWT",
        "cty": "JWT",
        **claims,
        "epk": {"kty": "EC", "crv": key.curve_name, **_coordinates(ephemeral.public_key())},
    }
    protected = base64url(msgspec.json.encode(header))
    encrypt_content = _cbc_hmac if enc == "A256CBC-HS512" else _gcm
    content_key, iv, sealed = encrypt_content(token.encode("ascii"), protected.encode("ascii"))
    wrapped = aes_key_wrap(_agreed(ephemeral, key), content_key)
    tag = _TAG_BYTES[enc]
    return ".".join((protected, *map(base64url, (wrapped, iv, sealed[:-tag], sealed[-tag:]))))


def _coordinates(public: ec.EllipticCurvePublicKey) -> dict[str, str]:
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)[1:]
    half = len(point) // 2
    return {"x": base64url(point[:half]), "y": base64url(point[half:])}


def _agreed(ephemeral: ec.EllipticCurvePrivateKey, key: EncryptionKey) -> bytes:
    """The key that wraps: Concat KDF over the shared secret, without party information (RFC 7518 §4.6.2)."""
    size = _WRAP_BYTES[key.wrap]
    alg, nobody = key.wrap.encode("ascii"), bytes(4)
    info = len(alg).to_bytes(4, "big") + alg + nobody + nobody + (8 * size).to_bytes(4, "big")
    secret = ephemeral.exchange(ec.ECDH(), key.public)
    return ConcatKDFHash(algorithm=hashes.SHA256(), length=size, otherinfo=info).derive(secret)


def _cbc_hmac(text: bytes, authenticated: bytes) -> tuple[bytes, bytes, bytes]:
    """Content key, iv, and ciphertext with its tag: A256CBC-HS512 (RFC 7518 §5.2.2.1)."""
    mac_key, cipher_key, iv = _random(256), _random(256), _random(128)
    padder = padding.PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES256(cipher_key), modes.CBC(iv)).encryptor()
    sealed = encryptor.update(padder.update(text) + padder.finalize()) + encryptor.finalize()
    covered = authenticated + iv + sealed + (8 * len(authenticated)).to_bytes(8, "big")
    return mac_key + cipher_key, iv, sealed + hmac.digest(mac_key, covered, "sha512")[:32]


def _gcm(text: bytes, authenticated: bytes) -> tuple[bytes, bytes, bytes]:
    """Content key, iv, and ciphertext with its tag: A256GCM (RFC 7518 §5.3)."""
    content_key, iv = _random(256), _random(128)[:12]
    return content_key, iv, AESGCM(content_key).encrypt(iv, text, authenticated)
