"""The sign-in's states, events and transitions, and what each move leaves (D15, D29, D30, D45, D50)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.authentication import sign_in as machine
from corpid.rules.authentication.records import Credentials
from corpid.rules.authentication.sign_in import (
    TRANSITIONS,
    Interaction,
    InteractionOutcome,
    SecondFactorMethod,
    SignInEvent,
    SignInState,
    StaleStep,
)
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS
from corpid.rules.oauth.authorization_request import AuthorizationRequest

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
    return machine.with_user(at, user_id="u", user_name="alice", credentials=CREDENTIALS)


def factor(
    at: Interaction, entity_id: str = "", outcome: InteractionOutcome | None = None, *, offers_passkey: bool = False
) -> Interaction:
    after = machine.with_factors(
        at, user_id="u", user_name="alice", factors=machine.fingerprint(CREDENTIALS), amr=("pwd", "otp"), level=2, passkey="", way=None,
        offers_passkey=offers_passkey, now=NOW,
    )  # fmt: skip
    after = machine._replace(after, entity_id=entity_id)
    return after if outcome is None else machine.with_outcome(at, after, outcome, now=NOW)


def over(at: Interaction, outcome: InteractionOutcome = InteractionOutcome.CODE) -> Interaction:
    return machine.with_outcome(at, at, outcome, now=NOW)


def answered(at: Interaction, entity_id: str = "", outcome: InteractionOutcome | None = None) -> Interaction:
    after = machine._replace(machine.offer_answered(at), entity_id=entity_id)
    return after if outcome is None else machine.with_outcome(at, after, outcome, now=NOW)


AT_ONCE = (SignInEvent.PASSKEY, SignInEvent.SIMULATED)
"""both factors in one step: by a passkey, and a test person's in a demo (D66)"""
MOVES: dict[tuple[SignInEvent, SignInState], list[Callable[[Interaction], Interaction]]] = {
    (SignInEvent.PASSWORD, SignInState.SECOND_FACTOR): [password],
    **{(event, SignInState.ENTITY): [factor] for event in AT_ONCE},
    **{(event, SignInState.CONSENT): [lambda at: factor(at, "E1")] for event in AT_ONCE},
    **{(event, SignInState.ENDED): [lambda at: factor(at, outcome=InteractionOutcome.ACCOUNT)] for event in AT_ONCE},
    (SignInEvent.CODE, SignInState.ENTITY): [factor],
    (SignInEvent.CODE, SignInState.CONSENT): [lambda at: factor(at, "E1")],
    (SignInEvent.CODE, SignInState.ENDED): [
        lambda at: factor(at, "E1", InteractionOutcome.CODE),
        lambda at: factor(at, "", InteractionOutcome.REFUSED),
    ],
    (SignInEvent.CODE, SignInState.OFFER): [lambda at: factor(at, "E1", offers_passkey=True)],
    **{(event, SignInState.ENTITY): [answered] for event in (SignInEvent.MAKE_PASSKEY, SignInEvent.NOT_NOW)},
    **{
        (event, SignInState.CONSENT): [lambda at: answered(at, "E1")]
        for event in (SignInEvent.MAKE_PASSKEY, SignInEvent.NOT_NOW)
    },
    **{
        (event, SignInState.ENDED): [lambda at: answered(at, "E1", InteractionOutcome.CODE)]
        for event in (SignInEvent.MAKE_PASSKEY, SignInEvent.NOT_NOW)
    },
    (SignInEvent.WAY, SignInState.SECOND_FACTOR): [
        lambda at: machine.other_way(at, SecondFactorMethod.RECOVERY),
        lambda at: machine.with_mailed_code(at, now=NOW),
    ],
    (SignInEvent.MISSES, SignInState.ENDED): [lambda at: over(at, InteractionOutcome.REFUSED)],
    (SignInEvent.ENTITY, SignInState.CONSENT): [lambda at: machine.with_entity(at, "E1")],
    (SignInEvent.ENTITY, SignInState.ENDED): [
        lambda at: machine.with_outcome(at, machine.with_entity(at, "E1"), InteractionOutcome.CODE, now=NOW)
    ],
    (SignInEvent.CONSENT, SignInState.ENDED): [
        lambda at: machine.with_outcome(at, machine.with_consent_given(at), InteractionOutcome.CODE, now=NOW)
    ],
    (SignInEvent.CONFIRM, SignInState.ENDED): [over],
    (SignInEvent.OTHER_ACCOUNT, SignInState.PASSWORD): [machine.without_user],
    (SignInEvent.CANCEL, SignInState.ENDED): [lambda at: over(at, InteractionOutcome.REFUSED)],
}
"""what a flow writes for an event, by the state that it leads to"""


def state_of(
    interaction: Interaction, *, now: float = NOW, usable: bool = True, asks_consent: bool = True
) -> SignInState:
    return machine.state(interaction, now=now, usable=usable, asks_consent=asks_consent)


EXAMPLES: dict[SignInState, Interaction] = {
    SignInState.PASSWORD: BEGUN,
    SignInState.SECOND_FACTOR: password(BEGUN),
    SignInState.OFFER: factor(password(BEGUN), "E1", offers_passkey=True),
    SignInState.ENTITY: factor(password(BEGUN)),
    SignInState.CONSENT: factor(password(BEGUN), "E1"),
    SignInState.CONFIRM: machine.with_consent_given(factor(password(BEGUN), "E1")),
    SignInState.ENDED: over(BEGUN),
}


@pytest.mark.parametrize("state", EXAMPLES, ids=lambda state: state.value)
def test_a_state_follows_from_what_is_known(state: SignInState) -> None:
    """D15"""
    assert state_of(EXAMPLES[state]) is state


