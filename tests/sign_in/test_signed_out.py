"""What signing out ends, and what it leaves: known browsers, and sign-ins that are under way (D30, D34, D47, D50)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.authentication import browsers, interaction_context, sign_in
from corpid.flows.authentication.sessions import Authentication, start_session
from corpid.jose.encoding import base64url
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.oauth import acr
from tests import engines
from tests.account.scene import account, at_account, sessions
from tests.contexts import context
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, change, passkey, recovery, use
from tests.sign_in.world import World, cookies_of, form_of, new_world, post, query_of, walk_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid_dev.relying_party.browser import Browser
    from tests.authenticator import Authenticator

HOUR = 3600
SIGN_IN = "Sign in"
EITHER_WAY = pytest.mark.parametrize("session_seconds", [0, HOUR], ids=["every sign-in anew", "single sign-on"])


async def sign_out(made: World, browser: Browser) -> None:
    await browser.open(f"{made.base}/sign-out")
    await browser.fill_and_submit("form_token")
    assert browser.page.heading == "You are signed out"


async def choosing(made: World, key: Authenticator | None = None) -> Browser:
    """A new browser in which Alice has shown every factor, and has to choose."""
    browser = await made.browser()
    made.clock.pass_(60)
    await walk_to(made, browser, await made.relying_party(), () if key else ("password", "code"))
    if key is not None:
        await use(made, browser, key)
    assert browser.page.form_with("entity") is not None
    return browser


async def chooses(browser: Browser) -> str:
    """Send the choice that is shown; the heading of the page that comes after it."""
    answer = await post(browser, "entity", form_of(browser, "entity") | {"entity": "200000001A"})
    assert answer.status_code == 303
    await browser.open(browser.url)
    return browser.page.heading


async def test_the_next_sign_in_after_signing_out_is_on_no_new_device_and_remembers_the_entity() -> None:
    """D47, D17: signing out says nothing of the browser; it is known for 90 days."""
    postbox = Postbox()

    async with new_world(session_seconds=HOUR, postbox=postbox) as made:
        await made.write(replace(await made.provider.registry.directory.user(ALICE), email="alice@example.com"))
        browser = await made.browser()
        for _ in range(3):
            made.clock.pass_(60)
            await walk_to(made, browser, await made.relying_party(), ("password", "code"))
            await browser.fill_and_submit(entity="200000002A")
            await sign_out(made, browser)
        made.clock.pass_(60)
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        form = browser.page.form_with("entity")
        assert form is not None
        assert [each.value for each in form.choices("entity") if each.chosen] == ["200000002A"]
        assert postbox.emails == []


async def test_a_browser_that_signed_out_keeps_its_own_allowance() -> None:
    """D47: strangers who share its address do not slow it."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        await sign_out(made, browser)
        stranger = await made.browser()
        await walk_to(made, stranger, await made.relying_party())
        wrong = {"user_name": "alice", "password": "not her password"}
        statuses = [
            (await post(stranger, "password", form_of(stranger, "password") | wrong | {"guess": each})).status_code
            for each in "123456"
        ]
        assert statuses[-1] == 303
        assert (await post(stranger, "password", form_of(stranger, "password") | wrong)).status_code == 429
        await walk_to(made, browser, await made.relying_party())
        answer = await post(browser, "password", form_of(browser, "password") | wrong)
        assert answer.status_code == 303


