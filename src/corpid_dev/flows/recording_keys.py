"""Signing keys that show developer mode what they sign (D66).

A registry cache at which orders of the sandbox refuse requests (D66).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from corpid.flows.operations.signing_keys import ServerKeys, SigningKeys
from corpid.flows.registry_cache import RegistryCache
from corpid.jose.key_ring import KeyRing
from corpid_dev.flows import exchanges
from corpid_dev.flows.exchanges import SignedToken

if TYPE_CHECKING:
    from corpid.rules.signing_keys import ProviderKey
    from corpid.stores.sql.registry import Registry
    from corpid_dev.flows.people import Developer


class RecordingKeyRing(KeyRing, frozen=True, kw_only=True):
    """A key ring whose signatures are kept with the exchange in progress."""

    developer: Developer

    @classmethod
    def wrap(cls, ring: KeyRing, developer: Developer) -> Self:
        """The ring, watched."""
        return cls(developer=developer, **{name: getattr(ring, name) for name in KeyRing.__struct_fields__})

    def sign(self, payload: bytes, typ: str) -> str:
        """A compact JWS; an order of the sandbox may replace it."""
        exchange, fault_injector = exchanges.current(), self.developer.fault_injector
        token = None
        if exchange is not None and fault_injector is not None:
            token = fault_injector.signing(exchange, self, payload, typ)
        if token is None:
            token = KeyRing.sign(self, payload, typ)
        if exchange is not None:
            exchange.signed.append(SignedToken(typ=typ, token=token))
        return token


class RecordingSigningKeys(SigningKeys):
    """The stored keys of a demo."""

    def __init__(
        self, registry: Registry, *, developer: Developer, certificates: bool = False, issuer: str = ""
    ) -> None:
        super().__init__(registry, certificates=certificates, issuer=issuer)
        self._developer = developer

    def use(self, stored: list[ProviderKey], now: float) -> ServerKeys:
        keys = super().use(stored, now)
        if not isinstance(keys.ring, RecordingKeyRing):
            keys = self._keys = replace(keys, ring=RecordingKeyRing.wrap(keys.ring, self._developer))
        return keys


class FaultInjectingCache(RegistryCache):
    """The registry cache of a demo.

    Every protocol endpoint asks it first whether there is maintenance, so an ordered refusal is rendered as every
    refusal of that endpoint is.
    """

    def __init__(self, registry: Registry, *, developer: Developer) -> None:
        super().__init__(registry)
        self._developer = developer

    async def refuse_maintenance(self, now: float, *, in_maintenance: bool = False) -> None:
        """Raise the ordered error, or that of maintenance. Source: Spec 7, D66"""
        exchange, fault_injector = exchanges.current(), self._developer.fault_injector
        if exchange is not None and fault_injector is not None:
            fault_injector.refusing(exchange)
        await super().refuse_maintenance(now, in_maintenance=in_maintenance)
