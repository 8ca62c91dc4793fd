"""The number that a bucket of attempts is kept in (D47)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication.throttling import Bucket, blocking, bucket, delay

NOW = 1_800_000_000


def test_five_free_attempts_and_then_a_delay_that_doubles_up_to_the_longest() -> None:
    """D47"""
    assert [delay(attempts, free=5, longest=300) for attempts in range(-1, 16)] == [
        *([0] * 7), 2, 4, 8, 16, 32, 64, 128, 256, 300, 300,
    ]  # fmt: skip
    assert delay(10**9, free=5, longest=60) == 60


@given(
    attempts=st.integers(-(10**6), 10**9),
    until=st.one_of(st.just(0), st.integers(NOW, 2**32 - 1)),
    given_back=st.integers(0, 1000),
)
def test_a_number_holds_attempts_and_the_end_of_a_delay_whatever_is_added_to_it(
    attempts: int, until: int, given_back: int
) -> None:
    """D47: attempts that are given back, even more than there were, never touch the delay; it fits in 63 bits."""
    counted = attempts + blocking(until)
    assert bucket(counted) == Bucket(attempts=attempts, blocked_until=until)
    assert bucket(counted - given_back) == Bucket(attempts=attempts - given_back, blocked_until=until)
    assert -(2**63) <= counted < 2**63


@given(st.integers(0, 2**20), st.integers(NOW, 2**31), st.lists(st.integers(1, 300), min_size=2, max_size=5))
def test_of_those_who_begin_a_delay_at_once_the_first_finds_its_own(
    attempts: int, until: int, delays: list[int]
) -> None:
    """D47: the others find a later end than they asked for, and take back what they added."""
    counted, wins = attempts + blocking(until), []
    for seconds in delays:
        counted += blocking(seconds)
        wins.append(bucket(counted).blocked_until == until + seconds)
    assert wins == [True, *([False] * (len(delays) - 1))]
    assert bucket(counted - sum(map(blocking, delays[1:]))) == Bucket(
        attempts=attempts, blocked_until=until + delays[0]
    )
