"""Every e-mail in Chromium: axe-core finds nothing, nothing is loaded, nothing is cut off (WCAG 2.2 AA).

`make pictures` writes those of the document to docs/images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from corpid.web.pages.emails import EmailRenderer
from corpid.web.pages.theme import read
from corpid.web.pages.translations import ENGLISH, LANGUAGES, Language
from tests.browser import gallery
from tests.browser.gallery import OUTSIDE, Appearance, Rules, shown_as
from tests.browser.inbox import Inbox, every_email
from tests.browser.states import LONG
from tests.house.source import ROOT, listed
from tests.sample_emails import samples

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.full


PHONE = Appearance(width=320)
LOOKED_AT: dict[Appearance, Rules] = {PHONE: "all", Appearance(scheme="dark", width=700): "colours"}
"""windows, and what axe looks at in each"""
FEW = [Appearance(width=320), Appearance(language=LANGUAGES[-1], scheme="dark", width=700)]
DIFFERENT = ("password_changed", "codes_paused", "invitation_of_entity", "link_password", "code_to_sign_in")
"""an e-mail of each build"""


@pytest.fixture(scope="module")
def inbox(chromium: Browser) -> Inbox:
    return Inbox(browser=chromium)


def complaints(page: Page) -> list[str]:
    return [*gallery.complaints(page), *page.evaluate(OUTSIDE)]


@pytest.mark.parametrize("appearance", FEW, ids=lambda each: each.name)
def test_an_email_of_each_build_has_nothing_to_complain_of(inbox: Inbox, appearance: Appearance) -> None:
    found = [f"{name}: {each}" for name in DIFFERENT for each in complaints(inbox.look(name, appearance))]
    assert not found, listed(found)
    assert not inbox.asked_for


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
def test_no_email_has_anything_to_complain_of(inbox: Inbox, language: Language) -> None:
    """Axe looks in one language, and at the dark scheme for its colours alone, as in test_appearances."""
    found = []
    for name in every_email():
        page = inbox.look(name, replace(PHONE, language=language))
        assert page.evaluate("document.documentElement.lang") == language.tag
        for window, rules in LOOKED_AT.items():
            shown_as(page, window)
            seen = [*page.evaluate(OUTSIDE), *(gallery.complaints(page, rules) if language is ENGLISH else [])]
            found += [f"{name}, {window.name}: {each}" for each in seen]
    assert not found, listed(found)
    assert not inbox.asked_for


def test_long_names_are_broken_and_not_cut_off(chromium: Browser) -> None:
    """WCAG 2.2, 1.4.10"""
    names = {"person": "W" * 80, "entity": LONG, "client": LONG, "user_name": f"{'a' * 60}@{'b' * 40}.example"}
    renderer = EmailRenderer(name="W" * 60, timezone=ZoneInfo("Asia/Singapore"))
    inbox = Inbox(browser=chromium, renderer=renderer, emails=samples(**names))
    found = [f"{name}: {each}" for name in DIFFERENT for each in complaints(inbox.look(name, Appearance(width=320)))]
    assert not found, listed(found)


@pytest.mark.parametrize(("scheme", "accent"), [("light", "rgb(11, 81, 87)"), ("dark", "rgb(143, 220, 214)")])
def test_the_button_has_the_colour_of_the_theme(chromium: Browser, scheme: str, accent: str) -> None:
    """docs/theming.md"""
    renderer = EmailRenderer(
        name="Harbour", timezone=ZoneInfo("UTC"), theme=read(ROOT / "examples" / "themes" / "harbour")
    )
    page = Inbox(browser=chromium, renderer=renderer).look("link_password", Appearance(scheme=scheme, width=700))
    button = page.get_by_role("link", name="Choose a new password")
    assert button.evaluate("each => getComputedStyle(each).backgroundColor") == accent
    assert not complaints(page)


def test_the_preview_is_read_by_lists_and_not_seen(inbox: Inbox) -> None:
    page = inbox.look("link_password", Appearance(width=700))
    first = page.locator("body > div").first
    assert (first.text_content() or "").strip().startswith("The link works once, until")
    assert not first.is_visible()


def test_a_code_is_selected_whole_with_one_click(inbox: Inbox) -> None:
    page = inbox.look("code_to_sign_in", Appearance(width=320))
    page.get_by_text("482913", exact=True).click()
    assert page.evaluate("getSelection().toString().trim()") == "482913"


@pytest.mark.parametrize(
    ("picture", "name", "appearance"),
    [
        ("email-link", "link_password", Appearance(width=700, height=320)),
        ("email-notice", "new_device", Appearance(scheme="dark", width=375, height=320)),
    ],
)
def test_the_document_has_its_pictures(
    inbox: Inbox, picture: str, name: str, appearance: Appearance, pictures: Path
) -> None:
    inbox.look(name, appearance).screenshot(path=pictures / f"{picture}.png", full_page=True)
