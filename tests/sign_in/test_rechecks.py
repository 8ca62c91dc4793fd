"""What was known at one step is looked at again at the next: factors, session, entity, consent (D17, D29, D30, D50)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher
from msgspec.structs import replace

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from tests.sign_in.world import (
    CHEAP,
    SECRET,
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
SIGN_IN = "Sign in"


async def reopened(browser: Browser) -> str:
    """The heading that the page has when it is looked at again."""
    await browser.reload()
    return browser.page.heading


async def signed_in_browser(made: World) -> Browser:
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
    return browser


@pytest.mark.generations("legacy", "current")
async def test_new_factors_end_a_sign_in_that_the_old_ones_began(speaking: str) -> None:
    """SECURITY.md: who has the old password is out at once, also in the middle of a sign-in."""
    async with new_world(generations=(speaking,)) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        again = PasswordHasher.from_parameters(CHEAP).hash("another password")
        await made.write(Credentials(user_id="id-alice", password_hash=again, totp_secret=SECRET))
        assert await reopened(browser) == SIGN_IN
        answer = await post(browser, "entity", form_of(browser, "password") | {"entity": "200000001A"})
        assert answer.status_code == 303
        assert await reopened(browser) == SIGN_IN


@pytest.mark.generations("legacy", "current")
async def test_signing_out_ends_a_page_that_the_session_had_opened(speaking: str) -> None:
    """D30."""
    async with new_world(generations=(speaking,), session_seconds=HOUR) as made:
        browser = await signed_in_browser(made)
        await browser.open(await (await made.relying_party()).begin())
        assert browser.page.heading != SIGN_IN
        waiting = browser.url
        event = AuditEvent(actor="operator", action="test.end")
        await made.provider.registry.sessions.end_all("id-alice", event)
        await browser.open(waiting)
        assert browser.page.heading == SIGN_IN


async def test_a_page_that_a_session_had_opened_ends_with_the_session() -> None:
    """D30: the lifetime is absolute, also for who keeps asking for more time."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await signed_in_browser(made)
        made.clock.pass_(HOUR - 60)
        await browser.open(await (await made.relying_party()).begin())
        assert browser.page.heading != SIGN_IN
        made.clock.pass_(61)
        assert await reopened(browser) == SIGN_IN


async def test_a_sign_in_that_grew_older_than_the_client_allows_is_made_anew(made: World) -> None:
    """D40: also for who keeps asking for more time; each page has its ten minutes."""
    browser, rp = await made.browser(), await made.relying_party(max_age="60")
    await walk_to(made, browser, rp, ("password", "code"))
    made.clock.pass_(590)
    await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
    assert "act for" in browser.page.heading
    made.clock.pass_(10)
    await browser.fill_and_submit(entity="200000001A")
    assert browser.page.heading == SIGN_IN
    await made.factors(browser, made.people["alice"])
    await browser.fill_and_submit(entity="200000001A")
    assert browser.left is not None
    assert (await rp.redeem(browser.left)).id_token["auth_time"] == int(made.clock())


@pytest.mark.generations("legacy", "current")
async def test_a_chosen_entity_that_can_no_longer_be_used_is_chosen_again(speaking: str) -> None:
    """D17, D15: the person is not stranded."""
    async with new_world(generations=(speaking,)) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(**made.decided)
        await walk_to(made, browser, rp, ("password", "code", "entity"))
        assert "agree" in browser.page.heading
        gone = entity("200000001A", "First Harbour")
        await made.write(replace(gone, enabled=False))
        assert "act for" in await reopened(browser)
        await browser.fill_and_submit(entity="200000002A")
        assert "agree" in browser.page.heading
        await browser.fill_and_submit("decision", button="agree")
        assert "code" in query_of(browser.left)


async def test_signing_out_ends_what_other_tabs_had_begun() -> None:
    """D30: whoever sits at that browser next cannot go on where the person stopped."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        waiting = browser.url
        await browser.open(f"{made.base}/sign-out")
        await browser.fill_and_submit("form_token")
        assert browser.page.heading == "You are signed out"
        await browser.open(waiting)
        assert browser.page.form_with("entity") is None
        assert (await made.audit("session.end"))[0].actor == "user:id-alice"


async def test_a_form_of_an_earlier_sign_in_gives_no_second_cookie(made: World) -> None:
    """D34: a browser never has two values that live."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password",))
    old = cookies_of(browser)
    form = form_of(browser, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
    first = browser.url
    await post(browser, "code", form)
    await walk_to(made, browser, await made.relying_party(), ("password", "code"))
    wear(browser, old)
    browser.url = first
    assert (await post(browser, "code", form)).headers.get("set-cookie") is None


async def test_codes_of_an_account_are_slowed_from_all_addresses_together(made: World) -> None:
    """D45, D47: who has the password gains nothing by changing the address."""
    statuses = []
    for number in range(7):
        browser = await made.browser(f"192.0.2.{number + 1}")
        await walk_to(made, browser, await made.relying_party(), ("password",))
        statuses.append((await post(browser, "code", form_of(browser, "code") | {"code": "000000"})).status_code)
    assert statuses == [303] * 5 + [303, 429]
