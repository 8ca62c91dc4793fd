"""Challenges for passkeys: made without being stored, and spent when they are answered (D46).

A challenge is `nonce.mac`, where the mac covers what it was made for; so a page that is only looked at writes nothing.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from corpid.flows import kinds

if TYPE_CHECKING:
    from corpid.flows.provider import Provider
    from corpid.ports import TransientUnit


def make(provider: Provider, purpose: str, subject: str) -> bytes:
    """A new challenge, good for this purpose and subject (an interaction, an account) only.

    `own_keys.ring` was awaited before. Source: WebAuthn §13.4.3, D46
    """
    nonce = provider.new_id()
    return f"{nonce}.{_mac(provider, purpose, subject, nonce)}".encode()


def is_own(provider: Provider, challenge: bytes, purpose: str, subject: str) -> bool:
    """Whether a challenge was made here for this purpose and subject. Source: WebAuthn §7.2, D46"""
    nonce, _, mac = challenge.decode("ascii", "replace").partition(".")
    return hmac.compare_digest(mac.encode(), _mac(provider, purpose, subject, nonce).encode())


async def spend(provider: Provider, unit: TransientUnit, challenge: bytes) -> bool:
    """Spend a challenge; True for the first only (D46)."""
    key = kinds.key(kinds.PASSKEY_CHALLENGE, provider.policy.base_url, challenge.decode("ascii", "replace"))
    return await unit.add(kinds.PASSKEY_CHALLENGE.name, key, kinds.PASSKEY_CHALLENGE.seconds)


def _mac(provider: Provider, purpose: str, subject: str, nonce: str) -> str:
    return provider.own_keys.mac("passkey", purpose, subject, nonce)
