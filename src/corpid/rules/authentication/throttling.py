"""Counts of attempts: one number that holds how many there were, and until when the next one waits (D47).

A bucket is one counter of the transient store. Its lower bits count attempts, its upper ones say when the delay ends, in
seconds of a cycle of twelve days, which is far longer than a bucket lasts; both are raised and lowered by adding to it,
which is atomic on every engine. So an attempt is counted in one statement, given back in one, and forgotten in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_BITS: Final = 31
_HALF: Final = 1 << (_BITS - 1)
_CYCLE: Final = 1 << 20
"""seconds; with the bits below, thousands may begin a delay at the same moment before 63 bits are full"""
_LONGEST_EXPONENT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What was counted: `attempts` may be below zero after some were given back; `blocked` is compared, never read."""

    attempts: int
    blocked: int

    def blocked_until(self, now: float) -> int:
        """When the delay ends, in epoch seconds; a moment that has passed if there is none. Source: D47"""
        until = int(now) // _CYCLE * _CYCLE + self.blocked
        # A delay that was begun in the cycle before.
        return until - _CYCLE if until > now + _CYCLE // 2 else until


def bucket(counted: int) -> Bucket:
    """The bucket of a counter's value. Source: D47"""
    above = counted + _HALF
    return Bucket(attempts=(above & (2 * _HALF - 1)) - _HALF, blocked=above >> _BITS)


def delay(attempts: int, *, free: int, longest: int) -> int:
    """The seconds until another attempt after this one: 0 for the free ones, then 2, 4, 8 up to `longest`. Source: D47"""
    beyond = attempts - free
    return 0 if beyond <= 0 else min(2 ** min(beyond, _LONGEST_EXPONENT), longest)


def blocking(seconds: int) -> int:
    """What to add to a counter so that its delay ends so many seconds later. Source: D47"""
    return seconds << _BITS
