"""Inviting one person or several to an organisation (D55, D60)."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import pytest

from corpid.flows.directory import invitations
from corpid.rules.directory.records import Membership
from corpid.web.pages.role_fields import value_field
from tests.manage.access_scene import HARBOUR, confirm, demand, employed, requests, staffed
from tests.manage.scene import ACME, appoint, go, in_portal, send
from tests.sign_in.world import World, form_of, new_world, shown_again


async def invited(made: World) -> dict[str, str]:
    """Those who have been invited: address and name."""
    found = await made.provider.registry.invitations.of_entity(ACME, after="", limit=1000)
    return {each.email: each.name for each in found}


async def test_one_person_is_invited_with_name_and_address(made: World) -> None:
    """D60."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    assert "works for 7 days" in browser.page.text
    await confirm(browser, name=" Priya  Nair ", email="priya@example.org")
    assert browser.page.heading == "People"
    assert "1 person has been invited." in browser.page.text
    assert await invited(made) == {"priya@example.org": "Priya Nair"}


async def test_what_is_missing_or_wrong_is_named_at_its_field_and_what_was_typed_is_kept(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "invite")
    await confirm(browser, email="priya at example")
    assert "Enter the name of the person." in browser.page.text
    assert "Enter an e-mail address such as name@example.com." in browser.page.text
    assert browser.response is not None
    assert "priya at example" in browser.response.text
    await confirm(browser, name="Marcus", email="MARCUS@acme.example")
    assert "already belongs to Acme Pte. Ltd. or has been invited." in browser.page.text
    assert await invited(made) == {}


async def test_several_people_are_checked_line_by_line_and_shown_before_anything_is_sent(made: World) -> None:
    """D60: nothing is lost on the way."""
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    lines = "Priya Nair <priya@example.org>\nTom, tom@example\nmarcus@acme.example\nnobody"
    await confirm(browser, people=lines)
    text = browser.page.text
    assert "Line 3: somebody with this address already belongs" in text
    assert "Line 4: there is no e-mail address: nobody" in text
    assert browser.response is not None
    [own] = re.findall(r'<p class="field-error" id="people-error">(.*?)</p>', browser.response.text, re.DOTALL)
    assert own.count("<br>") + 1 == own.count("Line ") > 1, "one problem a line"
    assert "Priya Nair &lt;priya@example.org&gt;" in browser.response.text
    await confirm(browser, people="Priya Nair <priya@example.org>\n\ntom@example.org; Tom\nkim@example.org")
    assert browser.page.heading == "Invite 3 people?"
    assert await invited(made) == {}
    await browser.fill_and_submit("form_token", "people")
    assert "3 people have been invited." in browser.page.text
    assert await invited(made) == {
        "priya@example.org": "Priya Nair",
        "tom@example.org": "Tom",
        "kim@example.org": "",
    }


