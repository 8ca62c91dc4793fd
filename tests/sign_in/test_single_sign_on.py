"""Single sign-on: off by default; with it on, when a page is left out and when it is not (D30, D40)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid_dev.relying_party.people import sign_in
from corpid_dev.relying_party.verification import ProviderError
from tests.sign_in.world import (
    EVERY_SCOPE,
    World,
    cookies_of,
    entity,
    form_of,
    new_world,
    post,
    query_of,
    walk_to,
    wear,
)

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

HOUR = 3600


async def signed_in(made: World, entity_id: str | None = None) -> Browser:
    """A browser in which Alice has signed in once."""
    browser, rp = await made.browser(), await made.relying_party()
    await sign_in(browser, await rp.begin(), made.people["alice"], entity_id, now=made.clock)
    made.clock.pass_(60)
    return browser


async def again(made: World, browser: Browser, *, scope: str = "openid authinfo", **parameters: str) -> str:
    """Where a further request leads: the heading of a page, the error of a callback, or `code`."""
    rp = await made.relying_party(scope=scope, **parameters)
    await browser.open(await rp.begin())
    if browser.left is None:
        return browser.page.heading
    answer = query_of(browser.left)
    assert answer["state"] == rp.sign_in.state
    return answer.get("error", "code")


@pytest.mark.generations("legacy", "current")
async def test_by_default_every_request_signs_in_anew(speaking: str) -> None:
    """D30: off by default."""
    async with new_world(generations=(speaking,), entities=1) as made:
        browser = await signed_in(made)
        assert await again(made, browser) == "Sign in"
        assert await again(made, browser, prompt="none") == "login_required"


@pytest.mark.generations("legacy", "current")
async def test_with_one_entity_and_nothing_to_ask_the_get_completes(speaking: str) -> None:
    """D30: and auth_time tells when the person really signed in."""
    async with new_world(generations=(speaking,), entities=1, session_seconds=HOUR) as made:
        then = int(made.clock())
        browser = await signed_in(made)
        rp = await made.relying_party()
        await browser.open(await rp.begin())
        tokens = await rp.redeem(browser.left or "")
        assert tokens.id_token["auth_time"] == then


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}, {"Sec-Fetch-Dest": "iframe"},
     {"Sec-Fetch-Dest": "empty"}, {"Sec-Fetch-Dest": "image"}],
    ids=str,
)  # fmt: skip
async def test_what_is_not_a_persons_navigation_gets_a_page_to_confirm(headers: dict[str, str]) -> None:
    """D30: its POST completes."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        completed = len(await made.audit("sign_in.complete"))
        rp = await made.relying_party()
        answer = await browser.http.get(await rp.begin(), headers=headers)
        assert answer.status_code == 303
        assert len(await made.audit("sign_in.complete")) == completed
        await browser.open(f"{made.base}{answer.headers['location']}")
        assert browser.page.heading == "Continue as Alice Tan?"
        assert "Acme Pte. Ltd." in browser.page.text
        await browser.fill_and_submit("decision", button="continue")
        await rp.redeem(browser.left or "")


async def test_head_never_completes() -> None:
    """D30."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        completed = len(await made.audit("sign_in.complete"))
        rp = await made.relying_party()
        answer = await browser.http.head(await rp.begin())
        assert answer.status_code == 303
        assert len(await made.audit("sign_in.complete")) == completed


@pytest.mark.generations("legacy", "current")
async def test_with_several_entities_the_last_one_is_preselected_and_the_post_completes(speaking: str) -> None:
    """D30."""
    async with new_world(generations=(speaking,), entities=3, session_seconds=HOUR) as made:
        browser = await signed_in(made, "200000002A")
        assert await again(made, browser) == "Choose who you act for"
        form = browser.page.form_with("entity")
        assert form is not None
        assert [choice.value for choice in form.choices("entity") if choice.chosen] == ["200000002A"]
        await browser.submit(form)
        assert "code" in query_of(browser.left)


async def test_consent_is_asked_in_spite_of_a_session() -> None:
    """D29, D30."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        await made.client(sector="private")
        assert await again(made, browser, scope=EVERY_SCOPE, prompt="none") == "consent_required"
        assert await again(made, browser, scope=EVERY_SCOPE) == "Do you agree to share this?"


@pytest.mark.generations("legacy", "current")
async def test_another_account_can_be_used_instead(speaking: str) -> None:
    """D30: from the confirmation and from the choice."""
    async with new_world(generations=(speaking,), session_seconds=HOUR) as made:
        bob = await made.person("bob", entity("200000009A", "Bobs Bakery"), name="Bob Lim")
        browser = await signed_in(made)
        for _ in range(2):
            rp = await made.relying_party()
            await walk_to(made, browser, rp)
            await browser.fill_and_submit("decision", button="other_account")
            assert browser.page.heading == "Sign in"
        await made.factors(browser, bob)
        tokens = await rp.redeem(browser.left or "")
        assert "id-bob" in tokens.id_token["sub"]
        made.clock.pass_(60)
        next_rp = await made.relying_party()
        await browser.open(await next_rp.begin())
        assert "id-bob" in (await next_rp.redeem(browser.left or "")).id_token["sub"]


