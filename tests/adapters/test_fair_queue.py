"""The queue of password checks: whose turn it is, and who gives way (D47)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.outbound.passwords import FairQueue, HashingQueue, HashingThreads
from corpid.rules.authentication.passwords import COMMAND_LINE, HashingSource
from corpid.rules.failures import PasswordsBusy

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

FLOOD = "2001:db8:bad::/48"


def source(network: str, account: str = "", *, known: bool = False) -> HashingSource:
    return HashingSource(network=network, account=account, known=known)


def filled(places: int, *entries: tuple[str, str, str]) -> FairQueue[str]:
    """A queue with these entries: name, network, account."""
    queue: FairQueue[str] = FairQueue(places)
    for name, network, account in entries:
        queue.put(name, source(network, account))
    return queue


def taken(queue: FairQueue[str] | HashingQueue[str]) -> list[str]:
    return list(iter(queue.take, None))


def test_networks_are_served_in_turn() -> None:
    """D47: whoever comes after a flood waits for one check of it, not for all."""
    flood = [(f"flood{number}", FLOOD, f"person{number}") for number in range(4)]
    queue = filled(9, *flood, ("a", "192.0.2.0/24", "alice"), ("b", "198.51.100.0/24", "bob"))
    assert taken(queue) == ["flood0", "a", "b", "flood1", "flood2", "flood3"]


def test_accounts_of_one_network_are_served_in_turn() -> None:
    """D47: who guesses at one account behind an office's address does not hold up the office."""
    guesses = [(f"guess{number}", "office", "victim") for number in range(3)]
    assert taken(filled(9, *guesses, ("a", "office", "alice"))) == ["guess0", "a", "guess1", "guess2"]


def test_a_full_queue_drops_the_newest_of_the_busiest_network_and_account() -> None:
    """D47"""
    queue = filled(4, ("1", FLOOD, "x"), ("2", FLOOD, "x"), ("3", FLOOD, "y"), ("4", "other", "x"))
    assert queue.put("a", source("192.0.2.0/24", "alice")) == "2"
    assert queue.put("b", source("198.51.100.0/24", "bob")) == "3"
    assert sorted(taken(queue)) == ["1", "4", "a", "b"]


def test_among_equals_whoever_comes_to_a_full_queue_is_refused() -> None:
    """D47: nobody who waits is displaced by somebody who has no better claim."""
    queue = filled(2, ("1", "a", "x"), ("2", "b", "x"))
    assert queue.put("3", source("c", "x")) == "3"
    assert queue.put("4", source("a", "y")) == "4"
    assert taken(queue) == ["1", "2"]


def test_known_browsers_have_a_quarter_of_the_places_and_every_second_turn() -> None:
    """D47: a part is kept for them, whatever waits from however many networks."""
    queue: HashingQueue[str] = HashingQueue(8)
    refused = [queue.put(f"s{number}", source(f"n{number}")) for number in range(9)]
    assert refused == [None] * 6 + ["s6", "s7", "s8"]
    assert [queue.put(name, source("home", "alice", known=True)) for name in ("k1", "k2")] == [None, None]
    assert queue.put("k3", source("home", "alice", known=True)) == "k3"
    assert taken(queue) == ["k1", "s0", "k2", "s1", "s2", "s3", "s4", "s5"]


def test_known_browsers_use_the_common_places_that_are_free() -> None:
    queue: HashingQueue[str] = HashingQueue(8)
    assert [queue.put(f"k{number}", source(f"n{number}", known=True)) for number in range(8)] == [None] * 8
    assert queue.put("late", source("elsewhere")) == "late"


ARRIVALS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.booleans()), max_size=60)


@given(places=st.integers(1, 12), arrivals=ARRIVALS)
def test_nothing_is_lost_or_served_twice_and_the_bound_holds(
    places: int, arrivals: list[tuple[str, str, bool]]
) -> None:
    """D47: each entry is served once, or gave way once."""
    queue: HashingQueue[int] = HashingQueue(places)
    gone = []
    for entry, (network, account, known) in enumerate(arrivals):
        gone.append(queue.put(entry, source(network, account, known=known)))
        assert len(queue) <= places
    dropped = [entry for entry in gone if entry is not None]
    served = list(iter(queue.take, None))
    assert sorted(dropped + served) == list(range(len(arrivals)))


@given(places=st.integers(2, 12), flood=st.integers(0, 40), after=st.integers(0, 40))
def test_a_flood_from_one_network_never_displaces_another_networks_only_check(
    places: int, flood: int, after: int
) -> None:
    """D47: before it or after it."""
    queue: FairQueue[str] = FairQueue(places)
    for number in range(flood):
        queue.put(f"f{number}", source(FLOOD, f"person{number}"))
    assert queue.put("own", source("home", "alice")) != "own"
    for number in range(after):
        queue.put(f"g{number}", source(FLOOD, f"person{number}"))
    assert "own" in [queue.take(), queue.take()]


class Held:
    """Threads whose first job lasts until `free` is set."""

    def __init__(self, waiting: int) -> None:
        self.free = threading.Event()
        self.threads = HashingThreads(1, waiting)
        self.first = self.threads.submit(lambda: self.free.wait(60), COMMAND_LINE)
        self.done: list[str] = []

    def submit(self, name: str, network: str) -> Future[None]:
        return self.threads.submit(self._noting(name), source(network))

    def _noting(self, name: str) -> Callable[[], None]:
        return lambda: self.done.append(name)


def test_a_check_that_gives_way_fails_at_once_and_the_others_are_done_in_turn() -> None:
    """D44, D47"""
    held = Held(waiting=3)
    flood = [held.submit(f"flood{number}", FLOOD) for number in range(3)]
    own = held.submit("own", "home")
    with pytest.raises(PasswordsBusy):
        flood[2].result(timeout=0)
    with pytest.raises(PasswordsBusy):
        held.submit("flood3", FLOOD)
    assert held.threads.pending == 4
    held.free.set()
    for each in (own, *flood[:2]):
        each.result(timeout=60)
    assert held.done == ["flood0", "own", "flood1"]
    assert held.threads.pending == 0


def test_a_check_that_is_cancelled_while_it_waits_gives_its_place_back_and_is_never_done() -> None:
    held = Held(waiting=1)
    assert held.submit("gone", "home").cancel()
    last = held.submit("last", "home")
    held.free.set()
    last.result(timeout=60)
    assert held.done == ["last"]


def test_a_check_that_fails_frees_its_thread() -> None:
    held = Held(waiting=2)

    def fails() -> None:
        raise MemoryError

    failing, last = held.threads.submit(fails, source("home")), held.submit("last", "home")
    held.free.set()
    with pytest.raises(MemoryError):
        failing.result(timeout=60)
    last.result(timeout=60)
    assert held.done == ["last"]


def test_closing_refuses_what_waits() -> None:
    held = Held(waiting=2)
    waiting = held.submit("waiting", "home")
    held.threads.close()
    with pytest.raises(PasswordsBusy, match="stopped"):
        waiting.result(timeout=60)
    with pytest.raises(PasswordsBusy, match="stopped"):
        held.submit("late", "home")
    held.free.set()
    held.first.result(timeout=60)
    assert held.done == []
