"""What a person needs next is in sight before anybody scrolls (DESIGN "Pages")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.web.pages.translations import LANGUAGES
from tests.browser.gallery import Appearance, Beholder

if TYPE_CHECKING:
    from corpid.web.pages.translations import Language

PHONE = (375, 667)
LAPTOP = (1280, 800)
BOTTOM = "each => each.getBoundingClientRect().bottom"


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.tag)
@pytest.mark.parametrize("state", ["sign-in", "code", "choose"])
def test_the_main_button_is_in_the_first_screen(
    beholder: Beholder, state: str, language: Language, size: tuple[int, int]
) -> None:
    width, height = size
    page = beholder.look(state, Appearance(language=language, width=width, height=height))
    assert page.locator(".content button[type=submit]:not(.button-quiet)").first.evaluate(BOTTOM) <= height


def test_a_laptop_shows_every_way_to_sign_in(beholder: Beholder) -> None:
    page = beholder.look("sign-in", Appearance(width=LAPTOP[0], height=LAPTOP[1]))
    for way in ("#passkey", ".help a"):
        assert page.locator(way).evaluate(BOTTOM) <= LAPTOP[1]
