"""Stores: SQL databases, LMDB, Redis or Valkey."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.rules.transient import PipelinedVerb
    from corpid.stores.transient import TransientBatch, TransientStore

Clock: TypeAlias = "Callable[[], float]"
"""the time in epoch seconds"""
READINESS: Final = "readiness"
"""the kind of what is written to see that something can be written"""
READINESS_SECONDS: Final = 60
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def machine_start() -> str:
    """An identifier of this start of the machine.

    A system without one is taken never to lose power.
    """
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "unknown"


def milliseconds(seconds: float) -> int:
    """A moment or a lifetime in whole milliseconds.

    Stores compare expiry in this unit. Source: D49
    """
    return round(seconds * 1000)


async def in_turn(batch: TransientBatch, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
    """The results of several verbs, carried out one after another.

    For engines without batches. Raises StoreUnavailable. Source: docs/architecture.md, "One-time use"
    """
    results: list[bytes | bool | None] = []
    for each in verbs:
        if each.verb == "add":
            results.append(await batch.add(each.kind, each.key, each.ttl, each.value))
        else:
            results.append(await (batch.get if each.verb == "get" else batch.take)(each.kind, each.key))
    return results


class WrappedStore:
    """The methods of a TransientStore that every wrapper passes on."""

    def __init__(self, store: TransientStore) -> None:
        self._store = store

    async def engine_time(self) -> float | None:
        return await self._store.engine_time()

    def engine_time_at_least(self) -> float | None:
        return self._store.engine_time_at_least()

    async def ready(self, *, now: float) -> None:
        await self._store.ready(now=now)

    async def sweep(self, *, now: float) -> int:
        return await self._store.sweep(now=now)
