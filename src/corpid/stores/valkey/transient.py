"""The transient store on Redis or Valkey: single, replicated or cluster.

Each verb is one command on one key. The engine's clock decides expiry (D49), so the `now` that comes in
decides nothing here, and there is nothing to sweep. What was written is there for all at once: other
requests see the verbs of a batch before it ends, and after a fault (an error that is no OAuthError) what
was spent stays spent; only a `put` not yet sent is dropped. A flow that broke there leaves a client with a
spent code, proof or assertion, of which it makes new ones; it never leaves something spendable twice.

An engine may come back without what it knew (no persistence), with what it knew a while ago (a snapshot,
in which a spent code is unspent), or as another node; in a cluster each part may do so for itself, and may
move to another node. Three rules make all of them harmless (`Keyspace`, docs/reliability.md):

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
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self, TypeVar

import msgspec

from corpid.rules.data_loss import NO_LOSS, DataLoss, are_known
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.rules.oauth.errors import OAuthError
from corpid.rules.transient import EngineCondition, PipelinedVerb
from corpid.stores import READINESS, READINESS_SECONDS, Clock, milliseconds
from corpid.stores.transient import OpenedStore, OrderlyStops, TransientEngine
from corpid.stores.valkey import incarnations
from corpid.stores.valkey.incarnations import Closing, NoOrderlyStops, StoreIncarnation
from corpid.stores.valkey.link import (
    ANSWER_SECONDS,
    Answer,
    Command,
    EngineAddress,
    EngineLink,
    connect,
    packed,
    parse_addresses,
)
from corpid.stores.valkey.nodes import PAUSE_SECONDS, Topology, primaries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType


T = TypeVar("T")
R = TypeVar("R")
_COMMANDS: Final = {"get": "GET", "take": "GETDEL", "add": "SET"}
_PLENTY: Final = 0.8
"""of maxmemory"""
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


class ValkeyEngine(TransientEngine):
    """A TransientEngine for the URLs that `open_valkey` takes."""

    def __init__(self, url: str) -> None:
        self._url: Final = url

    async def open(self, *, clock: Clock, stops: OrderlyStops) -> OpenedStore:
        return await open_valkey(self._url, clock=clock, stops=stops)

    async def close_for_restart(self, stops: OrderlyStops, *, name: str, seconds: int) -> None:
        """Refuses a cluster."""
        await incarnations.close_engine(self._url, stops, name=name, seconds=seconds)

    async def open_again(self, stops: OrderlyStops) -> bool:
        """Refuses a cluster."""
        return await incarnations.open_engine_again(self._url, stops)

    async def describe(self) -> list[EngineCondition]:
        """One condition for each primary."""
        try:
            return [_condition(each) for each in await _examine(self._url)]
        except StoreUnavailable as error:
            return [_condition(error)]


async def open_valkey(url: str, *, clock: Clock, stops: OrderlyStops | None = None) -> ValkeyTransientStore:
    """Connect to a node or cluster, in the event loop using it.

    redis:// or valkey://, with TLS rediss:// or valkeys://, or unix://. Each process for itself.

    The engine must be a primary of version 7 or later (any Valkey) that evicts nothing, or nodes of a cluster, of which
    any one leads to all others; HOST:PORT,HOST:PORT names several. Until `reject_before` is called, what was issued
    before the memory began is refused. Without `stops` each restart is a loss.

    Raises StoreUnavailable with a sentence for the operator, without the password. docs/reliability.md,
    D49.
    """
    keyspace = Keyspace(parse_addresses(url), clock, stops or NoOrderlyStops())
    try:
        await keyspace.start()
    except BaseException:
        await keyspace.close()
        raise
    return ValkeyTransientStore(keyspace)


class ValkeyTransientStore:
    """A TransientStore on Redis or Valkey."""

    def __init__(self, keyspace: Keyspace) -> None:
        self.keyspace: Final = keyspace
        self._rejected_before = 0.0
        self._whole: bytes | None = None
        """the incarnation in which everything is that this deployment ever spent"""

    @property
    def store_identity(self) -> str:
        """That of the store's incarnation."""
        return incarnations.store_identity(self.keyspace.incarnation_name).decode()

    def reject_before(self, moment: float, *, store_identity: str) -> None:
        name = self.keyspace.incarnation_name
        is_first = incarnations.begins_store(name) and incarnations.store_identity(name) == store_identity.encode()
        self._rejected_before = moment
        self._whole = name if is_first and moment == 0.0 else None

    @property
    def loss(self) -> DataLoss:
        """The present incarnation, with a margin for the clocks of nodes."""
        keyspace = self.keyspace
        if keyspace.incarnation_name == self._whole:
            return NO_LOSS
        moment = keyspace.remembers_since + max(keyspace.ahead, CLOCKS_APART_SECONDS)
        return DataLoss(
            name=keyspace.incarnation_name.decode(),
            reject_issued_before=max(self._rejected_before, moment),
            complete_from=keyspace.remembers_since + keyspace.ahead,
            spent_until=self._spent_until,
        )

    @property
    def _spent_until(self) -> float | None:
        """See DataLoss.

        None if what was spent before was in another store, no process looked on, or the engine's clock is farther
        behind the previous one's than nodes may be apart.
        """
        keyspace = self.keyspace
        lost_at, name = keyspace.remembers_since, keyspace.incarnation_name
        is_continued = not incarnations.begins_store(name) and not incarnations.is_set_back(name)
        return lost_at if is_continued and are_known(self._rejected_before, lost_at=lost_at) else None

    def batch(self, now: float) -> ValkeyTransientBatch:  # noqa: ARG002 - the engine's clock decides (D49)
        """All its verbs belong to one incarnation; it joins no other batch."""
        return ValkeyTransientBatch(self.keyspace)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:  # noqa: ARG002 - as in `batch`
        incarnation = await self.keyspace.incarnation()
        part, name = incarnation.entry(kind, key)
        [value] = await incarnation.read(part, (name,))
        return value

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:  # noqa: ARG002 - as in `batch`
        """One look at each part of the engine."""
        incarnation = await self.keyspace.incarnation()
        asked: dict[int, list[bytes]] = {}
        positions = []
        for kind, key in places:
            part, name = incarnation.entry(kind, key)
            names = asked.setdefault(part, [])
            positions.append((part, len(names)))
            names.append(name)
        values = await _of_parts(asked, incarnation.read)
        return [values[part][at] for part, at in positions]

    async def engine_time(self) -> float:
        """Every node has to answer."""
        return await self.keyspace.engine_time()

    def engine_time_at_least(self) -> float:
        """From the last look at the nodes' clocks, about a second ago."""
        return self.keyspace.engine_time_at_least()

    async def ready(self, *, now: float) -> None:  # noqa: ARG002 - as in `batch`
        """An engine at its `maxmemory` can still be read (Redis, `noeviction`)."""
        await self.keyspace.write_everywhere(READINESS.encode(), READINESS_SECONDS)

    async def sweep(self, *, now: float) -> int:  # noqa: ARG002 - as in `batch`
        """The engine removes expired entries."""
        return 0

    async def close(self) -> None:
        """Let go of the engine. Nothing may be used afterwards."""
        await self.keyspace.close()


