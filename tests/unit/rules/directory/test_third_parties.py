"""A grant's states, and which side leads from one to the next (D56)."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.directory.records import ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.third_parties import (
    SIDES,
    TRANSITIONS,
    AuthorisationEvent,
    AuthorisationSide,
    AuthorisationState,
    event_by,
    events,
    narrows,
    sides,
    without_grant,
)
from corpid.rules.directory.values import Parameter
from tests.unit.rules.directory.test_access import ACTORS, administering

YEAR = (Parameter(name="Year", value="2026"), Parameter(name="Year", value="2027"))
ACCEPTED = ThirdPartyGrant(
    client_entity_id="A1",
    entity_id="B2",
    service_id="S",
    start_date="2026-01-01",
    end_date="2026-12-31",
    parameters=YEAR,
)
OFFERED = replace(ACCEPTED, state="offered")
NARROWER = replace(ACCEPTED, end_date="2026-06-30")
WIDER = replace(ACCEPTED, end_date="2027-06-30")
ROW = ThirdPartyAssignment(
    user_id="u", entity_id="B2", client_entity_id="A1", service_id="S", role="R", parameters=YEAR
)


def test_every_state_and_event_is_decided() -> None:
    """The whole table."""
    taken = {
        (state, event): TRANSITIONS[state].get(event)
        for state, event in product(AuthorisationState, AuthorisationEvent)
    }
    assert {key: state for key, state in taken.items() if state} == {
        (AuthorisationState.NONE, AuthorisationEvent.OFFER): AuthorisationState.OFFERED,
        (AuthorisationState.OFFERED, AuthorisationEvent.OFFER): AuthorisationState.OFFERED,
        (AuthorisationState.OFFERED, AuthorisationEvent.ACCEPT): AuthorisationState.ACCEPTED,
        (AuthorisationState.OFFERED, AuthorisationEvent.DECLINE): AuthorisationState.NONE,
        (AuthorisationState.OFFERED, AuthorisationEvent.WITHDRAW): AuthorisationState.NONE,
        (AuthorisationState.ACCEPTED, AuthorisationEvent.OFFER): AuthorisationState.OFFERED,
        (AuthorisationState.ACCEPTED, AuthorisationEvent.NARROW): AuthorisationState.ACCEPTED,
        (AuthorisationState.ACCEPTED, AuthorisationEvent.END): AuthorisationState.NONE,
    }
    assert set(SIDES) == set(AuthorisationEvent)


@pytest.mark.parametrize(
    ("was", "becomes", "client_entity", "third_party"),
    [
        (None, OFFERED, AuthorisationEvent.OFFER, None),
        (None, ACCEPTED, None, None),
        (OFFERED, replace(WIDER, state="offered"), AuthorisationEvent.OFFER, None),
        (OFFERED, ACCEPTED, None, AuthorisationEvent.ACCEPT),
        (OFFERED, WIDER, None, None),
        (OFFERED, NARROWER, None, None),
        (OFFERED, None, AuthorisationEvent.WITHDRAW, AuthorisationEvent.DECLINE),
        (ACCEPTED, NARROWER, AuthorisationEvent.NARROW, None),
        (ACCEPTED, WIDER, None, None),
        (ACCEPTED, replace(WIDER, state="offered"), AuthorisationEvent.OFFER, None),
        (ACCEPTED, None, AuthorisationEvent.END, AuthorisationEvent.END),
    ],
    ids=str,
)
def test_a_change_is_the_event_of_one_side_or_of_none(
    was: ThirdPartyGrant | None,
    becomes: ThirdPartyGrant | None,
    client_entity: AuthorisationEvent | None,
    third_party: AuthorisationEvent | None,
) -> None:
    """Nobody accepts for the other side, nor terms that were not offered, and nobody widens alone."""
    assert event_by(AuthorisationSide.CLIENT_ENTITY, was, becomes) is client_entity
    assert event_by(AuthorisationSide.THIRD_PARTY, was, becomes) is third_party
    assert events(was, becomes) == {event for event in (client_entity, third_party) if event}


@pytest.mark.parametrize("role", ["owner", "administrator", "API client of an entity"])
@pytest.mark.parametrize(
    ("was", "becomes", "entity_id", "allowed"),
    [
        (None, OFFERED, "A1", True),
        (None, OFFERED, "B2", False),
        (None, ACCEPTED, "A1", False),
        (None, ACCEPTED, "B2", False),
        (OFFERED, ACCEPTED, "A1", False),
        (OFFERED, ACCEPTED, "B2", True),
        (OFFERED, WIDER, "B2", False),
        (ACCEPTED, NARROWER, "A1", True),
        (ACCEPTED, NARROWER, "B2", False),
        (ACCEPTED, WIDER, "A1", False),
        (ACCEPTED, WIDER, "B2", False),
        (OFFERED, ACCEPTED, "C3", False),
    ],
)
def test_an_entity_speaks_for_its_own_side_only(
    role: str, was: ThirdPartyGrant | None, becomes: ThirdPartyGrant, entity_id: str, allowed: bool
) -> None:
    actor = replace(ACTORS[role], entity_id=entity_id)  # type: ignore[index]
    thing = Object(kind="grant", entity_id="A1", other_entity_id="B2", sides=sides(was, becomes))
    if allowed:
        authorise(actor, "write", thing)
        return
    with pytest.raises(Forbidden):
        authorise(actor, "write", thing)


@pytest.mark.parametrize("entity_id", ["A1", "B2"])
def test_either_side_ends_it(entity_id: str) -> None:
    authorise(
        administering("owner", entity_id=entity_id),
        "delete",
        Object(kind="grant", entity_id="A1", other_entity_id="B2"),
    )


def test_an_offer_allows_nothing() -> None:
    assert ACCEPTED.allows(ROW)
    assert OFFERED.fits(ROW)
    assert not OFFERED.allows(ROW)
    assert not OFFERED.covers(replace(ROW, start_date="2026-02-01", end_date="2026-02-02"))


@pytest.mark.parametrize(
    "becomes",
    [
        replace(ACCEPTED, start_date="2025-12-31"),
        replace(ACCEPTED, end_date="9999-12-31"),
        replace(ACCEPTED, parameters=()),
        replace(ACCEPTED, parameters=(*YEAR, Parameter(name="Year", value="2028"))),
        replace(ACCEPTED, parameters=(Parameter(name="Note", value="x"),)),
        replace(ACCEPTED, role="R"),
    ],
    ids=["earlier", "longer", "parameter freed", "value added", "parameter replaced", "another role"],
)
def test_terms_that_are_not_within_the_former_ones_are_wider(becomes: ThirdPartyGrant) -> None:
    assert not narrows(ACCEPTED, becomes)


DAYS = st.sampled_from(["0001-01-01", "2026-01-01", "2026-06-30", "9999-12-31"])
VALUES = st.lists(
    st.builds(Parameter, name=st.sampled_from(["Year", "Note"]), value=st.sampled_from(["1", "2"])), max_size=3
).map(tuple)
GRANTS = st.builds(
    ThirdPartyGrant,
    client_entity_id=st.just("A1"), entity_id=st.just("B2"), service_id=st.just("S"),
    start_date=DAYS, end_date=DAYS, parameters=VALUES,
)  # fmt: skip
ROWS = st.builds(
    ThirdPartyAssignment,
    user_id=st.just("u"), entity_id=st.just("B2"), client_entity_id=st.just("A1"), service_id=st.just("S"),
    start_date=DAYS, end_date=DAYS, parameters=VALUES,
)  # fmt: skip


@given(was=GRANTS, becomes=GRANTS, row=ROWS)
def test_narrower_terms_cover_nothing_that_was_not_covered(
    was: ThirdPartyGrant, becomes: ThirdPartyGrant, row: ThirdPartyAssignment
) -> None:
    """Whatever is effective without the third party's word was accepted before."""
    assert not (narrows(was, becomes) and becomes.covers(row)) or was.covers(row)


def test_roles_that_another_accepted_grant_allows_stay() -> None:
    """Also if on fewer days: its days are cut, as ever."""
    other = replace(ACCEPTED, ref="two", end_date="2026-02-01")
    elsewhere = replace(ROW, parameters=())
    rows = [ROW, elsewhere]
    assert without_grant(ACCEPTED, [], rows) == [ROW]
    assert without_grant(ACCEPTED, [ACCEPTED], rows) == [ROW]
    assert without_grant(ACCEPTED, [other], rows) == []
    assert without_grant(ACCEPTED, [replace(other, state="offered")], rows) == [ROW]
