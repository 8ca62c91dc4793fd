"""`corpid approval`: the operator decides where an entity's own people cannot (D54, D55)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.provisioning import add_token
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.access_review import AccessReview
from corpid.rules.directory.records import Assignment, Change, Membership
from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

WHY = ("--reason", "Ticket 4711")
STRICT = ("entity", "update", "209900042K", "--approvals", "roles")


def request(terminal: Terminal, role: str = "Filer") -> str:
    """What Rina, who owns the entity, asks for."""

    async def ask(stores: Stores) -> str:
        names = {name: await stores.registry.directory.user_by_name(name) for name in ("rina", "arjun")}
        rina, arjun = (user.user_id for user in names.values() if user is not None)
        now = stores.clock()
        actor = await load_administrator(stores.registry, rina, "209900042K", auth_time=now, now=now)
        row = Assignment(user_id=arjun, entity_id="209900042K", service_id="PERMITS", role=role)
        change = Change(None, row)
        made = await write_changes(stores.registry, actor, [change], asking=RequestDetails("Covers for me", now, role))
        assert made is not None
        return made.request_id

    return terminal.look(ask)


def acted(terminal: Terminal, made: str) -> tuple[str, str]:
    """Arjun declines a request, makes a token and begins a review, which Mei signed off before; who they are."""

    async def act(stores: Stores) -> tuple[str, str]:
        people = {name: await stores.registry.directory.user_by_name(name) for name in ("arjun", "mei")}
        arjun, mei = (user.user_id for user in people.values() if user is not None)
        registry, now = stores.registry, stores.clock()
        actor = await load_administrator(registry, arjun, "209900042K", auth_time=now, now=now)
        await approvals.decline_request(registry, made, actor=actor, reason="r", now=now)
        await add_token(registry, "209900042K", "HR", days=9, token="t" * 43, token_id="t", actor=actor, now=now)
        operator = f"operator:{mei}"
        review = AccessReview(
            entity_id="209900042K", due_at=9, remind_at=9, began_at=1, began_by=f"user:{arjun}", signed_off_at=1,
            signed_off_by=operator,
        )  # fmt: skip
        await registry.access_reviews.add([review])
        await registry.audit.write(AuditEvent(actor=operator, action="entity.update", object="C3"), now=now)
        return arjun, mei

    return terminal.look(act)


def renamed(terminal: Terminal, user: str) -> str:
    """Rina's request for somebody whose name changes then."""

    async def ask(stores: Stores) -> str:
        rina = await stores.registry.directory.user_by_name("rina")
        assert rina is not None
        now = stores.clock()
        actor = await load_administrator(stores.registry, rina.user_id, "209900042K", auth_time=now, now=now)
        change = Change(None, Assignment(user_id=user, entity_id="209900042K", service_id="PERMITS", role="Filer"))
        made = await write_changes(stores.registry, actor, [change], asking=RequestDetails("r", now, "r"))
        [held] = (await stores.registry.directory.read(Membership, [(user, "209900042K")])).values()
        await stores.registry.directory.write([Change(held, replace(held, name="Gina Tan"))])
        assert made is not None
        return made.request_id

    return terminal.look(ask)


