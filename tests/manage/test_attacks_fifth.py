"""Attacks, fifth part: invitations that look like members, undo, the pages of operators (D68, D80)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.flows.directory import members
from corpid.flows.directory.write import IdentifierConflict
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import Administrator, Change, MemberDetails
from tests.console.scene import REASON, WITHOUT_PASSKEY, go, in_console
from tests.manage.access_scene import checker, identifier, staffed
from tests.manage.scene import ACME, appoint, in_portal
from tests.manage.scene import go as go_to
from tests.manage.test_attacks_on_names import free
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_undo import press_undo
from tests.manage.test_who_is_meant import INVITED, TOKEN, limit, member, provisioned, rename
from tests.sign_in.world import World, entity, new_world

DORA = "dora@acme.example"
"""the user name of Dora's account; whoever reads that mailbox need not be she"""


async def with_dora(made: World) -> None:
    await free(made)
    await made.person(DORA, entity(ACME, "Acme Pte. Ltd."), name="Dora Lim")


@pytest.mark.parametrize("address", [DORA, "Dora@acme.example"])
@pytest.mark.parametrize("door", ["token", "another address by token", "another address by page"])
async def test_no_invitation_is_identified_as_a_member_is(made: World, door: str, address: str) -> None:
    """D68: an approver takes a role of the invitation for one of Dora's; Mallory reads the mailbox, and accepts."""
    await with_dora(made)
    gina = replace(await member(made, INVITED.user_id), user_name="zz")
    await made.write(gina)
    details = MemberDetails(user_name="z2", name="Dora Lim", email=address)
    with pytest.raises(IdentifierConflict) as refused:
        if door == "token":
            change = members.plan_invitation(details, TOKEN.entity_id, now=made.clock(), new_id=made.provider.new_id)
            await members.write_members(made.provider.registry, limit(made), [change], actor=TOKEN, now=made.clock())
        elif door == "another address by token":
            await provisioned(made, gina, email=address)
        else:
            await rename(made, gina, "Dora Lim", email=address)
    assert refused.value.member == "email"
    assert await member(made, INVITED.user_id) == gina


async def test_a_table_invites_nobody_who_is_identified_as_a_member_is(made: World) -> None:
    """D68."""
    await with_dora(made)
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table=f"user_name,name,email\nzz,Dora Lim,{DORA}")
    assert "email: another member of this entity has it" in browser.page.text


async def test_whoever_decides_reads_that_a_role_is_for_an_invitation(made: World) -> None:
    """D68: Dora joins while an invitation to the address that her account is called waits for its answer."""
    await acme(made)
    await made.write(placeholder(INVITED), INVITED)
    await requested(made, Change(None, replace(ROLE, user_id=INVITED.user_id)))
    made.clock.pass_(1)
    found = await requested(made)
    browser = await in_portal(made, "requests")
    at_gina = next(url for url, text in browser.page.links if "(invited) gina@acme.example" in text)
    for page in (at_gina, at_gina.replace("requests/", "requests/decide/")):
        await browser.open(f"{made.base}{page}", site="same-origin")
        assert (
            "It has no effect until (invited) gina@acme.example (Gina Teo) accepts the invitation." in browser.page.text
        )
    await go_to(made, browser, f"requests/{found.request_id}")
    assert "accepts the invitation" not in browser.page.text


async def test_undo_says_whom_it_concerns(made: World) -> None:
    """D68, D80: beside the button, and on the page that asks after a new sign-in."""
    await staffed(made)
    await made.write(checker(), checker("nadia"))
    browser = await in_portal(made, f"access/remove/{identifier(checker())}")
    made.clock.pass_(840)
    await browser.fill_and_submit("form_token", button="Remove access")
    done = "1 person lost access (Checker at Harbour permits): marcus (Marcus Lee)"
    assert done in browser.page.text
    made.clock.pass_(120)
    await press_undo(browser)
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Undo the last change?"
    assert done in browser.page.text


async def test_undo_after_many_were_changed_says_whom_it_concerns_first(made: World) -> None:
    """D68, D80, D81: the list that follows names everybody else."""
    await staffed(made)
    browser = await in_portal(made, "people")
    await browser.fill_and_submit(**{"select-m-marcus": "yes", "select-m-nadia": "yes"}, button="Suspend")
    await browser.fill_and_submit("confirmed")
    assert "2 people suspended: marcus (Marcus Lee), nadia (Nadia Rahman)" in browser.page.text