class ValkeyTransientBatch:
    """A TransientBatch.

    A `put` travels with the next verb, or with the end of the batch.
    """

    __slots__ = ("_incarnation", "_keyspace", "_unsent")

    _incarnation: StoreIncarnation

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._unsent: dict[int, list[bytes]] = {}

    async def __aenter__(self) -> Self:
        self._incarnation = await self._keyspace.incarnation()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._unsent and (error is None or isinstance(error, OAuthError)):
            await self._send()

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        part, name = self._incarnation.entry(kind, key)
        self._add(part, ("SET", name, value, "PX", _lifetime(ttl)))

    async def get(self, kind: str, key: bytes) -> bytes | None:
        part, name = self._incarnation.entry(kind, key)
        if self._unsent:
            return _content((await self._ask(part, ("GET", name)))[-1])
        [value] = await self._incarnation.read(part, (name,))
        return value

    async def take(self, kind: str, key: bytes) -> bytes | None:
        part, name = self._incarnation.entry(kind, key)
        return _content((await self._ask(part, ("GETDEL", name)))[-1])

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        part, name = self._incarnation.entry(kind, key)
        return (await self._ask(part, ("SET", name, value, "PX", _lifetime(ttl), "NX")))[-1] is not None

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        """Raise a counter; the next raise restores a lost lifetime."""
        part, name = self._incarnation.entry(kind, key)
        return int((await self._ask(part, ("INCRBY", name, by), ("PEXPIRE", name, _lifetime(ttl), "NX")))[-2])

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        part, name = self._incarnation.entry(kind, key)
        self._add(part, ("INCRBY", name, by), ("PEXPIRE", name, _lifetime(ttl), "NX"))

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        places = []
        for verb, kind, key, ttl, value in verbs:
            part, name = self._incarnation.entry(kind, key)
            given = (value, "PX", _lifetime(ttl), "NX") if verb == "add" else ()
            places.append((verb, part, self._add(part, (_COMMANDS[verb], name, *given))))
        answers = await self._send()
        return [
            answers[part][at] is not None if verb == "add" else _content(answers[part][at]) for verb, part, at in places
        ]

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        asked = []
        for kind, key, ttl in places:
            part, name = self._incarnation.entry(kind, key)
            asked.append((part, self._add(part, ("INCRBY", name, 1), ("PEXPIRE", name, _lifetime(ttl), "NX"))))
        answers = await self._send()
        return [int(answers[part][at]) for part, at in asked]

    def _add(self, part: int, *commands: Command) -> int:
        """Keep commands until the next exchange; returns the position of the first."""
        unsent = self._unsent.setdefault(part, [])
        first = len(unsent)
        unsent.extend(map(packed, commands))
        return first

    async def _ask(self, part: int, *commands: Command) -> list[Answer]:
        """The answers of a part, those of what was unsent before them."""
        self._add(part, *commands)
        return (await self._send())[part]

    async def _send(self) -> dict[int, list[Answer]]:
        """The answers of each part to what was unsent."""
        unsent, self._unsent = self._unsent, {}
        return await _of_parts(unsent, self._incarnation.ask)


