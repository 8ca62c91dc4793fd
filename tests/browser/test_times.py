"""Instants are shown in the reader's time zone (docs/accessibility.md)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.stage import WITHOUT_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.stage import Stage, Visitor

ELSEWHERE = {"timezone_id": "Asia/Kolkata", "locale": "en-GB"}


def sign_ins(visitor: Visitor, stage: Stage) -> Page:
    page = visitor.tab()
    page.goto(f"{stage.world.base}/account/sign-ins")
    visitor.password(page)
    visitor.code(page)
    page.wait_for_url("**/account/sign-ins")
    return page


@pytest.mark.parametrize("visitor", [ELSEWHERE], indirect=True, ids=["Asia/Kolkata"])
def test_an_instant_is_shown_in_the_zone_of_the_browser(visitor: Visitor, stage: Stage) -> None:
    """With that zone's day, written as the server writes it; the deployment's zone stays in the title."""
    shown = sign_ins(visitor, stage).locator("main time").first
    at = datetime.fromisoformat(shown.get_attribute("datetime") or "")
    assert at.utcoffset() == timedelta(0)
    there = at + timedelta(hours=5, minutes=30)
    expect(shown).to_contain_text(f"{there.day} {there:%b} {there.year}, {there:%H:%M}")
    expect(shown).not_to_contain_text("UTC")
    assert (shown.get_attribute("title") or "").endswith("UTC")


@pytest.mark.parametrize(
    "visitor",
    [{"timezone_id": "UTC"}, {**ELSEWHERE, **WITHOUT_SCRIPT}],
    indirect=True,
    ids=["the same zone", "no script"],
)
def test_an_instant_stays_as_the_deployment_writes_it(visitor: Visitor, stage: Stage) -> None:
    """With the name of the zone: in the same zone, and where no script runs."""
    shown = sign_ins(visitor, stage).locator("main time").first
    expect(shown).to_contain_text("UTC")
    assert shown.get_attribute("title") is None
