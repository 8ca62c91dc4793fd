"""Attempt counters: attempts and the end of the delay in one number (D47).

A bucket is one counter of the transient store. Its lower bits count attempts. Its upper bits hold the end of the delay,
in seconds of a cycle of twelve days, which is far longer than a bucket lasts. Both are raised and lowered by adding to
the counter, which is atomic on every engine. So one statement counts an attempt, one gives it back, and one forgets it.
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
    """The decoded value of a counter.

    `attempts` may be below zero after some were given back. `blocked` is compared, never read.
    """

    attempts: int
    blocked: int

    def blocked_until(self, now: float) -> int:
        """Return the end of the delay, in epoch seconds.

        If there is no delay, the time is in the past. Source: D47
        """
        until = int(now) // _CYCLE * _CYCLE + self.blocked
        # The delay began in the previous cycle.
        return until - _CYCLE if until > now + _CYCLE // 2 else until


def bucket(counted: int) -> Bucket:
    """Return the bucket of a counter's value (D47)."""
    above = counted + _HALF
    return Bucket(attempts=(above & (2 * _HALF - 1)) - _HALF, blocked=above >> _BITS)


def delay(attempts: int, *, free: int, longest: int) -> int:
    """Return the seconds until another attempt is allowed after this one.

    It is 0 for the free attempts, then 2, 4, 8 and so on up to `longest`. Source: D47
    """
    beyond = attempts - free
    return 0 if beyond <= 0 else min(2 ** min(beyond, _LONGEST_EXPONENT), longest)


def blocking(seconds: int) -> int:
    """Return the increment that ends a counter's delay this many seconds later (D47)."""
    return seconds << _BITS