class Keyspace:
    """The incarnation of this process, and the node of each part."""

    def __init__(self, seeds: Sequence[EngineAddress], clock: Clock, stops: OrderlyStops) -> None:
        self.remembers_since = 0.0
        """epoch seconds by the engine's clock; the latest of all incarnations that were seen"""
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock: Final = clock
        self._topology: Final = Topology(seeds, self)
        self._closing: Final = Closing(stops)
        self._live: Final[dict[str, EngineLink]] = {}
        self._ahead: Final[dict[str, float]] = {}
        self._offsets: Final[dict[str, float]] = {}
        """from the loop's time, which nobody sets, to each node's, at most; also of nodes that are gone"""
        self._reached = 0.0
        """the latest time that a node's clock has shown, or may have shown before it was set back"""
        self._serving: list[EngineLink | StoreUnavailable] = []
        self._marked: set[int] | None = None
        """the parts that this process has marked with the present incarnation; None if another one began it"""
        self._entered_at = 0.0
        self._incarnation = StoreIncarnation(incarnations.NONE, ())

    @property
    def incarnation_name(self) -> bytes:
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
                part,
                [packed(("SET", b"%b:%b" % (incarnations.name_marker(part), name), b"", "PX", milliseconds(seconds)))],
            )
            for part in parts.values()
        )
        await asyncio.gather(*writes)

    async def close(self) -> None:
        """Let go of the engine."""
        await self._topology.close()

    async def examine(self, link: EngineLink) -> None:
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

    def lost(self, address: EngineAddress, reason: StoreUnavailable) -> None:
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

    async def _look(self, link: EngineLink, now: float) -> None:
        marks = await self._marks(link, self._topology.served_by(link.address))
        newest = max((incarnations.read_incarnation(link, mark) for mark in marks.values()), default=incarnations.NONE)
        if newest > self._incarnation.name:
            self._enter(newest, began=False)
        if await self._is_closed(link, marks.get(incarnations.PART), now):
            return
        for part in marks:
            is_here = marks[part] == incarnations.encode_marker(link, self._incarnation.name)
            self._serving[part] = link if is_here else StoreUnavailable(f"{link.address.name} has forgotten something")
        doubtful = [part for part in marks if marks[part] != incarnations.encode_marker(link, self._incarnation.name)]
        self._closing.examine(intact=not doubtful)
        if doubtful and await self._may_mark(link, doubtful, now):
            await self._mark(link, [part for part in marks if self._serving[part] is not link])

    async def _is_closed(self, link: EngineLink, mark: bytes | None, now: float) -> bool:
        """Return whether the engine is closed, or just open again."""
        marker = None if self._topology.clustered else incarnations.read_closing_marker(mark)
        if marker is None or marker.incarnation < self._incarnation.name:
            return False
        self._serving[incarnations.PART] = StoreUnavailable(f"{link.address.name} is closed")
        self._show()
        settled = await self._closing.settle(link, marker, now)
        if settled is link:
            if marker.incarnation > self._incarnation.name:
                self._enter(marker.incarnation, began=False)
            self._closing.examine(intact=True)
        if settled is not None:
            self._serving[incarnations.PART] = settled
        return settled is not None

    async def _marks(self, link: EngineLink, parts: Sequence[int]) -> dict[int, bytes | None]:
        found = await link.ask_each(("GET", incarnations.name_marker(part)) for part in parts)
        marks: dict[int, bytes | None] = {}
        for part, mark in zip(parts, found, strict=True):
            if isinstance(mark, StoreUnavailable):
                self._serving[part] = mark
                continue
            marks[part] = mark
        return marks

    async def _may_mark(self, link: EngineLink, parts: Sequence[int], now: float) -> bool:
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
        claim = ("SET", incarnations.name_claim(parts[0]), b"", "NX", "PX", milliseconds(_NEW_SECONDS))
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
        self._enter(
            incarnations.make_next_name(latest + _EVERYWHERE_SECONDS, after=before, set_back=set_back), began=True
        )
        return True

    async def _mark(self, link: EngineLink, parts: Sequence[int]) -> None:
        name, marked = self._incarnation.name, self._marked
        if marked is None:
            return
        fresh = [part for part in parts if part not in marked]
        marked.update(fresh)
        mark = incarnations.encode_marker(link, name)
        answers = await link.ask_each(("SET", incarnations.name_marker(part), mark) for part in fresh)
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