async def test_signing_out_makes_another_browser_of_it_and_only_one_that_is_known() -> None:
    """D34: nobody prepares two browsers, of which one passes later for the one in which somebody signs in."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        provider, cookie = made.provider, cookies_of(browser)["corpid"]
        before = await browsers.recognise(await context(provider), cookie)
        assert before is not None
        async with provider.transient.batch(made.clock()) as batch:
            successor = await browsers.sign_out(await context(provider), batch, cookie, before)
        after = await browsers.recognise(await context(provider), successor)
        assert after is not None
        assert after.browser_id != before.browser_id
        assert (after.session_id, after.account_id) == ("", "")
        assert after.browser_key == before.browser_key
        with pytest.raises(StaleStep):
            async with provider.transient.batch(made.clock()) as batch:
                await browsers.sign_out(await context(provider), batch, cookie, before)
        assert await browsers.recognise(await context(provider), cookie) is None


async def test_signing_out_ends_every_session_of_the_browser() -> None:
    """D30: also the one that a further sign-in of the same person has taken the place of."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await made.browser()
        for _ in range(2):
            made.clock.pass_(60)
            await walk_to(made, browser, await made.relying_party(prompt="login"), ("password", "code"))
        elsewhere = await choosing(made)
        assert len(await sessions(made)) == 3
        await sign_out(made, browser)
        assert len(await sessions(made)) == 1
        await chooses(elsewhere)
        assert elsewhere.page.heading != SIGN_IN


