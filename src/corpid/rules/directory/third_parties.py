"""A third party's grant as a state machine: offered, accepted, ended (D56).

`TRANSITIONS` lists the events that a state accepts, and the state after each; `SIDES` who may bring an event about
alone. A grant that is declined, withdrawn or ended is no record any more: its history is in the audit. An accepted
grant never becomes wider without the third party: other terms of it that are not narrower make it an offer again. A
directory file and an operator speak for both sides, so they may write a grant in either state.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.values import parameter_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpid.rules.directory.records import ThirdPartyAssignment, ThirdPartyGrant


class AuthorisationState(Enum):
    NONE = "none"
    """there is none, or none any more"""
    OFFERED = "offered"
    """it gives nothing yet"""
    ACCEPTED = "accepted"
    """the third party may give its people roles under it"""


class AuthorisationEvent(Enum):
    """The decision of one side."""

    OFFER = "offer"
    """new terms, or other ones than before"""
    ACCEPT = "accept"
    """the terms as they are offered"""
    DECLINE = "decline"
    WITHDRAW = "withdraw"
    """before it was accepted"""
    NARROW = "narrow"
    """less than was accepted: effective at once"""
    END = "end"
    """effective at once, with the roles under it"""


class AuthorisationSide(Enum):
    """A party to a grant."""

    CLIENT_ENTITY = "client entity"
    THIRD_PARTY = "third party"


TRANSITIONS: Final[Mapping[AuthorisationState, Mapping[AuthorisationEvent, AuthorisationState]]] = {
    AuthorisationState.NONE: {AuthorisationEvent.OFFER: AuthorisationState.OFFERED},
    AuthorisationState.OFFERED: {
        AuthorisationEvent.OFFER: AuthorisationState.OFFERED,
        AuthorisationEvent.ACCEPT: AuthorisationState.ACCEPTED,
        AuthorisationEvent.DECLINE: AuthorisationState.NONE,
        AuthorisationEvent.WITHDRAW: AuthorisationState.NONE,
    },
    AuthorisationState.ACCEPTED: {
        AuthorisationEvent.OFFER: AuthorisationState.OFFERED,
        AuthorisationEvent.NARROW: AuthorisationState.ACCEPTED,
        AuthorisationEvent.END: AuthorisationState.NONE,
    },
}
SIDES: Final[Mapping[AuthorisationEvent, frozenset[AuthorisationSide]]] = {
    AuthorisationEvent.OFFER: frozenset({AuthorisationSide.CLIENT_ENTITY}),
    AuthorisationEvent.ACCEPT: frozenset({AuthorisationSide.THIRD_PARTY}),
    AuthorisationEvent.DECLINE: frozenset({AuthorisationSide.THIRD_PARTY}),
    AuthorisationEvent.WITHDRAW: frozenset({AuthorisationSide.CLIENT_ENTITY}),
    AuthorisationEvent.NARROW: frozenset({AuthorisationSide.CLIENT_ENTITY}),
    AuthorisationEvent.END: frozenset(AuthorisationSide),
}


def state_of(grant: ThirdPartyGrant | None) -> AuthorisationState:
    """Return the state of a grant, of none if there is none. Source: D56."""
    return AuthorisationState.NONE if grant is None else AuthorisationState(grant.state)


def events(was: ThirdPartyGrant | None, becomes: ThirdPartyGrant | None) -> frozenset[AuthorisationEvent]:
    """Return the events that lead from one grant to the other.

    None if no side alone may bring it about. Source: D56
    """
    after = state_of(becomes)
    found = {event for event, state in TRANSITIONS[state_of(was)].items() if state is after}
    if was is not None and becomes is not None:
        unmet = {
            AuthorisationEvent.ACCEPT: not same_terms(was, becomes),
            AuthorisationEvent.NARROW: not narrows(was, becomes),
        }
        found -= {event for event, fails in unmet.items() if fails}
    return frozenset(found)


def sides(was: ThirdPartyGrant | None, becomes: ThirdPartyGrant | None) -> frozenset[AuthorisationSide]:
    """Return the sides each of which may make this change alone. Source: D56."""
    return frozenset[AuthorisationSide]().union(*(SIDES[event] for event in events(was, becomes)))


def event_by(
    side: AuthorisationSide, was: ThirdPartyGrant | None, becomes: ThirdPartyGrant | None
) -> AuthorisationEvent | None:
    """Return the event of a change that a side makes.

    None if this side alone may not bring it about. Source: D56
    """
    return next((event for event in events(was, becomes) if side in SIDES[event]), None)


def same_terms(one: ThirdPartyGrant, other: ThirdPartyGrant) -> bool:
    """Return whether two grants differ in nothing but their state. Source: D56."""
    return _terms(one) == _terms(other)


def _terms(grant: ThirdPartyGrant) -> tuple[object, ...]:
    return grant.key, grant.start_date, grant.end_date, grant.parameters


def narrows(was: ThirdPartyGrant, becomes: ThirdPartyGrant) -> bool:
    """Return whether everything that a grant allows was allowed before.

    A parameter that is not named is free. Source: D56, R-21
    """
    named = {parameter.name for parameter in was.parameters}
    kept = all(
        values and values <= parameter_values(was.parameters, name)
        for name in named
        for values in [parameter_values(becomes.parameters, name)]
    )
    within = was.start_date <= becomes.start_date and becomes.end_date <= was.end_date
    return was.key == becomes.key and within and kept


def without_grant(
    ended: ThirdPartyGrant, others: Iterable[ThirdPartyGrant], rows: Iterable[ThirdPartyAssignment]
) -> list[ThirdPartyAssignment]:
    """Return the roles that end with a grant.

    Those under it which no other accepted grant allows, if only on some days. Source: D56
    """
    remaining = [grant for grant in others if grant.key != ended.key]
    return [row for row in rows if ended.fits(row) and not any(grant.allows(row) for grant in remaining)]
