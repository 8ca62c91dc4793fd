"""Which run of the engine a process is linked to, and since when its memory is whole.

An engine may come back without what it knew (no persistence), with what it knew a while ago (a snapshot,
in which a spent code is unspent), or as another node. Each of these has a new run id. Two rules make all
of them harmless (DESIGN "What each engine promises"):

- The run id is part of every key, and of the very link that the key is sent on. Nothing of an earlier run
  is found, so nothing of it is spent.
- The first process that sees a run writes down, in the engine, since when this run remembers. Every
  process reads that when it connects and every second after, and refuses what was issued before.

Whoever asks while the link is new and its run is another one is refused once: it may have looked at
`forgotten_at` before the run was known.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from corpid.adapters import milliseconds
from corpid.adapters.valkey_link import ANSWER_SECONDS, connect
from corpid.ports import StoreUnavailable

if TYPE_CHECKING:
    from corpid.adapters.valkey_link import Address, Command, Link
    from corpid.ports import Clock

_PREFIX: Final = b"corpid:"
_LOOK_SECONDS: Final = 1.0
"""between two looks at the engine"""
_PAUSE_SECONDS: Final = 0.25
"""between two attempts to connect"""


class Runs:
    """Keeps a link open; a task of its own notices when it ends and opens the next."""

    def __init__(self, address: Address, clock: Clock) -> None:
        self.remembers_since = 0.0
        """epoch seconds by the engine's clock"""
        self.ahead = 0.0
        """seconds by which this node's clock is ahead of the engine's; 0 if it is behind"""
        self._address: Final = address
        self._clock: Final = clock
        self._next = _future()
        self._run_id = ""
        self._met: Final[set[str]] = set()
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the first link. Raises StoreUnavailable with a sentence for the operator."""
        link = await self._connect()
        self._next.set_result(link)
        self._keeper = asyncio.create_task(self._keep(link))

    async def link(self) -> Link:
        """The link to use now. Raises StoreUnavailable: no engine answers, or it is another one than before."""
        if self._next.done():
            return self._next.result()
        before = self._run_id
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                link = await asyncio.shield(self._next)
        except TimeoutError:
            raise StoreUnavailable(f"{self._address.place} did not answer within {ANSWER_SECONDS:g} seconds") from None
        if self._run_id != before:
            raise StoreUnavailable(f"{self._address.place} has started anew, or another node took its place")
        return link

    async def close(self) -> None:
        """Let go of the engine."""
        if self._keeper is None:
            return
        self._keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeper
        self._next = _failed(StoreUnavailable(f"{self._address.place}: closed"))

    async def _keep(self, link: Link) -> None:
        while True:
            try:
                await self._watch(link)
            finally:
                self._next = _future()
                await link.close()
            link = await self._reconnect()

    async def _watch(self, link: Link) -> None:
        """Ends when the link has ended, or its engine no longer answers."""
        try:
            while not link.ended.done():
                await asyncio.wait([link.ended], timeout=_LOOK_SECONDS)
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._look(link)
        except StoreUnavailable:
            return
        except TimeoutError:
            link.end(f"no answer within {ANSWER_SECONDS:g} seconds")

    async def _reconnect(self) -> Link:
        while True:
            try:
                link = await self._connect()
            except StoreUnavailable as error:
                self._settle(error)
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                self._settle(link)
                return link

    def _settle(self, outcome: Link | StoreUnavailable) -> None:
        waiting = self._next
        if waiting.done():
            waiting = self._next = _future()
        _set(waiting, outcome)

    async def _connect(self) -> Link:
        link = await connect(self._address)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._meet(link)
        except TimeoutError:
            await link.close()
            raise StoreUnavailable(f"{self._address.place} did not answer within {ANSWER_SECONDS:g} seconds") from None
        except BaseException:
            await link.close()
            raise
        return link

    async def _meet(self, link: Link) -> None:
        engine, known = link.engine, link.engine.run_id in self._met
        self.ahead = max(0.0, self._clock() - engine.now)
        if known and engine.run_id != self._run_id:
            # A node that was replaced is back: what was spent in between, it may not know.
            await link.ask(("SET", _place(link), milliseconds(engine.now)))
        whole = engine.remembers_all and not known
        await self._remember(link, engine.started_at if whole else engine.now)
        self._met.add(engine.run_id)
        self._run_id = engine.run_id

    async def _look(self, link: Link) -> None:
        """Notices also that somebody emptied the engine while it ran."""
        now = await time(link)
        self.ahead = max(0.0, self._clock() - now)
        await self._remember(link, now)

    async def _remember(self, link: Link, since: float) -> None:
        first = milliseconds(since)
        [before] = await link.ask(("SET", _place(link), first, "NX", "GET"))
        self.remembers_since = max(self.remembers_since, int(before or first) / 1000)


def key(link: Link, kind: str, key: bytes) -> bytes:
    """The engine's key of an entry, which no other run of it has (DESIGN, "What each engine promises")."""
    return b"%b%b:%b:%b" % (_PREFIX, link.engine.run_id.encode(), kind.encode(), key)


async def time(link: Link) -> float:
    """Epoch seconds by the engine's clock (D49)."""
    command: Command = ("TIME",)
    [(seconds, microseconds)] = await link.ask(command)
    return int(seconds) + int(microseconds) / 1_000_000


def _place(link: Link) -> bytes:
    return b"%b%b" % (_PREFIX, link.engine.run_id.encode())


def _future() -> asyncio.Future[Link]:
    return asyncio.get_running_loop().create_future()


def _failed(error: StoreUnavailable) -> asyncio.Future[Link]:
    failed = _future()
    _set(failed, error)
    return failed


def _set(future: asyncio.Future[Link], outcome: Link | StoreUnavailable) -> None:
    if not isinstance(outcome, StoreUnavailable):
        future.set_result(outcome)
        return
    future.set_exception(outcome)
    future.exception()  # it is no mistake if nobody asks
