"""The history names the person, the invitation and the right of each change (D57, D60, D68)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.flows.directory.acceptance import accept_with_account, accept_with_new_account, decline_membership
from corpid.flows.directory.approvals import approve_request
from corpid.flows.directory.write import guard_records, write_changes
from corpid.rules.directory.access import CommandLine, EntityAdministrator
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import Administrator, Assignment, Change, Service, User
from corpid.rules.directory.values import Parameter, ParameterDefinition
from tests.console.scene import WITHOUT_PASSKEY, in_console
from tests.manage.access_scene import checker, staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, portal
from tests.manage.test_attacks_on_names import free
from tests.manage.test_person_names import INVITED
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import GRANT, ROW, acting, leave, page, three
from tests.manage.test_who_is_meant import INVITED as GINA
from tests.manage.test_who_is_meant import member, owner, rename
from tests.sign_in.world import World, entity, new_world


async def accepted(made: World) -> None:
    """Mallory has accepted Gina's invitation, which had a role."""
    await free(made)
    registry = made.provider.registry
    await write_changes(registry, owner(made), [Change(None, replace(ROLE, user_id=GINA.user_id))])
    mallory = User(user_id="id-mallory", user_name="mallory", name="Mallory Tan")
    await made.write(mallory)
    await accept_with_account(registry, GINA, mallory, now=made.clock())


async def test_the_full_history_of_a_person_has_what_was_given_before_they_accepted(made: World) -> None:
    """D57, D60."""
    await accepted(made)
    browser = await in_portal(made, f"history?person={GINA.membership_id}")
    assert "got access as Maker at Permits" in browser.page.text
    await go(made, browser, "history?person=mallory")
    assert "got access as Maker at Permits" in browser.page.text


async def test_the_history_says_which_invitation_was_accepted(made: World) -> None:
    """D57, D68."""
    await accepted(made)
    browser = await in_portal(made, "history?kind=people")
    assert "accepted the invitation" in browser.page.text
    assert "gina@acme.example" in browser.page.text


async def test_the_client_reads_who_got_access_before_and_after_they_accepted(made: World) -> None:
    """D57, D68: somebody, and then the account; never a removed person."""
    await three(made)
    await made.write(GRANT, placeholder(INVITED), INVITED)
    registry, now = made.provider.registry, made.clock()
    dora = EntityAdministrator(
        user_id="id-dora", entity_id=BANYAN, level="owner", services=(), alone=False, auth_time=now, now=now
    )
    await write_changes(registry, dora, [Change(None, replace(ROW, user_id=INVITED.user_id))])
    browser = await in_portal(made, "history?kind=third-parties")
    assert "got access as Maker at Permits" in browser.page.text
    assert "(removed person)" not in browser.page.text
    gina = User(user_id="id-gina", user_name="ginat", name="Gina Teo")
    await made.write(gina)
    await accept_with_account(registry, INVITED, gina, now=made.clock())
    await go(made, browser, "history?kind=third-parties")
    assert "ginat (Gina Teo)" in browser.page.text
    await go(made, browser, page("grant"))
    assert "(removed person)" not in browser.page.text


async def changed(made: World, *changes: Change) -> None:
    """Bob, who owns Acme, changes something."""
    await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lim")
    await made.person("cora", entity(ACME, "Acme Pte. Ltd."), name="Cora Chan")
    await appoint(made, who="bob")
    for each in changes:
        if each.before is not None:
            await made.write(each.before)
    now = made.clock()
    bob = EntityAdministrator(
        user_id="id-bob", entity_id=ACME, level="owner", services=(), alone=False, auth_time=now, now=now
    )
    await write_changes(made.provider.registry, bob, changes)


async def test_the_history_names_the_authorisation_that_was_changed(made: World) -> None:
    """D56, D57: one organisation can have several at a service."""
    await three(made)
    other = replace(GRANT, role="Checker", sub_entity="Treasury")
    await made.write(GRANT)
    await changed(made, Change(other, replace(other, end_date="2099-01-31")))
    [entry] = await made.audit("grant.update")
    browser = await in_portal(made)
    for shown in ("history?kind=third-parties", f"history/{entry.number}"):
        await go(made, browser, shown)
        assert "was changed" in browser.page.text
        assert {each for each in ("Checker", "Treasury") if each not in browser.page.text} == set(), shown