async def test_a_link_that_is_heard_alone_says_who(made: World) -> None:
    """D68: Cora's name is that of Bob."""
    await free(made)
    await provisioned(made, await member(made, "id-cora"), user_name="cora", name="Bob Lim")
    browser = await in_portal(made, "administrators/appoint")
    assert "Bob Lim cora" in [text for _, text in browser.page.links]
    await go_to(made, browser, "administrators")
    assert "Change bob (Bob Lim)" in [text for _, text in browser.page.links]


@pytest.mark.parametrize("door", ["invite/several", "access/import"])
async def test_an_address_is_checked_in_the_letters_in_which_it_identifies(made: World, door: str) -> None:
    """D68: a capital I is a small l."""
    await free(made)
    browser = await in_portal(made, door)
    if door == "access/import":
        await browser.fill_and_submit("table", table="user_name,name,email\nzz,Ian Tan,Ian@harbourIabs.example")
        shown = browser.page.text.partition("What each line does")[2].partition("Confirm")[0]
    else:
        await browser.fill_and_submit("people", people="Ian Tan <Ian@harbourIabs.example>")
        shown = browser.page.text.partition("People to invite")[2].partition("Change people")[0]
    assert "ian@harbouriabs.example" in shown
    assert "harbourIabs" not in shown


# --- operators


async def test_an_operator_chooses_among_owners_by_what_nobody_of_them_writes() -> None:
    """D53, D68: Mallory's account has the name of Alice, and so has an invitation."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        await made.person("mallory", entity(ACME, "Acme Pte. Ltd."), name="Alice Tan")
        await appoint(made, who="mallory")
        level = Administrator(user_id=INVITED.user_id, entity_id=ACME, level="owner")
        await made.write(replace(INVITED, name="Alice Tan"), level)
        owners = {"alice (Alice Tan)", "mallory (Alice Tan)", "(invited) gina@acme.example (Alice Tan)"}
        browser = await in_console(made, "operator", f"entities/{ACME}")
        assert all(each in browser.page.text for each in owners)
        again = [text for url, text in browser.page.links if "/invitation/" in url]
        assert again == ["Send again (invited) gina@acme.example (Alice Tan)"]
        await go(made, browser, f"entities/{ACME}/owner")
        offered = browser.page.text.partition("Who stops being an owner?")[2]
        assert all(each in offered for each in owners)


async def test_an_operator_appoints_nobody_by_a_name_that_means_two_people() -> None:
    """D68: an invitation to the address is open, and the account that is called so has joined."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await with_dora(made)
        await made.write(replace(INVITED, email=DORA))
        browser = await in_console(made, "operator", f"entities/{ACME}/owner")
        await browser.fill_and_submit(way="member", user_name=DORA, instead_of="nobody")
        assert "can mean several people here" in browser.page.text
        levels = await made.provider.registry.directory.administrators(ACME)
        assert {each.record.user_id for each in levels} == {"id-alice", "id-bob"}


async def test_an_operator_appoints_a_member_by_the_name_that_the_organisation_uses() -> None:
    """D68: one resolution at every door."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await free(made)
        await provisioned(made, await member(made, "id-cora"), user_name="c.chan")
        browser = await in_console(made, "operator", f"entities/{ACME}/owner")
        await browser.fill_and_submit(way="member", user_name="C.Chan", instead_of="nobody")
        await browser.fill_and_submit(reason=REASON)
        assert "The owner has been appointed" in browser.page.text
        levels = await made.provider.registry.directory.administrators(ACME)
        assert {each.record.user_id for each in levels} == {"id-alice", "id-bob", "id-cora"}


@pytest.mark.parametrize("action", ["sign-out", "disable"])
async def test_an_operator_reads_whose_account_it_is(action: str) -> None:
    """D68: two people may have one name, which each writes for themselves."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator", "people/id-alice")
        await go(made, browser, "people/id-alice")
        assert browser.page.heading == "alice (Alice Tan)"
        await go(made, browser, f"people/id-alice/{action}")
        assert "alice (Alice Tan)" in browser.page.heading
