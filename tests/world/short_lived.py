"""The short-lived entries of a data directory, next to the provider that uses them in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.stores import READINESS, machine_start
from corpid.stores.lmdb import LINEAGE, LmdbTransaction, open_shared, release

if TYPE_CHECKING:
    from pathlib import Path


DIRECTORY: Final = "short-lived"


class ShortLived:
    """What a test may look into. Close it at the end."""

    def __init__(self, data_dir: Path) -> None:
        self._file: Final = open_shared(data_dir / DIRECTORY, machine_start())

    def entries(self, now: float = 0.0) -> list[tuple[str, bytes, bytes, int, int]]:
        """Kind, key, value, count and expiry (milliseconds) of those that live, without readiness's own."""
        rows = (_row(name, entry) for name, entry in self._file.transact(_everything, writes=False))
        return [row for row in rows if row[0] != READINESS and row[4] > int(now * 1000)]

    def remove_all(self) -> None:
        self._file.transact(_remove_all)

    def close(self) -> None:
        release(self._file)


def _everything(transaction: LmdbTransaction) -> list[tuple[bytes, bytes]]:
    return [(name, entry) for name, entry in transaction.cursor() if name != LINEAGE]


def _remove_all(transaction: LmdbTransaction) -> None:
    for name, _ in _everything(transaction):
        transaction.delete(name)


def _row(name: bytes, entry: bytes) -> tuple[Any, ...]:
    kind, _, key = name.partition(b"\0")
    expires_at, count = int.from_bytes(entry[:8], "big"), int.from_bytes(entry[8:16], "big", signed=True)
    return kind.decode(), key, entry[16:], count, expires_at
