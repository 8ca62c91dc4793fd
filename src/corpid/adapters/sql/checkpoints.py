"""Moving what was committed from the write-ahead log to the main file, in a thread of its own.

A passive checkpoint disturbs nobody, but under steady writing it never quite catches up, and the log
grows; past a size one checkpoint therefore asks writers to wait for a moment, which they do without
stopping the loop.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from corpid.adapters.sql.sqlite_errors import is_busy, translated

if TYPE_CHECKING:
    from pathlib import Path

_PAGES: Final = 4000  # 16 MB
_MOST_PAGES: Final = 16_000  # 64 MB
_SECONDS: Final = 5.0
"""how often to look when nobody nudges"""
_BUSY_MILLISECONDS: Final = 200
_FRAME_BYTES: Final = 4096


class Checkpoints:
    """Keeps the write-ahead log of a database file short.

    A log of fewer than `pages` pages is left alone; one of more than `most_pages` is made to start anew.
    """

    def __init__(self, path: Path, *, pages: int = _PAGES, most_pages: int = _MOST_PAGES) -> None:
        self._few: Final = pages
        self._most: Final = most_pages
        self._path: Final = path
        self._log: Final = path.with_name(path.name + "-wal")
        self._wanted: Final = threading.Event()
        self._stopping = False
        self.restarting = False
        """true for some milliseconds, in which this process should begin no transaction"""
        self._failure: Exception | None = None
        self._connection: Final = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._thread: Final = threading.Thread(target=self._keep, name="corpid-checkpoints", daemon=True)
        self._thread.start()

    def nudge(self) -> None:
        """Look at the log soon."""
        self._wanted.set()

    def check(self) -> None:
        """Raise StoreUnavailable if the last checkpoint failed for another reason than others' work."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Write everything to the main file, empty the log, end the thread. Blocks for that long."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stopping:
            self._wanted.wait(_SECONDS)
            self._wanted.clear()
            if self._pages() > self._few:
                self._try("PASSIVE")
        self._try("TRUNCATE")
        self._connection.close()

    def _try(self, mode: str) -> None:
        try:
            _, pages, _ = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            if mode == "PASSIVE" and pages > self._most:
                self._restart()
            self._failure = None
        except sqlite3.Error as error:
            self._failure = None if is_busy(error) else translated(error, str(self._path))

    def _restart(self) -> None:
        self.restarting = True
        try:
            self._connection.execute("PRAGMA wal_checkpoint(RESTART)")
        finally:
            self.restarting = False

    def _pages(self) -> int:
        try:
            return self._log.stat().st_size // _FRAME_BYTES
        except OSError:
            return 0
