"""Which node of a cluster serves which key, as one of its nodes says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from redis.crc import key_slot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.adapters.valkey.addresses import Address
    from corpid.adapters.valkey.link import Answer, Link

_UNKNOWN: Final = "?"


async def owners(link: Link, keys: Iterable[bytes]) -> list[Address | None]:
    """The node that serves each key, None for a slot that nobody serves. Raises StoreUnavailable."""
    ranges = await _ranges(link)
    return [_owner(ranges, key_slot(key)) for key in keys]


async def primaries(link: Link) -> list[Address]:
    """Every node that serves a slot. Raises StoreUnavailable."""
    found = [address for _, _, address in await _ranges(link) if address is not None]
    return list({address.name: address for address in found}.values())


async def _ranges(link: Link) -> list[tuple[int, int, Address | None]]:
    [rows] = await link.ask(("CLUSTER", "SLOTS"))
    return [(first, last, _address(link, node)) for first, last, node, *_ in rows]


def _owner(ranges: Iterable[tuple[int, int, Address | None]], slot: int) -> Address | None:
    return next((address for first, last, address in ranges if first <= slot <= last), None)


def _address(link: Link, node: Answer) -> Address | None:
    """An empty host stands for the one that was asked."""
    host = (node[0] or b"").decode() or link.address.host
    return None if host == _UNKNOWN else link.address.at(host, int(node[1]))
