"""Guesses at second-factor codes, and the pause after too many (D45)."""

from __future__ import annotations

import msgspec

from corpid.rules.limits import CODE_GUESSES, FIRST_CODE_PAUSE_SECONDS, LONGEST_CODE_PAUSE_SECONDS

_DAY: int = 86400


class CodeGuesses(msgspec.Struct, frozen=True, kw_only=True):
    """Guesses of one person since the last success; times in epoch seconds.

    They are counted for one browser or for one group of browsers.
    """

    user_id: str
    browser: str = ""
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
    told = bool(pause) and now >= seen.told_at + _DAY
    return msgspec.structs.replace(
        seen,
        guesses=seen.guesses + 1,
        paused_until=int(now) + pause if pause else 0,
        told_at=int(now) if told else seen.told_at,
    )
