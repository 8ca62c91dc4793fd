"""What comes out of the printer: recovery codes, letters, and nothing that can only be clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.rules.authentication.records import RECOVERY_CODES
from corpid.web.pages.rendering import Renderer
from corpid_dev.web.paths import CATALOGUE_PATH
from tests.browser.gallery import Appearance, Beholder, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.full


def test_recovery_codes_are_printed_in_black_on_white_and_without_buttons(chromium: Browser) -> None:
    """D45: also from a dark screen; one page holds them all."""
    with served() as address:
        page = Beholder(browser=chromium, address=address).look("enrol-codes", Appearance(scheme="dark"))
        page.emulate_media(media="print")
        codes = page.locator(".codes code")
        assert codes.count() == RECOVERY_CODES
        assert all(each.is_visible() for each in codes.all())
        assert page.get_by_text("CorpID").first.is_visible()
        assert not page.locator("button, .languages, .choice").filter(visible=True).count()
        assert page.evaluate("getComputedStyle(document.querySelector('.codes code')).color") == "rgb(0, 0, 0)"
        assert page.pdf().count(b"/Type /Page\n") == 1


def test_the_banner_of_developer_mode_is_not_printed(chromium: Browser) -> None:
    """D53: a letter about a person's access is about nothing else."""
    with served(Renderer(developer_mode=True, catalogue_path=CATALOGUE_PATH, added="corpid_dev")) as address:
        page = Beholder(browser=chromium, address=address).look("portal-person", Appearance())
        assert page.get_by_text("Developer mode.").is_visible()
        page.emulate_media(media="print")
        assert not page.get_by_text("Developer mode.").is_visible()
        assert not page.get_by_role("link", name="Skip to content").is_visible()
