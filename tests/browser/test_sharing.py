"""Consent that is remembered, and stopped in the account, in Chromium with and without JavaScript (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage, Visitor, shows, staged, with_and_without_script

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full


CONSENT: Final = "Do you agree to share this?"
LIST: Final = "Services you share data with"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged(consent_days=365) as made:
        yield made


def past_the_factors(visitor: Visitor, user_name: str, url: str) -> Page:
    page = visitor.tab()
    page.goto(url)
    visitor.password(page, user_name=user_name)
    visitor.code(page)
    return page


@with_and_without_script
def test_who_has_agreed_is_not_asked_until_they_stop_sharing(visitor: Visitor, stage: Stage) -> None:
    """D29: the page says until when and opens what is shared; the account says what ends, and asks before it does."""
    person = stage.somebody()
    page = past_the_factors(visitor, person, stage.begin()[0])
    shows(page, CONSENT)
    everything = page.get_by_text("Your roles for the organisation, service by service")
    expect(everything).to_be_hidden()
    page.get_by_text("See all details").click()
    expect(everything).to_be_visible()
    expect(page.get_by_text("unless you stop sharing in your account")).to_be_visible()
    expect(page.get_by_text("Until then, you are not asked again.")).to_be_visible()
    visitor.agree(page)
    visitor.back(page)

    page = past_the_factors(visitor, person, stage.begin()[0])
    assert "code" in visitor.back(page)

    page = past_the_factors(visitor, person, f"{stage.world.base}/account")
    page.locator(".sections").get_by_role("link", name=LIST).click()
    shows(page, LIST)
    line = page.locator(".line").filter(has_text="Harbour Board")
    assert "For Bobs Bakery" in line.inner_text()
    line.get_by_text("What is shared").click()
    expect(line.get_by_text("Your name", exact=True)).to_be_visible()
    page.get_by_role("link", name="Stop sharing with Harbour Board, for Bobs Bakery").click()
    shows(page, "Stop sharing with Harbour Board?")
    page.get_by_role("link", name="Cancel").click()
    shows(page, LIST)
    page.get_by_role("link", name="Stop sharing with Harbour Board, for Bobs Bakery").click()
    page.get_by_role("button", name="Stop sharing").click()
    shows(page, LIST)
    expect(page.get_by_text("There are none.")).to_be_visible()

    page = past_the_factors(visitor, person, stage.begin()[0])
    shows(page, CONSENT)
