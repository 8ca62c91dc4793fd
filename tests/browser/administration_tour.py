"""The portal as the demo's owner sees it, and the console as its operator does, one page after the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.test_demo import link, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

OWNER = "Marcus Lim Sample"
OPERATOR = "Nadia Everywhere"


def address(printed: str, place: str) -> str:
    """Of the portal or the console, as the command printed it."""
    found = re.search(rf"{place}\s+(http://\S+)", printed)
    assert found, printed
    return found[1]


def arrive(page: Page, printed: str, place: str, person: str) -> str:
    """Sign in to the portal or the console; its address."""
    page.goto(link(printed))
    user_name, password, code = (listed(page, label, person) for label in ("User name", "Password", "Code"))
    begin = address(printed, place)
    page.goto(begin)
    page.get_by_label("User name").fill(user_name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_role("button", name="Continue").click()
    return begin


def _follow(page: Page, name: str) -> None:
    page.get_by_role("link", name=name).first.click()


def _choose(page: Page, name: str) -> None:
    page.locator(".choice label").filter(has_text=name).click()


def portal_stops(page: Page, printed: str) -> Iterator[str]:
    """The names of the portal's pages, each while it is shown."""
    portal = arrive(page, printed, "Portal", OWNER)
    page.get_by_role("heading", name="Home").wait_for()
    yield "portal-home"
    page.goto(f"{portal}/people")
    yield "portal-people"
    _follow(page, "Siti Contoh")
    yield "portal-person"
    _follow(page, "Give access")
    yield "portal-give-access"
    _choose(page, "Food licences: Viewer")
    _choose(page, "At the end of this year")
    page.locator(".role-group:has(:checked)").get_by_role("combobox", name="Part of the organisation").fill(
        "Market Street"
    )
    yield "portal-role"
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("may act as Viewer").first.wait_for()
    yield "portal-summary"
    page.goto(f"{portal}/access")
    yield "portal-access"
    page.goto(f"{portal}/access-review")
    _follow(page, "Begin the review")
    page.get_by_text("people reviewed").first.wait_for()
    yield "portal-review"
    page.goto(f"{portal}/requests")
    yield "portal-requests"
    _follow(page, "Tan Wei Ling")
    yield "portal-request"
    page.goto(f"{portal}/third-parties")
    yield "portal-third-parties"
    page.goto(f"{portal}/administrators")
    yield "portal-administrators"
    page.goto(f"{portal}/history")
    yield "portal-history"


def console_stops(page: Page, printed: str) -> Iterator[str]:
    """The names of the console's pages, each while it is shown."""
    console = arrive(page, printed, "Console", OPERATOR)
    page.get_by_role("heading", name="Overview").wait_for()
    yield "console-overview"
    for name in ("entities", "people", "services", "clients", "keys", "audit", "maintenance"):
        page.goto(f"{console}/{name}")
        yield f"console-{name}"
