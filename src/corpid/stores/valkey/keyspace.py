"""The incarnation of the keyspace, on one node or a cluster.

An engine may come back without what it knew (no persistence), with what it knew a while ago (a snapshot,
in which a spent code is unspent), or as another node; in a cluster each part may do so for itself, and may
move to another node. Three rules make all of them harmless (docs/reliability.md):

- A process that finds a marker which the present run of its engine did not make begins a new incarnation for all
  parts, since flows rely on entries that lie in different parts. Nothing of an earlier incarnation is found, so nothing
  of it is spent, and what was issued before it is refused.
- Only who began an incarnation marks parts with it, each part once. So a marker never comes to say again what it
  said before, and an answer that comes with the marker belongs to its incarnation (incarnations.StoreIncarnation.ask).
- Everybody reads all markers when connecting and every second after, and follows the newest incarnation.

A process that asks while nothing is linked, and then finds itself in another incarnation, is refused once: it may have
looked at `reject_issued_before` before that incarnation was known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.stores import milliseconds
from corpid.stores.valkey import incarnations, orderly_stops
from corpid.stores.valkey.incarnations import StoreIncarnation
from corpid.stores.valkey.link import ANSWER_SECONDS, packed
from corpid.stores.valkey.nodes import PAUSE_SECONDS, Topology
from corpid.stores.valkey.orderly_stops import Closing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.stores import Clock
    from corpid.stores.transient import OrderlyStops
    from corpid.stores.valkey.link import Address, Link

_LOOK_SECONDS: Final = 1.0
"""between two looks at a node"""
_NEW_SECONDS: Final = 1.0
"""the time an incarnation may take to reach all parts, during which no other one begins"""
_EVERYWHERE_SECONDS: Final = max(_LOOK_SECONDS, _NEW_SECONDS) + ANSWER_SECONDS
"""after which no process writes in an earlier incarnation any more, and no part gets a mark; an incarnation remembers
from then on
"""
_FIRST: Final = 0
"""the part in which a store identity begins, so that of many that start at once one begins it"""
_UNSERVED: Final = "The cluster has slots that no node serves: `redis-cli --cluster check` says more"


class Keyspace:
    """The incarnation of this process, and the node of each part."""

    def __init__(self, seeds: Sequence[Address], clock: Clock, stops: OrderlyStops) -> None:
        self.remembers_since = 0.0
        """epoch seconds by the engine's clock; the latest of all incarnations that were seen"""
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock: Final = clock
        self._topology: Final = Topology(seeds, self)
        self._closing: Final = Closing(stops)
        self._live: Final[dict[str, Link]] = {}
        self._ahead: Final[dict[str, float]] = {}
        self._offsets: Final[dict[str, float]] = {}
        """from the loop's time, which nobody sets, to each node's, at most; also of nodes that are gone"""
        self._reached = 0.0
        """the latest time that a node's clock has shown, or may have shown before it was set back"""
        self._serving: list[Link | StoreUnavailable] = []
        self._marked: set[int] | None = None
        """the parts that this process has marked with the present incarnation; None if another one began it"""
        self._entered_at = 0.0
        self._incarnation = StoreIncarnation(incarnations.NONE, ())

    @property
    def incarnation_name(self) -> bytes:
        """That of the present incarnation."""
        return self._incarnation.name

    @property
    def ahead(self) -> float:
        """Seconds by which our clock is ahead of the engine's.

        At most; below 0 if it is behind. While no node answers, as the last one said.
        """
        return max(self._ahead.values(), default=0.0)

    def engine_time_at_least(self) -> float:
        """See TransientStore: by the node that is furthest behind."""
        offsets = [self._offsets[name] for name in self._live] or self._offsets.values()
        return asyncio.get_running_loop().time() + min(offsets)

    @property
    def look_seconds(self) -> float:
        """See nodes.Watcher."""
        return PAUSE_SECONDS if self._missing() else _LOOK_SECONDS

    async def start(self) -> None:
        """Link every node. Raises StoreUnavailable with a sentence for the operator."""
        self._topology.begin()
        outcomes = await self._topology.wait_for_links()
        if not self._live:
            raise next(outcome for outcome in outcomes if outcome is not None)
        try:
            async with asyncio.timeout(2 * ANSWER_SECONDS):
                await self._complete()
        except TimeoutError:
            raise self._missing()[0] from None

    async def incarnation(self) -> StoreIncarnation:
        """The incarnation to use now.

        Raises StoreUnavailable: no engine answers, or it is another incarnation than before.
        """
        if self._live:
            return self._incarnation
        before = self._incarnation.name
        for outcome in await self._topology.wait_for_links():
            if outcome is not None:
                raise outcome
        if self._incarnation.name != before:
            raise StoreUnavailable("The engine has started anew, or another node took its place")
        return self._incarnation

    async def engine_time(self) -> float:
        """Epoch seconds by the node clock farthest from ours.

        Raises StoreUnavailable. Source: D49
        """
        incarnation = await self.incarnation()
        moments = await asyncio.gather(*(link.time() for link in incarnation.links()))
        return max(moments, key=lambda moment: abs(self._clock() - moment))

    async def write_everywhere(self, name: bytes, seconds: float) -> None:
        """Write an empty entry on every node, for a time.

        Raises StoreUnavailable if one refuses.
        """
        incarnation = await self.incarnation()
        incarnation.links()
        parts = {link: part for part, link in enumerate(incarnation.serving)}
        writes = (
            incarnation.ask(
                part, [packed(("SET", b"%b:%b" % (incarnations.marker(part), name), b"", "PX", milliseconds(seconds)))]
            )
            for part in parts.values()
        )
        await asyncio.gather(*writes)

    async def close(self) -> None:
        """Let go of the engine."""
        await self._topology.close()

    async def examine(self, link: Link) -> None:
        """See nodes.Watcher."""
        self._topology.recognise(link)
        self._serving = self._serving or [StoreUnavailable(_UNSERVED)] * self._topology.parts
        name = link.address.name
        now = await link.time()
        self._ahead[name] = self._clock() - now
        self._note_time(name, now)
        for part, owner in (await self._topology.learn(link)).items():
            self._serving[part] = StoreUnavailable(f"{owner} has just got a slot" if owner else _UNSERVED)
        await self._look(link, now)
        if not link.ended.done():
            self._live[name] = link
        self._show()

    def lost(self, address: Address, reason: StoreUnavailable) -> None:
        """See nodes.Watcher."""
        self._live.pop(address.name, None)
        if len(self._ahead) > 1:
            self._ahead.pop(address.name, None)
        self._topology.forget(address)
        for part in self._topology.served_by(address):
            self._serving[part] = reason
        self._show()

    def _note_time(self, name: str, now: float) -> None:
        """Note a node's time, and the time that was expected.

        Another engine may have taken its place, with a clock that is behind; what was spent with the previous one is
        dated by that one's clock.
        """
        here = asyncio.get_running_loop().time()
        self._reached = max(self._reached, now, here + self._offsets.get(name, now - here))
        self._offsets[name] = now - here

    async def _look(self, link: Link, now: float) -> None:
        marks = await self._marks(link, self._topology.served_by(link.address))
        newest = max((incarnations.read(link, mark) for mark in marks.values()), default=incarnations.NONE)
        if newest > self._incarnation.name:
            self._enter(newest, began=False)
        if await self._is_closed(link, marks.get(orderly_stops.PART), now):
            return
        for part in marks:
            is_here = marks[part] == incarnations.encode_marker(link, self._incarnation.name)
            self._serving[part] = link if is_here else StoreUnavailable(f"{link.address.name} has forgotten something")
        doubtful = [part for part in marks if marks[part] != incarnations.encode_marker(link, self._incarnation.name)]
        self._closing.examine(intact=not doubtful)
        if doubtful and await self._may_mark(link, doubtful, now):
            await self._mark(link, [part for part in marks if self._serving[part] is not link])

    async def _is_closed(self, link: Link, mark: bytes | None, now: float) -> bool:
        """Return whether the engine is closed, or just open again."""
        marker = None if self._topology.clustered else orderly_stops.read(mark)
        if marker is None or marker.incarnation < self._incarnation.name:
            return False
        self._serving[orderly_stops.PART] = StoreUnavailable(f"{link.address.name} is closed")
        self._show()
        settled = await self._closing.settle(link, marker, now)
        if settled is link:
            if marker.incarnation > self._incarnation.name:
                self._enter(marker.incarnation, began=False)
            self._closing.examine(intact=True)
        if settled is not None:
            self._serving[orderly_stops.PART] = settled
        return settled is not None

    async def _marks(self, link: Link, parts: Sequence[int]) -> dict[int, bytes | None]:
        found = await link.ask_each(("GET", incarnations.marker(part)) for part in parts)
        marks: dict[int, bytes | None] = {}
        for part, mark in zip(parts, found, strict=True):
            if isinstance(mark, StoreUnavailable):
                self._serving[part] = mark
                continue
            marks[part] = mark
        return marks

    async def _may_mark(self, link: Link, parts: Sequence[int], now: float) -> bool:
        """Return whether the parts may be marked with the present incarnation.

        It must be this process's and new to the parts. Begins another one if need be.
        """
        is_new = self._incarnation.name and asyncio.get_running_loop().time() - self._entered_at < _NEW_SECONDS
        if is_new and self._marked is None:
            return False
        if is_new and self._marked is not None and self._marked.isdisjoint(parts):
            return True
        before = self._incarnation.name
        if not before and _FIRST not in parts:
            return False
        claim = ("SET", incarnations.claim(parts[0]), b"", "NX", "PX", milliseconds(_NEW_SECONDS))
        [won] = await link.ask_each([claim])
        if won != b"OK":
            return False
        if not self._topology.clustered:
            await self._closing.before_another_incarnation()
        if self._incarnation.name != before:
            return False
        most = now + 2 * CLOCKS_APART_SECONDS
        latest = max(now, min(self._reached, most))
        set_back = bool(before) and self._reached > most
        self._enter(incarnations.next_name(latest + _EVERYWHERE_SECONDS, after=before, set_back=set_back), began=True)
        return True

    async def _mark(self, link: Link, parts: Sequence[int]) -> None:
        name, marked = self._incarnation.name, self._marked
        if marked is None:
            return
        fresh = [part for part in parts if part not in marked]
        marked.update(fresh)
        mark = incarnations.encode_marker(link, name)
        answers = await link.ask_each(("SET", incarnations.marker(part), mark) for part in fresh)
        for part, answer in zip(fresh, answers, strict=True):
            if self._incarnation.name == name:
                self._serving[part] = answer if isinstance(answer, StoreUnavailable) else link

    def _enter(self, name: bytes, *, began: bool) -> None:
        self._marked = set() if began else None
        self._entered_at = asyncio.get_running_loop().time()
        self.remembers_since = max(self.remembers_since, incarnations.remembers_since(name))
        self._serving = [StoreUnavailable("The engine has forgotten something: try again")] * len(self._serving)
        self._incarnation = StoreIncarnation(name, self._serving)
        self.changed.set_result(None)
        self.changed = asyncio.get_running_loop().create_future()

    def _show(self) -> None:
        if self._incarnation.serving != tuple(self._serving):
            self._incarnation = StoreIncarnation(self._incarnation.name, self._serving)

    def _missing(self) -> list[StoreUnavailable]:
        return [link for link in self._serving if isinstance(link, StoreUnavailable)]

    async def _complete(self) -> None:
        while self._missing():
            await self._topology.owners_settled()
            await asyncio.sleep(0.02)
