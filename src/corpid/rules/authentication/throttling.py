"""Slowing of guesses: attempt counters, and pauses of codes (D45, D47).

An attempt at any factor is counted in buckets of the transient store, whose delays grow to minutes. Guesses at the
second factor's codes are also counted in the registry, since the last success; their pauses grow to a day.

A bucket is one counter. Its lower bits count attempts. Its upper bits hold the end of the delay, in seconds of a cycle
of twelve days, which is far longer than a bucket lasts. Both are raised and lowered by adding to the counter, which is
atomic on every engine. So one statement counts an attempt, one gives it back, and one forgets it.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from corpid.rules.fields import KEY, PERSON
from corpid.rules.limits import CODE_GUESSES, DAY, FIRST_CODE_PAUSE_SECONDS, LONGEST_CODE_PAUSE_SECONDS

_BITS: Final = 31
_HALF: Final = 1 << (_BITS - 1)
_CYCLE: Final = 1 << 20
"""seconds; with the bits below, thousands may begin a delay at the same moment before 63 bits are full"""
_LONGEST_EXPONENT: Final = 16


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
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


class CodeGuesses(msgspec.Struct, frozen=True, kw_only=True):
    """Guesses of one person since the last success; times in epoch seconds.

    They are counted for one browser or for one group of browsers.
    """

    user_id: Annotated[str, PERSON]
    browser: Annotated[str, KEY] = ""
    """the hash of a known browser; empty: every other browser; `link`: enrolments by a link"""
    factors: str = ""
    """fingerprint of the person's password and app at the last guess; a change of either restarts the count"""
    guesses: int = 0
    paused_until: int = 0
    told_at: int = 0
    """start of the last pause of which the person was notified"""


class CodesPaused(Exception):
    """No guess may be tried before `until`, in epoch seconds (D45)."""

    def __init__(self, until: int) -> None:
        super().__init__(f"paused until {until}")
        self.until = until


def pause_after(guesses: int) -> int:
    """Return the seconds of the pause that begins with this guess.

    There is none before the 20th guess. Then it is 15 minutes, doubled with each guess, up to a day. Source: D45
    """
    if guesses < CODE_GUESSES:
        return 0
    longest_at = LONGEST_CODE_PAUSE_SECONDS // FIRST_CODE_PAUSE_SECONDS
    return min(
        FIRST_CODE_PAUSE_SECONDS << min(guesses - CODE_GUESSES, longest_at.bit_length()), LONGEST_CODE_PAUSE_SECONDS
    )


def one_more(seen: CodeGuesses, factors: str, now: float) -> CodeGuesses:
    """Return the count including a guess that is about to be tried.

    `factors` is the current fingerprint, `now` is in epoch seconds. The guess that uses up the allowance begins the
    pause, so that concurrent guesses find it. Raises CodesPaused. Source: D45
    """
    if seen.factors != factors:
        seen = CodeGuesses(user_id=seen.user_id, browser=seen.browser, factors=factors)
    if now < seen.paused_until:
        raise CodesPaused(seen.paused_until)
    pause = pause_after(seen.guesses + 1)
    notified = bool(pause) and now >= seen.told_at + DAY
    return msgspec.structs.replace(
        seen,
        guesses=seen.guesses + 1,
        paused_until=int(now) + pause if pause else 0,
        told_at=int(now) if notified else seen.told_at,
    )
