"""Encryption of what this server reads again, for one place alone (D34, D73)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.jose import encryption
from corpid.jose.encoding import from_base64url, tuple_bytes

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext


def encrypt_value(context: RequestContext, plaintext: bytes, kind: str, *place: str, bound_to: tuple[str, ...]) -> str:
    """Encrypt with a key of this kind and place alone.

    Returns URL-safe text. It opens only together with `bound_to`, which is not contained. Source: D34
    """
    nonce = from_base64url(context.provider.new_id())[: encryption.NONCE_BYTES]
    return encryption.seal(plaintext, _key(context, kind, *place), nonce, context=tuple_bytes(*bound_to))


def decrypt_value(context: RequestContext, text: str, kind: str, *place: str, bound_to: tuple[str, ...]) -> bytes:
    """Decrypt the result of `encrypt_value`. Raises MalformedToken for anything else. Source: D34"""
    return encryption.unseal(text, _key(context, kind, *place), context=tuple_bytes(*bound_to))


def _key(context: RequestContext, kind: str, *place: str) -> bytes:
    return from_base64url(context.keys.mac(kind, context.provider.policy.base_url, *place))
