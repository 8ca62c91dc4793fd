"""Rate limits, and counts at limits that are taken back.

Rate limits are requests per minute of a client, an address or a network.

A process counts requests by itself and adds to the store at intervals, a twentieth of a limit at a time. So a
request hardly ever touches the store for this, and several processes together pass a limit by at most a
twentieth part each.

Counts are taken back if CorpID refuses for its own reasons: loss of data, a store that is away, maintenance and a full
queue are nobody's attempt. They count against no person, no address and no client. Whatever counts before it knows the
outcome notes in `LimitCounts` how its count is taken back. Source: D47, D49, D67
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from corpid.flows import namespaces
from corpid.rules.failures import StoreUnavailable
from corpid.rules.networks import is_loopback, neighbourhood, site
from corpid.rules.oauth.errors import TooManyRequests
from corpid.rules.oauth.refusals import Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from corpid.flows.namespaces import Entry
    from corpid.stores.transient import TransientBatch, TransientStore

    _TakeBack: TypeAlias = Callable[[TransientBatch], Awaitable[object]]

PAR: Final = "par"
TOKEN: Final = "token"
SIGN_IN: Final = "sign_in"
ACCOUNT: Final = "account"
"""the account, and a forgotten password: anybody can begin there without a client, and it is kept for hours"""
ARRIVALS: Final = "arrivals"
"""sign-ins that are stored for a browser without an earlier sign-in, and which no client has pushed"""
API: Final = "api"
"""calls of the admin API (D59)"""
SCIM: Final = "scim"
"""requests of SCIM (D60)"""
COUNTED: Final = (PAR, TOKEN, SIGN_IN, ACCOUNT, ARRIVALS, API, SCIM)
"""the counted requests; a limit is the setting with this name and a member of RateLimit"""
WINDOW_SECONDS: Final = 60
_PARTS: Final = 20
_ENTRIES: Final = 20_000
"""the most counters of one kind: beyond it all are forgotten, and counting begins again"""
_LATE: Final = 2
"""minutes by which a request that took long may lag; beyond them it is the clock that was set back"""
_TOO_MANY: Final = {
    "address": (Reason.RATE_LIMIT_OF_ADDRESS, "too many requests from one address: at most {limit} a minute"),
    "client": (Reason.RATE_LIMIT_OF_CLIENT, "too many requests from one client: at most {limit} a minute"),
    "network": (Reason.RATE_LIMIT_OF_NETWORK, "too many sign-ins from one network: at most {limit} a minute"),
    "everybody": (Reason.RATE_LIMIT_OF_ALL, "too many sign-ins: at most {limit} a minute"),
}
"""by whom they are counted"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Requests per minute of a client, address, network, or all callers.

    0: any number.

    A client is counted once it has proven who it is, so that nobody can use up another one's share.
    """

    per_client: int = 0
    per_address: int = 0
    per_network: int = 0
    in_all: int = 0


class _Counters:
    """This minute's counts for one kind of caller, and the exhausted callers."""

    __slots__ = ("counted", "exceeded", "window")

    def __init__(self) -> None:
        self.counted: dict[tuple[str, ...], int] = {}
        self.exceeded: set[tuple[str, ...]] = set()
        self.window = 0

    def begin_minute(self, window: int) -> None:
        """Begin the minute of `window`, unless it has begun or is over.

        A late caller counts in the minute that runs.
        """
        if window > self.window or window < self.window - _LATE:
            self.window = window
        elif len(self.counted) < _ENTRIES:
            return
        self.counted.clear()
        self.exceeded.clear()

    def take_back(self, caller: tuple[str, ...], window: int) -> None:
        """Take back a request of this minute."""
        if self.window == window and self.counted.get(caller):
            self.counted[caller] -= 1


class RateLimits:
    """The limits of a deployment, and this process's counts of this minute.

    `spare_loopback` is for developer mode: local tests are not counted.
    """

    def __init__(
        self, transient: TransientStore, issuer: str, limits: Mapping[str, RateLimit], *, spare_loopback: bool
    ) -> None:
        self._transient = transient
        self._issuer = issuer
        self._limits = limits
        self._spare_loopback = spare_loopback
        self._counters: Final = {caller: _Counters() for caller in ("address", "client", "network", "everybody")}

    async def address(self, endpoint: str, address: str, now: float, counts: LimitCounts | None = None) -> None:
        """Count a request by its address, and note it in `counts`.

        Raises TooManyRequests, StoreUnavailable. Source: D47
        """
        caller = ("address", endpoint, site(address))
        await self._count(self._limits[endpoint].per_address, caller, address, now, counts)

    async def client(
        self, endpoint: str, client_id: str, address: str, now: float, counts: LimitCounts | None = None
    ) -> None:
        """Count a request by its authenticated client, and note it in `counts`.

        Raises TooManyRequests, StoreUnavailable. Source: D47
        """
        caller = ("client", endpoint, client_id)
        await self._count(self._limits[endpoint].per_client, caller, address, now, counts)

    async def arrival(self, address: str, now: float, counts: LimitCounts | None = None) -> None:
        """Count a sign-in that is about to be stored for a stranger.

        It is noted in `counts`. It counts for its network, then for all callers. A network over its limit uses up
        nothing of the others' share. Raises TooManyRequests, StoreUnavailable. Source: D47
        """
        limits = self._limits[ARRIVALS]
        await self._count(limits.per_network, ("network", ARRIVALS, neighbourhood(address)), address, now, counts)
        await self._count(limits.in_all, ("everybody", ARRIVALS), address, now, counts)

    async def _count(
        self, limit: int, caller: tuple[str, ...], address: str, now: float, counts: LimitCounts | None
    ) -> None:
        """Count a request in this process.

        Its caller is compared with the limit after each part of it, and beyond it.
        """
        if not limit or (self._spare_loopback and is_loopback(address)):
            return
        counters = self._counters[caller[0]]
        window = int(now // WINDOW_SECONDS)
        if window != counters.window or len(counters.counted) >= _ENTRIES:
            counters.begin_minute(window)
        counted = counters.counted[caller] = counters.counted.get(caller, 0) + 1
        if counts is not None:
            counts.note_in_process(partial(counters.take_back, caller, counters.window))
        if counted % max(1, limit // _PARTS) == 0 or counted > limit or caller in counters.exceeded:
            await self._compare(limit, caller, now, counts)

    async def _compare(self, limit: int, caller: tuple[str, ...], now: float, counts: LimitCounts | None) -> None:
        counters = self._counters[caller[0]]
        window = counters.window
        counted = counters.counted[caller]
        part = max(1, limit // _PARTS)
        over = caller in counters.exceeded or counted > limit
        if not over:
            counter = namespaces.RATE.entry(self._issuer, *caller, str(window))
            async with self._transient.batch(now) as batch:
                over = await counter.count(batch) * part > limit
            if counts is not None:
                counts.note_raised(counter)
        if over and window == counters.window:  # another minute may have begun while the store was asked
            counters.exceeded.add(caller)
        if over:
            reason, sentence = _TOO_MANY[caller[0]]
            raise TooManyRequests(
                reason,
                sentence.format(limit=limit),
                retry_after=WINDOW_SECONDS - int(now % WINDOW_SECONDS),
            )


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
