"""Orderly stop of an engine: a restart without a loss.

Whatever an engine loads after a restart is what it was at some moment: everything up to there, and nothing of what came
later. So a marker that is found again proves everything that was written before it. An orderly stop makes sure that
nothing was acknowledged after it:

- A *closing marker* takes the place of the incarnation's marker. Every command travels with a look at the marker
  (incarnations.StoreIncarnation.ask), so an answer that comes after it is refused, in every process. It has a random
  name.
- The name is noted outside the engine (stores.sql.orderly_stops) before the marker is written (`begin`), and confirmed
  afterwards if the marker took the place of that of the same incarnation, in the same run. What is not confirmed proves
  nothing.
- A process that finds the closing marker in another run ends the confirmed stop in the notes, which one process can,
  once. Then it marks the engine with the incarnation from before. Everything of it is there, so nothing was lost.
- A process that begins another incarnation ends every stop first. So while one is confirmed there is no later
  incarnation, whose entries would not be found in this one.
- A process that dies between these steps, notes that do not answer, a marker that is not found, or is found a second
  time: all of these end as a loss.

A cluster is refused: its nodes do not stop at one moment, and slots may have moved before they are found again.
Source: D67, docs/decisions/0027
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.event_log import log
from corpid.rules.failures import OrderlyStopRefused, StoreUnavailable
from corpid.stores import milliseconds
from corpid.stores.valkey import incarnations
from corpid.stores.valkey.link import ANSWER_SECONDS, connect, parse_addresses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from corpid.stores.transient import OrderlyStops
    from corpid.stores.valkey.link import EngineLink

PART: Final = 0
"""a node alone has one"""
CLOSED: Final = b"closed"
"""in the place of the run, so that no version takes a closing marker for an incarnation"""
_MEMBERS: Final = 5
_NOTES_SECONDS: Final = 1.0
"""how long the notes may take, within the time of an examination"""
_ANOTHER_SECONDS: Final = ANSWER_SECONDS + 0.5
"""how long another process that ended the stop may take to mark the engine, which is part of an examination"""
_CLOSED_SENTENCE: Final = "it is closed for a restart (`corpid maintenance open-store` undoes that)"


class ClosingMarker(msgspec.Struct, frozen=True, kw_only=True):
    run: bytes
    """of the engine, when it was closed"""
    name: bytes
    until: float
    """epoch seconds by the engine's clock, after which it opens without a restart"""
    incarnation: bytes

    @property
    def mark(self) -> bytes:
        """Its value in the engine."""
        return b":".join([CLOSED, self.run, self.name, b"%d" % milliseconds(self.until), self.incarnation])

    @property
    def store_identity(self) -> str:
        return incarnations.store_identity(self.incarnation).decode()

    def is_of(self, link: EngineLink) -> bool:
        """Return whether the engine was not restarted since."""
        return self.run == link.engine.run_id.encode()


def read(mark: bytes | None) -> ClosingMarker | None:
    """The closing marker in a value; None for another one."""
    members = (mark or b"").split(b":")
    if len(members) != _MEMBERS or members[0] != CLOSED:
        return None
    _, run, name, until, incarnation = members
    return ClosingMarker(run=run, name=name, until=int(until) / 1000, incarnation=incarnation)


class NoOrderlyStops:
    """An OrderlyStops of a process without notes: nothing is proven."""

    async def begin(self, name: str, *, store_identity: str) -> None:
        """Nothing: `confirm` says so."""

    async def confirm(self, name: str, *, store_identity: str) -> bool:  # noqa: ARG002 - nothing is kept
        return False

    async def end(self, name: str, *, store_identity: str) -> bool:  # noqa: ARG002 - nothing is kept
        return False

    async def void(self) -> None:
        """Nothing to end."""


