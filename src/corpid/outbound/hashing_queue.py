"""Password hashing threads, with a fair queue (D44, D47)."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from corpid.ports import PasswordsBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.ports import HashingSource

KNOWN_SHARE: Final = 4
"""one place in so many is kept for known browsers"""

E = TypeVar("E")


class FairQueue(Generic[E]):
    """Entries that wait, at most `places` of them.

    Entries are hashable, and none waits twice. Not thread-safe.
    """

    def __init__(self, places: int) -> None:
        self._places: Final = places
        self._numbers: Final = count()
        self._networks: Final[OrderedDict[str, OrderedDict[str, dict[E, int]]]] = OrderedDict()
        """network to account to entries and their numbers, the oldest first; the next one to be served comes first"""
        self._sizes: Final[Counter[str]] = Counter()
        self._sources: Final[dict[E, HashingSource]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def full(self) -> bool:
        """True if one more entry would displace another."""
        return len(self) >= self._places

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry.

        Returns the one that has to go for it, perhaps itself, or None if there was room.

        That is the newest of the busiest account of the busiest network, and among equals the newest of all, so that a
        network that fills the queue displaces no other one's. Source: D47
        """
        self._sources[entry] = source
        self._sizes[source.network] += 1
        accounts = self._networks.setdefault(source.network, OrderedDict())
        accounts.setdefault(source.account, {})[entry] = next(self._numbers)
        if len(self) <= self._places:
            return None
        gone = self._newest_of_the_busiest()
        self.remove(gone)
        return gone

    def take(self) -> E | None:
        """The next entry, or None.

        Its network and account go to the end of their queues (D47).
        """
        if not self._networks:
            return None
        network, accounts = next(iter(self._networks.items()))
        account, entries = next(iter(accounts.items()))
        entry = next(iter(entries))
        self._networks.move_to_end(network)
        accounts.move_to_end(account)
        self.remove(entry)
        return entry

    def remove(self, entry: E) -> None:
        """Take an entry out of its row.

        Nothing happens if it is not there.
        """
        source = self._sources.pop(entry, None)
        if source is None:
            return
        self._sizes[source.network] -= 1
        accounts = self._networks[source.network]
        del accounts[source.account][entry]
        if not accounts[source.account]:
            del accounts[source.account]
        if not accounts:
            del self._networks[source.network], self._sizes[source.network]

    def _newest_of_the_busiest(self) -> E:
        most = max(self._sizes.values())
        newest: dict[E, int] = {}
        for network in (each for each, size in self._sizes.items() if size == most):
            accounts = self._networks[network].values()
            longest = max(map(len, accounts))
            newest |= dict(next(reversed(each.items())) for each in accounts if len(each) == longest)
        return max(newest, key=newest.__getitem__)


class HashingQueue(Generic[E]):
    """Two fair queues that are served in turn.

    One is kept for known browsers, a quarter of the places (D47).
    """

    def __init__(self, places: int) -> None:
        reserved = places // KNOWN_SHARE
        self._reserved: Final[FairQueue[E]] = FairQueue(reserved)
        self._common: Final[FairQueue[E]] = FairQueue(places - reserved)
        self._reserves: Final = reserved > 0
        self._reserved_is_next = True

    def __len__(self) -> int:
        return len(self._reserved) + len(self._common)

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry.

        Returns the one that has to go for it, as `FairQueue.put`.

        A known browser waits in the common part only if its own is full and there is room. Source: D47
        """
        own = source.known and self._reserves and (not self._reserved.full or self._common.full)
        return (self._reserved if own else self._common).put(entry, source)

    def take(self) -> E | None:
        """The next entry, or None."""
        order = (self._reserved, self._common) if self._reserved_is_next else (self._common, self._reserved)
        self._reserved_is_next = not self._reserved_is_next
        entry = order[0].take()
        return order[1].take() if entry is None else entry

    def remove(self, entry: E) -> None:
        """Take an entry out; nothing happens if it is not there."""
        self._reserved.remove(entry)
        self._common.remove(entry)


T = TypeVar("T")

_FULL: Final = "too many password checks are waiting"
_STOPPED: Final = "password checks have stopped"


class _Job:
    """Work, and the future of its result.

    Two of them are never equal.
    """

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()

    def refuse(self, reason: str) -> None:
        """Fail with PasswordsBusy, unless the work was cancelled."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(PasswordsBusy(reason))


class HashingThreads:
    """A pool of `threads` threads with `waiting` places in the queue.

    Safe to use from any thread.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._executor: Final = ThreadPoolExecutor(threads, thread_name_prefix="password")
        self._threads: Final = threads
        self._lock: Final = threading.Lock()
        self._queue: Final[HashingQueue[_Job]] = HashingQueue(waiting)
        self._running = 0
        self._closed = False

    @property
    def pending(self) -> int:
        """Jobs that run or wait."""
        with self._lock:
            return self._running + len(self._queue)

    def submit(self, work: Callable[[], T], source: HashingSource) -> Future[T]:
        """Do this as soon as it is its turn.

        The future fails with PasswordsBusy if it has to give way to others.

        A job that waits and is cancelled frees its place at once, one that runs when its thread is through. Raises
        PasswordsBusy if there is no room, and after `close`. Source: D44, D47
        """
        job = _Job(work)
        with self._lock:
            gone = self._admit(job, source)
        if gone is job:
            raise PasswordsBusy(_FULL)
        if gone is not None:
            gone.refuse(_FULL)
        job.future.add_done_callback(lambda _: self._forget(job))
        return job.future

    def close(self) -> None:
        """Accept no more jobs; refuse waiting ones, finish running ones."""
        with self._lock:
            self._closed = True
            dropped = list(iter(self._queue.take, None))
        for job in dropped:
            job.refuse(_STOPPED)
        self._executor.shutdown(wait=False)

    def _admit(self, job: _Job, source: HashingSource) -> _Job | None:
        if self._closed:
            raise PasswordsBusy(_STOPPED)
        if self._running == self._threads:
            return self._queue.put(job, source)
        try:
            self._executor.submit(self._run, job)
        except RuntimeError:
            raise PasswordsBusy(_STOPPED) from None
        self._running += 1
        return None

    def _run(self, first: _Job) -> None:
        job: _Job | None = first
        while job is not None:
            job = self._finish(job)

    def _finish(self, job: _Job) -> _Job | None:
        """Do one job.

        Returns the next one of this thread, which is found before anybody learns the result.
        """
        if not job.future.set_running_or_notify_cancel():
            return self._next()
        try:
            result = job.work()
        except BaseException as error:  # noqa: BLE001 - the future carries it to its awaiter
            following = self._next()
            job.future.set_exception(error)
        else:
            following = self._next()
            job.future.set_result(result)
        return following

    def _next(self) -> _Job | None:
        with self._lock:
            job = self._queue.take()
            if job is None:
                self._running -= 1
            return job

    def _forget(self, job: _Job) -> None:
        with self._lock:
            self._queue.remove(job)