def test_a_request_is_listed_shown_and_approved(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done(*STRICT)
    assert "approvals            roles\n" in terminal.done("entity", "show", "209900042K")
    assert terminal.done("approval", "list") == "Requests: none.\n"
    assert "wait for approval" not in terminal.done("entity", "show", "209900042K")
    made = request(terminal)
    assert "Changes wait for approval: `corpid approval list --entity" in terminal.done("entity", "show", "209900042K")
    [listed] = json.loads(terminal.done("approval", "list", "--entity", "209900042K", "--json"))["requests"]
    assert (listed["request"], listed["requester_name"], listed["state"]) == (made, "rina (Rina Example)", "pending")
    shown = terminal.done("approval", "show", made)
    assert "Covers for me" in shown
    assert "+ assignment: arjun for 209900042K at PERMITS as Filer\n" in shown
    assert shown.endswith("Would be: 1 added.\n")
    assert "say why" in terminal.refused("approval", "approve", made)
    assert terminal.done(*WHY, "approval", "approve", made) == "The request is approved and carried out.\n"
    assert terminal.look(last_event)[0] == "approval.approve"
    assert "already" in terminal.refused(*WHY, "approval", "approve", made)
    assert "May act as Filer at PERMITS" in terminal.done("user", "show", "arjun")
    assert terminal.done("approval", "list") == "Requests: none.\n"
    assert json.loads(terminal.done("approval", "show", made, "--json"))["decided_reason"] == "Ticket 4711"
    assert terminal.done("approval", "show", made).endswith("Done: 1 added.\n")


def test_who_decided_reviewed_or_made_a_token_is_named_by_their_account(terminal: Terminal) -> None:
    """D68: beside the identifier, for programs; with the name that the entity wrote, which is anybody's."""
    fill(terminal)
    terminal.done(*STRICT)
    terminal.done("administrator", "update", "arjun", "209900042K", "--level", "owner")
    made = request(terminal)
    arjun, mei = acted(terminal, made)
    of, review = ("--entity", "209900042K"), ("entity", "review", "209900042K")
    shown = [
        terminal.done(*command) for command in (("approval", "show", made), review, ("provisioning-token", "list", *of))
    ]
    assert [each for each in shown if "arjun" not in each or arjun in each] == []
    assert "by mei\n" in shown[1]
    assert "mei " in terminal.done("audit", "list", "--last", "1")
    decided = json.loads(terminal.done("approval", "show", made, "--json"))
    assert (decided["decided_by"], decided["decided_by_name"]) == (f"user:{arjun}", "arjun")
    reviewed = json.loads(terminal.done(*review, "--json"))
    assert (reviewed["began_by"], reviewed["began_by_name"]) == (f"user:{arjun}", "arjun")
    assert (reviewed["signed_off_by"], reviewed["signed_off_by_name"]) == (f"operator:{mei}", "mei")
    [token] = json.loads(terminal.done("provisioning-token", "list", *of, "--json"))["tokens"]
    assert (token["created_by"], token["created_by_name"]) == (f"user:{arjun}", "arjun")


def test_a_removed_person_who_decided_reviewed_or_made_a_token_is_named_as_pages_name_them(terminal: Terminal) -> None:
    """D61, D68: the identifier stays, for programs."""
    fill(terminal)
    terminal.done(*STRICT)
    terminal.done("administrator", "update", "arjun", "209900042K", "--level", "owner")
    made = request(terminal)
    arjun, _ = acted(terminal, made)
    terminal.done(*WHY, "user", "remove", "arjun")
    of, review = ("--entity", "209900042K"), ("entity", "review", "209900042K")
    assert " by (removed person)\n" in terminal.done("approval", "show", made)
    decided = json.loads(terminal.done("approval", "show", made, "--json"))
    assert (decided["decided_by"], decided["decided_by_name"]) == (f"user:{arjun}", "(removed person)")
    assert ", by (removed person)\n" in terminal.done(*review)
    assert json.loads(terminal.done(*review, "--json"))["began_by_name"] == "(removed person)"
    assert "(removed person)" in terminal.done("provisioning-token", "list", *of)
    [token] = json.loads(terminal.done("provisioning-token", "list", *of, "--json"))["tokens"]
    assert token["created_by_name"] == "(removed person)"


def test_somebody_invited_is_named_by_the_address_everywhere(terminal: Terminal) -> None:
    """D68: a list of people, an entity's administrators, and the audit say that it is an invitation."""
    fill(terminal)
    terminal.done("membership", "invite", "--entity", "C3", "--name", "Gina Teo", "--email", "Gina@c3.example")
    [invited] = json.loads(terminal.done("membership", "list", "--entity", "C3", "--json"))["members"]
    label = "(invited) gina@c3.example"
    level = ("administrator", "add", invited["user"], "C3")
    assert f"+ administrator: {label} at C3" in terminal.done(*level, "owner")
    assert f"~ administrator: {label} at C3" in terminal.done(*level, "administrator")
    assert f"administrator: {label} at C3" in terminal.done("administrator", "show", invited["user"], "C3")
    assert f"- administrator: {label} at C3" in terminal.done(
        "membership", "remove", invited["user"], "C3", "--dry-run"
    )
    assert f"{label} (administrator)" in terminal.done("entity", "show", "C3")
    for people in (terminal.done("user", "list", "--entity", "C3"), terminal.done("user", "list")):
        [line] = [each for each in people.splitlines() if "gina@c3.example" in each]
        assert ("invited" in line, invited["user"] in people) == (True, False)
    assert f"{label} (Gina Teo) C3" in terminal.done("audit", "list", "--last", "1")
    told = json.loads(terminal.done("audit", "list", "--json", "--last", "1"))
    assert told["people"] == {invited["user"]: f"{label} (Gina Teo)"}


def test_a_request_for_somebody_invited_says_then_and_now(terminal: Terminal) -> None:
    """D68: for people and for programs."""
    fill(terminal)
    terminal.done(*STRICT)
    invite = ("membership", "invite", "--entity", "209900042K", "--name", "Gina Teo", "--email", "gina@c3.example")
    terminal.done(*invite)
    found = json.loads(terminal.done("membership", "list", "--entity", "209900042K", "--json"))["members"]
    [user] = [each["user"] for each in found if each["state"] == "invited"]
    made, was, is_now = (
        renamed(terminal, user),
        "(invited) gina@c3.example (Gina Teo)",
        "(invited) gina@c3.example (Gina Tan)",
    )
    assert f"{was} → {is_now}" in terminal.done("approval", "show", made)
    shown = json.loads(terminal.done("approval", "show", made, "--json"))
    assert shown["name_changes"] == [{"was": was, "now": is_now}]
    assert f"+ assignment: {is_now} for" in terminal.done("approval", "show", made)


def test_a_request_is_declined_and_stays_in_the_list_of_those_decided(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done(*STRICT)
    made = request(terminal)
    assert json.loads(terminal.done(*WHY, "approval", "decline", made, "--json"))["state"] == "declined"
    assert terminal.look(last_event)[0] == "approval.decline"
    assert "declined" in terminal.done("approval", "list", "--decided")
    assert "already declined" in terminal.refused(*WHY, "approval", "decline", made)


def test_a_request_that_is_no_longer_right_says_why(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done(*STRICT)
    made = request(terminal)
    terminal.done("apply", terminal.file("services: {PERMITS: {enabled: false}}"))
    assert "the service PERMITS is disabled" in terminal.refused(*WHY, "approval", "approve", made)
    terminal.done("role", "add", "arjun", "209900042K", "PERMITS", "Filer")
    refused = terminal.refused(*WHY, "approval", "approve", made)
    assert "assignment: arjun for 209900042K at PERMITS as Filer" in refused


def test_a_role_given_by_command_bypasses_approval(terminal: Terminal) -> None:
    """D55: and the history says so."""
    fill(terminal)
    terminal.done(*STRICT)
    terminal.done("role", "add", "arjun", "209900042K", "PERMITS", "Filer")
    assert terminal.look(last_event)[::2] == ("assignment.add", {"approval": "bypassed"})
    terminal.done("role", "remove", "arjun", "209900042K", "PERMITS")
    terminal.done("entity", "update", "209900042K", "--approvals", "none")
    terminal.done("role", "add", "arjun", "209900042K", "PERMITS", "Filer")
    assert terminal.look(last_event)[2] == {}


def test_an_operator_is_told_that_nobody_there_can_approve(terminal: Terminal) -> None:
    fill(terminal)
    assert "209900042K has fewer than two people who can approve" in terminal.run(*STRICT).stderr
    terminal.done("entity", "update", "209900042K", "--approvals", "none")
    terminal.done("administrator", "add", "arjun", "209900042K", "administrator")
    assert terminal.run(*STRICT).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("approval", "show", "nothing"), "there is no such request: `corpid approval list` shows those that wait"),
        (("approval", "approve", "\udcff"), "there is no such request"),
        (("approval", "list", "--after", "a/b"), "--after is not a place in this list"),
        (("entity", "update", "209900042K", "--approvals", "some"), "approvals: 'some' is not one of"),
    ],
)
def test_what_cannot_be_is_a_sentence(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    fill(terminal)
    assert reason in terminal.refused(*WHY, *arguments)