class Closing:
    """A process's knowledge of the orderly stop of its engine."""

    def __init__(self, stops: OrderlyStops) -> None:
        self._stops: Final = stops
        self._reported: ClosingMarker | None = None
        self._is_open = True
        """as far as was reported"""
        self._not_ours: ClosingMarker | None = None
        """the one whose stop this process could not end"""
        self._not_ours_since = 0.0

    async def settle(self, link: EngineLink, marker: ClosingMarker, now: float) -> EngineLink | StoreUnavailable | None:
        """Open the engine if it is time, and if that loses nothing.

        Returns the link once it is open, the reason while it is not, and None if this is a loss. `now` is the engine's
        time. Raises StoreUnavailable.
        """
        if self._reported != marker:
            self._reported, self._is_open = marker, False
            log().warning("store_closed", detail=f"{link.address.name}: {_CLOSED_SENTENCE}")
        is_over = now > marker.until
        if marker.is_of(link) and not is_over:
            return StoreUnavailable(f"{link.address.name}: {_CLOSED_SENTENCE}")
        if is_over and not marker.is_of(link):
            return None
        try:
            async with asyncio.timeout(_NOTES_SECONDS):
                ended = await self._stops.end(marker.name.decode(), store_identity=marker.store_identity)
        except (StoreUnavailable, TimeoutError) as error:
            return StoreUnavailable(f"{link.address.name} cannot be opened again without the database: {error}")
        if ended:
            return link if await _marked_again(link, marker) else None
        return self._another(link, marker)

    def examine(self, *, intact: bool) -> None:
        """Report how the stop ended; `intact`: the incarnation goes on."""
        if self._is_open:
            return
        self._is_open = True
        if intact:
            log().info("store_opened", detail="everything that was written before it was closed is there")
            return
        log().warning(
            "store_not_proven",
            detail="it came back without the marker of its orderly stop, too late, or a second time: this counts as a loss. "
            "Was it stopped with SHUTDOWN SAVE, or with an appendonly file?",
        )

    async def before_another_incarnation(self) -> None:
        """End every stop. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(_NOTES_SECONDS):
                await self._stops.void()
        except TimeoutError:
            raise StoreUnavailable("the database did not answer in time") from None

    def _another(self, link: EngineLink, marker: ClosingMarker) -> StoreUnavailable | None:
        now = asyncio.get_running_loop().time()
        if self._not_ours != marker:
            self._not_ours, self._not_ours_since = marker, now
        if now - self._not_ours_since > _ANOTHER_SECONDS:
            return None
        return StoreUnavailable(f"{link.address.name}: another process opens it again")


async def _marked_again(link: EngineLink, marker: ClosingMarker) -> bool:
    """Mark the engine with the incarnation from before.

    Returns False, with no marker left, if it is not as it was closed.
    """
    again = incarnations.encode_marker(link, marker.incarnation)
    [before] = await link.ask(("SET", incarnations.name_marker(PART), again, "XX", "GET"))
    if before == marker.mark:
        return True
    await link.ask(("DEL", incarnations.name_marker(PART)))
    return False


async def close(url: str, stops: OrderlyStops, *, name: str, seconds: int) -> None:
    """Close the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", incarnations.name_marker(PART)))
        if read(mark) is not None:
            raise OrderlyStopRefused(f"{link.address.name}: {_CLOSED_SENTENCE}")
        incarnation = incarnations.read(link, mark)
        if incarnation == incarnations.NONE:
            raise OrderlyStopRefused(
                f"{link.address.name} has nothing of a server that runs: no server has used it since it was started"
            )
        until = await link.time() + seconds
        marker = ClosingMarker(
            run=link.engine.run_id.encode(), name=name.encode(), until=until, incarnation=incarnation
        )
        await stops.begin(name, store_identity=marker.store_identity)
        [before] = await link.ask(("SET", incarnations.name_marker(PART), marker.mark, "XX", "GET"))
        if before != mark:
            await _give_up(link, stops)
        if before != mark or not await stops.confirm(name, store_identity=marker.store_identity):
            raise OrderlyStopRefused(
                f"{link.address.name} has just lost data, or is being closed by somebody else: try again"
            )


async def open_again(url: str, stops: OrderlyStops) -> bool:
    """Open the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", incarnations.name_marker(PART)))
        marker = read(mark)
        if marker is None:
            raise OrderlyStopRefused(f"{link.address.name} is not closed")
        if not marker.is_of(link):
            raise OrderlyStopRefused(f"{link.address.name} was restarted: servers that run open it by themselves")
        # A process that finds the stop ended waits for the marker no longer than _ANOTHER_SECONDS.
        async with asyncio.timeout(ANSWER_SECONDS):
            if await stops.end(marker.name.decode(), store_identity=marker.store_identity):
                return await _marked_again(link, marker)
        await _give_up(link, stops)
        return False


async def _give_up(link: EngineLink, stops: OrderlyStops) -> None:
    """Let a process that serves begin another incarnation."""
    await stops.void()
    await link.ask(("DEL", incarnations.name_marker(PART)))


@asynccontextmanager
async def _alone(url: str) -> AsyncIterator[EngineLink]:
    """A link to a node that is no part of a cluster."""
    link = await connect(parse_addresses(url)[0])
    try:
        if link.engine.clustered:
            raise OrderlyStopRefused(
                f"{link.address.name} belongs to a cluster, whose nodes do not stop at one moment: no marker proves that "
                "nothing was lost. Restart its nodes when traffic is low; callers wait as after a loss of data"
            )
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            yield link
    except TimeoutError:
        raise StoreUnavailable(f"{link.address.name} or the database did not answer in time") from None
    finally:
        await link.close()
