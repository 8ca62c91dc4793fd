"""Signing in to the account: the same factors, a session of its own, for a short time (D30, D34, D35)."""

from __future__ import annotations

import pytest

from corpid.rules.limits import (
    ACCOUNT_FRESH_SECONDS,
    ACCOUNT_IDLE_SECONDS,
    ACCOUNT_SESSION_SECONDS,
    INTERACTION_SECONDS,
)
from tests.account.scene import account, at_account, go, hidden, send, sessions
from tests.sign_in.factors import passkey
from tests.sign_in.world import World, cookies_of, new_world, post, query_of, walk_to, wear

SECTIONS = ("passkeys", "new-passkey", "app", "password", "codes", "browsers", "sign-ins", "language")


async def test_a_person_signs_in_to_the_account_with_both_factors_and_chooses_no_entity(made: World) -> None:
    """Two steps, and nothing asks for an organisation or for consent."""
    browser = await made.browser()
    await browser.open(account(made))
    assert browser.page.heading == "Sign in"
    assert "Step " not in browser.page.text
    assert "To change how you sign in" not in browser.page.text
    await made.factors(browser, made.people["alice"])
    assert browser.url == account(made)
    assert browser.page.heading == "Your account"
    (session,) = await sessions(made)
    assert (session.purpose, session.amr) == ("account", ("pwd", "otp", "mfa"))


async def test_a_passkey_opens_the_account_in_one_step_and_leads_to_the_page_that_was_asked_for(made: World) -> None:
    """D46."""
    key = await passkey(made)
    browser = await at_account(made, "sign-ins", key=key)
    assert browser.url == account(made, "sign-ins")
    assert browser.page.heading == "Your last sign-ins"


@pytest.mark.parametrize("page", SECTIONS)
async def test_no_page_is_shown_to_who_is_not_signed_in_for_the_account(page: str) -> None:
    """D30: not even with single sign-on; what is posted is not looked at."""
    async with new_world(session_seconds=3600) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        for answer in (await browser.http.get(account(made, page)), await send(made, browser, page, form_token="x")):
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/sign-in/")
            assert answer.headers["cache-control"] == "no-store"


async def test_no_client_is_answered_with_the_session_of_the_account() -> None:
    """D30: single sign-on off or on."""

    async def story(made: World) -> None:
        browser = await at_account(made)
        await browser.open(await (await made.relying_party(prompt="none")).begin())
        assert query_of(browser.left)["error"] == "login_required"

    async with new_world() as made:
        await story(made)
    async with new_world(session_seconds=3600) as made:
        await story(made)


