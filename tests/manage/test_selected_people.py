"""Many people suspended, restored, ended and given a role by one selection and one page that asks (D81)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.flows.directory.approvals import approve_request
from corpid.flows.directory.members import MOST_SELECTED
from corpid.rules.directory.memberships import PLAIN_DETAILS
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Assignment, Change, ChangeRequest, Membership
from corpid.web.pages.role_fields import value_field
from tests.manage.access_scene import HARBOUR, checker, demand, employed, requests, roles, staffed
from tests.manage.scene import ACME, appoint, in_portal, send
from tests.manage.test_undo import FIRM, press_undo
from tests.manage.test_who_is_meant import owner
from tests.manage.walking import follow
from tests.sign_in.test_signing_in_again import cancel
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


@pytest.mark.full
async def test_nobody_selects_all_of_a_list_that_is_too_long_to_be_changed_at_once(made: World) -> None:
    """D81: five hundred people."""
    await crowd(made, MOST_SELECTED + 1)
    text = (await in_portal(made, "people")).page.text
    assert "Select all" not in text
    assert "To select all, narrow the list to at most 500 people." in text
    assert "Select all" in (await in_portal(made, "people?q=temp10")).page.text


async def test_forty_people_are_suspended_by_one_selection_and_one_page(made: World) -> None:
    await crowd(made, 40)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Suspend", *(f"temp{number:03}" for number in range(40)))
    assert browser.page.heading == "Suspend 40 people?"
    assert "Temp 007" in browser.page.text
    await confirm(browser, "Suspend")
    assert "40 people suspended: temp000 (Temp 000), temp001 (Temp 001) and 38 more" in browser.page.text
    assert browser.url.startswith(f"{made.base}/manage/people?q=Temp")
    held = await memberships(made)
    assert sum(not each.enabled for each in held.values()) == 40
    events = await made.audit("membership.update")
    assert len({each.detail["batch"] for each in events}) == 1
    assert len(events) == 40


async def test_one_checkbox_selects_everybody_of_a_list_of_one_page(made: World) -> None:
    """D81: forty people take one click."""
    await crowd(made, 40)
    browser = await in_portal(made, "people?q=Temp")
    assert "Select all 40 in this list" in browser.page.text
    await choose(browser, "Suspend", everybody=True)
    assert browser.page.heading == "Suspend 40 people?"


async def test_who_is_taken_out_of_a_whole_list_is_left_as_they_are(made: World) -> None:
    """D81: as the page's script sends it."""
    await crowd(made, 60)
    browser = await in_portal(made, "people?q=Temp")
    fields = {**form_of(browser, "form_token"), "all": "yes", "q": "Temp", "decision": "suspend"}
    answer = await send(made, browser, "people/selected", **fields, **{"except-m-temp007": "yes"})
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert browser.page.heading == "Suspend 59 people?"
    await confirm(browser, "Suspend")
    held = await memberships(made)
    assert sum(not each.enabled for each in held.values()) == 59
    assert held["m-temp007"].enabled


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
    browser = await in_portal(made, "people?q=nadia")
    await browser.fill_and_submit("select-m-nadia", button="Suspend")
    assert "Select at least one person." in browser.page.text
    assert browser.page.heading == "People"
    assert "Marcus" not in browser.page.text


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


