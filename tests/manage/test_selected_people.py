"""Many people suspended, restored and ended by one selection and one page that asks (D81)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import ChangeRequest, Membership
from tests.manage.access_scene import checker, employed, staffed
from tests.manage.scene import ACME, appoint, go, in_portal, send
from tests.manage.test_undo import FIRM
from tests.sign_in.world import World, form_of

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def memberships(made: World) -> dict[str, Membership]:
    found = await made.provider.registry.directory.page(Membership, {"entity_id": ACME}, limit=1000)
    return {each.membership_id: each for each in found}


async def crowd(made: World, count: int) -> None:
    await staffed(made)
    for number in range(count):
        await employed(made, f"temp{number:03}", f"Temp {number:03}")


async def choose(browser: Browser, action: str, *people: str, everybody: bool = False) -> None:
    """Select people in the list, and press the button of an action."""
    ticked = {f"select-m-{each}": "yes" for each in people} | ({"all": "yes"} if everybody else {})
    await browser.fill_and_submit(*([] if ticked else ["select-m-marcus"]), **ticked, button=action)


async def confirm(browser: Browser, action: str, **fields: str) -> None:
    await browser.fill_and_submit("confirmed", button=action, **fields)


async def test_forty_people_are_suspended_by_one_selection_and_one_page(made: World) -> None:
    await crowd(made, 40)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Suspend", *(f"temp{number:03}" for number in range(40)))
    assert browser.page.heading == "Suspend 40 people?"
    assert "Temp 007" in browser.page.text
    await confirm(browser, "Suspend")
    assert "The memberships have been suspended." in browser.page.text
    held = await memberships(made)
    assert sum(not each.enabled for each in held.values()) == 40
    events = await made.audit("membership.update")
    assert len({each.detail["batch"] for each in events}) == 1
    assert len(events) == 40


async def test_a_selection_beyond_the_page_is_the_filter_as_it_finds_then(made: World) -> None:
    """In parts of a hundred, each one transaction."""
    await crowd(made, 120)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Suspend", everybody=True)
    assert browser.page.heading == "Suspend 120 people?"
    await employed(made, "temp999", "Temp 999")
    await confirm(browser, "Suspend")
    assert "Something changed while you were on this page" in browser.page.text
    assert browser.page.heading == "Suspend 121 people?"
    await confirm(browser, "Suspend")
    held = await memberships(made)
    assert sum(not each.enabled for each in held.values()) == 121
    assert held["m-marcus"].enabled


async def test_who_cannot_be_changed_is_named_with_the_reason_and_left_out(made: World) -> None:
    """D53: nobody suspends themselves, nor the last owner."""
    await staffed(made)
    await employed(made, "idle", "Ida Le", enabled=False)
    browser = await in_portal(made, "people")
    alice = next(each for each, held in (await memberships(made)).items() if held.user_id == "id-alice")
    ticked = {f"select-{alice}": "yes", "select-m-marcus": "yes", "select-m-idle": "yes"}
    await browser.fill_and_submit(**ticked, button="Suspend")
    assert browser.page.heading == "Suspend 1 person?"
    assert "This is you." in browser.page.text
    assert "The state is Suspended" in browser.page.text
    await confirm(browser, "Suspend")
    held = await memberships(made)
    assert (held["m-marcus"].enabled, held[alice].enabled) == (False, True)


async def test_memberships_are_ended_with_their_roles(made: World) -> None:
    await staffed(made)
    await made.write(checker(), checker("nadia"))
    browser = await in_portal(made, "people")
    await choose(browser, "End memberships", "marcus", "nadia")
    assert "This cannot be undone" in browser.page.text
    await confirm(browser, "End memberships")
    assert "The memberships have been ended." in browser.page.text
    assert {"m-marcus", "m-nadia"}.isdisjoint(await memberships(made))
    assert len(await made.audit("assignment.remove")) == 2


async def test_nothing_is_selected(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "people")
    await choose(browser, "Suspend")
    assert "Select at least one person." in browser.page.text
    assert browser.page.heading == "Nobody was changed"


async def test_names_that_changed_since_the_page_asked_are_asked_about_again(made: World) -> None:
    """D68."""
    await staffed(made)
    browser = await in_portal(made, "people")
    await choose(browser, "Suspend", "marcus")
    await employed(made, "marcus", "Nadia Rahman")
    await confirm(browser, "Suspend")
    assert "Names have changed since you looked" in browser.page.text
    assert (await memberships(made))["m-marcus"].enabled


async def test_where_memberships_need_approval_requests_of_a_hundred_wait(made: World) -> None:
    """D55, D81: one heading, at most a hundred changes in a request."""
    await crowd(made, 120)
    await appoint(made, who="marcus", level="administrator")
    await made.write(replace(FIRM, approvals="all"))
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Suspend", everybody=True)
    await confirm(browser, "Send for approval")
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, "Send for approval", reason="The season is over")
    assert "Nothing changes until it is approved" in browser.page.text
    waiting = await made.provider.registry.directory.page(
        ChangeRequest, {"entity_id": ACME, "state": "pending"}, limit=10
    )
    assert len(waiting) == 2
    assert all(each.enabled for each in (await memberships(made)).values())


async def test_a_sub_administrator_selects_nobody(made: World) -> None:
    """D53: neither by the list nor by a form of their own."""
    await staffed(made, level="sub_administrator", services=("HARBOUR",))
    browser = await in_portal(made, "people")
    assert browser.page.form_with("select-m-marcus") is None
    assert await go(made, browser, "people/selected") == "You cannot open this page"


async def test_the_list_is_downloaded_as_it_is_filtered(made: World) -> None:
    """D83: also what a spreadsheet would take for a formula is a text."""
    await crowd(made, 60)
    await employed(made, "evil", "=1+1 Temp")
    browser = await in_portal(made, "people/list.csv?q=Temp")
    text = browser.response.text if browser.response else ""
    assert text.splitlines()[0] == "\ufeffname,user_name,email,state,level,roles,department,job_title"
    assert len(text.splitlines()) == 62
    assert "'=1+1 Temp" in text


@pytest.mark.parametrize("decision", ["", "level", "delete"])
async def test_an_action_that_the_list_does_not_offer_is_refused(made: World, decision: str) -> None:
    await staffed(made)
    browser = await in_portal(made, "people")
    fields = {**form_of(browser, "form_token"), "select-m-marcus": "yes", "decision": decision}
    answer = await send(made, browser, "people/selected", **fields)
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert "Choose what to do with the people that you select." in browser.page.text
