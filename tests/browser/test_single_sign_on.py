"""Who is signed in already, in Chromium: a second service, another account, and nobody to act for (D17, D29, D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.browser.stage import Stage, Visitor, shows, staged, with_and_without_script
from tests.sign_in.world import entity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


pytestmark = pytest.mark.full

HOUR: Final = 3600
AHEAD_OF_TIME: Final = {"Sec-Purpose": "prefetch"}
CHOICE: Final = "Choose who you act for"
CONSENT: Final = "Do you agree to share this?"
CONFIRM: Final = "Continue as Bob Lim?"
NO_ENTITY: Final = "You cannot use this service yet"


async def _people(made: Stage) -> None:
    await made.world.client("rp3", name="Permit Office", redirect_uris=(made.callback,))
    await made.world.person("bob", entity("200000003A", "Bobs Bakery"), name="Bob Lim")
    await made.world.person("nadia", name="Nadia Nobody")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """With single sign-on; Bob acts for one entity and Nadia for none; rp3 asks for no consent."""
    with staged(session_seconds=HOUR) as made:
        made.wait_for(_people(made))
        yield made


def past_the_factors(visitor: Visitor, stage: Stage, user_name: str, client_id: str = "rp1") -> Page:
    """A new tab, with a sign-in that goes on after password and code."""
    page = visitor.tab()
    page.goto(stage.begin(client_id)[0])
    visitor.password(page, user_name=user_name)
    visitor.code(page)
    return page


@with_and_without_script
def test_a_second_service_asks_neither_for_password_nor_code_but_for_whom_and_what(
    visitor: Visitor, stage: Stage
) -> None:
    """D29, D30: who is signed in stands on the page; the entity of before is chosen already."""
    page = past_the_factors(visitor, stage, "alice")
    visitor.entity(page, "200000012A")
    visitor.agree(page)
    visitor.back(page)
    url, rp = stage.begin("rp2")
    page.goto(url)
    shows(page, CHOICE)
    assert "alice" in page.locator(".relying-party").inner_text()
    assert page.locator("input[value='200000012A']").is_checked()
    page.get_by_role("button", name="Continue").click()
    shows(page, CONSENT)
    visitor.agree(page)
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000012A"


@pytest.mark.parametrize("answer", ["Continue", "Use another account"])
def test_what_a_browser_fetched_ahead_of_time_is_confirmed_by_a_person(
    visitor: Visitor, stage: Stage, answer: str
) -> None:
    """D30: or goes on with another account."""
    visitor.back(past_the_factors(visitor, stage, "bob", "rp3"))
    url, _ = stage.begin("rp3")
    fetched = visitor.context.request.get(url, headers=AHEAD_OF_TIME, max_redirects=0)
    page = visitor.tab()
    page.goto(f"{stage.world.base}{fetched.headers['location']}")
    shows(page, CONFIRM)
    assert page.get_by_text("Bobs Bakery").first.is_visible()
    page.get_by_role("button", name=answer).click()
    if answer == "Continue":
        assert "code" in visitor.back(page)
    else:
        shows(page, "Sign in")


@pytest.mark.parametrize("stays_at", [CHOICE, CONSENT])
def test_another_account_can_be_used_from_the_choice_and_from_consent(
    visitor: Visitor, stage: Stage, stays_at: str
) -> None:
    """D30."""
    page = past_the_factors(visitor, stage, "alice")
    visitor.entity(page)
    visitor.agree(page)
    visitor.back(page)
    url, rp = stage.begin("rp2")
    page.goto(url)
    shows(page, CHOICE)
    if stays_at == CONSENT:
        visitor.entity(page)
    shows(page, stays_at)
    page.get_by_role("button", name="Use another account").click()
    shows(page, "Sign in")
    visitor.password(page, user_name="bob")
    visitor.code(page)
    shows(page, CONSENT)
    visitor.agree(page)
    visitor.back(page)
    assert stage.redeem(rp, page.url) == "200000003A"


@with_and_without_script
def test_who_acts_for_nobody_is_told_so_and_led_back(visitor: Visitor, stage: Stage) -> None:
    """D17."""
    page = past_the_factors(visitor, stage, "nadia")
    shows(page, NO_ENTITY)
    assert page.get_by_text("no organisation has named you").is_visible()
    page.get_by_role("button", name="Return to Harbour Board").click()
    assert visitor.back(page)["error"] == "access_denied"
