"""The number that a bucket of attempts is kept in (D47)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.throttling import Bucket, blocking, bucket, delay

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
