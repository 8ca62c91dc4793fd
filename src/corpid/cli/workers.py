"""Several processes on the same sockets: started, watched, and stopped together."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

from corpid.web import access_log

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED: Final = 1
"""what a worker ends with that cannot start"""
_PAUSE_SECONDS: Final = 1.0
"""before a worker takes the place of one that died"""
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})


def supervise(work: Callable[[], int], count: int, *, on_ended: Callable[[int], None] = lambda _: None) -> int:
    """Run `work` in so many processes until told to stop (SIGTERM, SIGINT); returns the exit status for this one.

    `work` returns its process's exit status. A worker that dies is replaced; one of the first that ends with
    REFUSED ends all, since none can start. Signals are handed on, a second one too. To be called before any
    thread or event loop exists. `on_ended` hears of each process that has ended.
    """
    return _Supervisor(work, on_ended).run(count)


class _Supervisor:
    def __init__(self, work: Callable[[], int], on_ended: Callable[[int], None]) -> None:
        self._work = work
        self._on_ended = on_ended
        self._workers: set[int] = set()
        self._first: frozenset[int] = frozenset()
        self._stopping = False
        self._status = 0

    def run(self, count: int) -> int:
        for number in _SIGNALS:
            signal.signal(number, self._hand_on)
        for _ in range(count):
            self._start()
        self._first = frozenset(self._workers)
        while self._workers:
            self._ended(*_wait())
        return self._status

    def _hand_on(self, number: int, _: object) -> None:
        self._stopping = True
        for process in tuple(self._workers):
            _tell(process, number)

    def _start(self) -> None:
        # A signal between fork and the child's own handlers would be lost, or stop the wrong process.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        process = os.fork()
        if process == 0:
            _become(self._work)
        self._workers.add(process)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _ended(self, process: int, status: int) -> None:
        self._workers.discard(process)
        self._on_ended(process)
        if status == REFUSED and process in self._first and not self._stopping:
            self._status = REFUSED
            self._hand_on(signal.SIGTERM, None)
        if self._stopping:
            self._status = max(self._status, 0, status)
            return
        access_log.log().error("worker_died", detail=f"process {process}, status {status}; another takes its place")
        time.sleep(_PAUSE_SECONDS)
        if not self._stopping:
            self._start()


def _become(work: Callable[[], int]) -> None:
    status = REFUSED
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        status = work()
    finally:
        os._exit(status)


def _wait() -> tuple[int, int]:
    process, status = os.wait()
    return process, os.waitstatus_to_exitcode(status)


def _tell(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return  # it has just ended, and is waited for
