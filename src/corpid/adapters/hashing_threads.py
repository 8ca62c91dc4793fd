"""Threads that compute hashes, in the order of a fair queue (D44, D47)."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from corpid.adapters.fair_queue import HashingQueue
from corpid.ports import PasswordsBusy

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpid.ports import HashingSource

T = TypeVar("T")

_FULL: Final = "too many password checks are waiting"
_STOPPED: Final = "password checks have stopped"


class _Job:
    """Work, and the future of its result; two of them are never equal."""

    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()

    def refuse(self, reason: str) -> None:
        """Fail with PasswordsBusy, unless the work was cancelled."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(PasswordsBusy(reason))


class HashingThreads:
    """`threads` jobs at a time, and at most `waiting` more that wait for their turn. Safe to use from any thread."""

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
        """Do this as soon as it is its turn; the future fails with PasswordsBusy if it has to give way to others.

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
        """Take no more work; what waits is refused, what runs ends."""
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
        """Do one job; returns the next one of this thread, which is found before anybody learns the result."""
        if not job.future.set_running_or_notify_cancel():
            return self._next()
        try:
            result = job.work()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the future
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
