"""What a person needs next is in sight before anybody scrolls (docs/accessibility.md)."""

from __future__ import annotations

import pytest

from corpid.web.pages.translations import ENGLISH, LANGUAGES, Language
from tests.browser.gallery import Appearance, Beholder
from tests.tiers import first_or_full

pytestmark = pytest.mark.full

PHONE = (375, 667)
LAPTOP = (1280, 800)
BOX = "each => [each, each.previousElementSibling].map(e => Math.round(e.getBoundingClientRect().right)).join()"
BOTTOM = "each => each.getBoundingClientRect().bottom"


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
@pytest.mark.parametrize("language", first_or_full(LANGUAGES), ids=lambda each: each.tag)
@pytest.mark.parametrize("state", ["sign-in", "code", "choose", "consent", "consent-signed-in"])
def test_the_main_button_is_in_the_first_screen(
    beholder: Beholder, state: str, language: Language, size: tuple[int, int]
) -> None:
    width, height = size
    page = beholder.look(state, Appearance(language=language, width=width, height=height))
    assert page.locator(".content button[type=submit]:not(.button-quiet)").first.evaluate(BOTTOM) <= height


def test_all_that_is_shared_stands_above_the_button_in_one_screen(beholder: Beholder) -> None:
    """D29: nobody agrees to what they had to scroll for."""
    for language, (width, height) in [(ENGLISH, PHONE), *((each, LAPTOP) for each in LANGUAGES)]:
        page = beholder.look("consent", Appearance(language=language, width=width, height=height))
        top = page.locator("[value=agree]").evaluate("each => each.getBoundingClientRect().top")
        assert page.locator(".consent-summary > :last-child").evaluate(BOTTOM) <= top, language.tag


def test_cancel_stands_to_the_right_of_the_main_button_on_every_page(beholder: Beholder) -> None:
    """On a phone, where one row holds both."""
    places = set()
    for state in ("sign-in", "code", "code-passkey", "code-by-mail", "choose", "consent", "confirm"):
        page = beholder.look(state, Appearance(width=PHONE[0], height=PHONE[1]))
        places.add(page.locator("[form=cancel]:visible").evaluate(BOX))
    assert len(places) == 1, places


def test_a_laptop_shows_every_way_to_sign_in(beholder: Beholder) -> None:
    page = beholder.look("sign-in", Appearance(width=LAPTOP[0], height=LAPTOP[1]))
    for way in ("#passkey", ".help a"):
        assert page.locator(way).evaluate(BOTTOM) <= LAPTOP[1]


def test_the_two_answers_to_an_offer_are_of_one_size(beholder: Beholder) -> None:
    page = beholder.look("offer-passkey", Appearance(width=LAPTOP[0], height=LAPTOP[1]))
    widths = [page.locator(each).evaluate("each => each.offsetWidth") for each in ("#passkey", "[value=not_now]")]
    assert widths[0] == widths[1]


def test_links_of_one_box_look_the_same(beholder: Beholder) -> None:
    """A link beside a button that looks like one is no bolder; both begin where the text does."""
    page = beholder.look("account-browsers", Appearance(width=PHONE[0], height=PHONE[1]))
    weight = "each => getComputedStyle(each).fontWeight"
    assert {each.evaluate(weight) for each in page.locator(".line a, .line button").all()} == {"400"}
    page = beholder.look("sign-in-warned", Appearance(width=PHONE[0], height=PHONE[1]))
    starts = page.locator("#time-warning .button").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().left"
        " + (each.matches('.button-quiet') ? 1 + parseFloat(getComputedStyle(each).paddingLeft) : 0))"
    )
    assert max(starts) - min(starts) < 1


def test_a_passkey_that_was_not_created_was_not_merely_unused(beholder: Beholder) -> None:
    """The message says what was tried."""
    for state, verb in (("enrol-password", "created"), ("enrol-app", "created"), ("code-passkey", "used")):
        page = beholder.look(state, Appearance(width=PHONE[0], height=PHONE[1]))
        said = page.locator("form.passkey").get_attribute("data-cancelled")
        assert said == f"No passkey was {verb}. Try again, or choose another option."


def test_the_overview_of_a_busy_deployment_takes_at_most_two_screens_of_a_laptop(beholder: Beholder) -> None:
    """With six alerts, three clients and reasons, and five servers."""
    page = beholder.look("console-overview", Appearance(width=LAPTOP[0], height=LAPTOP[1]))
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * LAPTOP[1]
