"""How long a page of the account stays open: it says so, it can be given more time, and nothing on it is lost (D45)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyotp
import pytest

from corpid.flows.account import account_sessions
from corpid.flows.authentication import browsers
from corpid.rules.authentication import records
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.limits import (
    ACCOUNT_FRESH_SECONDS,
    ACCOUNT_IDLE_SECONDS,
    ACCOUNT_PAGE_EXTENSIONS,
    ACCOUNT_PAGE_SECONDS,
    ACCOUNT_SESSION_SECONDS,
)
from tests.account.scene import account, at_account, go, hidden, rejected, send
from tests.authenticator import Authenticator
from tests.contexts import context
from tests.enrolment import newcomer
from tests.sign_in.factors import ALICE, change, options_of, passkey
from tests.sign_in.world import BASE, World, cookies_of
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

LATE = ACCOUNT_PAGE_SECONDS - 1
CHANGING = ("new-passkey", "app", "remove-app", "password", "codes")


def seconds_left(browser: Browser) -> int:
    """What the page says to the script that warns."""
    assert browser.response is not None
    found = re.search(r'data-seconds="(\d+)"', browser.response.text)
    assert found is not None, "the page says nothing of its time"
    return int(found[1])


def codes_on(browser: Browser) -> list[str]:
    assert browser.response is not None
    return re.findall(r"<li><code>([a-z0-9-]+)</code>", browser.response.text)


async def more_time(browser: Browser) -> None:
    """Press the button without the script."""
    await browser.submit(next(form for form in browser.page.forms if "/extend" in form.action))


async def test_what_was_opened_after_a_fresh_sign_in_can_be_finished_while_the_page_says_so(made: World) -> None:
    """WCAG 2.2.1: a code, kept codes, a passkey and a password of the last second are taken."""
    browser = await at_account(made, "app")
    made.clock.pass_(LATE)
    await browser.fill_and_submit(code=pyotp.TOTP(newcomer.secret(browser)).at(int(made.clock())))
    assert "Your authenticator app has been set up." in browser.page.text
    made.people["alice"].totp_secret = (await made.provider.registry.factors.credentials(ALICE)).totp_secret
    browser = await at_account(made, "codes")
    made.clock.pass_(LATE)
    await browser.fill_and_submit(kept="yes")
    assert "10 codes left" in browser.page.text
    browser, key = await at_account(made, "new-passkey"), Authenticator(user_handle=ALICE.encode())
    made.clock.pass_(LATE)
    await browser.fill_and_submit(passkey=key.make(options_of(browser), BASE))
    assert browser.page.heading == "Your passkeys"


@pytest.mark.parametrize("page", CHANGING)
async def test_a_page_whose_time_is_over_changes_nothing_and_leads_to_a_sign_in(made: World, page: str) -> None:
    """D45: the sign-in that opened it is no longer a fresh one."""
    browser = await at_account(made, page)
    assert seconds_left(browser) == ACCOUNT_PAGE_SECONDS
    form = hidden(browser)
    made.clock.pass_(ACCOUNT_PAGE_SECONDS)
    answer = await send(made, browser, page, **form, password="seven grey herons wading", kept="yes")
    assert "/sign-in/" in answer.headers["location"]
    for action in (f"extend/{page}", page):
        late = await send(made, browser, action, **form)
        assert "/sign-in/" in late.headers["location"]
    assert not [entry for entry in await made.provider.registry.audit.entries() if "factors." in entry.action]


async def test_after_a_new_sign_in_the_same_key_is_shown_and_the_same_codes_are_taken(made: World) -> None:
    """D45, D73: what was scanned or printed is still what counts, until it was used; nobody else is shown it."""
    browser = await at_account(made, "app")
    secret = newcomer.secret(browser)
    await go(made, browser, "codes")
    printed = codes_on(browser)
    made.clock.pass_(ACCOUNT_PAGE_SECONDS)
    await go(made, browser, "codes")
    await made.factors(browser, made.people["alice"])
    assert (len(printed), codes_on(browser)) == (10, [])
    await browser.fill_and_submit(kept="yes")
    first = records.recovery_code_hash(ALICE, printed[0])
    assert await made.provider.registry.factors.take_recovery_code(ALICE, first, EVENT)
    await go(made, browser, "app")
    assert newcomer.secret(browser) == secret
    elsewhere = await at_account(made, "app")
    assert newcomer.secret(elsewhere) != secret
    await go(made, browser, "app")
    await browser.fill_and_submit(code=pyotp.TOTP(secret).at(int(made.clock())))
    assert "Your authenticator app has been set up." in browser.page.text
    await go(made, browser, "app")
    assert newcomer.secret(browser) != secret


@pytest.mark.parametrize("changed", ["password", "app"])
async def test_a_change_of_the_password_or_the_app_brings_a_new_key_and_new_codes(made: World, changed: str) -> None:
    """D45: whoever saw the page before has nothing that is set up there afterwards."""
    browser = await at_account(made, "app")
    seen = newcomer.secret(browser)
    await go(made, browser, "codes")
    printed, before = codes_on(browser), await made.provider.registry.factors.credentials(ALICE)
    after = {
        "password": before.with_password(await made.passwords.hash("seven grey herons wading"), "user"),
        "app": before.with_app(pyotp.random_base32(), "user"),
    }
    await change(made, after=after[changed])
    answer = await send(made, browser, "codes", **hidden(browser), kept="yes")
    assert answer.headers["location"] == "/account"
    await go(made, browser, "codes")
    assert len(codes_on(browser)) == len(printed)
    assert not set(codes_on(browser)) & set(printed)
    await go(made, browser, "app")
    assert newcomer.secret(browser) != seen


async def test_a_page_is_given_more_time_a_few_times_and_never_past_the_end_of_the_session(made: World) -> None:
    """D15, D45: also without the script; the form that is shown stays good."""
    browser = await at_account(made, "codes")
    began, form = made.clock(), hidden(browser)
    while any("/extend" in each.action for each in browser.page.forms):
        made.clock.pass_(LATE)
        await more_time(browser)
        assert browser.page.heading == "Save your recovery codes"
    assert "You cannot get more time" in browser.page.text
    assert made.clock() + seconds_left(browser) == began + ACCOUNT_SESSION_SECONDS
    answer = await rejected(browser, await send(made, browser, "extend/codes", **form))
    assert "You cannot get more time on this page" in answer.text
    answer = await send(made, browser, "codes", **form, kept="yes")
    assert answer.headers["location"] == "/account?saved=codes"


async def test_more_time_is_given_ten_times_at_most(made: World) -> None:
    """D15."""
    browser = await at_account(made, "password")
    for _ in range(ACCOUNT_PAGE_EXTENSIONS):
        made.clock.pass_(1)
        assert (await send(made, browser, "extend/password", **hidden(browser))).status_code == 303
    answer = await rejected(browser, await send(made, browser, "extend/password", **hidden(browser)))
    assert "You cannot get more time on this page" in answer.text


async def test_a_form_that_was_made_use_of_opens_nothing_again(made: World) -> None:
    """D45: one change for one opening; who sends it twice is shown what the first has brought."""
    browser = await at_account(made, "password")
    form = hidden(browser)
    made.clock.pass_(ACCOUNT_FRESH_SECONDS)
    await browser.fill_and_submit(password="seven grey herons wading")
    answer = await send(made, browser, "password", **form, password="eight grey herons wading")
    assert answer.headers["location"] == "/account"
    assert len(await made.audit("factors.password")) == 1
    assert await go(made, browser, "password") == "Confirm it is you, Alice Tan"


async def test_more_time_that_is_asked_for_beside_a_change_opens_nothing_again(made: World) -> None:
    """D45: the request for it had seen the page open, and comes after the change that closed it."""
    browser = await at_account(made, "password")
    request = await context(made.provider)
    known = await browsers.recognise(request, cookies_of(browser)["corpid"])
    here = await account_sessions.load_account_request(request, known)
    assert here is not None
    here = await account_sessions.still_open(request, here, "password")
    await account_sessions.close(request, here)
    with pytest.raises(StaleStep):
        await account_sessions.extend(request, here)
    made.clock.pass_(ACCOUNT_FRESH_SECONDS)
    assert await go(made, browser, "password") == "Confirm it is you, Alice Tan"


async def test_an_opening_is_for_its_page_and_its_session_only(made: World) -> None:
    """D45: another page takes a fresh sign-in of its own, and so does the same one in another browser."""
    await passkey(made)
    other, browser = await at_account(made), await at_account(made, "password")
    made.clock.pass_(ACCOUNT_FRESH_SECONDS)
    form = hidden(browser)
    for page in ("app", "codes", "remove-app", "new-passkey"):
        answer = await send(made, browser, page, **form, kept="yes", code="123456")
        assert "/sign-in/" in answer.headers["location"]
    await go(made, other, "language")
    answer = await send(made, other, "password", **hidden(other), password="seven grey herons wading")
    assert "/sign-in/" in answer.headers["location"]


async def test_pages_that_change_no_factor_show_how_long_the_account_stays_open_and_can_be_given_more(
    made: World,
) -> None:
    """WCAG 2.2.1: 15 minutes without use, an hour in all."""
    browser = await at_account(made)
    began = made.clock()
    for page in ("", "passkeys", "browsers", "sign-ins", "language"):
        await go(made, browser, page)
        assert seconds_left(browser) == ACCOUNT_IDLE_SECONDS
    made.clock.pass_(ACCOUNT_IDLE_SECONDS - 1)
    await more_time(browser)
    assert browser.page.heading == "Your language"
    assert seconds_left(browser) == ACCOUNT_IDLE_SECONDS
    while any("/extend" in each.action for each in browser.page.forms):
        made.clock.pass_(ACCOUNT_IDLE_SECONDS - 1)
        await more_time(browser)
    assert made.clock() + seconds_left(browser) == began + ACCOUNT_SESSION_SECONDS
    assert "After that you can sign in again." in browser.page.text
    assert (await browser.http.get(account(made, "extend"))).headers["location"] == "/account"
