"""The provider's own keys, held ready and read again every few seconds (D42)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from corpid.jose import key_ring
from corpid.jose.encoding import base64url, from_base64url, tuple_bytes
from corpid.protocol.limits import ACCESS_TOKEN_SECONDS, LIVE_STATE_SECONDS, METADATA_CACHE_SECONDS

if TYPE_CHECKING:
    from corpid.jose.key_ring import KeyRing, SigningKey
    from corpid.ports import Registry, SealedKey

KEPT_SECONDS: Final = ACCESS_TOKEN_SECONDS + METADATA_CACHE_SECONDS
"""a retired key stays published until the last token's exp and an hour"""
_NONCE_SECONDS: Final = 120


def open_key(key: SealedKey) -> SigningKey:
    """A stored signing key, ready for use (D42)."""
    return key_ring.open_signing_key(
        key.secret,
        active_from=key.active_from,
        retired_at=key.retired_at,
        revoked_at=key.revoked_at,
        created_at=key.created_at,
        certificate_chain=key.certificate_chain,
    )


class OwnKeys:
    """Signing key ring and server secret; a change made elsewhere is seen within five seconds.

    `certificates` publishes a certificate with every key.
    """

    def __init__(self, registry: Registry, *, certificates: bool = False) -> None:
        self._registry = registry
        self._certificates = certificates
        self._ring: KeyRing | None = None
        self._secret = b""
        self._stored: list[SealedKey] = []
        self._looked_at = float("-inf")

    async def ring(self, now: float) -> KeyRing:
        """The key ring at `now`; raises ValueError when no key may sign (D42)."""
        if self._ring is None or not 0 <= now - self._looked_at < LIVE_STATE_SECONDS or now >= self._ring.until:
            await self._look(now)
        assert self._ring is not None  # noqa: S101 - `_look` set it or raised
        return self._ring

    async def _look(self, now: float) -> None:
        stored = await self._registry.keys.all()
        if stored != self._stored or self._ring is None or now >= self._ring.until:
            opened = [open_key(key) for key in stored if key.use == "sig"]
            self._ring = key_ring.build(
                opened, now=now, kept_seconds=KEPT_SECONDS, with_certificates=self._certificates
            )
            self._secret = next(from_base64url(key.secret) for key in stored if key.use == "mac")
            self._stored = stored
        self._looked_at = now

    def mac(self, purpose: str, *parts: str) -> str:
        """HMAC-SHA256 by the server secret over a length-prefixed tuple, base64url.

        Raises RuntimeError where `ring` was not awaited before: without the secret anybody could compute it.
        """
        if not self._secret:
            raise RuntimeError("the server secret is not loaded: await ring() first")
        return base64url(hmac.digest(self._secret, tuple_bytes(purpose, *parts), "sha256"))

    def dpop_nonce(self, now: float, *, steps_back: int = 0) -> str:
        """The server nonce of this moment, or of an earlier step of 120 seconds (RFC 9449 §8)."""
        return self.mac("dpop-nonce", str(int(now // _NONCE_SECONDS) - steps_back))

    def is_dpop_nonce(self, nonce: str | None, now: float) -> bool:
        """Whether a proof's nonce is the present or the last one (RFC 9449 §8)."""
        return nonce is not None and any(
            hmac.compare_digest(nonce.encode(), self.dpop_nonce(now, steps_back=back).encode()) for back in (0, 1)
        )
