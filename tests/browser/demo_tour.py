"""The pages of the demo relying party, one after the other: the start, its mail, a refusal, a sign-in with all that it brought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.test_demo import listed, sign_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page


def stops(page: Page, demo: str) -> Iterator[str]:
    """Leads from page to page of the demo at this address; says the name of each."""
    page.goto(demo)
    yield "start"
    user_name, password = listed(page, "User name"), listed(page, "Password")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_label("User name").fill(user_name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send me a code by e-mail").click()
    page.get_by_role("heading", name="Enter the code we sent you").wait_for()
    page.goto(f"{demo}/mail")
    page.locator(".email").first.wait_for()
    yield "mail"
    page.get_by_role("link", name="As a mail program shows it").first.click()
    page.wait_for_url("**/mail/*")
    yield "mail-html"
    page.goto(f"{demo}/callback?state=nobody")
    yield "unknown"
    page.goto(demo)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="The provider refused").wait_for()
    yield "refused"
    page.goto(demo)
    sign_in(page, "Rina Example")
    page.get_by_role("button", name="Agree and continue").click()
    page.get_by_role("heading", name="You are signed in").wait_for()
    yield "result"
    for fold in page.locator("summary").all():
        fold.click()
    yield "result-opened"