async def test_the_page_of_an_authorisation_has_its_own_last_changes(made: World) -> None:
    """D56, D57: not those of another one between the same organisations at the same service."""
    await three(made)
    other = replace(GRANT, role="Checker", sub_entity="Treasury")
    await made.write(GRANT)
    await changed(made, Change(other, replace(other, end_date="2099-01-31")))
    browser = await in_portal(made, page("grant"))
    assert "was changed" not in browser.page.text


async def test_the_history_names_the_part_for_which_a_role_was_changed(made: World) -> None:
    """D57, D68: somebody can have a role for several parts."""
    await three(made)
    canteen = Assignment(user_id="id-cora", entity_id=ACME, service_id="PERMITS", role="Maker", sub_entity="Canteen")
    treasury = replace(canteen, sub_entity="Treasury", end_date="2027-06-30")
    await changed(made, Change(treasury, replace(treasury, end_date="2099-12-31")))
    await made.write(canteen)
    [entry] = await made.audit("assignment.update")
    browser = await in_portal(made, "history?kind=access")
    for shown in ("history?kind=access", f"history/{entry.number}"):
        await go(made, browser, shown)
        assert "cora (Cora Chan)" in browser.page.text
        assert "Treasury" in browser.page.text, shown


async def test_a_request_names_who_asked_and_who_approved_once_both_have_left(made: World) -> None:
    """D55, D57, D68: two people, not "(removed person)" twice."""
    await acme(made)
    registry = made.provider.registry
    await made.person("dan", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Dan Lee")
    await appoint(made, who="dan")
    found = await requested(made)
    await approve_request(registry, found.request_id, actor=acting(made, "dan", ACME), reason="r", now=made.clock())
    await made.write(entity(ACME, "Acme Pte. Ltd."))
    for who in ("bob", "dan"):
        await leave(made, who, ACME)
    browser = await in_portal(made, f"requests/{found.request_id}")
    for shown in (f"requests/{found.request_id}", "history?kind=access"):
        await go(made, browser, shown)
        assert "bob (Bob Lim)" in browser.page.text
    await go(made, browser, f"requests/{found.request_id}")
    assert "dan (Dan Lee)" in browser.page.text


async def test_what_was_decided_about_a_removed_person_is_not_about_a_newcomer_of_that_name(made: World) -> None:
    """D68: two people, whom a reader tells apart."""
    await acme(made)
    registry = made.provider.registry
    level = Administrator(user_id="id-cora", entity_id=ACME, level="owner")
    found = await requested(made, Change(None, level))
    await approve_request(registry, found.request_id, actor=owner(made, "alice"), reason="r", now=made.clock())
    cora = Change(await registry.directory.user("id-cora"), None)
    await write_changes(registry, CommandLine(by="root@host", reason="Left"), [cora], planned=True)
    address = "mallory@evil.example"
    invited = replace(GINA, name="Cora Chan", email=address, user_name=address)
    await made.write(placeholder(invited), invited)
    await accept_with_new_account(
        registry, invited, "id-newcomer", user_name="cora", name="Cora Chan", language="en", now=made.clock()
    )
    browser = await in_portal(made)
    for shown in (f"requests/{found.request_id}", "requests?state=ended", "history?kind=requests"):
        await go(made, browser, shown)
        assert "Owner" in browser.page.text
        assert "removed" in browser.page.text, shown


async def test_the_history_does_not_show_one_value_as_two_parameters(made: World) -> None:
    """D57, D68: what was changed, on the page of a change and in its file (`change_sentences._one`, `history._line`)."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd."))
    year, berth = ParameterDefinition(name="Permit Year", kind="year"), ParameterDefinition(name="Berth")
    await made.write(Service(service_id="PERMITS", name="Permits", roles=("Maker",), parameters=(berth, year)))
    row = replace(ROLE, parameters=(Parameter(name="Berth", value="5, Permit Year = 2026"),))
    await write_changes(made.provider.registry, owner(made), [Change(None, row)])
    [entry] = await made.audit("assignment.add")
    browser = await in_portal(made, f"history/{entry.number}")
    assert "Berth = 5, Permit Year = 2026" not in browser.page.text
    file = await browser.http.get(portal(made, "history/export"))
    assert "Berth = 5, Permit Year = 2026" not in file.text


async def test_a_line_counts_the_roles_of_others_that_were_given_with_an_invitation(made: World) -> None:
    """D57, D68: such as those of a table."""
    await staffed(made)
    role = checker(role="Approver")
    changes = [Change(None, GINA), Change(None, replace(role, user_id=GINA.user_id)), Change(None, role)]
    guards = guard_records(changes)
    await write_changes(
        made.provider.registry, owner(made, "alice"), changes, planned=True, batch="b1", seen=guards
    )  # fmt: skip
    for page_ in ("history", ""):
        text = (await in_portal(made, page_)).page.text
        assert "1 person invited" not in text
        assert "and 2 more changes" in text


@pytest.mark.parametrize("then", ["redirected", "declined"])
async def test_a_cleared_user_name_names_the_invitation_as_it_was(made: World, then: str) -> None:
    """D57, D68: also after that went to another address, or was declined."""
    await acme(made)
    registry = made.provider.registry
    called = replace(GINA, user_name="frank")
    newcomer = replace(GINA, user_id="f1e3", membership_id="m-new", email="new@acme.example", user_name="", name="New")
    frank = User(user_id="id-frank", user_name="frank", name="Frank Ho")
    await made.write(
        entity(ACME, "Acme Pte. Ltd."), placeholder(called), called, placeholder(newcomer), newcomer, frank
    )
    await accept_with_account(registry, newcomer, frank, now=made.clock())
    cleared = await member(made, GINA.user_id)
    assert not cleared.user_name
    if then == "redirected":
        await rename(made, cleared, "Somebody Else", email="else@acme.example")
    else:
        await decline_membership(registry, cleared)
    [entry] = [each for each in await made.audit("membership.update") if each.detail.get("cleared")]
    browser = await in_portal(made, f"history/{entry.number}")
    assert "(invited) gina@acme.example" in browser.page.heading


async def bypass_twice(made: World) -> None:
    """Opal gives Cora a role that needs approval, and a day later Oscar gives Dan one."""
    await acme(made)
    await made.person("dan", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Dan Ong")
    for by, user_id in (("opal@node1", "id-cora"), ("oscar@node2", "id-dan")):
        await write_changes(made.provider.registry, CommandLine(by=by), [Change(None, replace(ROLE, user_id=user_id))])
        made.clock.pass_(86400)


async def test_the_console_names_each_operator_who_went_past_an_approval() -> None:
    """D55, D57."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await bypass_twice(made)
        browser = await in_console(made, "operator", f"entities/{ACME}")
        assert "opal@node1" in browser.page.text
        assert "oscar@node2" in browser.page.text


async def test_the_portal_tells_apart_what_went_past_approvals_on_two_days(made: World) -> None:
    """D55, D57."""
    await bypass_twice(made)
    browser = await in_portal(made, "history")
    assert "15 Jan 2027" in browser.page.text
    assert "16 Jan 2027" in browser.page.text


@pytest.mark.parametrize("page", ["access-review?begin=yes", f"person/{GINA.membership_id}"])
async def test_the_giver_of_a_role_is_who_gave_it_with_the_latest_invitation(made: World, page: str) -> None:
    """D57, D60: not who gave it to the same person before they left."""
    firm = entity(ACME, "Acme Pte. Ltd.")
    for who, name in (("bob", "Bob Lim"), ("cora", "Cora Chan")):
        await made.person(who, firm, name=name)
    await appoint(made)
    await appoint(made, who="bob")
    registry, alice = made.provider.registry, owner(made, "alice")
    await write_changes(registry, alice, [Change(None, ROLE)])
    await write_changes(registry, alice, [Change(await member(made, "id-cora"), None)])
    made.clock.pass_(60)
    invited = replace(GINA, email="cora@example.com", user_name="cora@example.com", name="Cora Chan")
    await made.write(placeholder(invited), invited)
    await write_changes(registry, owner(made), [Change(None, replace(ROLE, user_id=invited.user_id))])
    cora = await registry.directory.user("id-cora")
    await accept_with_account(registry, invited, cora, now=made.clock())
    text = (await in_portal(made, page)).page.text
    row = text[text.index("Maker") :]
    row = row[: row.index("Remove")]
    assert "bob (Bob Lim)" in row
    assert "alice (Alice Tan)" not in row
