"""Challenges: made without being stored, and spent when they are answered (D46).

A challenge is `nonce.mac`, where the mac covers what it was made for; so a page that is only looked at writes nothing.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from corpid.flows import kinds
from corpid.flows.interactions import StaleStep

if TYPE_CHECKING:
    from corpid.flows.provider import Provider


class ForeignChallenge(StaleStep):
    """It was not made here, or for something else."""


def make(provider: Provider, purpose: str, subject: str) -> bytes:
    """A new challenge, good for this purpose and subject (an interaction, an account) only.

    `own_keys.ring` was awaited before. Source: WebAuthn §13.4.3, D46
    """
    nonce = provider.new_id()
    return f"{nonce}.{_mac(provider, purpose, subject, nonce)}".encode()


async def redeem(provider: Provider, challenge: bytes, purpose: str, subject: str, *, now: float) -> None:
    """Spend a challenge that was made for this purpose and subject.

    Raises ForeignChallenge, which spends nothing, and StaleStep for everybody but the first. Source: WebAuthn §7.2, D46
    """
    text = challenge.decode("ascii", "replace")
    nonce, _, mac = text.partition(".")
    if not hmac.compare_digest(mac.encode(), _mac(provider, purpose, subject, nonce).encode()):
        raise ForeignChallenge
    key = kinds.key(kinds.CHALLENGE, provider.policy.base_url, text)
    async with provider.transient.unit(now) as unit:
        if not await unit.add(kinds.CHALLENGE.name, key, kinds.CHALLENGE.seconds):
            raise StaleStep


def _mac(provider: Provider, purpose: str, subject: str, nonce: str) -> str:
    return provider.own_keys.mac("challenge", purpose, subject, nonce)