@engines.STORES
@EITHER_WAY
async def test_a_session_that_ends_while_the_last_step_is_taken_brings_no_code(
    session_seconds: int, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D30: after the sign-in was loaded and before it is completed; the step is not used up by that."""
    with nullcontext() if memory is None else memory() as url:
        async with new_world(session_seconds=session_seconds, **{"transient_url": url} if url else {}) as made:
            browser = await choosing(made)
            interaction_id, cookie = browser.url.rsplit("/", 1)[1], cookies_of(browser)["corpid"]
            request = await context(made.provider)
            visit = await interaction_context.load_interaction(request, interaction_id, cookie)
            await change(made, recovery_codes=(), end_sessions_but="")
            with pytest.raises(StaleStep):
                await sign_in.submit_entity(request, visit, entity_id="200000001A")
            assert await made.audit("sign_in.complete") == []
            await browser.reload()
            assert browser.page.heading == SIGN_IN
            made.clock.pass_(60)
            await made.factors(browser, made.people["alice"])
            await browser.fill_and_submit(entity="200000001A")
            assert "code" in query_of(browser.left)


async def everywhere_else(made: World, browser: Browser) -> None:
    form = next(form for form in browser.page.forms if any(button.value == "others" for button in form.buttons))
    await browser.submit(form, "others")


async def that_browser(_: World, browser: Browser) -> None:
    await browser.fill_and_submit("browser")


async def new_codes(made: World, _: Browser) -> None:
    await change(made, recovery_codes=(), end_sessions_but="")


async def another_passkey_goes(made: World, _: Browser) -> None:
    await change(made, remove_passkey=base64url(b"another"), end_sessions_but="")


@EITHER_WAY
@pytest.mark.parametrize("ending", [everywhere_else, new_codes, another_passkey_goes], ids=lambda each: each.__name__)
async def test_what_signs_a_person_out_stops_a_sign_in_that_is_past_its_factors(
    ending: Callable[[World, Browser], Awaitable[None]], session_seconds: int
) -> None:
    """D30, D50: whoever sits there gets no code any more."""
    async with new_world(session_seconds=session_seconds) as made:
        await passkey(made, credential_id=b"another")
        await recovery(made)
        browser = await choosing(made, await passkey(made))
        owner = await at_account(made, "browsers")
        await ending(made, owner)
        assert await chooses(browser) == SIGN_IN
        assert all(not entry.client_id for entry in await made.audit("sign_in.complete"))


async def test_one_browser_that_is_signed_out_stops_at_the_choice() -> None:
    """D30: by its name in the account."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await choosing(made)
        await that_browser(made, await at_account(made, "browsers"))
        assert await chooses(browser) == SIGN_IN


@EITHER_WAY
async def test_signing_out_everywhere_else_leaves_what_is_under_way_here(session_seconds: int) -> None:
    """D30: the person's own sign-in in another tab."""
    async with new_world(session_seconds=session_seconds) as made:
        browser = await choosing(made)
        waiting = browser.url
        made.clock.pass_(60)
        await browser.open(account(made, "browsers"), site="none")
        await made.factors(browser, made.people["alice"])
        await browser.open(account(made, "browsers"), site="none")
        await everywhere_else(made, browser)
        assert len(await sessions(made)) == 2
        await browser.open(waiting)
        await browser.fill_and_submit(entity="200000001A")
        assert "code" in query_of(browser.left)


async def test_a_sign_in_without_single_sign_on_is_no_browser_that_is_signed_in(made: World) -> None:
    """D30: nothing but that sign-in is served by it."""
    browser = await choosing(made)
    await browser.fill_and_submit(entity="200000001A")
    owner = await at_account(made, "browsers")
    assert "This browser" in owner.page.text
    assert "Last used" not in owner.page.text
    await walk_to(made, browser, await made.relying_party())
    assert browser.page.heading == SIGN_IN


async def another_password(made: World) -> None:
    stored = await made.provider.registry.factors.credentials(ALICE)
    new = await made.passwords.hash("another good password")
    await change(made, after=replace(stored, password_hash=new), end_sessions_but="")


async def disabled(made: World) -> None:
    await made.disable("alice")


async def without_this_passkey(made: World) -> None:
    await change(made, remove_passkey=base64url(b"this"), end_sessions_but="")


@engines.STORES
@EITHER_WAY
@pytest.mark.parametrize("event", [another_password, disabled], ids=lambda each: each.__name__)
@pytest.mark.parametrize("entities", [1, 2])
async def test_no_session_begins_for_somebody_who_is_signed_out_everywhere_at_that_moment(
    entities: int,
    event: Callable[[World], Awaitable[None]],
    session_seconds: int,
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D50: there was none to end yet, and no code is written; the browser keeps its cookie, and signs in anew."""
    with nullcontext() if memory is None else memory() as url:
        at = {"transient_url": url} if url else {}
        async with new_world(session_seconds=session_seconds, entities=entities, **at) as made:
            made.clock.pass_(60)
            browser = await made.browser()
            await walk_to(made, browser, await made.relying_party(), ("password",))
            interaction_id, cookie = browser.url.rsplit("/", 1)[1], cookies_of(browser)["corpid"]
            request = await context(made.provider)
            visit = await interaction_context.load_interaction(request, interaction_id, cookie)
            await event(made)
            code = made.people["alice"].fresh_code(made.clock())
            with pytest.raises(StaleStep):
                await sign_in.submit_code(request, visit, code=code)
            assert await sessions(made) == []
            assert await made.audit("sign_in.complete") == []
            await browser.reload()
            if event is disabled:
                made.clock.pass_(60)
                await made.code(browser, made.people["alice"])
                assert "This account can no longer sign in." in browser.page.text
            else:
                assert browser.page.heading == SIGN_IN
            assert cookies_of(browser)["corpid"] == cookie


@engines.STORES
@pytest.mark.parametrize("known", [False, True], ids=["a new browser", "a known one"])
async def test_what_a_last_factor_took_in_vain_is_there_for_the_next_one(
    known: bool, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D15, D34, D50: step, cookie and request, also on an engine that undoes nothing by itself."""
    with nullcontext() if memory is None else memory() as url:
        async with new_world(entities=1, **{"transient_url": url} if url else {}) as made:
            made.clock.pass_(60)
            await passkey(made, credential_id=b"this")
            browser = await made.browser()
            if known:
                await walk_to(made, browser, await made.relying_party(), ("password", "code"))
                made.clock.pass_(60)
            await walk_to(made, browser, await made.relying_party(), ("password",))
            interaction_id, cookie = browser.url.rsplit("/", 1)[1], cookies_of(browser)["corpid"]
            request = await context(made.provider)
            visit = await interaction_context.load_interaction(request, interaction_id, cookie)
            assert visit.awaiting_second_factor is not None
            stale = Authentication(
                account=visit.awaiting_second_factor.account, amr=acr.PASSWORD_AND_PASSKEY, passkey=base64url(b"this")
            )
            await without_this_passkey(made)
            completed = await made.audit("sign_in.complete")
            with pytest.raises(StaleStep):
                await start_session(request, visit, stale)
            assert await made.audit("sign_in.complete") == completed
            await made.code(browser, made.people["alice"])
            assert "code" in query_of(browser.left)
