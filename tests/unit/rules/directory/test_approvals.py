"""Change requests: their states, and which changes need one (D55)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, get_args

import pytest
from msgspec.structs import replace

from corpid.rules.directory.approvals import (
    LIFETIME_SECONDS,
    TRANSITIONS,
    ApprovalEvent,
    ApprovalState,
    RequestClosed,
    approvers,
    change_needs_approval,
    decide_request,
    stale,
    state_at,
    step,
    unfit,
)
from corpid.rules.directory.document import Current, Kind
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    AppointmentStatus,
    Approvals,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import Parameter
from tests.unit.rules.directory.directory import FILE, after

if TYPE_CHECKING:
    from corpid.rules.directory.access import Level
    from corpid.rules.fields import KeyedRecord

NOW = 1_800_000_000
FIRM = Entity(entity_id="A1", type="UEN", registration_number="A1", country="SG", name="Alpha")
PLAIN = Service(service_id="PLAIN", name="Plain")
STRICT = replace(PLAIN, approval_required=True)
RECORDS: dict[Kind, KeyedRecord] = {
    "assignment": Assignment(
        user_id="u", entity_id="A1", service_id="PLAIN", parameters=(Parameter(name="Year", value="2026"),)
    ),
    "third-party row": ThirdPartyAssignment(user_id="u", entity_id="A1", client_entity_id="C3", service_id="PLAIN"),
    "grant": ThirdPartyGrant(client_entity_id="A1", entity_id="C3", service_id="PLAIN", state="offered"),
    "administrator": Administrator(user_id="u", entity_id="A1", level="sub_administrator", services=("PLAIN",)),
    "membership": Membership(user_id="u", entity_id="A1"),
    "entity": FIRM,
}
PENDING = ChangeRequest(
    request_id="r", entity_id="A1", requester="user:u1", changes=(), reason="Because", created_at=NOW
)


def added(kind: Kind) -> Change:
    return Change(None, RECORDS[kind])


def removed(kind: Kind) -> Change:
    return Change(RECORDS[kind], None)


def test_every_state_and_event_is_decided() -> None:
    """The whole table: a request is decided once."""
    taken = {(state, event): TRANSITIONS[state].get(event) for state, event in product(ApprovalState, ApprovalEvent)}
    assert {key: state for key, state in taken.items() if state} == {
        (ApprovalState.PENDING, ApprovalEvent.APPROVE): ApprovalState.APPROVED,
        (ApprovalState.PENDING, ApprovalEvent.DECLINE): ApprovalState.DECLINED,
        (ApprovalState.PENDING, ApprovalEvent.WITHDRAW): ApprovalState.WITHDRAWN,
        (ApprovalState.PENDING, ApprovalEvent.EXPIRE): ApprovalState.EXPIRED,
    }


@pytest.mark.parametrize("event", ApprovalEvent)
@pytest.mark.parametrize("state", ApprovalState)
def test_a_decision_is_made_in_time_and_once(state: ApprovalState, event: ApprovalEvent) -> None:
    """14 days to the second; only the end of them expires a request."""
    found = replace(PENDING, state=state.value)
    last, over = NOW + LIFETIME_SECONDS - 1, NOW + LIFETIME_SECONDS
    for moment, accepted in ((last, event is not ApprovalEvent.EXPIRE), (over, event is ApprovalEvent.EXPIRE)):
        if state is ApprovalState.PENDING and accepted:
            made = decide_request(found, event, by="user:u2", reason="Seen", now=moment)
            assert (made.state, made.decided_by, made.decided_at) == (
                TRANSITIONS[state][event].value, "user:u2", moment,
            )  # fmt: skip
            continue
        with pytest.raises(RequestClosed) as refused:
            decide_request(found, event, by="user:u2", reason="Seen", now=moment)
        assert refused.value.state is state_at(found, moment)


@pytest.mark.parametrize(
    ("approvals", "service", "waiting"),
    [
        ("none", PLAIN, set()),
        ("none", STRICT, {"assignment", "third-party row", "grant"}),
        ("roles", PLAIN, {"assignment", "third-party row", "grant", "administrator"}),
        ("all", PLAIN, {"assignment", "third-party row", "grant", "administrator", "membership", "entity"}),
    ],
)
def test_the_kind_of_record_says_what_needs_approval(approvals: Approvals, service: Service, waiting: set[str]) -> None:
    entity = replace(FIRM, approvals=approvals)
    assert {kind for kind in RECORDS if change_needs_approval(added(kind), "", entity, service)} == waiting
    at_once = {"grant"}
    assert {kind for kind in RECORDS if change_needs_approval(removed(kind), "", entity, service)} == waiting - at_once
    assert not any(change_needs_approval(added(kind), "", None, None) for kind in RECORDS)


@pytest.mark.parametrize(("level", "waits"), [("", False), ("sub_administrator", True), ("owner", True)])
def test_a_membership_with_a_level_counts_as_an_administrator(level: Level, waits: bool) -> None:
    """The level rests and ends with it: else an approver could be put away without approval."""
    assert change_needs_approval(removed("membership"), level, replace(FIRM, approvals="roles"), None) is waits
    assert not change_needs_approval(removed("membership"), level, FIRM, None)


@pytest.mark.parametrize(
    ("was", "becomes", "steps", "waits"),
    [
        ("none", "roles", 1, False),
        ("none", "all", 2, False),
        ("roles", "none", -1, True),
        ("roles", "all", 1, False),
        ("all", "roles", -1, True),
        ("all", "none", -2, True),
    ],
)
def test_lowering_approvals_needs_approval(was: Approvals, becomes: Approvals, steps: int, waits: bool) -> None:
    before, later = replace(FIRM, approvals=was), replace(FIRM, approvals=becomes)
    change = Change(before, later)
    assert step(change) == steps
    assert change_needs_approval(change, "", before, None) is waits


def test_people_who_can_approve_are_able_owners_and_administrators() -> None:
    held = [Administrator(user_id=level, entity_id="A1", level=level) for level in get_args(AdministratorLevel)]
    assert approvers(AppointmentStatus(record=each, enabled=True) for each in held) == 2
    assert approvers(AppointmentStatus(record=each, enabled=each.level != "owner") for each in held) == 1


def test_a_change_whose_record_differs_is_stale() -> None:
    there = {"membership": {RECORDS["membership"].key: RECORDS["membership"]}}
    assert stale([added("membership")], {}) == []
    assert stale([added("membership")], there) == [added("membership")]  # type: ignore[arg-type]
    assert stale([removed("membership")], there) == []  # type: ignore[arg-type]
    assert stale([removed("membership")], {}) == [removed("membership")]


@pytest.mark.parametrize(
    ("since", "reason"),
    [
        ("services: {PERMIT: {enabled: false}}", "the service PERMIT is disabled"),
        ("entities: {A1: {enabled: false}}", "the entity A1 is disabled"),
        ("services: {PERMIT: {roles: [Checker]}}", "role: 'Maker' is no role of PERMIT; its roles are Checker"),
        ("entities: {}", ""),
    ],
)
def test_the_rules_of_a_file_are_asked_of_a_request(since: str, reason: str) -> None:
    """R-14: as they are when it is approved; people are named."""

    row = Assignment(user_id="id-arjun", entity_id="A1", service_id="PERMIT", role="Maker")
    change = Change(None, row)
    found = unfit([change], Current(records=after(since, after(FILE))), {"id-arjun": "arjun"})
    assert found == ([reason] if reason else [])
