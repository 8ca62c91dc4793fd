"""Serving processes as they register themselves, and how they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec

from corpid.rules.fields import KEY
from corpid.rules.limits import DAY, MINUTE

SEEN_EVERY_SECONDS: Final = MINUTE
"""between two notes that a process lives"""
GONE_SECONDS: Final = 4 * MINUTE
"""without a note, after which a process counts as gone"""
KEPT_SECONDS: Final = DAY
"""how long one that did not stop in order stays listed"""
VERSION: Final = "version"


class ServerProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that serves, or did until it was lost."""

    process_id: Annotated[str, KEY]
    """made at its start: a system gives process numbers again"""
    host: str
    number: int
    """that of the system"""
    address: str
    """on which it listens"""
    version: str
    started_at: int
    """epoch seconds"""
    seen_at: int
    settings: dict[str, str]
    """those that every process must share, without secrets: a key is named by the start of its hash"""

    @property
    def name(self) -> str:
        """Its machine and number."""
        return f"{self.host} ({self.number})"


def is_live(process: ServerProcess, *, now: float) -> bool:
    """Return whether a process was seen lately. Source: D49"""
    return now - process.seen_at <= GONE_SECONDS


def live(processes: Iterable[ServerProcess], *, now: float) -> list[ServerProcess]:
    """Those that were seen lately. Source: D49"""
    return [each for each in processes if is_live(each, now=now)]


def differences(processes: Sequence[ServerProcess]) -> dict[str, dict[str, list[ServerProcess]]]:
    """The members that processes do not share, by value.

    Name → value → those that have it.

    The value of most comes first, of as many that of the process which has run for longest. Source: D43, D49
    """
    ordered = sorted(processes, key=lambda each: (each.started_at, each.process_id))
    members = [{VERSION: each.version, **each.settings} for each in ordered]
    found = {}
    for name in dict.fromkeys(name for each in members for name in each):
        count = Counter(each.get(name, "") for each in members)
        if len(count) > 1:
            found[name] = {
                value: [each for each, has in zip(ordered, members, strict=True) if has.get(name, "") == value]
                for value, _ in count.most_common()
            }
    return found


def find_differing(processes: Sequence[ServerProcess]) -> dict[str, tuple[str, ...]]:
    """The members in which a process differs from most.

    By its identifier. Source: D49
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, values in differences(processes).items():
        _, *others = values.values()
        for process in (each for part in others for each in part):
            found[process.process_id] = (*found.get(process.process_id, ()), name)
    return found
