"""Attacks, fourth part: undo, changes of many, search, sentences (D53, D68, D73, D80, D81, D82)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.changes import ChangedMeanwhile
from corpid.rules.directory.invitations import placeholder
from corpid.rules.directory.records import Assignment, Change, User
from corpid.web.directory import people
from tests.manage.access_scene import NOTICES, checker, confirm, employed, roles, staffed
from tests.manage.scene import ACME, appoint, in_portal
from tests.manage.test_requests import ROLE
from tests.manage.test_selected_people import crowd
from tests.manage.test_undo import SUSPEND, firm, offers_undo, press_undo, undo, write
from tests.manage.test_undo import member as marcus
from tests.manage.test_who_is_meant import INVITED, member, rename

from tests.sign_in.world import new_world

if TYPE_CHECKING:
    from tests.sign_in.world import World


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
    assert "there is nothing that can be undone any more" in browser.page.text
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
    monkeypatch.setattr(people, "MOST_EXPORTED", 5)
    monkeypatch.setattr(people, "_EXPORTED_AT_ONCE", 2)
    browser = await in_portal(made, "people/list.csv?q=Temp")
    assert browser.response is not None
    lines = browser.response.text.splitlines()
    assert len(lines) == 7
    assert lines[-1] == '"This file is not complete. Narrow the list, and download again."'
    await browser.open(f"{made.base}/manage/people/list.csv?q=Temp+000", site="same-origin")
    assert len(browser.response.text.splitlines()) == 2
