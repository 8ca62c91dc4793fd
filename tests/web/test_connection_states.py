"""The table of a connection's states: what leads where, and that a deaf connection stays deaf (D47)."""

from __future__ import annotations

import pytest

from corpid.web.http.connection import DEAF, STREAMS, TRANSITIONS, Event, State


def reached(start: State) -> set[State]:
    """The states that may follow, by any number of events."""
    found: set[State] = set()
    ahead = [start]
    while ahead:
        for state in TRANSITIONS[ahead.pop()].values():
            if state not in found:
                found.add(state)
                ahead.append(state)
    return found


def test_every_state_has_a_row_and_can_be_reached() -> None:
    """D47."""
    assert set(TRANSITIONS) == set(State)
    assert reached(State.IDLE) == set(State)
    assert {event for row in TRANSITIONS.values() for event in row} == set(Event)


@pytest.mark.parametrize("state", sorted(DEAF), ids=lambda state: state.name)
def test_a_connection_that_discards_what_arrives_reads_no_further_request(state: State) -> None:
    """RFC 9112 §9.6: after the last request nothing is a request, whatever it looks like."""
    assert reached(state) <= DEAF


@pytest.mark.parametrize("state", sorted(set(State) - {State.CLOSED}), ids=lambda state: state.name)
def test_a_connection_may_end_and_be_lost_in_every_state(state: State) -> None:
    """D47."""
    assert TRANSITIONS[state][Event.LOST] is State.CLOSED
    assert TRANSITIONS[state][Event.END] is State.ENDING


def test_only_a_complete_request_is_followed_by_another() -> None:
    """RFC 9112 §9.3.2: what follows an incomplete one has no known beginning."""
    before = {
        (state, event) for state, row in TRANSITIONS.items() for event, after in row.items() if after is State.IDLE
    }
    assert before == {(state, Event.COMPLETE) for state in {State.BODY, *STREAMS}}
