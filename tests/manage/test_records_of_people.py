"""Records say afterwards whom they were about, whatever became of an invitation (D68)."""

from __future__ import annotations

import csv

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.acceptance import accept_with_new_account
from corpid.flows.directory.members import end_member
from corpid.flows.directory.write import write_changes
from corpid.flows.operations import audit
from corpid.rules.audit import INVITED_PERSON, AuditEvent, AuditQuery
from corpid.rules.directory.access import Actor, EntityAdministrator
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import (
    Administrator,
    Change,
    ChangeRequest,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from tests.administration.scene import HARBOUR, begun, change
from tests.administration.test_notices import COMMAND, FILE
from tests.manage.scene import ACME, BANYAN, go, in_portal, portal
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_who_is_meant import INVITED, member, owner, rename
from tests.sign_in.world import World, entity

EVIL = "mallory@evil.example"
GINA = "gina@acme.example (Gina Teo)"
GINAS = replace(ROLE, user_id="f1e2")
GIVEN = Change(None, GINAS)
LEVEL = Administrator(user_id="f1e2", entity_id=ACME, level="owner")


async def approved(made: World) -> ChangeRequest:
    """A role for the invited Gina, which Bob requested and Alice approved."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    found = await requested(made, GIVEN)
    return await approvals.approve_request(
        made.provider.registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock()
    )


async def end(made: World, how: str) -> None:
    """The invitation goes to another address, or is accepted."""
    membership = await member(made, "f1e2")
    if how == "redirected":
        assert await rename(made, membership, "Gina Teo", email=EVIL) is None
    else:
        await accept_with_new_account(
            made.provider.registry, membership, "id-new", user_name="x9", name="Gina Teo", language="", now=made.clock()
        )


@pytest.mark.parametrize("then", ["redirected", "accepted"])
async def test_a_request_says_afterwards_for_whom_it_was_approved(made: World, then: str) -> None:
    """D68: "a change request keeps both as they were", in portal, history and for commands and API."""
    found = await approved(made)
    await end(made, then)
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "Approved" in browser.page.text
    assert f"(invited) {GINA} may act as Maker" in browser.page.text
    await go(made, browser, "history?kind=requests")
    assert f"A request was approved: Give access to (invited) {GINA}: Maker" in browser.page.text
    shown = await approvals.read_request(made.provider.registry, COMMAND, found.request_id, now=made.clock())
    assert GINA in shown.differences[0].subject


@pytest.mark.parametrize("then", ["redirected", "accepted"])
@pytest.mark.parametrize("by", ["administrator", "command", "file"])
async def test_the_history_says_to_which_address_a_role_and_a_level_were_given(made: World, then: str, by: str) -> None:
    """D68: "requested, approved, changed, reviewed or recorded", by whomever."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), INVITED)
    actors: dict[str, Actor] = {"administrator": owner(made, "alice"), "command": COMMAND, "file": FILE}
    level = Change(None, LEVEL)
    await write_changes(made.provider.registry, actors[by], [GIVEN, level])
    await end(made, then)
    browser = await in_portal(made, "history?kind=access")
    assert f"{GINA} got access as Maker" in browser.page.text
    assert (f"{GINA} lost access as Maker" in browser.page.text) is (then == "redirected")
    assert EVIL not in browser.page.text
    await go(made, browser, "history?kind=administrators")
    assert f"{GINA} became an owner" in browser.page.text
    exported = await browser.http.get(portal(made, "history/export?kind=access"))
    rows = list(csv.DictReader(exported.text.removeprefix("\ufeff").splitlines()))
    assert {each["User name"] for each in rows} == {"(invited) gina@acme.example"}


async def test_an_invitation_that_is_taken_back_names_the_address_at_each_entry(made: World) -> None:
    """D68: also what ends with it."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."), placeholder(INVITED), INVITED, GINAS)
    await end_member(made.provider.registry, INVITED.membership_id, actor=owner(made, "alice"))
    browser = await in_portal(made, "history")
    assert f"{GINA} lost access as Maker" in browser.page.text
    assert f"{GINA} can no longer act for the organisation" in browser.page.text


async def test_the_address_in_the_history_is_erased_with_the_person(made: World) -> None:
    """D57: it is a personal detail, also of the invitation that they accepted."""
    await approved(made)
    await end(made, "accepted")
    registry, wanted = made.provider.registry, AuditQuery(user_id="f1e2", actions=("assignment.add",))
    [entry] = await registry.audit.latest(wanted, limit=9)
    assert entry.detail[INVITED_PERSON] == GINA
    await audit.erase_details(registry, "id-new", actor=COMMAND, now=made.clock())
    [entry] = await registry.audit.latest(wanted, limit=9)
    assert INVITED_PERSON not in entry.detail
    assert entry.erased
    browser = await in_portal(made, "history?kind=access")
    assert "gina@acme.example" not in browser.page.text


async def third_party(made: World) -> ThirdPartyGrant:
    """Banyan acts for Acme; Alice administers Acme."""
    await acme(made)
    grant = ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS", role="Maker")
    await made.write(entity(ACME, "Acme Pte. Ltd."), entity(BANYAN, "Banyan Trading"), grant)
    return grant


async def test_a_client_does_not_learn_whom_its_third_party_invited(made: World) -> None:
    """D61: another entity wrote that address; Banyan itself reads it, also once the grant has ended."""
    grant = await third_party(made)
    invited = replace(INVITED, entity_id=BANYAN, membership_id="m-banyan")
    row = ThirdPartyAssignment(
        user_id="f1e2", entity_id=BANYAN, client_entity_id=ACME, service_id="PERMITS", role="Maker"
    )
    await made.write(placeholder(invited), invited)
    registry = made.provider.registry
    await write_changes(registry, COMMAND, [Change(None, row)], planned=True)
    await write_changes(registry, COMMAND, [Change(grant, None)])
    now, found = made.clock(), {}
    for entity_id in (ACME, BANYAN):
        actor = EntityAdministrator(
            user_id="id-alice", entity_id=entity_id, level="owner", services=(), alone=False, auth_time=now, now=now
        )
        query = AuditQuery(entity_id=entity_id, actions=("third_party_assignment.add", "third_party_assignment.remove"))
        part = (await audit.read_part(registry, query, limit=9, actor=actor)).entries
        found[entity_id] = [each.detail.get(INVITED_PERSON) for each in part]
    assert found == {ACME: [None] * 2, BANYAN: [GINA] * 2}


async def test_a_third_partys_person_who_changed_something_is_named_with_their_entity(made: World) -> None:
    """D61, D68: they chose that name themselves, Acme's Bob Lim is called so, too; the user name says who it is."""
    await third_party(made)
    await made.person("mallory", entity(BANYAN, "Banyan Trading"), name="Bob Lim")
    row = ThirdPartyAssignment(
        user_id="id-mallory", entity_id=BANYAN, client_entity_id=ACME, service_id="PERMITS", role="Maker"
    )
    event = AuditEvent(
        actor="user:id-mallory", action="third_party_assignment.add", object="/".join(row.key),
        entity_id=BANYAN, other_entity_id=ACME, detail={"approved_by": "user:id-mallory"},
    )  # fmt: skip
    await made.provider.registry.directory.write([Change(None, row, event)])
    browser = await in_portal(made, "history?kind=third-parties")
    exported = await browser.http.get(portal(made, "history/export?kind=third-parties"))
    [line] = csv.DictReader(exported.text.removeprefix("\ufeff").splitlines())
    assert (line["Who"], line["User name"]) == ("mallory (Bob Lim) of Banyan Trading (200000002A)", "mallory")
    await go(made, browser, f"history/{line['Number']}")
    assert "Approved by mallory (Bob Lim) of Banyan Trading (200000002A)." in browser.page.text


@pytest.mark.parametrize("then", ["accepted", "redirected"])
async def test_the_email_about_a_new_owner_says_who_it_is(made: World, then: str) -> None:
    """D68: an accomplice accepts, or is redirected, within the two minutes in which notices are collected."""
    process = await begun(made)
    registry = made.provider.registry
    invited = replace(INVITED, entity_id=HARBOUR, email="gina@harbour.example", user_name="gina")
    await made.write(placeholder(invited), invited)
    level = replace(LEVEL, entity_id=HARBOUR)
    await change(made, Change(None, level), actor=COMMAND)
    if then == "accepted":
        await accept_with_new_account(
            registry, invited, "id-new", user_name="x9", name="Gina Teo", language="", now=made.clock()
        )
    else:
        moved = replace(invited, email=EVIL)
        await change(
            made, Change(invited, moved),
            actor=COMMAND,
        )  # fmt: skip
    [text] = [each.text.replace("\u2060", "") for each in await process.sent() if each.to == "adam@harbour.example"]
    assert "New owner: (invited) gina@harbour.example (Gina Teo)" in text
    assert ("No longer an owner: (invited) gina@harbour.example (Gina Teo)" in text) is (then == "redirected")
    assert EVIL not in text


async def test_the_email_about_a_new_owner_names_them_as_they_were_when_it_was_made(made: World) -> None:
    """D68: another name of the entity while notices are collected changes nothing."""
    process = await begun(made)
    level = Administrator(user_id="id-mira", entity_id=HARBOUR, level="owner")
    await change(made, Change(None, level))
    await process.notices.round()
    [mira] = (await made.provider.registry.directory.read(Membership, [("id-mira", HARBOUR)])).values()
    await made.write(replace(mira, name="Somebody Else"))
    [text] = [each.text for each in await process.sent() if each.to == "adam@harbour.example"]
    assert "New owner: mira" in text
    assert "Somebody Else" not in text


async def test_a_request_that_the_operator_decided_says_so(made: World) -> None:
    """D61, D68: as in the e-mail about it; who it was on their machine is nobody's business here."""
    await acme(made)
    found = await requested(made)
    operator = replace(COMMAND, reason="r")
    await approvals.decline_request(
        made.provider.registry, found.request_id, actor=operator, reason="r", now=made.clock()
    )
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "Decided by The operator" in browser.page.text
    assert COMMAND.by not in browser.page.text
