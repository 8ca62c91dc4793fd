"""Worker processes that share sockets and metrics: start, supervision, stop."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Work = Callable[[Callable[[], None]], int]

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
_PREFIX: Final = "corpid-metrics-"
_LOCK: Final = "lock"
_NEW_SECONDS: Final = 60.0


@contextmanager
def shared() -> Iterator[Callable[[int], None]]:
    """A folder for as long as this is entered, named by VARIABLE.

    What comes back forgets a worker that has ended.

    Folders that others left behind when they were killed are removed.
    """
    _clean(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        # Held by every worker, too: as long as one of them lives, the folder is in use.
        descriptor = os.open(Path(folder) / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.environ[VARIABLE] = folder

        def forget(process: int) -> None:
            from corpid.web.telemetry.metrics import worker_ended  # noqa: PLC0415 - reads the folder's name when it is loaded

            worker_ended(process, folder)

        yield forget


def _clean(where: Path) -> None:
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or gone meanwhile
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    found = folder.lstat()
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < _NEW_SECONDS:
        return False  # a new one is not locked yet
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


REFUSED: Final = 1
"""what a worker ends with that cannot start"""
BROKEN: Final = 70
"""a worker's exit code after an unforeseen error"""
_YOUNG_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 1.0
"""before another worker takes the place of one that died young"""
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_PROCESS: Final = struct.Struct("=q")


def supervise(work: Work, count: int, *, on_ended: Callable[[int], None] = lambda _: None) -> int:
    """Run `work` in several processes until SIGTERM, SIGINT or SIGHUP.

    Returns the exit status.

    `work` is given what to call once it serves, and returns its process's exit status. A worker that dies is
    replaced; one of the first that ends with REFUSED before it has served ends all, since none can start. Signals
    are handed on, a second one too; when this process is gone its workers stop. To be called before any thread or
    event loop exists. `on_ended` hears of each process that has ended.
    """
    return _Supervisor(work, on_ended).run(count)


class _Supervisor:
    def __init__(self, work: Work, on_ended: Callable[[int], None]) -> None:
        self._work = work
        self._on_ended = on_ended
        self._workers: dict[int, float] = {}
        """when each was started"""
        self._first: set[int] = set()
        """those of the first that have not served yet"""
        self._alive = os.pipe()
        """nothing is written to it: it ends when this process does"""
        self._served = os.pipe()
        """process numbers of those that serve"""
        os.set_blocking(self._served[0], False)
        self._stopping = False
        self._status = 0

    def run(self, count: int) -> int:
        for number in _SIGNALS:
            signal.signal(number, self._hand_on)
        for _ in range(count):
            self._start()
        self._first = set(self._workers)
        while self._workers:
            self._ended(*_wait())
        return self._status

    def _hand_on(self, number: int, _: object) -> None:
        self._stopping = True
        for process in tuple(self._workers):
            # a closing terminal signals every process; workers get the signal from here alone, and once
            _tell(process, signal.SIGTERM if number == signal.SIGHUP else number)

    def _start(self) -> None:
        # A signal between fork and the child's own handlers would be lost, or stop the wrong process.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        if not self._stopping:
            process = os.fork()
            if process == 0:
                self._become()
            self._workers[process] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _become(self) -> None:
        status = BROKEN
        try:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(self._alive[1])
            threading.Thread(target=_stop_without, args=(self._alive[0],), daemon=True).start()
            status = self._work(self._tell_served)
        except BaseException:  # noqa: BLE001 - whatever it is: the process ends here, and the log has to say why
            access_log.log().error("worker_broken", exc_info=True)
        finally:
            os._exit(status)

    def _tell_served(self) -> None:
        os.write(self._served[1], _PROCESS.pack(os.getpid()))

    def _forget_served(self) -> None:
        try:
            received = os.read(self._served[0], 1 << 16)
        except BlockingIOError:
            return
        self._first.difference_update(process for (process,) in _PROCESS.iter_unpack(received))

    def _ended(self, process: int, status: int) -> None:
        started = self._workers.pop(process, 0.0)
        self._on_ended(process)
        self._forget_served()
        if status == REFUSED and process in self._first and not self._stopping:
            self._status = REFUSED
            self._hand_on(signal.SIGTERM, None)
        if self._stopping:
            self._status = max(self._status, 0, status)
            return
        access_log.log().error("worker_died", detail=f"process {process}, status {status}; another takes its place")
        if time.monotonic() - started < _YOUNG_SECONDS:
            time.sleep(_PAUSE_SECONDS)
        self._start()


def _stop_without(alive: int) -> None:
    """A worker's thread that ends it with its parent process."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _wait() -> tuple[int, int]:
    process, status = os.wait()
    return process, os.waitstatus_to_exitcode(status)


def _tell(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return  # it has just ended, and is waited for
