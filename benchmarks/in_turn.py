"""Calls on a small and a large database in turn, which have to answer with as many items on both."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from benchmarks.scale_report import LARGE, SMALL
from benchmarks.steps import Wrong

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

Call: TypeAlias = "Callable[[int], Awaitable[tuple[float, int]]]"
"""number → seconds until the answer, and how many items it had; each number at another place of the database"""
WARM = 10
"""calls of each kind before those that count: connections have prepared their statements by then"""


class Meter(Protocol):
    """What calls of one kind cost on one database, beside the clock."""

    async def begin(self) -> None:
        """Before the first of them that counts. Raises steps.Wrong."""

    async def end(self, calls: int) -> dict[str, float]:
        """After the last of them: figures of each call."""


class Clock:
    """No other cost than the clock's."""

    async def begin(self) -> None: ...

    async def end(self, calls: int) -> dict[str, float]:
        del calls
        return {}


async def compared(
    calls: Mapping[str, Mapping[str, Call]], meters: Mapping[str, Meter], rounds: int
) -> dict[str, dict[str, Any]]:
    """Each kind of call, by name: items, the figures of both databases, and `ratio`, p50 of the large by the small.

    `calls` has the kinds of both databases. Raises Wrong if one answers with more items than the other.
    """
    return {
        name: await _one(name, {side: kinds[name] for side, kinds in calls.items()}, meters, rounds)
        for name in calls[SMALL]
    }


async def _one(name: str, calls: Mapping[str, Call], meters: Mapping[str, Meter], rounds: int) -> dict[str, Any]:
    spent: dict[str, list[float]] = {side: [] for side in calls}
    expected = None
    for number in range(-WARM, rounds):
        if number == 0:
            for side in calls:
                await meters[side].begin()
        for side in (SMALL, LARGE) if number % 2 else (LARGE, SMALL):
            seconds, items = await calls[side](number + WARM)
            expected = items if expected is None else expected
            if items != expected:
                raise Wrong(f"{name}: {items} items on the {side} database, {expected} before")
            if number >= 0:
                spent[side].append(1000 * seconds)
    p50 = {side: statistics.median(milliseconds) for side, milliseconds in spent.items()}
    figures = {side: {"p50_ms": round(p50[side], 3), **await meters[side].end(rounds)} for side in calls}
    return {"items": expected, **figures, "ratio": round(p50[LARGE] / p50[SMALL], 3)}
