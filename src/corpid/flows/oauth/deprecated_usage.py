"""Use of deprecated generations: counted in memory, written at intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth.deprecated_usage import SIGN_IN, UseCount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.stores.sql.registry import Registry

ENTRIES: Final = 5000
"""counters held at most: more only pile up while the store cannot be reached"""
_WRITTEN_AT_ONCE: Final = 200
"""counters of one transaction: a few milliseconds"""

_Key: TypeAlias = tuple[str, str, str]


class DeprecatedUsage:
    """Counters of this process that are not written yet.

    They are lost if the process dies.
    """

    def __init__(self) -> None:
        self._counts: dict[_Key, tuple[int, int]] = {}

    def note(self, client_id: str, generation_name: str, habits: Iterable[str], now: float) -> None:
        """Count one sign-in of a client, and each of its habits once.

        When full, only entries that exist already are counted on.
        """
        for habit in {SIGN_IN, *habits}:
            self._count((client_id, generation_name, habit), 1, int(now))

    async def flush(self, registry: Registry) -> None:
        """Write the counters.

        If the store cannot be reached, they are kept for the next flush.
        """
        keys = list(self._counts)
        for start in range(0, len(keys), _WRITTEN_AT_ONCE):
            part = {key: self._counts.pop(key) for key in keys[start : start + _WRITTEN_AT_ONCE] if key in self._counts}
            try:
                await registry.usage.add([_use_count(key, *counted) for key, counted in part.items()])
            except StoreUnavailable:
                self._take_back(part)
                return
            except BaseException:
                self._take_back(part)
                raise

    def _take_back(self, part: dict[_Key, tuple[int, int]]) -> None:
        for key, counted in part.items():
            self._count(key, *counted)

    def _count(self, key: _Key, count: int, at: int) -> None:
        if key not in self._counts and len(self._counts) >= ENTRIES:
            return
        counted, last_at = self._counts.get(key, (0, 0))
        self._counts[key] = (counted + count, max(last_at, at))


def _use_count(key: _Key, count: int, last_at: int) -> UseCount:
    client_id, generation, habit = key
    return UseCount(client_id=client_id, generation=generation, habit=habit, count=count, last_at=last_at)
