"""Attacks, fourth part: undo, changes of many, search, sentences (D53, D68, D73, D80, D81, D82)."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin

import pytest
from msgspec.structs import replace

from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import Assignment, Change, ChangedMeanwhile, User
from corpid.rules.directory.role_forms import ENDLESS
from corpid.web import lists
from corpid.web.directory import people
from tests.manage.access_scene import NOTICES, checker, confirm, employed, identifier, roles, staffed
from tests.manage.scene import ACME, appoint, in_portal, send
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_selected_people import crowd
from tests.manage.test_undo import SUSPEND, firm, offers_undo, press_undo, undo, write
from tests.manage.test_undo import member as marcus
from tests.manage.test_who_is_meant import INVITED, member, rename
from tests.sign_in.world import World, form_of, new_world


async def test_undo_gives_nobody_the_role_of_an_invitation_that_goes_elsewhere_by_now(made: World) -> None:
    """D68, D80: Alice takes Gina's role away; the invitation goes to Mallory; Alice, who meant Gina, presses Undo."""
    await firm(made)
    hers = replace(ROLE, user_id=INVITED.user_id)
    await made.write(placeholder(INVITED), INVITED, hers)
    await write(made, Change(hers, None))
    await rename(made, await member(made, INVITED.user_id), "Gina Teo", email="mallory@evil.example")
    with pytest.raises(ChangedMeanwhile):
        await undo(made)
    assert await made.provider.registry.directory.read(Assignment, [hers.key]) == {}


async def test_undo_gives_nobody_a_role_whose_account_has_another_name_by_now(made: World) -> None:
    """D68, D80."""
    await firm(made)
    await made.write(ROLE)
    await write(made, Change(ROLE, None))
    (user,) = (await made.provider.registry.directory.read(User, [(ROLE.user_id,)])).values()
    await made.write(replace(user, user_name="somebody.else"))
    with pytest.raises(ChangedMeanwhile):
        await undo(made)
    assert await made.provider.registry.directory.read(Assignment, [ROLE.key]) == {}


async def test_the_button_undoes_the_change_beside_which_it_stands(made: World) -> None:
    """D73, D80: a page that is shown again by Back, or in another tab, offers to undo what is no longer the last."""
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    earlier = browser.page
    assert offers_undo(browser)
    await browser.open(f"{made.base}/manage/person/m-nadia/suspend", site="same-origin")
    await browser.fill_and_submit("form_token", button="Suspend")
    browser.page = earlier
    await press_undo(browser)
    assert "this can no longer be undone" in browser.page.text
    assert not (await marcus(made)).enabled
    assert not (await member(made, "id-nadia")).enabled


async def test_the_end_of_many_asks_for_a_reason_if_any_of_them_needs_approval() -> None:
    """D55, D81: beyond the first hundred, too; nothing ends before the reason is given."""
    async with new_world() as made:
        await staffed(made)
        await employed(made, "bob", "Bob Lim")
        await appoint(made, who="bob", level="owner")
        await made.write(replace(NOTICES, approval_required=True))
        await made.write(*(checker(ref=f"{each:03}") for each in range(110)))
        await made.write(Assignment(user_id="id-nadia", entity_id=ACME, service_id="NOTICES"))
        browser = await in_portal(made, "access")
        await browser.fill_and_submit("decision", all="yes")
        assert "Send for approval" in browser.page.text
        await confirm(browser)
        assert "Say why, for the person who approves it." in browser.page.text
        assert len(await roles(made)) == 100  # as many as are read
        assert not await made.audit("assignment.remove")
        await confirm(browser, reason="The season is over")
        assert "Nothing changes until it is approved" in browser.page.text