async def test_the_account_closes_when_nobody_uses_it_and_after_an_hour_in_any_case(made: World) -> None:
    browser = await at_account(made)
    made.clock.pass_(ACCOUNT_IDLE_SECONDS)
    assert await go(made, browser) == "Sign in"
    browser = await at_account(made)
    for _ in range(ACCOUNT_SESSION_SECONDS // 600 - 1):
        made.clock.pass_(600)
        assert await go(made, browser) == "Your account"
    made.clock.pass_(600)
    assert await go(made, browser) == "Sign in"


async def test_a_change_of_factors_asks_for_a_fresh_sign_in_and_leads_back(made: World) -> None:
    """Looking at what there is does not."""
    browser = await at_account(made)
    made.clock.pass_(ACCOUNT_FRESH_SECONDS)
    assert await go(made, browser, "browsers") == "Where you are signed in"
    assert await go(made, browser, "password") == "Confirm it is you, Alice Tan"
    assert "To change how you sign in, sign in again" in browser.page.text
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Choose a new password"
    assert "You have signed in again. Nothing has changed yet" in browser.page.text


@pytest.mark.parametrize("page", SECTIONS)
async def test_every_page_of_the_account_leads_back_to_what_it_stands_below(made: World, page: str) -> None:
    """By a link above its heading."""
    browser = await at_account(made, page)
    above = "/account/passkeys" if page == "new-passkey" else "/account"
    assert browser.response is not None
    assert f'<p class="up"><a href="{above}">' in browser.response.text


async def test_no_page_of_an_unfinished_sign_in_leads_to_the_account(made: World) -> None:
    """D15: a sign-in that is left is lost; a page after its end may lead there."""
    browser, rp = await made.browser(), await made.relying_party()
    await browser.open(await rp.begin())
    assert "Your account" not in [text for _, text in browser.page.links]
    await made.password(browser, made.people["alice"])
    assert "Your account" not in [text for _, text in browser.page.links]
    made.clock.pass_(INTERACTION_SECONDS)
    await browser.reload()
    assert ("/account", "Your account") in browser.page.links


async def test_a_cancelled_sign_in_leads_out_of_the_account(made: World) -> None:
    """D17: and to no address that a request could name."""
    browser = await made.browser()
    await browser.open(account(made))
    form = next(each for each in browser.page.forms if each.id == "cancel")
    await browser.submit(form)
    assert browser.url == f"{made.base}/"


async def test_signing_out_ends_the_account_and_single_sign_on_in_this_browser() -> None:
    """D30: with a new cookie value, and at the next request everywhere."""
    async with new_world(session_seconds=3600) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        made.clock.pass_(60)
        await browser.open(account(made))
        await made.factors(browser, made.people["alice"])
        kept = cookies_of(browser)
        await browser.open(f"{made.base}/sign-out")
        await browser.submit(browser.page.forms[0])
        assert await sessions(made) == []
        assert await go(made, browser) == "Sign in"
        thief = await made.browser()
        wear(thief, kept)
        assert await go(made, thief) == "Sign in"


async def test_signing_in_replaces_the_cookie_and_a_planted_one_gains_nothing(made: World) -> None:
    """D34, session fixation: neither the cookie nor the interaction that an attacker planted."""
    attacker, victim = await made.browser(), await made.browser()
    await attacker.open(account(made))
    planted, where = cookies_of(attacker), attacker.url
    wear(victim, planted)
    await victim.open(where)
    await made.factors(victim, made.people["alice"])
    assert victim.page.heading == "Your account"
    assert cookies_of(victim) != planted
    assert await go(made, attacker) == "Sign in"
    await attacker.open(where)
    assert attacker.page.heading == "This sign-in belongs to another browser"


async def test_a_foreign_site_cannot_sign_a_browser_in_as_somebody_else(made: World) -> None:
    """D35, login CSRF: neither with its own form, nor by leading a browser to a sign-in that it began."""
    await made.person("mallory")
    attacker, victim = await made.browser(), await made.browser()
    await attacker.open(account(made))
    await made.password(attacker, made.people["mallory"])
    code = made.people["mallory"].fresh_code(made.clock())
    fields = {**hidden(attacker), "code": code}
    await victim.open(account(made))
    own = victim.url
    victim.url = attacker.url
    assert (await post(victim, "code", fields, site="cross-site")).status_code == 400
    answer = await post(victim, "code", fields)
    assert answer.status_code == 303
    await victim.open(f"{made.base}{answer.headers['location']}")
    assert victim.page.heading == "This sign-in belongs to another browser"
    victim.url = own
    assert (await post(victim, "code", fields)).status_code == 400
    assert await sessions(made, "id-mallory") == []
    assert await go(made, victim) == "Sign in"


async def test_who_signs_in_signs_out_whoever_was_signed_in_at_this_browser() -> None:
    """D30: single sign-on never goes on as somebody else than the account."""
    async with new_world(session_seconds=3600) as made:
        await made.person("bob", name="Bob Lim")
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        await browser.open(account(made))
        await made.factors(browser, made.people["bob"])
        assert "Bob Lim" in browser.page.text
        assert await sessions(made) == []
        await browser.open(await (await made.relying_party(prompt="none")).begin())
        assert query_of(browser.left)["error"] == "login_required"


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "%2F%2Fevil.example", "https:%2F%2Fevil.example", "..%2F..%2Fevil", "x%0d%0aSet-Cookie:a=b",
     "passkey", "passkey/zz", "app/qr.png", "codes/x"],
)  # fmt: skip
async def test_what_is_no_page_of_the_account_leads_nowhere(made: World, path: str) -> None:
    """No open redirect: only pages that are known are come back to."""
    stranger = await made.browser()
    answer = await stranger.http.get(f"{account(made)}/{path}", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "location" not in answer.headers


async def test_parameters_of_an_address_lead_nowhere(made: World) -> None:
    """No open redirect: whatever such a parameter may be called, the way back is the account."""
    for name in ("next", "redirect_uri", "return_to", "url", "saved", "page", "state"):
        made.clock.pass_(60)
        browser = await made.browser()
        await browser.open(f"{account(made)}?{name}=https%3A%2F%2Fevil.example%2F")
        await made.factors(browser, made.people["alice"])
        assert browser.left is None
        assert browser.url == account(made)
        assert "evil.example" not in browser.page.text


async def test_a_language_link_leads_back_to_no_other_site(made: World) -> None:
    """No open redirect by a Referer."""
    browser = await made.browser()
    for referer in ("https://evil.example/", f"{made.base}.evil.example/", "//evil.example", f"{made.base}@evil"):
        answer = await browser.http.get(f"{made.base}/language/ms", headers={"Referer": referer})
        assert answer.headers["location"] == f"{made.base}/"


async def test_no_page_of_the_account_is_kept_or_framed(made: World) -> None:
    """D36, D31: nor the picture that holds a secret."""
    browser = await at_account(made)
    for page in ("", *SECTIONS, "app/qr.svg"):
        answer = await browser.http.get(account(made, page))
        assert answer.status_code == 200, page
        assert answer.headers["cache-control"] == "no-store"
        if page == "app/qr.svg":
            continue
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "same-origin"


async def test_a_disabled_person_loses_the_account_at_the_next_request(made: World) -> None:
    """D50."""
    browser = await at_account(made)
    await made.disable("alice")
    assert await go(made, browser) == "Sign in"