@pytest.mark.parametrize(
    "state", [each for each in EXAMPLES if each is not SignInState.ENDED], ids=lambda state: state.value
)
def test_whatever_is_open_expires_and_what_has_ended_stays_so(state: SignInState) -> None:
    """D15"""
    assert state_of(EXAMPLES[state], now=NOW + INTERACTION_SECONDS) is SignInState.EXPIRED
    assert TRANSITIONS[state][SignInEvent.EXPIRY] == {SignInState.EXPIRED}
    assert state_of(EXAMPLES[SignInState.ENDED], now=NOW + 10 * INTERACTION_SECONDS) is SignInState.ENDED


def test_an_entity_that_can_no_longer_be_used_is_chosen_again() -> None:
    """D17, D50: also after consent."""
    for state in (SignInState.CONSENT, SignInState.CONFIRM):
        assert state_of(EXAMPLES[state], usable=False) is SignInState.ENTITY


def test_consent_is_asked_for_only_if_it_has_a_page() -> None:
    """D29"""
    assert state_of(EXAMPLES[SignInState.CONSENT], asks_consent=False) is SignInState.CONFIRM


_TAKEN = [
    (state, event, after)
    for state, events in TRANSITIONS.items()
    for event in events
    for after in sorted(events[event], key=lambda each: each.value)
]
_MADE = [each for each in _TAKEN if each[1] not in (SignInEvent.EXPIRY, SignInEvent.LAPSE, SignInEvent.EXTEND)]


@pytest.mark.parametrize(("state", "event", "after"), _MADE, ids=lambda each: each.value)
def test_each_transition_of_the_table_is_made_by_a_move_that_claims_one_step(
    state: SignInState, event: SignInEvent, after: SignInState
) -> None:
    """D15: the serial rises by one, however many states one form passes, so that one claim is enough."""
    before = EXAMPLES[state]
    for move in MOVES[event, after]:
        moved = move(before)
        assert state_of(moved) is after
        assert moved.serial == before.serial + 1


@pytest.mark.parametrize(
    "state", [each for each in EXAMPLES if each is not SignInState.ENDED], ids=lambda state: state.value
)
def test_more_time_leaves_the_state_as_it_is_and_ends_after_ten_times(state: SignInState) -> None:
    """D15, WCAG 2.2.1"""
    at = EXAMPLES[state]
    for number in range(INTERACTION_EXTENSIONS):
        assert machine.extendable(at)
        moment = NOW + 500 * (number + 1)
        at = machine.with_more_time(at, now=moment)
        assert state_of(at, now=moment + INTERACTION_SECONDS - 1) is state
    assert not machine.extendable(at)


@pytest.mark.parametrize(
    "state",
    [SignInState.SECOND_FACTOR, SignInState.OFFER, SignInState.ENTITY, SignInState.CONSENT, SignInState.CONFIRM],
    ids=lambda state: state.value,
)
def test_a_lapse_leaves_nobody_signed_in_and_nothing_of_theirs(state: SignInState) -> None:
    """D50: but how many codes were sent, which is part of each."""
    at = machine._replace(EXAMPLES[state], mails=2, mailed_at=5)
    assert TRANSITIONS[state][SignInEvent.LAPSE] == {SignInState.PASSWORD}
    after = at.anonymous
    assert state_of(after) is SignInState.PASSWORD
    assert after == machine._replace(BEGUN, serial=at.serial, mails=2)


_EVENTS = [event for event in SignInEvent if event not in (SignInEvent.EXPIRY, SignInEvent.LAPSE)]


@pytest.mark.parametrize("state", SignInState, ids=lambda state: state.value)
def test_an_event_that_a_state_does_not_take_is_a_stale_step(state: SignInState) -> None:
    """D15: whoever sends it is shown the page that is current."""
    taken = set()
    for event in _EVENTS:
        with suppress(StaleStep):
            machine.require(state, event)
            taken.add(event)
    assert taken == set(_EVENTS) & set(TRANSITIONS[state])


def test_an_ended_sign_in_takes_nothing() -> None:
    """D15"""
    assert TRANSITIONS[SignInState.ENDED] == {}
    assert TRANSITIONS[SignInState.EXPIRED] == {}


@given(st.lists(st.sampled_from([*MOVES]), max_size=12))
def test_whatever_the_order_of_events_a_sign_in_is_only_in_states_that_the_table_allows(
    events: list[tuple[SignInEvent, SignInState]],
) -> None:
    """D15, D45: nobody gets past a factor by sending forms in another order."""
    at = BEGUN
    shown: set[SignInEvent] = set()
    for event, after in events:
        state = state_of(at)
        if event not in TRANSITIONS[state] or after not in TRANSITIONS[state][event]:
            continue
        at = MOVES[event, after][0](at)
        shown = set() if event is SignInEvent.OTHER_ACCOUNT else shown | {event}
        assert state_of(at) in TRANSITIONS[state][event]
        if at.outcome is InteractionOutcome.CODE:
            assert shown.intersection(AT_ONCE) or {SignInEvent.PASSWORD, SignInEvent.CODE} <= shown


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
    at = machine._replace(EXAMPLES[SignInState.ENTITY], request=request, made_session_id=made)
    assert machine.holds(at, same_factors=same_factors, session_lives=lives, now=NOW + age) is expected


def test_another_password_or_another_app_gives_another_fingerprint() -> None:
    """D50: a spent step of the app does not."""
    before = machine.fingerprint(CREDENTIALS)
    assert machine.fingerprint(machine._replace(CREDENTIALS, totp_last_step=7)) == before
    assert machine.fingerprint(machine._replace(CREDENTIALS, password_hash="other")) != before
    assert machine.fingerprint(machine._replace(CREDENTIALS, totp_secret="other")) != before
