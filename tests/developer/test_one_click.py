"""The sign-in page of a demo: one click on a test person is both factors, and nothing else (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.web.mode import KEY_COOKIE
from tests.developer.scene import KEY, demo_world
from tests.sign_in.world import IDENTITY, World, form_of, new_world, post, query_of, rejected, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

FIRST = "200000001A"
LISTED = "Sign in at once"


async def opened(made: World, **parameters: str) -> tuple[Browser, Any]:
    browser, rp = await made.browser(), await made.relying_party(**parameters)
    await walk_to(made, browser, rp)
    return browser, rp


async def click(browser: Browser, person: str = "alice", **fields: str) -> None:
    await browser.fill_and_submit("person", button=person, **fields)


async def test_the_page_lists_the_test_people_and_nobody_else() -> None:
    """D66: those that the directory marks, in a demo; elsewhere there is no list."""
    async with demo_world() as made:
        await made.person("bob", name="Bob Lee")
        browser, _ = await opened(made)
        assert LISTED in browser.page.text
        form = browser.page.form_with("person")
        assert form is not None
        assert [button.value for button in form.buttons if button.name == "person"] == ["alice"]

    async with new_world() as made:
        browser, _ = await opened(made)
        assert browser.page.form_with("person") is None
        assert LISTED not in browser.page.text


async def test_one_click_is_both_factors_and_the_rest_is_asked() -> None:
    """D66, D17, D29: entity and consent are the person's to choose, the code is real."""
    async with demo_world() as made:
        await made.client(sector="private")
        browser, rp = await opened(made, scope=f"openid authinfo {IDENTITY}")
        await click(browser)
        assert browser.page.heading == "Choose who you act for"
        await browser.fill_and_submit(entity=FIRST)
        assert browser.page.heading == "Do you agree to share this?"
        await browser.fill_and_submit("decision", button="agree")
        assert browser.left is not None
        tokens = await rp.redeem(browser.left)
        assert tokens.id_token["amr"] == ["pwd", "otp", "mfa"]
        assert tokens.id_token["sub"] == "id-alice"
        (simulated,) = await made.audit("sign_in.simulate")
        assert simulated.client_id == "rp1"
        (completed,) = await made.audit("sign_in.complete")
        assert completed.detail["way"] == "simulated"
        assert await made.audit("sign_in.password") == []


async def test_the_way_that_amr_claims_can_be_chosen() -> None:
    """D66, RFC 8176."""
    async with demo_world(entities=1) as made:
        browser, rp = await opened(made)
        await click(browser, way="passkey")
        assert browser.left is not None
        assert (await rp.redeem(browser.left)).id_token["amr"] == ["pop", "user", "mfa"]


@pytest.mark.parametrize(("person", "way"), [("bob", "passkey"), ("", "passkey"), ("alice", "magic")])
async def test_nobody_and_nothing_else_is_accepted(person: str, way: str) -> None:
    """D66: the page comes again and says so."""
    async with demo_world() as made:
        await made.person("bob", name="Bob Lee")
        browser, _ = await opened(made)
        fields = form_of(browser, "person")
        answer = await post(browser, "at-once", {**fields, "person": person, "way": way})
        assert "Choose one of the" in (await rejected(browser, answer)).text
        assert await made.audit("sign_in.simulate") == []


async def test_a_form_of_another_site_or_browser_signs_nobody_in() -> None:
    """D35: Sec-Fetch-Site, and a token that is bound to this browser and this sign-in."""
    async with demo_world() as made:
        browser, _ = await opened(made)
        other, _ = await opened(made)
        own, foreign = form_of(browser, "person"), form_of(other, "person")
        for fields, site in (
            (own, "cross-site"),
            (own, "same-site"),
            (own, None),
            (foreign, "same-origin"),
            ({}, "same-origin"),
        ):
            answer = await post(browser, "at-once", {**fields, "person": "alice"}, site=site)
            assert answer.status_code == 400
        assert await made.audit("sign_in.simulate") == []


async def test_a_second_click_leads_to_the_same_page() -> None:
    """D34: a browser drops the first answer of a double click, with its cookie."""
    async with demo_world() as made:
        browser, _ = await opened(made)
        fields = {**form_of(browser, "person"), "person": "alice"}
        first = await post(browser, "at-once", fields)
        browser.http.cookies.clear()
        cookie = first.request.headers["Cookie"]
        second = await post(browser, "at-once", fields, Cookie=cookie)
        assert first.status_code == second.status_code == 303
        assert first.headers["Set-Cookie"] == second.headers["Set-Cookie"]
        assert len(await made.audit("sign_in.simulate")) == 1


async def test_the_click_counts_at_the_first_page_only() -> None:
    """D15: after the password the sign-in asks that person for a code, and is nobody else's."""
    async with demo_world() as made:
        browser, rp = await opened(made)
        fields = form_of(browser, "person")
        await made.password(browser, made.people["alice"])
        assert browser.page.form_with("person") is None
        answer = await post(browser, "at-once", {**fields, "step": "1", "person": "alice"})
        assert answer.status_code == 303
        assert await made.audit("sign_in.simulate") == []
        assert rp is not None


async def test_the_account_of_a_test_person_opens_with_one_click() -> None:
    """D66: the provider's own pages sign people in on the same page."""
    async with demo_world() as made:
        browser = await made.browser()
        await browser.open(f"{made.base}/account")
        await click(browser)
        assert browser.page.heading == "Your account"


async def test_single_sign_on_goes_on_from_it() -> None:
    """D30, D40: the session is one of both factors; prompt=login asks again."""
    async with demo_world(entities=1, session_seconds=3600) as made:
        browser, _ = await opened(made)
        await click(browser)
        assert "code" in query_of(browser.left)
        rp = await made.relying_party()
        await browser.open(await rp.begin())
        assert "code" in query_of(browser.left)
        again = await made.relying_party(prompt="login")
        await browser.open(await again.begin())
        assert browser.page.form_with("person") is not None


async def test_another_machine_sees_the_list_with_the_key_only() -> None:
    """D66: without it the page is that of every provider, and the step is unknown."""
    async with demo_world(entities=1) as made:
        browser, rp = await made.browser("192.0.2.7"), await made.relying_party()
        url = await rp.begin()
        await browser.open(url)
        assert browser.page.form_with("person") is None
        fields = {**form_of(browser, "user_name", "password"), "person": "alice"}
        assert (await post(browser, "at-once", fields)).status_code == 400
        browser.http.cookies.set(KEY_COOKIE, KEY, domain="localhost.local")
        await browser.open(url)
        await click(browser)
        assert "code" in query_of(browser.left)
