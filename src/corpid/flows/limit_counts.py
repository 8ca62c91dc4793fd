"""Counts at limits, taken back if CorpID refuses for its own reasons.

Loss of data, a store that is away, maintenance and a full queue are nobody's attempt: they count against no person, no
address and no client. Whatever counts before it knows the outcome notes here how its count is taken back. Source: D47,
D49, D67
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from corpid.rules.failures import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.namespaces import Entry
    from corpid.stores.transient import TransientBatch, TransientStore

    _TakeBack: TypeAlias = Callable[[TransientBatch], Awaitable[object]]


class LimitCounts:
    """The counts of one request so far, in order."""

    __slots__ = ("_in_process", "_noted", "_raised")

    def __init__(self) -> None:
        self._raised: dict[Entry[Any], int] = {}
        self._noted: dict[int, _TakeBack] = {}
        self._in_process: list[Callable[[], None]] = []

    async def count(self, batch: TransientBatch, entry: Entry[Any], by: int = 1) -> int:
        """Raise the counter of a limit, and note it. Raises StoreUnavailable. Source: D47"""
        value = await entry.count(batch, by)
        self.note_raised(entry, by)
        return value

    def note_raised(self, entry: Entry[Any], by: int = 1) -> None:
        """Note that a counter was raised. Source: D47"""
        self._raised[entry] = self._raised.get(entry, 0) + by

    def note(self, what: object, take_back: _TakeBack) -> None:
        """Note another kind of count.

        `what` is the object that stands for it, which `take_back` refers to, so that its id stays its own. Source: D47
        """
        self._noted[id(what)] = take_back

    def note_in_process(self, take_back: Callable[[], None]) -> None:
        """Note a count that is kept in this process. Source: D47"""
        self._in_process.append(take_back)

    def settle(self, what: object) -> None:
        """Forget a noted count that was taken back elsewhere. Source: D47"""
        self._noted.pop(id(what), None)

    async def take_back(self, transient: TransientStore, *, now: float) -> None:
        """Take back everything, as the refusal is CorpID's own.

        A store that cannot be reached keeps its counts, which end by themselves. Source: D47, D49, D67
        """
        for each in self._in_process:
            each()
        self._in_process.clear()
        if self._raised or self._noted:
            with suppress(StoreUnavailable):
                async with transient.batch(now) as batch:
                    await self._take_back(batch)

    async def take_back_within(self, batch: TransientBatch) -> None:
        """Take back everything in a batch in which a store has failed.

        An engine that rolls the batch back has not counted it, and rolls this back, too. Source: D47
        """
        with suppress(Exception):  # a transaction that has failed answers nothing more
            await self._take_back(batch)

    async def _take_back(self, batch: TransientBatch) -> None:
        raised, self._raised = self._raised, {}
        noted, self._noted = self._noted, {}
        for entry, by in raised.items():
            if by:
                with suppress(StoreUnavailable):
                    await entry.count(batch, -by)
        for each in noted.values():
            with suppress(StoreUnavailable):
                await each(batch)
