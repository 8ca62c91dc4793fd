"""Incarnations of an engine, and orderly stops.

An incarnation is a period. What was written in one is not found in another.

Its name says since when, epoch seconds by the engine's clock, everything that was written in it is remembered, and has
a random part. Names are put in order by that time. Incarnations that follow each other while processes look on share a
store identity, and carry its name; a process that finds no incarnation at all begins one with a store identity of its
own. A marker in each part names the incarnation of the part, and the run of the engine that had it then.
`stores.data_loss` has the theory for all engines.

An orderly stop of an engine is a restart without a loss.

Whatever an engine loads after a restart is what it was at some moment: everything up to there, and nothing of what came
later. So a marker that is found again proves everything that was written before it. An orderly stop makes sure that
nothing was acknowledged after it:

- A *closing marker* takes the place of the incarnation's marker. Every command travels with a look at the marker
  (StoreIncarnation.ask), so an answer that comes after it is refused, in every process. It has a random
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
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from corpid.event_log import log
from corpid.rules.failures import OrderlyStopRefused, StoreUnavailable
from corpid.stores import milliseconds
from corpid.stores.valkey.link import ANSWER_SECONDS, Answer, EngineLink, connect, packed, parse_addresses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from corpid.stores.transient import OrderlyStops

NONE: Final = b""
"""before every other"""
_SET_BACK: Final = b"back"
"""in the name of an incarnation whose engine has a clock far behind the previous one's"""


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


class StoreIncarnation:
    """An incarnation as one process sees it: the nodes of its parts."""

    __slots__ = ("_expected", "_marker_gets", "_markers", "_prefixes", "name", "serving")

    def __init__(self, name: bytes, serving: Sequence[EngineLink | StoreUnavailable]) -> None:
        self.name: Final = name
        self.serving: Final = tuple(serving)
        self._markers: Final = [name_marker(part) for part in range(len(serving))]
        self._prefixes: Final = [b"%b:%b:" % (marker, name) for marker in self._markers]
        self._marker_gets: Final = [packed(("GET", marker)) for marker in self._markers]
        self._expected: Final = [
            b"" if isinstance(link, StoreUnavailable) else encode_marker(link, name) for link in serving
        ]

    def entry(self, kind: str, key: bytes) -> tuple[int, bytes]:
        """The part of an entry, and its name in the engine."""
        part = crc32(key) % len(self.serving)
        return part, b"%b%b:%b" % (self._prefixes[part], kind.encode(), key)

    def links(self) -> set[EngineLink]:
        """Those of all parts. Raises StoreUnavailable if one cannot be asked."""
        return {self._link(part) for part in range(len(self.serving))}

    async def ask(self, part: int, commands: Sequence[bytes]) -> list[Answer]:
        """The answers to packed commands, valid in this incarnation.

        The last command in the same pipeline asks for the part's incarnation. Names of incarnations never come back,
        but of an engine that was closed and lost nothing (ClosingMarker), so that it is still this one means that it
        was this one all along.
        """
        answers = await self._link(part).send([*commands, self._marker_gets[part]])
        if answers.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        return answers

    async def read(self, part: int, names: Sequence[bytes]) -> list[bytes | None]:
        """The values of entries of a part, valid in this incarnation.

        The part's incarnation is in the same answer.
        """
        [values] = await self._link(part).send([packed(("MGET", *names, self._markers[part]))])
        if values.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        found: list[bytes | None] = values
        return found

    def _incarnation_changed(self, part: int) -> StoreUnavailable:
        place = self._link(part).address.name
        return StoreUnavailable(
            f"{place} was closed for a restart, or has forgotten something, or somebody found that another has"
        )

    def _link(self, part: int) -> EngineLink:
        link = self.serving[part]
        if isinstance(link, StoreUnavailable):
            raise StoreUnavailable(str(link))
        return link


def name_marker(part: int) -> bytes:
    """The engine's key of a part's marker.

    The braces keep all keys of a part in one slot.
    """
    return b"corpid:{p%d}" % part