async def _of_parts(wanted: Mapping[int, T], exchange: Callable[[int, T], Awaitable[R]]) -> dict[int, R]:
    """The answers of each part, asked at the same time."""
    if len(wanted) == 1:
        [(part, asked)] = wanted.items()
        return {part: await exchange(part, asked)}
    answers = await asyncio.gather(*(exchange(part, asked) for part, asked in wanted.items()))
    return dict(zip(wanted, answers, strict=True))


def _content(answer: Answer) -> bytes | None:
    return None if answer is None else bytes(answer)


def _lifetime(ttl: float) -> int:
    return max(1, milliseconds(ttl))


def _condition(found: _ExaminedPrimary | StoreUnavailable) -> EngineCondition:
    if isinstance(found, StoreUnavailable):
        return EngineCondition(verdict="problem", seen=str(found))
    seen = (
        f"{found.engine} {found.version} at {found.place}, noeviction, {found.persistence}: when it restarts, sign-ins that "
        "are under way begin again, and callers whose clock is known wait for about 6 s, others for 35 s, unless "
        "`corpid maintenance close-store` is run before."
    )
    if found.is_closed:
        change = "Change: restart it now, or run `corpid maintenance open-store`."
        return EngineCondition(verdict="problem", seen=f"{seen} It is closed for a restart.", change=change)
    if found.last_save_failed:
        change = "Change: look at its log; it may stop taking writes (stop-writes-on-bgsave-error)."
        return EngineCondition(verdict="problem", seen=f"{seen} Its last snapshot failed.", change=change)
    if found.most and found.used > _PLENTY * found.most:
        full = f"{seen} It is {found.used / found.most:.0%} full."
        return EngineCondition(verdict="warning", seen=full, change="Change: raise its maxmemory.")
    return EngineCondition(verdict="ok", seen=seen)


