"""A node of Redis or Valkey: its link and slots."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from redis.crc import key_slot

from corpid.ports import StoreUnavailable
from corpid.stores.valkey.addresses import ANSWER_SECONDS
from corpid.stores.valkey.link import connect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.stores.valkey.addresses import Address
    from corpid.stores.valkey.link import Answer, Link

_UNKNOWN: Final = "?"


async def owners(link: Link, keys: Iterable[bytes]) -> list[Address | None]:
    """The node that serves each key, None for an unassigned slot.

    Raises StoreUnavailable.
    """
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
    """The address of a node; an empty host means the asked one."""
    host = (node[0] or b"").decode() or link.address.host
    return None if host == _UNKNOWN else link.address.at(host, int(node[1]))


PAUSE_SECONDS: Final = 0.25
"""between two attempts to connect, and between two looks while something is not as it should be"""


class Watcher(Protocol):
    """An observer of what nodes hold."""

    changed: asyncio.Future[None]
    """done as soon as every node has to be looked at again"""

    @property
    def look_seconds(self) -> float:
        """The longest time until the next examination, in seconds."""

    async def examine(self, link: Link) -> None:
        """Look at the node.

        Raises StoreUnavailable if the link is of no use.
        """

    def lost(self, address: Address, reason: StoreUnavailable) -> None:
        """The node cannot be asked."""


class Node:
    """A node, whose link is kept open.

    A background task notices when it ends and opens the next.
    """

    def __init__(self, address: Address, watcher: Watcher) -> None:
        self.address: Final = address
        self._watcher: Final = watcher
        self._outcome: asyncio.Future[None] = _future()
        self._wanted = True
        self.keeper: Final = asyncio.create_task(self._keep())

    async def settled(self) -> None:
        """Wait for the link, if one is being opened. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await asyncio.shield(self._outcome)
        except TimeoutError:
            raise _silent(self.address) from None
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error)) from None

    def retire(self) -> None:
        """Let go of the node before long."""
        self._wanted = False

    async def close(self) -> None:
        """Let go of the node now."""
        self.keeper.cancel()
        await asyncio.gather(self.keeper, return_exceptions=True)
        self._outcome = _failed(StoreUnavailable(f"{self.address.name}: closed"))

    async def _keep(self) -> None:
        while self._wanted:
            try:
                link = await self._opened()
            except StoreUnavailable as error:
                self._settle(error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            try:
                self._settle(None)
                await self._watch(link)
            finally:
                self._outcome = _future()
                self._watcher.lost(self.address, StoreUnavailable(f"{self.address.name}: the connection ended"))
                await link.close()

    async def _opened(self) -> Link:
        link = await connect(self.address)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._watcher.examine(link)
        except TimeoutError:
            await link.close()
            raise _silent(self.address) from None
        except BaseException:
            await link.close()
            raise
        return link

    async def _watch(self, link: Link) -> None:
        """Ends when the link has ended, or its engine no longer answers."""
        try:
            while self._wanted and not link.ended.done():
                waiting = {link.ended, self._watcher.changed}
                await asyncio.wait(waiting, timeout=self._watcher.look_seconds, return_when=asyncio.FIRST_COMPLETED)
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._watcher.examine(link)
        except StoreUnavailable:
            return
        except TimeoutError:
            link.end(f"no answer within {ANSWER_SECONDS:g} seconds")

    def _settle(self, error: StoreUnavailable | None) -> None:
        if self._outcome.done():
            self._outcome = _future()
        if error is None:
            self._outcome.set_result(None)
            return
        self._watcher.lost(self.address, error)
        _fail(self._outcome, error)


def _silent(address: Address) -> StoreUnavailable:
    return StoreUnavailable(f"{address.name} did not answer within {ANSWER_SECONDS:g} seconds")


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _failed(error: StoreUnavailable) -> asyncio.Future[None]:
    failed = _future()
    _fail(failed, error)
    return failed


def _fail(future: asyncio.Future[None], error: StoreUnavailable) -> None:
    future.set_exception(error)
    future.exception()  # an exception that no caller retrieves is no mistake
