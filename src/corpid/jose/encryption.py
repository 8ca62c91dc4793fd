"""JWE to a client's key, and AES-GCM for our own values.

ECDH-ES and RSA-OAEP for clients. Our own values are those that CorpID hands out and reads back. Source: RFC 7516,
RFC 7518 §4.3, §4.6, NIST SP 800-38D, D34
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

from corpid.jose.encoding import MalformedToken, base64url, base64url_bytes, from_base64url
from corpid.jose.keys import EncryptionKey, public_jwk

CONTENT_ENCRYPTIONS: Final = ("A256CBC-HS512", "A256GCM")
"""key management algorithms of ID tokens, and of userinfo except in the oldest generation (D21, D22)"""
_WRAP_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {"ECDH-ES+A128KW": 16, "ECDH-ES+A192KW": 24, "ECDH-ES+A256KW": 32}
)
_OAEP: Final = MappingProxyType(
    {
        "RSA-OAEP": OAEP(MGF1(hashes.SHA1()), hashes.SHA1(), None),  # noqa: S303 - RFC 7518 §4.3 says so
        "RSA-OAEP-256": OAEP(MGF1(hashes.SHA256()), hashes.SHA256(), None),
    }
)
NO_CLAIMS: Final[Mapping[str, str]] = MappingProxyType({})
_ECDH: Final = ec.ECDH()
_BLOCK: Final = 16
"""bytes of a block of AES"""
_random = AESGCM.generate_key
"""so many random bits, from the source of the ephemeral key"""


def encrypt(token: str, key: EncryptionKey, enc: str, *, claims: Mapping[str, str] = NO_CLAIMS) -> str:
    """Nest a signed JWT in a JWE for this key.

    `enc` is one of ENCRYPTIONS.

    `claims` are those of the JWT that the header repeats. Source: RFC 7519 §5.2, §5.3, RFC 7516 §5.1, D21
    """
    content = ENCRYPTIONS[enc]
    content_key, wrapped, agreed = _keys(key, enc, content.key_bits)
    header = {"alg": key.wrap, "enc": enc, "kid": key.kid, "typ": "JWT", "cty": "JWT", **claims, **agreed}
    protected = base64url_bytes(msgspec.json.encode(header))
    iv, sealed = content.seal(content_key, token.encode("ascii"), protected)
    tag = content.tag_bytes
    parts = (protected, *map(base64url_bytes, (wrapped, iv, sealed[:-tag], sealed[-tag:])))
    return b".".join(parts).decode("ascii")


def _keys(key: EncryptionKey, enc: str, bits: int) -> tuple[bytes, bytes, dict[str, object]]:
    """The content key, its encrypted form, and its header members."""
    if isinstance(key.public, rsa.RSAPublicKey):
        content_key = _key_of(bits)
        return content_key, key.public.encrypt(content_key, _OAEP[key.wrap]), {}
    ephemeral = ec.generate_private_key(key.public.curve)
    header: dict[str, object] = {"epk": public_jwk(key.curve_name, ephemeral.public_key())}
    secret = ephemeral.exchange(_ECDH, key.public)
    if key.wrap not in _WRAP_BYTES:
        return _derived(secret, enc, bits // 8), b"", header
    content_key = _key_of(bits)
    return content_key, aes_key_wrap(_derived(secret, key.wrap, _WRAP_BYTES[key.wrap]), content_key), header


def _key_of(bits: int) -> bytes:
    return _random(bits) if bits <= 256 else _random(bits // 2) + _random(bits // 2)


def _derived(secret: bytes, algorithm: str, size: int) -> bytes:
    """Concat KDF over the shared secret, without party information.

    `algorithm` is enc if nothing is wrapped.
    """
    name, nobody = algorithm.encode("ascii"), bytes(4)
    hashed = secret + len(name).to_bytes(4) + name + nobody + nobody + (8 * size).to_bytes(4)
    derived, rounds = b"", 0
    while len(derived) < size:
        rounds += 1
        derived += hashlib.sha256(rounds.to_bytes(4) + hashed).digest()
    return derived[:size]


def _cbc_hmac(key: bytes, text: bytes, authenticated: bytes, *, digest: str) -> tuple[bytes, bytes]:
    """iv, and ciphertext with its tag.

    Of the key one half is the MAC's, the other the cipher's (RFC 7518 §5.2.2.1). The padding is that of PKCS #7
    (RFC 5652 §6.3).
    """
    half = len(key) // 2
    mac_key, cipher_key, iv = key[:half], key[half:], _random(128)
    padding = _BLOCK - len(text) % _BLOCK
    encryptor = Cipher(algorithms.AES(cipher_key), modes.CBC(iv)).encryptor()
    sealed = encryptor.update(text + padding * padding.to_bytes()) + encryptor.finalize()
    covered = authenticated + iv + sealed + (8 * len(authenticated)).to_bytes(8, "big")
    return iv, sealed + hmac.digest(mac_key, covered, digest)[:half]


def _gcm(key: bytes, text: bytes, authenticated: bytes) -> tuple[bytes, bytes]:
    """iv, and ciphertext with its tag (RFC 7518 §5.3)."""
    iv = _random(128)[:12]
    return iv, AESGCM(key).encrypt(iv, text, authenticated)


class _ContentEncryption(msgspec.Struct, frozen=True, kw_only=True):
    """A JWE enc: key size, tag size and encryption function.

    Source: RFC 7518 §5.1
    """

    key_bits: int
    tag_bytes: int
    seal: Callable[[bytes, bytes, bytes], tuple[bytes, bytes]]


ENCRYPTIONS: Final[Mapping[str, _ContentEncryption]] = MappingProxyType(
    {
        "A128CBC-HS256": _ContentEncryption(key_bits=256, tag_bytes=16, seal=partial(_cbc_hmac, digest="sha256")),
        "A128GCM": _ContentEncryption(key_bits=128, tag_bytes=16, seal=_gcm),
        "A256CBC-HS512": _ContentEncryption(key_bits=512, tag_bytes=32, seal=partial(_cbc_hmac, digest="sha512")),
        "A256GCM": _ContentEncryption(key_bits=256, tag_bytes=16, seal=_gcm),
    }
)
"""by the JWE enc"""


NONCE_BYTES: Final = 12


def seal(plaintext: bytes, key: bytes, nonce: bytes, *, context: bytes) -> str:
    """Encrypt with a 32-byte key and a fresh 12-byte nonce.

    The nonce must never have been used with the key. Returns base64url. `context` is authenticated, not contained.
    Source: NIST SP 800-38D §8, D34
    """
    return base64url(nonce + AESGCM(key).encrypt(nonce, plaintext, context))


def unseal(text: str, key: bytes, *, context: bytes) -> bytes:
    """Decrypt the result of `seal`.

    Raises MalformedToken for any other text, key or context. Source: NIST SP 800-38D §7.2, D34
    """
    sealed = from_base64url(text)
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context)
    except (InvalidTag, ValueError):
        raise MalformedToken("not what was sealed with this key and context") from None
