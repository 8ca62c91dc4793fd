"""CorpID with the statements of its embedded stores counted: `python counted.py serve`.

It counts what SQLite executes, whoever asks for it, in a file that another process reads (BENCH_COUNTS). Its verbs are
transactions of LMDB, or, of a commit before LMDB, statements on the table of short-lived data. No project code.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import re
import runpy
import sqlite3
import struct
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES = ("transactions", "statements", "verbs")
_FORM = struct.Struct(f"{len(NAMES)}q")
_VERB = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+"?transient\b', re.IGNORECASE)
_STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(frozen=True, slots=True)
class Counts:
    """A file of counts."""

    path: Path

    def read(self) -> dict[str, int]:
        """The counts so far."""
        return dict(zip(NAMES, _FORM.unpack(self.path.read_bytes()), strict=True))


@contextmanager
def file() -> Iterator[Counts]:
    """A new file of counts."""
    with tempfile.TemporaryDirectory(prefix="corpid-bench-counts-") as directory:
        counts = Counts(Path(directory) / "counts")
        counts.path.write_bytes(bytes(_FORM.size))
        yield counts


def _count(path: str) -> None:
    """Count everything that a connection of this process executes from now on."""
    with open(path, "r+b") as opened:  # noqa: PTH123 - for mmap
        shared = mmap.mmap(opened.fileno(), _FORM.size)
    counted = [0] * len(NAMES)

    def executed(text: str) -> None:
        word = text.lstrip("( \n")[:6].upper()
        if word.startswith("BEGIN"):
            counted[0] += 1
        elif word.startswith(_STATEMENTS):
            counted[2 if _VERB.search(text) else 1] += 1
        _FORM.pack_into(shared, 0, *counted)

    connect = sqlite3.connect

    def opened_connection(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(executed)
        return connection

    sqlite3.connect = opened_connection  # type: ignore[assignment]

    def verb() -> None:
        counted[2] += 1
        _FORM.pack_into(shared, 0, *counted)

    if importlib.util.find_spec("lmdb"):
        lmdb: Any = importlib.import_module("lmdb")
        open_environment = lmdb.open
        lmdb.open = lambda *arguments, **options: _Environment(open_environment(*arguments, **options), verb)


class _Environment:
    """An environment of LMDB whose transactions are counted."""

    def __init__(self, environment: Any, verb: Callable[[], None]) -> None:
        self._environment, self._verb = environment, verb

    def begin(self, **options: Any) -> Any:
        self._verb()
        return self._environment.begin(**options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


if __name__ == "__main__":
    _count(os.environ["BENCH_COUNTS"])
    runpy.run_module("corpid", run_name="__main__")