async def test_a_sub_administrator_gives_access_only(made: World) -> None:
    """D53: at their own services; and suspends nobody by a form of their own."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    browser = await in_portal(made, "people")
    form = browser.page.form_with("select-m-marcus")
    assert form is not None
    assert [each.label for each in form.buttons] == ["Give access"]
    await choose(browser, "Give access", "marcus", "nadia")
    await browser.fill_and_submit(end="none", button="Continue")
    assert "2 people may act at Notices for Acme Pte. Ltd. from today, with no end date." in browser.page.text
    await confirm(browser, "Give access")
    assert [each.service_id for each in await roles(made)] == ["NOTICES"]
    fields = {**form_of(browser, "form_token"), "select-m-marcus": "yes", "decision": "suspend"}
    answer = await send(made, browser, "people/selected", **fields)
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert "Choose what to do with the people that you select." in browser.page.text


async def test_the_list_is_downloaded_as_it_is_filtered(made: World) -> None:
    """D83: also what a spreadsheet would take for a formula is a text."""
    await crowd(made, 60)
    await employed(made, "evil", "=1+1 Temp")
    browser = await in_portal(made, "people/list.csv?q=Temp")
    text = browser.response.text if browser.response else ""
    own = "\ufeffname,user_name,email,state,level,roles,last_sign_in"
    assert text.splitlines()[0] == ",".join((own, *PLAIN_DETAILS))
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


async def give(browser: Browser, role: str = "HARBOUR/Checker", **fields: str) -> None:
    """Choose the role for those who are selected, and what its service needs."""
    await browser.fill_and_submit(access=role, end="none", **fields, button="Continue")


PERMIT_YEAR = value_field(HARBOUR, "Permit Year")


async def test_a_whole_list_is_given_a_role_by_one_form_and_one_page_that_asks(made: World) -> None:
    """D81: a hundred are one transaction; who has the role already is named and left out."""
    await crowd(made, 120)
    await made.write(checker("temp005"), checker("temp006", end_date="2020-12-31"))
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Give access", everybody=True)
    assert browser.page.heading == "Give access to 120 people"
    await give(browser, **{PERMIT_YEAR: "2027"})
    assert browser.page.heading == "Give access to 119 people?"
    assert (
        "119 people may act as Checker at Harbour permits for Acme Pte. Ltd. from today, with no end date."
        in browser.page.text
    )
    assert "Permit Year: 2027" in browser.page.text
    assert "Already has this role." in browser.page.text
    await confirm(browser, "Give access")
    assert "118 people got access (Checker at Harbour permits): temp000 (Temp 000)" in browser.page.text
    assert [each.parameters[0].value for each in await roles(made, "temp119")] == ["2027"]
    assert [each.end_date for each in await roles(made, "temp006")] == ["9999-12-31"]
    assert [each.parameters[0].value for each in await roles(made, "temp005")] == ["2026"]
    events = await made.audit("assignment.add")
    assert len({each.detail["batch"] for each in events}) == 1
    assert len(events) == 118


async def test_what_is_missing_in_the_role_is_said_and_another_one_can_be_chosen(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "people")
    await choose(browser, "Give access", "marcus", "nadia")
    await browser.fill_and_submit("access", button="Continue")
    assert "Choose what these people may do." in browser.page.text
    await give(browser, **{PERMIT_YEAR: "soon"})
    assert "Enter a year of four digits, such as 2026." in browser.page.text
    await browser.fill_and_submit(**{PERMIT_YEAR: "2027"}, button="Continue")
    await browser.fill_and_submit("confirmed", button="Change something")
    assert "What may these people do?" in browser.page.text
    await browser.fill_and_submit(access="HARBOUR/Approver", button="Continue")
    await confirm(browser, "Give access")
    held = [*await roles(made), *await roles(made, "nadia")]
    assert [(each.role, each.parameters[0].value) for each in held] == [("Approver", "2027")] * 2


async def test_who_may_not_be_given_a_role_is_named_with_the_reason(made: World) -> None:
    """D54: nobody gives themselves a role while somebody else can."""
    await staffed(made)
    await appoint(made, who="marcus", level="owner")
    browser = await in_portal(made, "people")
    alice = next(each for each, held in (await memberships(made)).items() if held.user_id == "id-alice")
    ticked = {f"select-{alice}": "yes", "select-m-nadia": "yes"}
    await browser.fill_and_submit(**ticked, button="Give access")
    await give(browser, "NOTICES")
    assert browser.page.heading == "Give access to 1 person?"
    assert "You cannot change your own access." in browser.page.text
    await confirm(browser, "Give access")
    assert (await roles(made, "alice"), len(await roles(made, "nadia"))) == ([], 1)


async def test_a_role_for_many_waits_for_approval_where_that_is_needed(made: World) -> None:
    """D55, D81: with a reason, in requests of a hundred."""
    await crowd(made, 120)
    await appoint(made, who="marcus", level="administrator")
    await demand(made, "roles")
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Give access", everybody=True)
    await give(browser, "NOTICES")
    await confirm(browser, "Send for approval")
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, "Send for approval", reason="The season begins")
    assert "Nothing changes until it is approved" in browser.page.text
    assert sorted(len(each.changes) for each in await requests(made)) == [20, 100]
    assert await roles(made, "temp000") == []


async def test_a_role_that_many_were_given_is_undone_by_one_button(made: World) -> None:
    """D80."""
    await crowd(made, 40)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Give access", *(f"temp{number:03}" for number in range(40)))
    await give(browser, "NOTICES")
    await confirm(browser, "Give access")
    assert len(await roles(made, "temp039")) == 1
    await press_undo(browser)
    assert "Undone. 40 people lost access (Notices): temp0" in browser.page.text
    assert [await roles(made, f"temp{number:03}") for number in range(40)] == [[]] * 40


async def test_people_who_joined_the_list_since_the_page_asked_are_asked_about_again(made: World) -> None:
    """D81: the filter is evaluated again."""
    await crowd(made, 60)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Give access", everybody=True)
    await give(browser, "NOTICES")
    await employed(made, "temp999", "Temp 999")
    await confirm(browser, "Give access")
    assert "Something changed while you were on this page" in browser.page.text
    assert browser.page.heading == "Give access to 61 people?"
    assert await roles(made, "temp000") == []


@pytest.mark.parametrize(
    ("page", "sent", "fields", "button"),
    [
        ("people?q=Temp", "people/selected", {"q": "Temp", "decision": "end", "except-m-temp057": "yes"}, "End memberships"),
        (
            "access?service=HARBOUR", "access/end",
            {"service": "HARBOUR", "decision": "end", f"except-{object_id(checker('temp057').key)}": "yes"},
            "Remove access",
        ),
    ],
    ids=["people", "access"],
)  # fmt: skip
async def test_who_was_taken_out_on_another_page_is_still_out_after_cancel(
    made: World, page: str, sent: str, fields: dict[str, str], button: str
) -> None:
    """D68, D81: the list that is shown again keeps what it does not show."""
    await staffed(made)
    for number in range(60):
        await employed(made, f"temp{number:03}", f"Temp {number:03}")
        await made.write(checker(f"temp{number:03}"))
    browser = await in_portal(made, page)
    await follow(browser, "Next page")
    assert "Temp 057" in browser.page.text
    form = {**form_of(browser, "form_token"), "all": "yes", **fields}  # as the page's script sends it
    made.clock.pass_(901)
    answer = await send(made, browser, sent, **form)
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    await cancel(browser)
    assert "What you entered is still here" in browser.page.text
    await browser.fill_and_submit(
        "decision", button=button
    )  # every row that is shown is ticked, and so is the whole list
    await made.factors(browser, made.people["alice"])
    await browser.fill_and_submit("confirmed", button=button)
    assert await made.provider.registry.directory.find(Membership, "id-temp057", ACME) is not None
    assert len(await roles(made, "temp057")) == 1


async def test_a_selection_of_which_a_part_was_requested_says_so_and_why(made: World) -> None:
    """D55, D81: nobody reads as changed of whom a change only waits."""
    await crowd(made, 120)
    await appoint(made, who="marcus", level="administrator")
    waiting = tuple(
        Change(None, Assignment(user_id="id-nadia", entity_id=ACME, service_id="NOTICES", ref=f"{each}"))
        for each in range(1895)
    )
    request = ChangeRequest(
        request_id="00000001-x", entity_id=ACME, requester="user:id-alice", changes=waiting, reason="They left",
        created_at=int(made.clock()),
    )  # fmt: skip
    await made.write(replace(FIRM, approvals="all"), request)
    browser = await in_portal(made, "people?q=Temp")
    await choose(browser, "Suspend", everybody=True)
    await confirm(browser, "Send for approval", reason="The season is over")
    assert all([each.enabled async for each in made.provider.registry.directory.scan(Membership)])
    assert "Approval was requested for 100 people only." in browser.page.text
    assert "somebody else changed" not in browser.page.text
    assert "can wait for approval" in browser.page.text


async def test_a_selection_of_which_one_change_needs_approval_waits_as_a_whole(made: World) -> None:
    """D55, D81: as its page says, also in the hundred in which nothing needs it."""
    await crowd(made, 120)
    await appoint(made, who="marcus", level="owner")
    await appoint(made, who="temp003", level="sub_administrator")
    await made.write(replace(FIRM, approvals="roles"))
    browser = await in_portal(made, "people?q=Temp")
    before = await memberships(made)
    await choose(browser, "End memberships", everybody=True)
    assert "Nothing changes until then." in browser.page.text
    await confirm(browser, "Send for approval")
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, "Send for approval", reason="The season is over")
    assert "Nothing changes until it is approved" in browser.page.text
    assert await memberships(made) == before
    waiting = await requests(made)
    assert sorted(len(each.changes) for each in waiting) == [20, 101]
    for each in waiting:
        await approve_request(
            made.provider.registry, each.request_id, actor=owner(made, "marcus"), reason="", now=made.clock()
        )
    assert len(await memberships(made)) == len(before) - 120
