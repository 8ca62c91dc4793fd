"""Nodes and the slots they serve, alone or in a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.ports import StoreUnavailable
from corpid.stores.valkey import epochs, nodes
from corpid.stores.valkey.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpid.stores.valkey.addresses import Address
    from corpid.stores.valkey.link import Link
    from corpid.stores.valkey.nodes import Watcher

_PARTS: Final = 64
"""of a cluster; a node alone holds everything in one"""


class Topology:
    """Every node by name, and its view of the cluster."""

    def __init__(self, seeds: Sequence[Address], watcher: Watcher) -> None:
        self.clustered = False
        self._seeds: Final = {address.name: address for address in seeds}
        self._watcher: Final = watcher
        self._nodes: Final[dict[str, Node]] = {}
        self._keepers: Final[set[asyncio.Task[None]]] = set()
        self._views: Final[dict[str, list[Address | None]]] = {}
        self._owners: list[str | None] = []

    @property
    def parts(self) -> int:
        """The number of parts; 0 before the first node."""
        return len(self._owners)

    def begin(self) -> None:
        """Link the nodes that the setting names."""
        self._follow(())

    async def settled(self) -> list[BaseException | None]:
        """Wait for every link that is being opened; returns their errors."""
        return await asyncio.gather(*(node.settled() for node in self._nodes.values()), return_exceptions=True)

    async def owners_settled(self) -> None:
        """Wait for the nodes that serve something. Raises StoreUnavailable."""
        await asyncio.gather(*(self._nodes[owner].settled() for owner in set(self._owners) if owner))

    async def close(self) -> None:
        """Let go of every node."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(node.close() for node in self._nodes.values()))
        await asyncio.gather(*self._keepers, return_exceptions=True)

    def recognise(self, link: Link) -> None:
        """Take over whether there is a cluster from the first node.

        Raises StoreUnavailable if another differs.
        """
        if not self._owners:
            self.clustered = link.engine.clustered
            self._owners = [None] * (_PARTS if self.clustered else 1)
        if link.engine.clustered != self.clustered:
            raise StoreUnavailable(f"{link.address.name} has joined or left a cluster: restart CorpID")

    async def learn(self, link: Link) -> dict[int, str | None]:
        """Ask a node for the owners of all slots.

        Returns the parts with another owner than before, None for no owner. Raises StoreUnavailable.
        """
        self._views[link.address.name] = await self._view(link)
        return self._assign()

    def forget(self, address: Address) -> None:
        """Discard what a node reported."""
        self._views.pop(address.name, None)

    def served_by(self, address: Address) -> list[int]:
        """The parts that a node serves."""
        return [part for part, owner in enumerate(self._owners) if owner == address.name]

    async def _view(self, link: Link) -> list[Address | None]:
        if not self.clustered:
            return [link.address]
        return await nodes.owners(link, [epochs.marker(part) for part in range(_PARTS)])

    def _assign(self) -> dict[int, str | None]:
        """Assign each part to the node named by most nodes.

        One of them may be out of touch.
        """
        known: dict[str, Address] = {}
        moved: dict[int, str | None] = {}
        for part, owners in enumerate(zip(*self._views.values(), strict=True)):
            names = [address.name for address in owners if address is not None]
            known |= {address.name: address for address in owners if address is not None}
            owner = max(names, key=names.count) if names else None
            if owner != self._owners[part]:
                self._owners[part] = moved[part] = owner
        self._follow(known[owner] for owner in set(self._owners) if owner is not None)
        return moved

    def _follow(self, addresses: Iterable[Address]) -> None:
        wanted = {**self._seeds, **{address.name: address for address in addresses}}
        for name in self._nodes.keys() - wanted.keys():
            self._nodes.pop(name).retire()
        for name, address in wanted.items():
            if name in self._nodes:
                continue
            self._nodes[name] = node = Node(address, self._watcher)
            self._keepers.add(node.keeper)
            node.keeper.add_done_callback(self._keepers.discard)
