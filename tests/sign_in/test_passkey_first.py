"""A browser that has used a passkey is offered it first, and says nothing else about its past (D28, D34, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication.browsers import Browser, recognise, record_passkey
from corpid.web.pages.rendering import Renderer
from tests.account.scene import at_account
from tests.browser.states import STATES
from tests.contexts import context
from tests.enrolment import newcomer
from tests.sign_in.factors import CODES, at_sign_in, choose, passkey, recovery, type_code, use
from tests.sign_in.test_passkey_offer import made_answer, new_key, signed_in
from tests.sign_in.world import World, cookies_of, walk_to, wear

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser as Client
    from tests.authenticator import Authenticator

CHOICE = "Choose who you act for"


async def again(made: World, browser: Client) -> Client:
    """The same browser, at the page of another sign-in."""
    made.clock.pass_(60)
    await walk_to(made, browser, await made.relying_party())
    assert browser.page.heading == "Sign in"
    return browser


def first(browser: Client) -> bool:
    """Whether the passkey's form stands above that of the password."""
    assert browser.response is not None
    page = browser.response.text
    return page.index('name="passkey"') < page.index('name="password"')


async def has_used(made: World, key: Authenticator) -> Client:
    browser = await at_sign_in(made)
    assert not first(browser)
    assert await use(made, browser, key) == CHOICE
    return browser


async def test_a_browser_that_has_used_a_passkey_is_offered_it_first(made: World) -> None:
    """D46: at its next sign-ins, and after signing out; another browser is not."""
    key = await passkey(made, count=None)
    browser = await has_used(made, key)
    assert first(await again(made, browser))
    await browser.open(f"{made.base}/sign-out")
    await browser.submit(browser.page.forms[0])
    assert first(await again(made, browser))
    assert await use(made, browser, key) == CHOICE
    assert not first(await at_sign_in(made))


async def test_the_password_below_works_and_does_not_move_the_passkey(made: World) -> None:
    browser = await again(made, await has_used(made, await passkey(made)))
    await made.password(browser, made.people["alice"])
    await made.code(browser, made.people["alice"])
    assert browser.page.heading == CHOICE
    assert first(await again(made, browser))


async def test_a_passkey_beside_a_password_counts_and_a_code_does_not(made: World) -> None:
    key = await passkey(made, count=None)
    await recovery(made)
    alice = made.people["alice"]
    browser = await at_sign_in(made)
    await made.password(browser, alice)
    await choose(browser, "recovery")
    await type_code(browser, CODES[0])
    assert not first(await again(made, browser))
    await made.password(browser, alice)
    await choose(browser, "passkey")
    assert await use(made, browser, key) == CHOICE
    assert first(await again(made, browser))


async def test_a_browser_in_which_a_passkey_was_created_is_offered_it_first(made: World) -> None:
    """D46: at the offer after a password, and in the account."""
    browser = await signed_in(made)
    await browser.fill_and_submit(passkey=made_answer(made, browser, new_key()))
    assert browser.page.heading == CHOICE
    assert first(await again(made, browser))
    other = await at_account(made, "new-passkey")
    await other.fill_and_submit(passkey=made_answer(made, other, new_key()))
    assert first(await again(made, other))


async def test_a_browser_in_which_an_enrolment_created_a_passkey_is_offered_it_first(made: World) -> None:
    """D46: before anybody has signed in there; the browser holds nothing else about it."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    assert "corpid_passkey" not in cookies_of(browser)
    key = newcomer.new_key()
    await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, key))
    assert browser.page.heading == newcomer.SET_UP
    assert browser.response is not None
    [sent] = [each for each in browser.response.headers.get_list("set-cookie") if each.startswith("corpid_passkey")]
    assert sent == "corpid_passkey=created; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax"
    assert first(await again(made, browser))
    assert not first(await again(made, await made.browser()))


async def test_what_an_enrolment_says_of_a_browser_is_stored_when_somebody_signs_in(made: World) -> None:
    """D46: also with a password."""
    browser = await made.browser()
    browser.http.cookies.set("corpid_passkey", "created")
    await again(made, browser)
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == CHOICE
    browser.http.cookies.delete("corpid_passkey")
    assert first(await again(made, browser))


async def test_an_enrolment_without_a_passkey_says_nothing(made: World) -> None:
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    assert await newcomer.kept(browser) == newcomer.SET_UP
    assert not first(await again(made, browser))


async def test_a_passkey_created_while_another_tab_signs_out_revives_no_cookie_value(made: World) -> None:
    """D34: the value that the other tab has invalidated stays invalid."""
    browser = await signed_in(made)
    here, old = await context(made.provider), cookies_of(browser)["corpid"]
    found = await recognise(here, old)
    assert found is not None
    await browser.open(f"{made.base}/sign-out")
    await browser.submit(browser.page.forms[0])
    await record_passkey(here, old, found)
    assert await recognise(here, old) is None


async def test_a_cleared_browser_is_like_any_other(made: World) -> None:
    """D28, D34: nothing but the cookie says it, and an old value says nothing."""
    key = await passkey(made, count=None)
    browser = await at_sign_in(made)
    before = cookies_of(browser)
    assert await use(made, browser, key) == CHOICE
    cleared = await made.browser()
    assert not first(await again(made, cleared))
    thief = await made.browser()
    wear(thief, before)
    assert not first(await again(made, thief))
    assert first(await again(made, browser))


async def test_a_passkey_that_was_refused_changes_nothing(made: World) -> None:
    key, browser = await passkey(made), await at_sign_in(made)
    assert await use(made, browser, key, origin="http://localhost:8081") == "Sign in"
    assert not first(await again(made, browser))


async def test_another_person_at_this_browser_learns_only_what_the_browser_did(made: World) -> None:
    """D28: no name stands on the page, and nobody's passkeys are named to the script."""
    browser = await again(made, await has_used(made, await passkey(made)))
    assert browser.response is not None
    assert "alice" not in browser.response.text
    assert "allowCredentials&#34;: []" in browser.response.text


def test_where_passkeys_do_not_work_only_the_password_is_asked_for() -> None:
    """D46, D62: also in a browser that has used one, before the operator gave the site another name."""
    view = replace(STATES["sign-in-passkey-first"], passkey=None)  # type: ignore[type-var]
    page = Renderer().render(view).decode()
    assert ('name="password"' in page, 'name="passkey"' in page) == (True, False)


def test_a_browser_that_the_version_before_stored_is_read_and_the_other_way_round() -> None:
    """Decision 0009: both versions run beside each other for a while."""
    new = Browser(browser_id="b", user_id="u", used_passkey=True, language="ms")
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(new))
    assert stored[-1] == "ms", "what an older version ignores is at the end"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(stored[:6]), type=Browser) == Browser(
        browser_id="b", user_id="u", used_passkey=True
    )
