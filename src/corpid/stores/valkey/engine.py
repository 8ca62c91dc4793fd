"""Redis or Valkey as the engine that `transient_url` names."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from corpid.ports import EngineCondition, StoreUnavailable, TransientEngine
from corpid.stores.valkey.link import ANSWER_SECONDS, addresses, connect
from corpid.stores.valkey.nodes import primaries
from corpid.stores.valkey.transient import open_valkey

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.ports import Clock, TransientStore
    from corpid.stores.valkey.link import Address, Link
    from corpid.stores.valkey.transient import ValkeyTransientStore

T = TypeVar("T")

_PLENTY: Final = 0.8
"""of maxmemory"""


class ValkeyEngine(TransientEngine):
    """A ports.TransientEngine for the URLs that `open_valkey` takes."""

    def __init__(self, url: str) -> None:
        self._url: Final = url
        self._store: ValkeyTransientStore | None = None

    async def open(self, *, clock: Clock) -> TransientStore:
        self._store = await open_valkey(self._url, clock=clock)
        return self._store

    @property
    def lineage(self) -> str:
        """The lineage of the store's epoch."""
        return self._opened.lineage

    def reject_before(self, moment: float, *, lineage: str) -> None:
        self._opened.reject_before(moment, lineage=lineage)

    async def describe(self) -> list[EngineCondition]:
        """One condition for each primary."""
        try:
            return [_condition(each) for each in await _examine(self._url)]
        except StoreUnavailable as error:
            return [_condition(error)]

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    @property
    def _opened(self) -> ValkeyTransientStore:
        if self._store is None:
            raise RuntimeError("ValkeyEngine.open comes first")
        return self._store


def _condition(found: _ExaminedPrimary | StoreUnavailable) -> EngineCondition:
    if isinstance(found, StoreUnavailable):
        return EngineCondition(verdict="problem", seen=str(found))
    kept = (
        "appendonly file" if found.appends else f"snapshots (save {found.saves})" if found.saves else "no persistence"
    )
    seen = (
        f"{found.engine} {found.version} at {found.place}, noeviction, {kept}: when it restarts, sign-ins that "
        "are under way begin again, and for about 45 s callers make new proofs."
    )
    if found.last_save_failed:
        change = "Change: look at its log; it may stop taking writes (stop-writes-on-bgsave-error)."
        return EngineCondition(verdict="problem", seen=f"{seen} Its last snapshot failed.", change=change)
    if found.most and found.used > _PLENTY * found.most:
        full = f"{seen} It is {found.used / found.most:.0%} full."
        return EngineCondition(verdict="warning", seen=full, change="Change: raise its maxmemory.")
    return EngineCondition(verdict="ok", seen=seen)


class _ExaminedPrimary(msgspec.Struct, frozen=True, kw_only=True):
    """The findings on a usable engine. Sizes in bytes."""

    place: str
    engine: str
    """Redis or Valkey, as it says itself"""
    version: str
    used: int
    most: int
    """maxmemory; 0: whatever the machine has"""
    appends: bool
    """appendonly is on"""
    saves: str
    """the setting save; empty: no snapshots, or hidden from this user"""
    last_save_failed: bool


async def _examine(url: str) -> list[_ExaminedPrimary | StoreUnavailable]:
    """Examine the engine, or every primary of its cluster.

    Each comes as it was found, or as the reason why it cannot be used. Raises StoreUnavailable if no address of
    `transient_url` answers.
    """
    refusals = []
    for address in addresses(url):
        nodes = await _within(address, _nodes(address))
        if not isinstance(nodes, StoreUnavailable):
            return await asyncio.gather(*(_within(node, _examined(node)) for node in nodes))
        refusals.append(str(nodes))
    raise StoreUnavailable("; ".join(refusals))


async def _within(address: Address, look: Awaitable[T]) -> T | StoreUnavailable:
    try:
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            return await look
    except StoreUnavailable as error:
        return error
    except TimeoutError:
        return StoreUnavailable(f"{address.name} did not answer within {2 * ANSWER_SECONDS:g} seconds")


async def _nodes(address: Address) -> list[Address]:
    """The primaries of its cluster, as this node knows them.

    Itself if there is none.
    """
    link = await connect(address)
    try:
        return (link.engine.clustered and await primaries(link)) or [address]
    finally:
        await link.close()


async def _examined(address: Address) -> _ExaminedPrimary:
    link = await connect(address)
    try:
        saves = await _saves(link)
    finally:
        await link.close()
    info = link.engine.info
    return _ExaminedPrimary(
        place=address.place,
        engine="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info.get("redis_version", ""),
        used=int(info.get("used_memory", 0)),
        most=int(info.get("maxmemory", 0)),
        appends=info.get("aof_enabled") == "1",
        saves=saves,
        last_save_failed=info.get("rdb_last_bgsave_status", "ok") != "ok",
    )


async def _saves(link: Link) -> str:
    """Persistence of the engine.

    Unknown, without a finding, if the configuration is unreadable.
    """
    with suppress(StoreUnavailable):
        [answer] = await link.ask(("CONFIG", "GET", "save"))
        return str(answer[1].decode()) if len(answer) > 1 else ""
    return ""
