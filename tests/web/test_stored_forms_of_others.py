"""What somebody typed is shown to nobody else, whatever they send, and looking at it ahead of time spends nothing (D73)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.rules.directory.records import Operator
from tests.console.scene import REASON, WITHOUT_PASSKEY, console, in_console
from tests.enrolment import newcomer
from tests.manage.access_scene import staffed
from tests.manage.scene import appoint, go, in_portal, portal
from tests.sign_in.world import World, cookies_of, entity, form_of, new_world, wear

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

SECRETIVE = "Tom the secretive"
PREFETCH = {"Sec-Purpose": "prefetch", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}


def said(browser: Browser) -> str:
    assert browser.response is not None
    return browser.response.text


async def sign_out(made: World, browser: Browser) -> None:
    await browser.open(f"{made.base}/sign-out", site="none")
    await browser.submit(next(form for form in browser.page.forms if form.action == "/sign-out"))
    assert browser.page.heading == "You are signed out"


async def bob_administers_acme(made: World) -> None:
    await made.person("bob", entity("200000001A", "Acme Pte. Ltd."), name="Bob Lim")
    await appoint(made, who="bob")


async def signs_in(made: World, browser: Browser, who: str, page: str) -> None:
    """The same browser, at a page of the portal to which it was sent by its address."""
    made.clock.pass_(60)
    await browser.open(page, site="none")
    await made.factors(browser, made.people[who])


async def test_the_next_person_at_a_browser_sees_no_form_of_the_one_before(made: World) -> None:
    """A rejected form, one to confirm, and one that came too late; also after Back."""
    await staffed(made)
    await bob_administers_acme(made)
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit("name", name=SECRETIVE, email="nowhere")
    rejected = browser.url
    await go(made, browser, "invite/several")
    await browser.fill_and_submit("people", people=f"{SECRETIVE} <tom@example.org>")
    checked = browser.url
    assert SECRETIVE in said(browser)
    await go(made, browser, "invite")
    made.clock.pass_(901)
    await browser.fill_and_submit("name", name=SECRETIVE, email="late@example.org")
    assert browser.page.heading.startswith("Confirm it is you")
    late = browser.url
    await sign_out(made, browser)
    for page in (rejected, checked, portal(made, "invite?again"), late):
        await signs_in(made, browser, "bob", portal(made, "people"))
        await browser.open(page, site="same-origin")
        assert SECRETIVE not in said(browser), page
        await browser.reload()
        assert SECRETIVE not in said(browser), page
        await sign_out(made, browser)


async def test_a_link_code_that_was_typed_is_not_shown_to_who_signs_in_afterwards(made: World) -> None:
    """The cookie is of one browser, which a sign-out and a sign-in begin anew."""
    await bob_administers_acme(made)
    browser = await in_portal(made)
    await browser.open(f"{made.base}/enrol", site="none")
    await browser.fill_and_submit(code=SECRETIVE)
    typed = browser.url
    assert SECRETIVE in said(browser)
    await sign_out(made, browser)
    await browser.open(typed, site="same-origin")
    assert SECRETIVE not in said(browser)
    await signs_in(made, browser, "bob", portal(made))
    await browser.open(typed, site="same-origin")
    assert SECRETIVE not in said(browser)


@pytest.mark.parametrize("change", ["", "x", "A" * 3072, "%00", "=;", "last", "first", "short"])
async def test_a_broken_cookie_is_no_form(made: World, change: str) -> None:
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    await browser.fill_and_submit(code=SECRETIVE)
    sealed = cookies_of(browser)["corpid_form"]
    other = "B" if sealed[0] == "A" else "A"
    broken = {"last": sealed[:-2] + other * 2, "first": other + sealed[1:], "short": sealed[: len(sealed) // 2]}
    wear(browser, {**cookies_of(browser), "corpid_form": broken.get(change, change)})
    await browser.reload()
    assert newcomer.status(browser) == 200
    assert form_of(browser, "code")["code"] == ""
    await browser.fill_and_submit(code="too short")
    assert form_of(browser, "code")["code"] == "too short"


async def test_a_cookie_for_one_page_is_no_form_of_another(made: World) -> None:
    """Nor does it say that an e-mail was sent."""
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    await browser.fill_and_submit(code=SECRETIVE)
    for page in ("recover?entered=1", "recover?sent=1"):
        await browser.open(f"{made.base}/{page}")
        assert SECRETIVE not in said(browser)
        assert browser.page.heading != "Check your e-mail"


async def test_support_reads_no_form_of_an_operator() -> None:
    """D53: not by its name, and not as the operator's own session after a change of level."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        operator = await in_console(made, "operator", "new-organisation")
        await operator.fill_and_submit("name", name=SECRETIVE, reason=REASON)
        assert "entered=" in operator.url
        assert SECRETIVE in said(operator)
        support = await in_console(made, "support")
        await support.open(operator.url, site="none")
        assert SECRETIVE not in said(support)
        await made.write(Operator(user_id="id-the-operator", level="support"))
        await operator.reload()
        assert newcomer.status(operator) == 403
        assert SECRETIVE not in said(operator)
        assert (await operator.http.get(console(made, "new-organisation"))).status_code == 403


async def test_a_page_that_is_fetched_ahead_of_time_spends_no_form(made: World) -> None:
    """D30, D73: neither a rejected one nor one to confirm."""
    await staffed(made)
    browser = await in_portal(made, "invite")
    await browser.fill_and_submit("name", name=SECRETIVE, email="nowhere")
    for page in ("invite", "invite/several"):
        for _ in range(2):
            assert SECRETIVE in (await browser.http.get(browser.url, headers=PREFETCH)).text
        await browser.reload()
        assert SECRETIVE in said(browser)
        if page == "invite":
            await go(made, browser, "invite/several")
            await browser.fill_and_submit("people", people=f"{SECRETIVE} <tom@example.org>")
