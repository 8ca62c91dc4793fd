"""People are selected in a list of the portal, with a script and without, on a narrow screen, too (D81)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Stage, Visitor, shows, with_and_without_script
from tests.manage.access_scene import employed, staffed

if TYPE_CHECKING:
    from tests.sign_in.world import World

pytestmark = pytest.mark.full


async def crowd(made: World) -> None:
    await staffed(made)
    for number in range(60):
        await employed(made, f"temp{number:03}", f"Temp {number:03}")


@with_and_without_script
@pytest.mark.parametrize("width", [375, 1280])
def test_actions_on_selected_people_are_reached(visitor: Visitor, stage: Stage, width: int) -> None:
    stage.wait_for(crowd(stage.world))
    page = visitor.tab()
    page.set_viewport_size({"width": width, "height": 720})
    page.goto(f"{stage.world.base}/manage/people?q=Temp")
    visitor.password(page)
    visitor.code(page)
    shows(page, "People")
    page.get_by_label("Select temp003 (Temp 003)").check()
    if width < 640:
        actions = page.get_by_text("Actions", exact=True)
        before = actions.bounding_box()
        actions.click()
        assert actions.bounding_box() == before  # a second tap falls on no other button
    page.get_by_role("button", name="Suspend").click()
    shows(page, "Suspend 1 person?")
    assert not visitor.complaints


def test_the_box_of_a_list_ticks_its_rows_and_one_is_taken_out(visitor: Visitor, stage: Stage) -> None:
    """Beyond the page, too; the page that asks leaves out who is not ticked."""
    stage.wait_for(crowd(stage.world))
    page = visitor.tab()
    page.goto(f"{stage.world.base}/manage/people?q=Temp")
    visitor.password(page)
    visitor.code(page)
    page.locator("label[for=all]").click()
    expect(page.get_by_label("Select temp003 (Temp 003)")).to_be_checked()
    expect(page.get_by_text("60 of 60 selected")).to_be_visible()
    page.get_by_label("Select temp003 (Temp 003)").uncheck()
    expect(page.get_by_text("59 of 60 selected")).to_be_visible()
    page.get_by_role("button", name="Suspend").click()
    shows(page, "Suspend 59 people?")
    expect(page.get_by_role("cell", name="temp003")).to_have_count(0)
    assert not visitor.complaints
