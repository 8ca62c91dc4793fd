"""People who fit are suggested while a name is typed in the portal (D54, D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.stage import Stage, Visitor, shows
from tests.manage.access_scene import employed, staffed

if TYPE_CHECKING:
    from tests.sign_in.world import World

pytestmark = pytest.mark.full


async def crowd(world: World) -> None:
    """More people than a page offers before anything is typed, and one who comes after them."""
    await staffed(world)
    for number in range(60):
        await employed(world, f"koh{number:02}", f"Koh {number}")
    await employed(world, "zara1", "Zara Koh")
    await employed(world, "zara2", "Zara Lim")


def test_who_is_not_among_the_first_people_is_suggested_once_typed(visitor: Visitor, stage: Stage) -> None:
    """D54: by the search."""
    stage.wait_for(crowd(stage.world))
    page = visitor.tab()
    page.goto(f"{stage.world.base}/manage/access/new")
    visitor.password(page)
    visitor.code(page)
    shows(page, "Give access")
    suggestions = page.locator("#find-used option")
    expect(suggestions).to_have_count(50)
    assert not page.locator('option[value="zara2 (Zara Lim)"]').count()
    page.get_by_label("Who gets access?").press_sequentially("zara")
    expect(suggestions).to_have_count(2)
    expect(suggestions.last).to_have_attribute("value", "zara2 (Zara Lim)")
    assert not visitor.complaints
