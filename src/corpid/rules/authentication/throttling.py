"""Counts of attempts: one number that holds how many there were, and until when the next one waits (D47).

A bucket is one counter of the transient store. Its lower bits count attempts, its upper ones are the end of the delay,
in epoch seconds; both are raised and lowered by adding to it, which is atomic on every engine. So an attempt is counted
in one statement, given back in one, and forgotten in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_BITS: Final = 31
_HALF: Final = 1 << (_BITS - 1)
_LONGEST_EXPONENT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What was counted: `attempts` may be below zero after some were given back; `blocked_until` in epoch seconds, 0: no delay."""

    attempts: int
    blocked_until: int


def bucket(counted: int) -> Bucket:
    """The bucket of a counter's value. Source: D47"""
    above = counted + _HALF
    return Bucket(attempts=(above & (2 * _HALF - 1)) - _HALF, blocked_until=above >> _BITS)


def delay(attempts: int, *, free: int, longest: int) -> int:
    """The seconds until another attempt after this one: 0 for the free ones, then 2, 4, 8 up to `longest`. Source: D47"""
    beyond = attempts - free
    return 0 if beyond <= 0 else min(2 ** min(beyond, _LONGEST_EXPONENT), longest)


def blocking(seconds: int) -> int:
    """What to add to a counter so that its delay ends so many seconds later. Source: D47"""
    return seconds << _BITS
