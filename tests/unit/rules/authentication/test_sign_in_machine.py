"""The sign-in's states, events and transitions, and what each move leaves (D15, D29, D30, D45, D50)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Credentials
from corpid.rules.authentication.sign_in import TRANSITIONS, Event, Interaction, Outcome, StaleStep, State, Way
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS
from corpid.rules.oauth.records import AuthorizationRequest

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = 1_800_000_000.0
CREDENTIALS = Credentials(user_id="u", password_hash="h", totp_secret="s")
REQUEST = AuthorizationRequest(
    client_id="rp1", redirect_uri="https://rp.example/callback", scopes=("openid",), state="s", nonce="n",
    code_challenge="c", jkt="j", acr="a", generation="CURRENT",
)  # fmt: skip
BEGUN = Interaction(interaction_id="i", browser_id="b", reference="r", request=REQUEST, expires_at=NOW + 600)


def password(at: Interaction) -> Interaction:
    return machine.known(at, user_id="u", user_name="alice", credentials=CREDENTIALS)


def factor(
    at: Interaction, entity_id: str = "", outcome: Outcome | None = None, *, offers_passkey: bool = False
) -> Interaction:
    after = machine.authenticated(
        at, user_id="u", user_name="alice", factors=machine.fingerprint(CREDENTIALS), amr=("pwd", "otp"), level=2, passkey="", way=None,
        offers_passkey=offers_passkey, now=NOW,
    )  # fmt: skip
    after = machine._replace(after, entity_id=entity_id)
    return after if outcome is None else machine.ended(at, after, outcome, now=NOW)


def over(at: Interaction, outcome: Outcome = Outcome.CODE) -> Interaction:
    return machine.ended(at, at, outcome, now=NOW)


def answered(at: Interaction, entity_id: str = "", outcome: Outcome | None = None) -> Interaction:
    after = machine._replace(machine.offer_answered(at), entity_id=entity_id)
    return after if outcome is None else machine.ended(at, after, outcome, now=NOW)


AT_ONCE = (Event.PASSKEY, Event.SIMULATED)
"""both factors in one step: by a passkey, and a test person's in a demo (D66)"""
MOVES: dict[tuple[Event, State], list[Callable[[Interaction], Interaction]]] = {
    (Event.PASSWORD, State.SECOND_FACTOR): [password],
    **{(event, State.ENTITY): [factor] for event in AT_ONCE},
    **{(event, State.CONSENT): [lambda at: factor(at, "E1")] for event in AT_ONCE},
    **{(event, State.ENDED): [lambda at: factor(at, outcome=Outcome.ACCOUNT)] for event in AT_ONCE},
    (Event.CODE, State.ENTITY): [factor],
    (Event.CODE, State.CONSENT): [lambda at: factor(at, "E1")],
    (Event.CODE, State.ENDED): [lambda at: factor(at, "E1", Outcome.CODE), lambda at: factor(at, "", Outcome.REFUSED)],
    (Event.CODE, State.OFFER): [lambda at: factor(at, "E1", offers_passkey=True)],
    **{(event, State.ENTITY): [answered] for event in (Event.MAKE_PASSKEY, Event.NOT_NOW)},
    **{(event, State.CONSENT): [lambda at: answered(at, "E1")] for event in (Event.MAKE_PASSKEY, Event.NOT_NOW)},
    **{
        (event, State.ENDED): [lambda at: answered(at, "E1", Outcome.CODE)]
        for event in (Event.MAKE_PASSKEY, Event.NOT_NOW)
    },
    (Event.WAY, State.SECOND_FACTOR): [
        lambda at: machine.other_way(at, Way.RECOVERY),
        lambda at: machine.mailed(at, now=NOW),
    ],
    (Event.MISSES, State.ENDED): [lambda at: over(at, Outcome.REFUSED)],
    (Event.ENTITY, State.CONSENT): [lambda at: machine.chosen(at, "E1")],
    (Event.ENTITY, State.ENDED): [lambda at: machine.ended(at, machine.chosen(at, "E1"), Outcome.CODE, now=NOW)],
    (Event.CONSENT, State.ENDED): [lambda at: machine.ended(at, machine.consented(at), Outcome.CODE, now=NOW)],
    (Event.CONFIRM, State.ENDED): [over],
    (Event.OTHER_ACCOUNT, State.PASSWORD): [machine.forgotten],
    (Event.CANCEL, State.ENDED): [lambda at: over(at, Outcome.REFUSED)],
}
"""what a flow writes for an event, by the state that it leads to"""


def state_of(interaction: Interaction, *, now: float = NOW, usable: bool = True, asks_consent: bool = True) -> State:
    return machine.state(interaction, now=now, usable=usable, asks_consent=asks_consent)


EXAMPLES: dict[State, Interaction] = {
    State.PASSWORD: BEGUN,
    State.SECOND_FACTOR: password(BEGUN),
    State.OFFER: factor(password(BEGUN), "E1", offers_passkey=True),
    State.ENTITY: factor(password(BEGUN)),
    State.CONSENT: factor(password(BEGUN), "E1"),
    State.CONFIRM: machine.consented(factor(password(BEGUN), "E1")),
    State.ENDED: over(BEGUN),
}


@pytest.mark.parametrize("state", EXAMPLES, ids=lambda state: state.value)
def test_a_state_follows_from_what_is_known(state: State) -> None:
    """D15"""
    assert state_of(EXAMPLES[state]) is state


