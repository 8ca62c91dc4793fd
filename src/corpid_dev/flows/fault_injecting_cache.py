"""A registry cache at which orders of the sandbox refuse requests (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.registry_cache import RegistryCache
from corpid_dev.flows import exchanges

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry
    from corpid_dev.flows.people import Developer


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