def name_claim(part: int) -> bytes:
    """The engine's key of the right to begin a new incarnation."""
    return b"%b:claim" % name_marker(part)


def encode_marker(link: EngineLink, name: bytes) -> bytes:
    """The value of a marker: incarnation, and run of the engine."""
    return b"%b:%b" % (link.engine.run_id.encode(), name)


def read_incarnation(link: EngineLink, mark: bytes | None) -> bytes:
    """The incarnation's name in a marker.

    NONE if it was not made in this run of the engine.
    """
    run, _, name = (mark or NONE).partition(b":")
    return name if run == link.engine.run_id.encode() else NONE


def make_next_name(since: float, *, after: bytes, set_back: bool) -> bytes:
    """The name of a new incarnation after another, in its store identity.

    `since`: from when on it remembers everything, epoch seconds. After NONE it has a store identity of its own.
    `set_back`: what was spent before may be dated later than that.
    """
    first = max(milliseconds(since), round(remembers_since(after) * 1000) + 1)
    names = [
        secrets.token_hex(6).encode(),
        *([_SET_BACK] if set_back else []),
        *([store_identity(after)] if after else []),
    ]
    return b"-".join([b"%013d" % first, *names])


def store_identity(name: bytes) -> bytes:
    """The store identity that an incarnation is in.

    Its first one has no other name in it.
    """
    return name.rpartition(b"-")[2]


def begins_store(name: bytes) -> bool:
    """Return whether it is the first incarnation of its store identity."""
    return name.count(b"-") == 1


def is_set_back(name: bytes) -> bool:
    """Return whether what was spent before may be dated later."""
    return _SET_BACK in name.split(b"-")


def remembers_since(name: bytes) -> float:
    """Epoch seconds by the engine's clock; 0 for NONE."""
    return int(name.partition(b"-")[0] or 0) / 1000


# --- an orderly stop


class ClosingMarker(msgspec.Struct, frozen=True, kw_only=True):
    """The marker of an engine that is closed."""

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
        return store_identity(self.incarnation).decode()

    def is_of(self, link: EngineLink) -> bool:
        """Return whether the engine was not restarted since."""
        return self.run == link.engine.run_id.encode()


def read_closing_marker(mark: bytes | None) -> ClosingMarker | None:
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
    again = encode_marker(link, marker.incarnation)
    [before] = await link.ask(("SET", name_marker(PART), again, "XX", "GET"))
    if before == marker.mark:
        return True
    await link.ask(("DEL", name_marker(PART)))
    return False


async def close_engine(url: str, stops: OrderlyStops, *, name: str, seconds: int) -> None:
    """Close the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", name_marker(PART)))
        if read_closing_marker(mark) is not None:
            raise OrderlyStopRefused(f"{link.address.name}: {_CLOSED_SENTENCE}")
        incarnation = read_incarnation(link, mark)
        if incarnation == NONE:
            raise OrderlyStopRefused(
                f"{link.address.name} has nothing of a server that runs: no server has used it since it was started"
            )
        until = await link.time() + seconds
        marker = ClosingMarker(
            run=link.engine.run_id.encode(), name=name.encode(), until=until, incarnation=incarnation
        )
        await stops.begin(name, store_identity=marker.store_identity)
        [before] = await link.ask(("SET", name_marker(PART), marker.mark, "XX", "GET"))
        if before != mark:
            await _give_up(link, stops)
        if before != mark or not await stops.confirm(name, store_identity=marker.store_identity):
            raise OrderlyStopRefused(
                f"{link.address.name} has just lost data, or is being closed by somebody else: try again"
            )


async def open_engine_again(url: str, stops: OrderlyStops) -> bool:
    """Open the engine of this URL, as TransientEngine says."""
    async with _alone(url) as link:
        [mark] = await link.ask(("GET", name_marker(PART)))
        marker = read_closing_marker(mark)
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
    await link.ask(("DEL", name_marker(PART)))


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