async def test_the_list_of_people_that_is_downloaded_is_bounded(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """D83: a whole list of any length kept every other request waiting; its last line says that it is not complete."""
    await crowd(made, 7)
    monkeypatch.setattr(lists, "MOST_DOWNLOADED", 5)
    monkeypatch.setattr(people, "_EXPORTED_AT_ONCE", 2)
    browser = await in_portal(made, "people/list.csv?q=Temp")
    assert browser.response is not None
    lines = browser.response.text.splitlines()
    assert len(lines) == 7
    assert lines[-1] == '"This file is not complete. Narrow the list, and download again."'
    await browser.open(f"{made.base}/manage/people/list.csv?q=Temp+000", site="same-origin")
    assert len(browser.response.text.splitlines()) == 2


async def test_an_approval_is_not_undone(made: World) -> None:
    """D55, D80: what two people have decided is not taken back by one of them."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    await browser.fill_and_submit(button="approve", reason="She starts on Monday")
    assert "The request has been approved, and the change has been made." in browser.page.text
    assert not offers_undo(browser)


async def test_undo_that_needs_a_fresh_sign_in_asks_again_after_it(made: World) -> None:
    """D54, D73, D80: what was sent is not lost without a word."""
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    made.clock.pass_(840)
    await browser.fill_and_submit("form_token", button="Suspend")
    made.clock.pass_(120)
    await press_undo(browser)
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Undo the last change?"
    await browser.fill_and_submit("undone")
    assert "Undone. The membership of marcus (Marcus Lee) was restored" in browser.page.text
    assert (await marcus(made)).enabled


async def test_many_requests_of_the_same_moment_change_each_person_once(made: World) -> None:
    """D73, D81: suspended by two forms at once, undone by two at once."""
    await staffed(made)
    browser = await in_portal(made, "people")
    await browser.fill_and_submit(**{"select-m-marcus": "yes", "select-m-nadia": "yes"}, button="Suspend")
    fields = form_of(browser, "confirmed") | {"decision": "suspend"}
    answers = await asyncio.gather(
        *(send(made, browser, "people/selected", **fields, reason=str(each)) for each in range(3))
    )
    assert {each.status_code for each in answers} == {303}
    assert len(await made.audit("membership.update")) == 2
    await browser.open(f"{made.base}/manage/people?saved=people-suspended", site="same-origin")
    assert offers_undo(browser)
    fields = form_of(browser, "undone")
    answers = await asyncio.gather(*(send(made, browser, "undo", **fields) for _ in range(3)))
    assert {each.status_code for each in answers} == {303}
    assert len(await made.audit("membership.update")) == 4
    answer = await send(made, browser, "undo", **fields)
    assert (answer.status_code, len(await made.audit("membership.update"))) == (303, 4)


async def test_a_form_shown_before_a_level_was_lowered_changes_nothing(made: World) -> None:
    """D53: neither people, nor access elsewhere, nor by Undo."""
    await staffed(made)
    await made.write(checker())
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    undoing = form_of(browser, "undone")
    await browser.open(f"{made.base}/manage/people", site="same-origin")
    await browser.fill_and_submit(**{"select-m-nadia": "yes"}, button="Suspend")
    suspending = form_of(browser, "confirmed") | {"decision": "suspend"}
    await browser.open(f"{made.base}/manage/access", site="same-origin")
    await browser.fill_and_submit(**{f"select-{identifier(checker())}": "yes"}, button="end")
    ending = form_of(browser, "confirmed")
    await appoint(made, level="sub_administrator", services=("NOTICES",))
    made.provider.registry_cache.drop()
    for page, form in (("undo", undoing), ("people/selected", suspending), ("access/end", ending)):
        await send(made, browser, page, **form)
    assert (await member(made, "id-nadia")).enabled
    assert not (await marcus(made)).enabled
    assert len(await roles(made)) == 1


@pytest.mark.parametrize("page", ["change", "remove"])
async def test_a_role_that_was_changed_while_a_page_showed_it_is_asked_about_again(made: World, page: str) -> None:
    """D54: what Bob has written meanwhile is neither overwritten nor taken away unseen."""
    await staffed(made)
    await made.write(checker(end_date="2027-12-31"))
    browser = await in_portal(made, f"access/{page}/{identifier(checker())}")
    if page == "change":
        await browser.fill_and_submit("check", end=ENDLESS)
    form = form_of(browser, "step", "form_token")
    await made.write(checker(end_date="2028-06-30"))
    answer = await send(made, browser, f"access/{page}/{identifier(checker())}", **form)
    assert answer.status_code == 303
    assert [each.end_date for each in await roles(made)] == ["2028-06-30"]
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    assert "Something changed while you were on this page" in browser.page.text
    assert "30 Jun 2028" in browser.page.text
    await confirm(browser)
    assert [each.end_date for each in await roles(made)] != ["2028-06-30"]


async def test_people_of_one_name_are_told_apart_by_what_is_ticked(made: World) -> None:
    """D68: a box that is heard, not seen, has the name that the entity cannot write, too."""
    await staffed(made)
    await employed(made, "cora", "Marcus Lee")
    browser = await in_portal(made, "people")
    assert "Select marcus (Marcus Lee)" in browser.page.text
    assert "Select cora (Marcus Lee)" in browser.page.text
