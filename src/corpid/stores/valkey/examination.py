"""Examination of Redis or Valkey for operators, without changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import msgspec

from corpid.ports import StoreUnavailable
from corpid.stores.valkey.addresses import ANSWER_SECONDS, addresses
from corpid.stores.valkey.link import connect
from corpid.stores.valkey.nodes import primaries

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.stores.valkey.addresses import Address
    from corpid.stores.valkey.link import Link

T = TypeVar("T")


class ExaminedValkey(msgspec.Struct, frozen=True, kw_only=True):
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


async def examine(url: str) -> list[ExaminedValkey | StoreUnavailable]:
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


async def _examined(address: Address) -> ExaminedValkey:
    link = await connect(address)
    try:
        saves = await _saves(link)
    finally:
        await link.close()
    info = link.engine.info
    return ExaminedValkey(
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
