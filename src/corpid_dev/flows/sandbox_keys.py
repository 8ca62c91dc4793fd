"""Signing keys outside the key set, for orders of the sandbox (D66)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from corpid.flows.operations import signing_keys
from corpid.jose import key_ring

if TYPE_CHECKING:
    from corpid.flows.request_context import Provider
    from corpid.jose.key_ring import SigningKey


def _new() -> SigningKey:
    return key_ring.open_signing_key(key_ring.generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None)


class SandboxKeys:
    """Keys for `signing-key`: unknown, retired, unpublished."""

    def __init__(self) -> None:
        self._retired: SigningKey | None = None

    @cached_property
    def _unpublished(self) -> SigningKey:
        return _new()

    @cached_property
    def _stand_in(self) -> SigningKey:
        """In place of a retired key while the deployment has none."""
        return _new()

    def key(self, which: str) -> SigningKey:
        """The key of an order. Source: D66"""
        match which:
            case "retired":
                return self._retired or self._stand_in
            case "unpublished":
                return self._unpublished
        return _new()

    async def look_for_retired(self, provider: Provider, now: float) -> None:
        """Find the newest key that was taken out of the set. Source: D42"""
        ring = (await provider.signing_keys.keys_at(now)).ring
        stored = await signing_keys.stored_keys(provider.registry)
        gone = [key for key in stored if key.kid not in ring.by_kid and key.active_from <= now]
        self._retired = signing_keys.open_key(gone[-1]) if gone else None
