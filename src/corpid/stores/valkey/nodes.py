"""Nodes of Redis or Valkey, and the slots that each serves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from redis.crc import key_slot

from corpid.event_log import log
from corpid.rules.failures import StoreUnavailable
from corpid.stores.valkey import incarnations
from corpid.stores.valkey.link import ANSWER_SECONDS, Answer, EngineAddress, EngineLink, connect

_UNKNOWN: Final = "?"
_OF_ANOTHER_FORM: Final = (TypeError, ValueError, LookupError, AttributeError)
"""what reading an answer raises that has not the form it has in Redis and Valkey"""


async def find_owners(link: EngineLink, keys: Iterable[bytes]) -> list[EngineAddress | None]:
    """The node that serves each key, None for an unassigned slot.

    Raises StoreUnavailable.
    """
    ranges = await _ranges(link)
    return [_owner(ranges, key_slot(key)) for key in keys]


async def primaries(link: EngineLink) -> list[EngineAddress]:
    """Every node that serves a slot. Raises StoreUnavailable."""
    found = [address for _, _, address in await _ranges(link) if address is not None]
    return list({address.name: address for address in found}.values())


async def _ranges(link: EngineLink) -> list[tuple[int, int, EngineAddress | None]]:
    [rows] = await link.ask(("CLUSTER", "SLOTS"))
    return [(first, last, _address(link, node)) for first, last, node, *_ in rows]


def _owner(ranges: Iterable[tuple[int, int, EngineAddress | None]], slot: int) -> EngineAddress | None:
    return next((address for first, last, address in ranges if first <= slot <= last), None)


def _address(link: EngineLink, node: Answer) -> EngineAddress | None:
    """The address of a node; an empty host means the asked one."""
    host = (node[0] or b"").decode() or link.address.host
    return None if host == _UNKNOWN else link.address.with_host(host, int(node[1]))


PAUSE_SECONDS: Final = 0.25
"""between two attempts to connect, and between two looks while something is not as it should be"""


class Watcher(Protocol):
    """An observer of the nodes' slots."""

    changed: asyncio.Future[None]
    """done as soon as every node has to be checked again"""

    @property
    def look_seconds(self) -> float:
        """The longest time until the next examination, in seconds."""

    async def examine(self, link: EngineLink) -> None:
        """Look at the node.

        Raises StoreUnavailable if the link is of no use.
        """

    def lost(self, address: EngineAddress, reason: StoreUnavailable) -> None:
        """The node cannot be asked."""


class EngineNode:
    """A node, whose link is kept open.

    A background task notices when it ends and opens the next.
    """

    def __init__(self, address: EngineAddress, watcher: Watcher) -> None:
        self.address: Final = address
        self._watcher: Final = watcher
        self._outcome: asyncio.Future[None] = _create_future()
        self._wanted = True
        self._is_odd = False
        self.keeper: Final = asyncio.create_task(self._keep())

    async def wait_for_link(self) -> None:
        """Wait for the link, if one is being opened. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await asyncio.shield(self._outcome)
        except TimeoutError:
            raise _make_timeout(self.address) from None
        except StoreUnavailable as error:
            raise StoreUnavailable(str(error)) from None

    def retire(self) -> None:
        """Let go of the node before long."""
        self._wanted = False

    async def close(self) -> None:
        """Let go of the node now."""
        self.keeper.cancel()
        await asyncio.gather(self.keeper, return_exceptions=True)
        self._outcome = _create_failed(StoreUnavailable(f"{self.address.name}: closed"))

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
                self._outcome = _create_future()
                self._watcher.lost(self.address, StoreUnavailable(f"{self.address.name}: the connection ended"))
                await link.close()

    async def _opened(self) -> EngineLink:
        link = await connect(self.address)
        try:
            await self._examine(link)
        except TimeoutError:
            await link.close()
            raise _make_timeout(self.address) from None
        except BaseException:
            await link.close()
            raise
        return link

    async def _examine(self, link: EngineLink) -> None:
        """Look at the node; an answer of another form makes it unreachable."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._watcher.examine(link)
        except _OF_ANOTHER_FORM as error:
            reason = f"{self.address.name} answers in a form that CorpID does not know: {type(error).__name__}"
            if not self._is_odd:  # it is asked again four times a second
                self._is_odd = True
                log().error("engine_answer_unknown", detail=reason)
            raise StoreUnavailable(reason) from None
        self._is_odd = False

    async def _watch(self, link: EngineLink) -> None:
        """Ends when the link has ended, or its engine no longer answers."""
        try:
            while self._wanted and not link.ended.done():
                waiting = {link.ended, self._watcher.changed}
                await asyncio.wait(waiting, timeout=self._watcher.look_seconds, return_when=asyncio.FIRST_COMPLETED)
                await self._examine(link)
        except StoreUnavailable:
            return
        except TimeoutError:
            link.end(f"no answer within {ANSWER_SECONDS:g} seconds")

    def _settle(self, error: StoreUnavailable | None) -> None:
        if self._outcome.done():
            self._outcome = _create_future()
        if error is None:
            self._outcome.set_result(None)
            return
        self._watcher.lost(self.address, error)
        _fail(self._outcome, error)


