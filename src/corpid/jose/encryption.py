"""Compact JWE towards a client's key (RFC 7516)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joserfc import jwe

if TYPE_CHECKING:
    from corpid.jose.keys import EncryptionKey

CONTENT_ENCRYPTIONS: Final = ("A256CBC-HS512", "A256GCM")
_registry = jwe.JWERegistry(
    algorithms=["ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW", *CONTENT_ENCRYPTIONS], verify_all_recipients=True
)


def encrypt(token: str, key: EncryptionKey, enc: str) -> str:
    """Nest a signed JWT in a JWE for this key; `enc` is one of CONTENT_ENCRYPTIONS.

    Source: RFC 7519 §5.2, RFC 7516 §7.1, D21
    """
    header = {"alg": key.wrap, "enc": enc, "kid": key.kid, "typ": "JWT", "cty": "JWT"}
    return jwe.encrypt_compact(header, token, key.key, registry=_registry)