async def test_a_second_click_invites_nobody_twice(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    await browser.fill_and_submit("people", people="tom@example.org")
    fields = form_of(browser, "confirmed")
    assert (await send(made, browser, "invite/several", **fields)).status_code == 303
    assert (await send(made, browser, "invite/several", **fields)).status_code == 303
    later = {**fields, "people": "tom@example.org "}
    await shown_again(browser, await send(made, browser, "invite/several", **later))
    assert len(await made.audit("membership.invite")) == 1


async def test_too_many_at_once_are_refused_whole(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    await confirm(browser, people="\n".join(f"p{number}@example.org" for number in range(101)))
    assert "These are 101 people. Invite at most 100 at once." in browser.page.text
    await confirm(browser, people="\n".join(f"p{number}@example.org" for number in range(100)))
    assert browser.page.heading == "Invite 100 people?"


async def test_the_limits_of_a_day_are_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """D60."""
    monkeypatch.setattr(invitations, "INVITATIONS_PER_DAY", 1)

    async with new_world() as made:
        await staffed(made)
        browser = await in_portal(made, "invite/several")
        await confirm(browser, people="a@example.org\nb@example.org")
        await browser.fill_and_submit("form_token", "people")
        assert "An organisation can invite at most 25,000 people a day." in browser.page.text
        assert await invited(made) == {}


async def test_invitations_that_need_approval_become_one_request_with_its_reason(made: World) -> None:
    """D55."""
    await staffed(made)
    await demand(made, "all")
    browser = await in_portal(made, "invite/several")
    await confirm(browser, people="a@example.org\nb@example.org")
    await browser.fill_and_submit("form_token", "people")
    assert "Say why, for the person who approves it." in browser.page.text
    await browser.fill_and_submit("form_token", "people", reason="New branch")
    assert "Your request has been sent." in browser.page.text
    assert await invited(made) == {}
    [request] = await requests(made)
    assert (request.reason, len(request.changes)) == ("New branch", 2)


async def test_the_answer_is_the_same_whether_that_person_has_an_account_or_not(made: World) -> None:
    """D60: people of other organisations are not told apart from nobody."""
    await staffed(made)
    await employed(made, "zoe", "Zoe", "200000002A")
    browser = await in_portal(made, "invite")
    await confirm(browser, name="Zoe", email="zoe@acme.example")
    assert "1 person has been invited." in browser.page.text
    [one] = [
        each async for each in made.provider.registry.directory.scan(Membership) if each.email == "zoe@acme.example"
    ]
    assert one.invited
    assert one.user_id != "id-zoe"


async def test_a_sub_administrator_invites_nobody(made: World) -> None:
    """D53."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    browser = await in_portal(made, "access/new")
    for page in ("invite", "invite/several"):
        assert await go(made, browser, page) == "You cannot open this page"
    await go(made, browser, "access/new?person=m-marcus&access=NOTICES&start=today&end=none&check=all")
    token = form_of(browser, "form_token")
    for page in ("invite", "invite/several"):
        answer = await send(made, browser, page, **token, name="A", email="a@example.org", people="a@example.org")
        assert answer.status_code == 403
    assert await invited(made) == {}


async def test_a_double_click_invites_once_and_shows_that_it_did(made: World) -> None:
    """D15, D60."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    form = {**form_of(browser, "form_token", "email"), "name": "Grace Ho", "email": "grace@acme.example"}
    first, second = [await send(made, browser, "invite", **form) for _ in range(2)]
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.headers["Location"] == second.headers["Location"]
    other = await send(made, browser, "invite", **{**form, "email": "henry@acme.example"})
    assert other.status_code == 303


async def test_ten_people_are_invited_with_a_role_by_one_form_and_one_page_that_asks(made: World) -> None:
    """D60, D68: the role holds once the invitation is accepted."""
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    lines = "\n".join(f"Person {number} <person{number}@acme.example>" for number in range(10))
    await browser.fill_and_submit(people=lines, access="NOTICES", end="year-end")
    assert browser.page.heading == "Invite 10 people?"
    assert "Each of them may act as" in browser.page.text
    await browser.fill_and_submit("people")
    assert "10 people have been invited." in browser.page.text
    given = await made.audit("assignment.add")
    assert len({entry.object.partition("/")[0] for entry in given}) == 10
    assert {entry.object.split("/")[2] for entry in given} == {"NOTICES"}


@pytest.mark.parametrize(
    ("page", "who"),
    [
        ("invite", {"name": "Kim", "email": "kim@acme.example"}),
        ("invite/several", {"people": "Kim <kim@acme.example>"}),
    ],
)
async def test_a_role_with_the_values_that_its_service_needs_comes_with_the_invitation(
    made: World, page: str, who: dict[str, str]
) -> None:
    """R-14.1, D60: one form, and one page that asks."""
    await staffed(made)
    browser = await in_portal(made, page)
    await browser.fill_and_submit(**who, access="HARBOUR/Checker")
    assert "Enter the Permit Year. Harbour permits needs it." in browser.page.text
    await browser.fill_and_submit(**{value_field(HARBOUR, "Permit Year"): "2027"})
    assert browser.page.heading == "Invite 1 person?"
    assert "Each of them may act as Checker at Harbour permits from today until" in browser.page.text
    assert "Permit Year: 2027" in browser.page.text
    assert await invited(made) == {}
    await browser.fill_and_submit("confirmed")
    assert "1 person has been invited." in browser.page.text
    [given] = await made.audit("assignment.add")
    assert given.object.split("/")[2:4] == ["HARBOUR", "Checker"]


async def test_a_role_that_is_not_offered_comes_with_no_invitation(made: World) -> None:
    """R-20, D53: of a service that the organisation may not use."""
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    fields = {**form_of(browser, "form_token"), "people": "a@acme.example", "access": "FOREIGN/Clerk", "end": "none"}
    answer = await send(made, browser, "invite/several", **fields, confirmed="yes")
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert "Choose one of these roles, or none yet." in browser.page.text
    assert await invited(made) == {}


async def test_invitations_with_a_role_wait_where_roles_need_approval(made: World) -> None:
    """D55: all of it waits."""
    await staffed(made)
    await appoint(made, who="nadia")
    await demand(made, "roles")
    browser = await in_portal(made, "invite/several")
    await browser.fill_and_submit(people="Kim <kim@acme.example>", access="NOTICES", end="none")
    await browser.fill_and_submit("people", reason="New colleagues")
    assert "Nothing changes until it is approved" in browser.page.text
    assert not await made.audit("membership.invite")


async def test_a_check_that_promised_approval_sends_nothing_without_it(made: World) -> None:
    """D55: though what needs the approval is taken away on the check itself."""
    await staffed(made)
    await employed(made, "bob", "Bob Lim")
    await appoint(made, who="bob", level="owner")
    await demand(made, "roles")
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit(name="Kim Lee", email="kim@acme.example", access="NOTICES", end="none")
    assert "Nothing changes until then." in browser.page.text
    await browser.fill_and_submit(access="", reason="She joins on Monday", button="Send for approval")
    assert await invited(made) == {}
    assert await requests(made) == []
    assert "Nothing has been sent yet." in browser.page.text
    await browser.fill_and_submit(button="Send 1 invitation")
    assert await invited(made) == {"kim@acme.example": "Kim Lee"}


@pytest.mark.parametrize("button", ["Send 1 invitation", "Check again"])
async def test_what_is_changed_on_a_check_is_checked_again(made: World, button: str) -> None:
    """D68: also if no access is left to be given."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit(name="Kim Lee", email="kim@acme.example", access="NOTICES", end="none")
    await browser.fill_and_submit(access="", email="kin@acme.example", button=button)
    assert await invited(made) == {}
    assert "kin@acme.example" in browser.page.text
