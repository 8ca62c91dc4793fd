"""The number that a bucket of attempts is kept in, and the pause that follows too many wrong codes (D45, D47)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.throttling import (
    Bucket,
    CodeGuesses,
    CodesPaused,
    blocking,
    bucket,
    delay,
    one_more,
    pause_after,
)
from corpid.rules.authentication.totp import DIGITS, STEPS_ASIDE
from corpid.rules.limits import CODE_GUESSES

MOMENTS = st.integers(1_700_000_000, 2**33)
"""also those at which a cycle ends"""


def test_five_free_attempts_and_then_a_delay_that_doubles_up_to_the_longest() -> None:
    """D47"""
    assert [delay(attempts, free=5, longest=300) for attempts in range(-1, 16)] == [
        *([0] * 7), 2, 4, 8, 16, 32, 64, 128, 256, 300, 300,
    ]  # fmt: skip
    assert delay(10**9, free=5, longest=60) == 60


@given(attempts=st.integers(-(10**6), 10**9), blocked=st.integers(0, 2**31), given_back=st.integers(0, 1000))
def test_a_number_holds_attempts_and_a_delay_and_one_never_touches_the_other(
    attempts: int, blocked: int, given_back: int
) -> None:
    """D47: attempts that are given back, even more than there were; it fits in 63 bits."""
    counted = attempts + blocking(blocked)
    assert bucket(counted) == Bucket(attempts=attempts, blocked=blocked)
    assert bucket(counted - given_back) == Bucket(attempts=attempts - given_back, blocked=blocked)
    assert -(2**63) <= counted < 2**63


@given(MOMENTS, st.lists(st.tuples(st.integers(1, 300), st.integers(0, 900)), min_size=1, max_size=4))
def test_a_delay_ends_when_it_was_to_end_whatever_delays_were_before_it(
    now: int, delays: list[tuple[int, int]]
) -> None:
    """D47: each begins after the one before has ended, as long as a bucket lasts."""
    counted, at = 0, now
    for seconds, quiet in delays:
        before = bucket(counted).blocked_until(at)
        assert before <= at
        counted += blocking(at + seconds - before)
        for moment in (at, at + seconds, at + seconds + quiet):
            assert bucket(counted).blocked_until(moment) == at + seconds
        at += seconds + quiet


@given(MOMENTS, st.lists(st.integers(1, 300), min_size=2, max_size=1000))
def test_of_those_who_begin_a_delay_at_once_the_first_finds_its_own(now: int, delays: list[int]) -> None:
    """D47: the others find another than they began, and take back what they added; a thousand fill no 63 bits."""
    found = bucket(7)
    before, counted = found.blocked_until(now), 7
    won: list[bool] = []
    added: list[int] = []
    for seconds in delays:
        step = now + seconds - before
        counted, added = counted + blocking(step), [*added, step]
        won.append(bucket(counted).blocked == found.blocked + step)
    assert counted < 2**63
    assert won == [True, *([False] * (len(delays) - 1))]
    after = bucket(counted - sum(map(blocking, added[1:])))
    assert (after.attempts, after.blocked_until(now)) == (7, now + delays[0])


NOW = 1_800_000_000
DAY = 86400
ACCOUNTS = Path(__file__).parents[4] / "docs" / "accounts.md"


def guessed(times: int, seen: CodeGuesses | None = None, *, factors: str = "f", now: int = NOW) -> CodeGuesses:
    """So many guesses at one moment."""
    after = seen or CodeGuesses(user_id="u")
    for _ in range(times):
        after = one_more(after, factors, now)
    return after


def test_the_pause_begins_at_the_twentieth_guess_and_doubles_up_to_a_day() -> None:
    """D45"""
    minutes = [pause_after(guesses) // 60 for guesses in range(CODE_GUESSES - 1, CODE_GUESSES + 9)]
    assert minutes == [0, 15, 30, 60, 120, 240, 480, 960, 1440, 1440]
    assert pause_after(10**9) == DAY


def test_the_guess_that_begins_a_pause_is_the_last_one_that_is_tried() -> None:
    """D45"""
    after = guessed(CODE_GUESSES)
    assert after.paused_until == NOW + 900
    with pytest.raises(CodesPaused) as paused:
        one_more(after, "f", NOW + 899.9)
    assert paused.value.until == NOW + 900
    assert one_more(after, "f", NOW + 900).paused_until == NOW + 900 + 1800


def test_other_factors_begin_a_count_of_their_own() -> None:
    """D45: what was guessed with the password from before says nothing of the new one."""
    after = guessed(1, guessed(CODE_GUESSES), factors="g")
    assert after == CodeGuesses(user_id="u", factors="g", guesses=1)


def test_a_person_is_told_of_a_pause_once_a_day() -> None:
    """D45, D47: who has the password cannot flood a mailbox."""
    first = guessed(CODE_GUESSES)
    assert first.told_at == NOW
    later = one_more(first, "f", first.paused_until)
    assert later.told_at == NOW
    assert one_more(later, "f", NOW + DAY).told_at == NOW + DAY


@given(st.lists(st.integers(0, 2 * DAY), max_size=80))
def test_no_more_guesses_are_tried_than_the_pauses_leave(waits: list[int]) -> None:
    """D45: however the guesses are spread."""
    seen, now, tried = CodeGuesses(user_id="u"), NOW, 0
    for wait in waits:
        now += wait
        with suppress(CodesPaused):
            seen = one_more(seen, "f", now)
            tried += 1
        assert seen.guesses == tried
        assert seen.paused_until <= now + DAY
    assert tried <= CODE_GUESSES or now - NOW >= sum(map(pause_after, range(CODE_GUESSES, tried)))


def fastest(seconds: int) -> int:
    """How many guesses are tried in so many seconds by somebody who makes each as soon as it is allowed."""
    seen, now = CodeGuesses(user_id="u"), NOW
    while True:
        try:
            seen = one_more(seen, "f", now)
        except CodesPaused as paused:
            now = paused.until
            if now >= NOW + seconds:
                return seen.guesses


def test_the_table_of_chances_in_the_documents_is_what_the_law_gives() -> None:
    """D45: three codes of a million are good at a time, those of the present step and of one on each side."""
    right = (1 + 2 * STEPS_ASIDE) / 10**DIGITS
    counts = [fastest(days * DAY) for days in (1, 30, 365)]
    chances = [f"{1 - (1 - right) ** guesses:.3%}".replace("%", " %") for guesses in counts]
    text = ACCOUNTS.read_text(encoding="utf-8")
    assert "| guesses | " + " | ".join(map(str, counts)) + " |" in text
    assert "| chance that one is right | " + " | ".join(chances) + " |" in text