def _make_timeout(address: EngineAddress) -> StoreUnavailable:
    return StoreUnavailable(f"{address.name} did not answer within {ANSWER_SECONDS:g} seconds")


def _create_future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _create_failed(error: StoreUnavailable) -> asyncio.Future[None]:
    failed = _create_future()
    _fail(failed, error)
    return failed


def _fail(future: asyncio.Future[None], error: StoreUnavailable) -> None:
    future.set_exception(error)
    future.exception()  # an exception that no caller retrieves is no mistake


_PARTS: Final = 64
"""of a cluster; a node alone holds everything in one"""


class Topology:
    """Every node by name, and its view of the cluster."""

    def __init__(self, seeds: Sequence[EngineAddress], watcher: Watcher) -> None:
        self.clustered = False
        self._seeds: Final = {address.name: address for address in seeds}
        self._watcher: Final = watcher
        self._nodes: Final[dict[str, EngineNode]] = {}
        self._keepers: Final[set[asyncio.Task[None]]] = set()
        self._views: Final[dict[str, list[EngineAddress | None]]] = {}
        self._owners: list[str | None] = []

    @property
    def parts(self) -> int:
        """The number of parts; 0 before the first node."""
        return len(self._owners)

    def begin(self) -> None:
        """Link the nodes that the setting names."""
        self._follow(())

    async def wait_for_links(self) -> list[BaseException | None]:
        """Wait for every link that is being opened; returns their errors."""
        return await asyncio.gather(*(node.wait_for_link() for node in self._nodes.values()), return_exceptions=True)

    async def owners_settled(self) -> None:
        """Wait for the nodes that serve something. Raises StoreUnavailable."""
        await asyncio.gather(*(self._nodes[owner].wait_for_link() for owner in set(self._owners) if owner))

    async def close(self) -> None:
        """Let go of every node."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(node.close() for node in self._nodes.values()))
        await asyncio.gather(*self._keepers, return_exceptions=True)

    def recognise(self, link: EngineLink) -> None:
        """Take over whether there is a cluster from the first node.

        Raises StoreUnavailable if another differs.
        """
        if not self._owners:
            self.clustered = link.engine.clustered
            self._owners = [None] * (_PARTS if self.clustered else 1)
        if link.engine.clustered != self.clustered:
            raise StoreUnavailable(f"{link.address.name} has joined or left a cluster: restart CorpID")

    async def learn(self, link: EngineLink) -> dict[int, str | None]:
        """Ask a node for the owners of all slots.

        Returns the parts with another owner than before, None for no owner. Raises StoreUnavailable.
        """
        self._views[link.address.name] = await self._view(link)
        # Assign each part to the node named by most nodes. One of them may be out of touch.
        known: dict[str, EngineAddress] = {}
        moved: dict[int, str | None] = {}
        for part, owners in enumerate(zip(*self._views.values(), strict=True)):
            names = [address.name for address in owners if address is not None]
            known |= {address.name: address for address in owners if address is not None}
            owner = max(names, key=names.count) if names else None
            if owner != self._owners[part]:
                self._owners[part] = moved[part] = owner
        self._follow(known[owner] for owner in set(self._owners) if owner is not None)
        return moved

    def forget(self, address: EngineAddress) -> None:
        """Discard a node's report."""
        self._views.pop(address.name, None)

    def served_by(self, address: EngineAddress) -> list[int]:
        """The parts that a node serves."""
        return [part for part, owner in enumerate(self._owners) if owner == address.name]

    async def _view(self, link: EngineLink) -> list[EngineAddress | None]:
        if not self.clustered:
            return [link.address]
        return await find_owners(link, [incarnations.name_marker(part) for part in range(_PARTS)])

    def _follow(self, addresses: Iterable[EngineAddress]) -> None:
        wanted = {**self._seeds, **{address.name: address for address in addresses}}
        for name in self._nodes.keys() - wanted.keys():
            self._nodes.pop(name).retire()
        for name, address in wanted.items():
            if name in self._nodes:
                continue
            self._nodes[name] = node = EngineNode(address, self._watcher)
            self._keepers.add(node.keeper)
            node.keeper.add_done_callback(self._keepers.discard)