async def test_the_lifetime_is_absolute() -> None:
    """D30: using the session does not lengthen it."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        made.clock.pass_(HOUR - 61)
        assert await again(made, browser) == "code"
        made.clock.pass_(1)
        assert await again(made, browser) == "Sign in"
        assert await again(made, browser, prompt="none") == "login_required"


@pytest.mark.generations("legacy", "current")
async def test_the_sign_out_page_ends_it(speaking: str) -> None:
    """D30, D34: after a click, and the cookie that was signed in is worth nothing."""
    async with new_world(generations=(speaking,), entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        before = cookies_of(browser)
        await browser.open(f"{made.base}/sign-out")
        assert browser.page.heading == "Sign out?"
        assert await again(made, browser, prompt="none") == "code", "looking ended the session"
        await browser.open(f"{made.base}/sign-out")
        await browser.fill_and_submit("form_token", button="Sign out")
        assert browser.page.heading == "You are signed out"
        assert await again(made, browser, prompt="none") == "login_required"
        thief = await made.browser()
        wear(thief, before)
        assert await again(made, thief, prompt="none") == "login_required"


async def test_nobody_else_can_sign_a_browser_out() -> None:
    """D35: from another site, or without the token of the page."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        await browser.open(f"{made.base}/sign-out")
        fields = form_of(browser, "form_token")
        browser.url = made.base
        assert (await post(browser, "sign-out", fields, site="cross-site")).status_code == 400
        assert (await post(browser, "sign-out", {"form_token": "wrong"})).status_code == 400
        assert await again(made, browser) == "code"


async def test_the_question_names_who_is_signed_in_and_offers_to_stay() -> None:
    """D30: a shared computer; to stay is a link, which changes nothing."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        await browser.open(f"{made.base}/sign-out")
        assert "You are signed in as Alice Tan" in browser.page.text
        stay = next(target for target, text in browser.page.links if text == "Stay signed in")
        await browser.open(f"{made.base}{stay}", site="same-origin")
        assert browser.page.heading == "Sign-in for organisations"
        assert await again(made, browser) == "code"


@pytest.mark.generations("legacy", "current")
async def test_prompt_login_and_max_age_sign_in_anew_and_auth_time_says_so(speaking: str) -> None:
    """D40, OpenID Connect Core §3.1.2.1: max_age counts from the sign-in."""
    async with new_world(generations=(speaking,), entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        assert await again(made, browser, max_age="61") == "code"
        assert await again(made, browser, max_age="60") == "Sign in"
        assert await again(made, browser, max_age="0") == "Sign in"
        assert await again(made, browser, max_age="60", prompt="none") == "login_required"
        rp = await made.relying_party(prompt="login")
        await walk_to(made, browser, rp, ("password", "code"))
        assert (await rp.redeem(browser.left or "")).id_token["auth_time"] == int(made.clock())


async def test_prompt_select_account_shows_the_choice_even_of_one() -> None:
    """D40: with a session and without."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await made.browser()
        assert await again(made, browser, prompt="select_account") == "Sign in"
        await made.factors(browser, made.people["alice"])
        assert browser.page.heading == "Choose who you act for"
        await browser.fill_and_submit(entity="200000001A")
        assert "code" in query_of(browser.left)
        assert await again(made, browser, prompt="select_account") == "Choose who you act for"


@pytest.mark.generations("legacy", "current")
async def test_prompt_none_never_shows_a_page(speaking: str) -> None:
    """D40: a code, or the error that names what would have been asked."""
    async with new_world(generations=(speaking,), entities=2, session_seconds=HOUR) as made:
        assert await again(made, await made.browser(), prompt="none") == "login_required"
        assert await again(made, await signed_in(made), prompt="none") == "interaction_required"


@pytest.mark.parametrize("prompt", ["none login", "consent none", "create", "login,consent"])
async def test_an_impossible_prompt_is_refused_at_once(made: World, prompt: str) -> None:
    """D40: invalid_request at PAR."""
    rp = await made.relying_party(prompt=prompt)
    with pytest.raises(ProviderError, match="invalid_request"):
        await rp.begin()


@pytest.mark.generations("legacy", "current")
async def test_display_is_ignored_and_a_post_at_authorize_is_sent_to_the_get(speaking: str) -> None:
    """D40, D35: the relying party's POST comes from another site and is welcome."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party(display="popup")
        url = await rp.begin()
        endpoint, _, query = url.partition("?")
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "cross-site"}
        answer = await browser.http.post(endpoint, content=query, headers=headers)
        assert answer.status_code == 303
        await browser.open(f"{made.base}{answer.headers['location']}")
        assert browser.page.heading == "Sign in"
