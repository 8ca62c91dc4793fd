"""What comes out of the printer: recovery codes, and nothing that can only be clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.enrolment_states import CODES
from tests.browser.gallery import Appearance, Beholder, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_recovery_codes_are_printed_in_black_on_white_and_without_buttons(chromium: Browser) -> None:
    """D45: also from a dark screen; one page holds them all."""
    with served() as address:
        page = Beholder(browser=chromium, address=address).look("enrol-codes", Appearance(scheme="dark"))
        page.emulate_media(media="print")
        for code in CODES.codes:
            assert page.get_by_text(code).is_visible()
        assert page.get_by_text("CorpID").first.is_visible()
        assert not page.locator("button, .languages, .choice").filter(visible=True).count()
        assert page.evaluate("getComputedStyle(document.querySelector('.codes code')).color") == "rgb(0, 0, 0)"
        assert page.pdf().count(b"/Type /Page\n") == 1
