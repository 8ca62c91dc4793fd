"""A table is uploaded in the portal, with a script and without (D81)."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.stage import Stage, Visitor, shows, with_and_without_script
from tests.manage.access_scene import staffed

pytestmark = pytest.mark.full


def csv(content: bytes) -> FilePayload:
    return {"name": "people.csv", "mimeType": "text/csv", "buffer": content}


@with_and_without_script
def test_a_file_is_read_from_a_browser_and_one_that_is_too_long_is_named(visitor: Visitor, stage: Stage) -> None:
    """D73, D81: of several megabytes, too; what was typed stays."""
    stage.wait_for(staffed(stage.world))
    page = visitor.tab()
    page.goto(f"{stage.world.base}/manage/invite/several")
    visitor.password(page)
    visitor.code(page)
    shows(page, "Invite several people")
    page.get_by_label("People").fill("tom@example.org")
    page.get_by_label("Or a file").set_input_files(csv(b"a" * 3_000_000))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("link", name="This file is too long.")).to_be_visible()
    expect(page.get_by_label("People")).to_have_value("tom@example.org")
    page.get_by_label("Or a file").set_input_files(csv("Name;Email\r\nZoë;zoe@example.org\r\n".encode("utf-16")))
    page.get_by_role("button", name="Check").click()
    shows(page, "Invite 1 person?")
    expect(page.get_by_role("cell", name="Zoë")).to_be_visible()
    assert not visitor.complaints