@pytest.mark.parametrize("state", [each for each in EXAMPLES if each is not State.ENDED], ids=lambda state: state.value)
def test_whatever_is_open_expires_and_what_has_ended_stays_so(state: State) -> None:
    """D15"""
    assert state_of(EXAMPLES[state], now=NOW + INTERACTION_SECONDS) is State.EXPIRED
    assert TRANSITIONS[state][Event.EXPIRY] == {State.EXPIRED}
    assert state_of(EXAMPLES[State.ENDED], now=NOW + 10 * INTERACTION_SECONDS) is State.ENDED


def test_an_entity_that_can_no_longer_be_used_is_chosen_again() -> None:
    """D17, D50: also after consent."""
    for state in (State.CONSENT, State.CONFIRM):
        assert state_of(EXAMPLES[state], usable=False) is State.ENTITY


def test_consent_is_asked_for_only_if_it_has_a_page() -> None:
    """D29"""
    assert state_of(EXAMPLES[State.CONSENT], asks_consent=False) is State.CONFIRM


_TAKEN = [
    (state, event, after)
    for state, events in TRANSITIONS.items()
    for event in events
    for after in sorted(events[event], key=lambda each: each.value)
]
_MADE = [each for each in _TAKEN if each[1] not in (Event.EXPIRY, Event.LAPSE, Event.EXTEND)]


@pytest.mark.parametrize(("state", "event", "after"), _MADE, ids=lambda each: each.value)
def test_each_transition_of_the_table_is_made_by_a_move_that_claims_one_step(
    state: State, event: Event, after: State
) -> None:
    """D15: the serial rises by one, however many states one form passes, so that one claim is enough."""
    before = EXAMPLES[state]
    for move in MOVES[event, after]:
        moved = move(before)
        assert state_of(moved) is after
        assert moved.serial == before.serial + 1


@pytest.mark.parametrize("state", [each for each in EXAMPLES if each is not State.ENDED], ids=lambda state: state.value)
def test_more_time_leaves_the_state_as_it_is_and_ends_after_ten_times(state: State) -> None:
    """D15, WCAG 2.2.1"""
    at = EXAMPLES[state]
    for number in range(INTERACTION_EXTENSIONS):
        assert machine.extendable(at)
        moment = NOW + 500 * (number + 1)
        at = machine.extended(at, now=moment)
        assert state_of(at, now=moment + INTERACTION_SECONDS - 1) is state
    assert not machine.extendable(at)


@pytest.mark.parametrize(
    "state",
    [State.SECOND_FACTOR, State.OFFER, State.ENTITY, State.CONSENT, State.CONFIRM],
    ids=lambda state: state.value,
)
def test_a_lapse_leaves_nobody_signed_in_and_nothing_of_theirs(state: State) -> None:
    """D50: but how many codes were sent, which is part of each."""
    at = machine._replace(EXAMPLES[state], mails=2, mailed_at=5)
    assert TRANSITIONS[state][Event.LAPSE] == {State.PASSWORD}
    after = at.anonymous
    assert state_of(after) is State.PASSWORD
    assert after == machine._replace(BEGUN, serial=at.serial, mails=2)


_EVENTS = [event for event in Event if event not in (Event.EXPIRY, Event.LAPSE)]


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_an_event_that_a_state_does_not_take_is_a_stale_step(state: State) -> None:
    """D15: whoever sends it is shown the page that is current."""
    taken = set()
    for event in _EVENTS:
        with suppress(StaleStep):
            machine.require(state, event)
            taken.add(event)
    assert taken == set(_EVENTS) & set(TRANSITIONS[state])


def test_an_ended_sign_in_takes_nothing() -> None:
    """D15"""
    assert TRANSITIONS[State.ENDED] == {}
    assert TRANSITIONS[State.EXPIRED] == {}


@given(st.lists(st.sampled_from([*MOVES]), max_size=12))
def test_whatever_the_order_of_events_a_sign_in_is_only_in_states_that_the_table_allows(
    events: list[tuple[Event, State]],
) -> None:
    """D15, D45: nobody gets past a factor by sending forms in another order."""
    at = BEGUN
    shown: set[Event] = set()
    for event, after in events:
        state = state_of(at)
        if event not in TRANSITIONS[state] or after not in TRANSITIONS[state][event]:
            continue
        at = MOVES[event, after][0](at)
        shown = set() if event is Event.OTHER_ACCOUNT else shown | {event}
        assert state_of(at) in TRANSITIONS[state][event]
        if at.outcome is Outcome.CODE:
            assert shown.intersection(AT_ONCE) or {Event.PASSWORD, Event.CODE} <= shown


@pytest.mark.parametrize(
    ("same_factors", "lives", "made", "age", "expected"),
    [
        (True, True, "s", 0, True),
        (False, True, "s", 0, False),
        (True, False, "s", 0, False),
        (True, False, "", 0, True),
        (True, True, "s", INTERACTION_SECONDS - 1, True),
        (True, True, "s", INTERACTION_SECONDS, False),
    ],
)
def test_what_was_shown_counts_as_long_as_factors_session_and_age_allow(
    same_factors: bool, lives: bool, made: str, age: float, expected: bool
) -> None:
    """D40, D50: `max_age` of one second leaves the ten minutes of a page."""
    request = machine._replace(REQUEST, max_age=1)
    at = machine._replace(EXAMPLES[State.ENTITY], request=request, made_session_id=made)
    assert machine.holds(at, same_factors=same_factors, session_lives=lives, now=NOW + age) is expected


def test_another_password_or_another_app_gives_another_fingerprint() -> None:
    """D50: a spent step of the app does not."""
    before = machine.fingerprint(CREDENTIALS)
    assert machine.fingerprint(machine._replace(CREDENTIALS, totp_last_step=7)) == before
    assert machine.fingerprint(machine._replace(CREDENTIALS, password_hash="other")) != before
    assert machine.fingerprint(machine._replace(CREDENTIALS, totp_secret="other")) != before