class _ExaminedPrimary(msgspec.Struct, frozen=True, kw_only=True):
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
    saves: str | None
    """the setting save; empty: no snapshots; None: hidden from this user"""
    last_save_failed: bool
    is_closed: bool
    """for a restart (stores.valkey.incarnations)"""

    @property
    def persistence(self) -> str:
        if self.appends:
            return "appendonly file"
        if self.saves is None:
            return "no appendonly file (snapshots: CorpID's user may not read the setting save)"
        return f"snapshots (save {self.saves})" if self.saves else "no persistence"


async def _examine(url: str) -> list[_ExaminedPrimary | StoreUnavailable]:
    """Examine the engine, or every primary of its cluster.

    Each comes as it was found, or as the reason why it cannot be used. Raises StoreUnavailable if no address of
    `transient_url` answers.
    """
    refusals = []
    for address in parse_addresses(url):
        nodes = await _within(address, _nodes(address))
        if not isinstance(nodes, StoreUnavailable):
            return await asyncio.gather(*(_within(node, _examine_address(node)) for node in nodes))
        refusals.append(str(nodes))
    raise StoreUnavailable("; ".join(refusals))


async def _within(address: EngineAddress, look: Awaitable[T]) -> T | StoreUnavailable:
    try:
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            return await look
    except StoreUnavailable as error:
        return error
    except TimeoutError:
        return StoreUnavailable(f"{address.name} did not answer within {2 * ANSWER_SECONDS:g} seconds")


async def _nodes(address: EngineAddress) -> list[EngineAddress]:
    """The primaries of its cluster, as this node knows them.

    Itself if there is none.
    """
    link = await connect(address)
    try:
        return (link.engine.clustered and await primaries(link)) or [address]
    finally:
        await link.close()


async def _examine_address(address: EngineAddress) -> _ExaminedPrimary:
    link = await connect(address)
    try:
        saves = await _saves(link)
        [mark] = (
            [None] if link.engine.clustered else await link.ask(("GET", incarnations.name_marker(incarnations.PART)))
        )
    finally:
        await link.close()
    info = link.engine.info
    return _ExaminedPrimary(
        place=address.place,
        engine="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info.get("redis_version", ""),
        used=int(info.get("used_memory", 0)),
        most=int(info.get("maxmemory", 0)),
        appends=info.get("aof_enabled") == "1",
        saves=saves,
        last_save_failed=info.get("rdb_last_bgsave_status", "ok") != "ok",
        is_closed=incarnations.read_closing_marker(mark) is not None,
    )


async def _saves(link: EngineLink) -> str | None:
    """The setting save; None if it is hidden from this user."""
    with suppress(StoreUnavailable):
        [answer] = await link.ask(("CONFIG", "GET", "save"))
        return str(answer[1].decode()) if len(answer) > 1 else ""
    return None
