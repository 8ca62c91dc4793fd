"""AES-256-GCM for values that CorpID hands out and reads back.

Source: NIST SP 800-38D, D34
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from corpid.jose.encoding import MalformedToken, base64url, from_base64url

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
