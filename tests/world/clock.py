"""Time that passes when a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOON: Final = 1_800_000_000.0
"""2027-01-15 08:00:00 UTC"""


@dataclass(slots=True)
class Clock:
    """Epoch seconds."""

    now: float = NOON

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds
