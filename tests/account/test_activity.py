"""Where a person is signed in, where they were, and what they are told of it (D30, D47)."""

from __future__ import annotations

import dataclasses
import re

import httpx
import pytest
from msgspec.structs import replace

from corpid import app, settings
from corpid.flows.authentication import browsers
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change, Entity, Membership
from corpid.rules.limits import ACCOUNT_IDLE_SECONDS
from tests.account.scene import AGENT, account, at_account, go, hidden, reachable, send, sessions
from tests.contexts import context
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, recovery
from tests.sign_in.world import EVERY_SCOPE, World, new_world, walk_to

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
NEW_DEVICE = "Your account was used on a new device"


async def test_browsers_are_listed_by_device_and_one_is_signed_out(made: World) -> None:
    """D30: at its next request, on whichever node."""
    phone, browser = await at_account(made, agent=PHONE), await at_account(made, "browsers")
    assert "Safari on iPhone Last used" in browser.page.text
    assert "Firefox on Linux This browser" in browser.page.text
    await browser.fill_and_submit("browser")
    assert "Safari" not in browser.page.text
    assert await go(made, phone) == "Sign in"
    assert await go(made, browser) == "Your account"
    assert len(await made.audit("session.end")) == 1


async def test_everywhere_else_is_signed_out_at_once() -> None:
    """D30: single sign-on, too; but nothing in this browser."""
    async with new_world(session_seconds=3600) as made:
        phone, browser = await at_account(made, agent=PHONE), await made.browser()
        made.clock.pass_(60)
        await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
        made.clock.pass_(60)
        await browser.open(account(made, "browsers"))
        await made.factors(browser, made.people["alice"])
        assert len(await sessions(made)) == 3
        form = next(f for f in browser.page.forms if any(b.value == "others" for b in f.buttons))
        await browser.submit(form, "others")
        assert await go(made, phone) == "Sign in"
        assert {each.purpose for each in await sessions(made)} == {"sign_in", "account"}
        assert await go(made, browser) == "Your account"


async def test_a_session_that_ended_on_one_node_is_ended_on_every_other_at_its_next_request(made: World) -> None:
    """D30: nothing of a session is kept in a process."""
    options = {"base_url": made.base, "data_dir": made.directory, "developer_mode": True}
    second = app.create(settings.load(**options), clock=made.clock, passwords=made.passwords)
    application = await made.stack.enter_async_context(second)
    browser = await at_account(made)
    transport = httpx.ASGITransport(app=application.asgi, client=("127.0.0.1", 50000))
    other_node = httpx.AsyncClient(transport=transport, base_url=made.base, cookies=browser.http.cookies)
    elsewhere = await made.stack.enter_async_context(other_node)
    assert (await elsewhere.get(account(made))).status_code == 200
    await browser.open(f"{made.base}/sign-out")
    await browser.submit(browser.page.forms[0])
    assert (await elsewhere.get(account(made))).status_code == 303


async def test_nobody_signs_out_somebody_else(made: World) -> None:
    """SECURITY.md: a name of theirs is nobody's here."""
    await made.person("bob")
    await at_account(made, agent=PHONE)
    browser = await at_account(made, "browsers")
    form = next(f for f in browser.page.forms if "browser" in f.names())
    name = next(c.value for c in form.controls if c.name == "browser")
    bob = await at_account(made, "language", who="bob")
    answer = await send(made, bob, "browsers", **hidden(bob), browser=name)
    assert answer.status_code == 303
    await send(made, bob, "browsers", **hidden(bob), decision="others")
    assert len(await sessions(made)) == 2


async def test_the_last_use_is_noted_seldom_and_never_brings_back_what_has_ended(made: World) -> None:
    browser = await at_account(made)
    (first,) = await sessions(made)
    made.clock.pass_(60)
    await go(made, browser)
    assert (await sessions(made))[0].seen_at == first.seen_at
    made.clock.pass_(60)
    await go(made, browser)
    assert (await sessions(made))[0].seen_at == int(made.clock())
    held = made.provider.registry.sessions
    await held.end_all(ALICE, (await made.audit("sign_in.complete"))[0])
    await held.use(first.session_id, at=int(made.clock()))
    assert await sessions(made) == []


async def test_the_last_sign_ins_say_where_when_and_how(made: World) -> None:
    """The relying party, the entity, the factors, the device; never anybody else's."""
    await made.person("bob")
    await at_account(made, who="bob", agent=PHONE)
    browser = await made.browser()
    browser.http.headers["User-Agent"] = AGENT
    await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
    made.clock.pass_(60)
    await browser.open(account(made, "sign-ins"))
    await made.factors(browser, made.people["alice"])
    text = browser.page.text
    assert "Relying Party 1 15 Jan 2027" in text
    assert "For Acme Pte. Ltd." in text.replace(" .", ".")
    assert "Password and authenticator app · Firefox on Linux" in text
    assert "iPhone" not in text


async def test_a_sign_in_in_which_nothing_was_asked_for_says_so_and_names_no_code() -> None:
    """D30: the session tells that a code was shown, not which; where it was shown, the entry before says that."""
    async with new_world(session_seconds=3600, entities=1) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        await browser.open(await (await made.relying_party()).begin())
        assert [each.detail.get("way", "") for each in await made.audit("sign_in.complete")] == ["app", "session"]
        made.clock.pass_(60)
        await browser.open(account(made, "sign-ins"))
        await made.factors(browser, made.people["alice"])
        assert browser.page.text.count("You were already signed in") == 1
        assert "Password and code " not in browser.page.text


async def test_a_page_without_a_change_says_how_long_one_stays_signed_in_and_asks_for_no_haste(made: World) -> None:
    """WCAG 2.2.1."""
    browser = await at_account(made)
    for page, said in (("sign-ins", "You stay signed in here until"), ("password", "You have until")):
        await go(made, browser, page)
        assert said in browser.page.text
    assert "You stay signed in" not in browser.page.text


async def test_the_language_is_kept_for_emails_and_pages(made: World) -> None:
    browser = await at_account(made, "language")
    await send(made, browser, "language", **hidden(browser), language="xx")
    assert (await made.provider.registry.directory.user(ALICE)).language == "en"
    await browser.fill_and_submit(language="ms")
    assert browser.response is not None
    assert browser.response.headers["content-language"] == "ms"
    assert (await made.provider.registry.directory.user(ALICE)).language == "ms"
    assert [entry.object for entry in await made.audit("user.language")] == [ALICE]


async def test_an_email_tells_of_a_sign_in_on_a_new_device_but_not_of_the_first() -> None:
    """D47: once for each browser; it leads to the account."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        browser = await at_account(made)
        assert postbox.emails == []
        made.clock.pass_(1200)
        await go(made, browser)
        await made.factors(browser, made.people["alice"])
        assert postbox.emails == []
        await at_account(made, agent=PHONE)
        (email,) = postbox.emails
        assert email.subject == NEW_DEVICE
        assert "Safari on iPhone" in email.text
        assert account(made) in email.text


async def test_the_entity_that_was_chosen_last_stands_first_without_single_sign_on() -> None:
    """D17: in this browser, for this person."""
    async with new_world(entities=3) as made:
        await made.client(sector="private")
        browser = await made.browser()
        for first in ("", "200000003A"):
            made.clock.pass_(60)
            await walk_to(made, browser, await made.relying_party(scope=EVERY_SCOPE), ("password", "code"))
            form = browser.page.form_with("entity")
            assert form is not None
            chosen = [each.value for each in form.choices("entity") if each.chosen]
            assert chosen == ([first] if first else [])
            await browser.fill_and_submit(entity="200000003A")
            if not first:
                await browser.fill_and_submit("decision", button="agree")
        assert form is not None
        assert form.choices("entity")[0].value == "200000003A"
        other = await made.browser()
        made.clock.pass_(60)
        await walk_to(made, other, await made.relying_party(scope=EVERY_SCOPE), ("password", "code"))
        form = other.page.form_with("entity")
        assert form is not None
        assert not [each for each in form.choices("entity") if each.chosen]


@pytest.mark.parametrize("agent", ["", "x" * 5000, "\x7f<script>", "curl/8"])
async def test_a_browser_that_names_no_device_is_another_browser(made: World, agent: str) -> None:
    """RFC 9110 §10.1.5: nothing of the header is repeated."""
    browser = await at_account(made, "browsers", agent=agent)
    assert "Another browser This browser" in browser.page.text


async def test_the_last_sign_ins_tell_the_ways_of_the_second_factor_apart() -> None:
    """D45: an app, a code by e-mail, a recovery code."""
    postbox = Postbox()

    async with new_world(postbox=postbox, email_codes=True) as made:
        await reachable(made)
        await recovery(made)
        for way in ("email", "recovery"):
            made.clock.pass_(60)
            browser = await made.browser()
            await browser.open(account(made))
            await made.password(browser, made.people["alice"])
            await browser.fill_and_submit("decision", button=way)
            await browser.fill_and_submit(code=postbox.code() if way == "email" else CODES[0])
        browser = await at_account(made, "sign-ins")
        for way in ("authenticator app", "recovery code", "code by e-mail"):
            assert browser.page.text.count(f"Password and {way}") == 1


async def test_a_sign_in_with_what_is_gone_names_no_identifier(made: World) -> None:
    """Who is no longer there is said to be so; who was renamed has the name of today."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
    acme = next(iter((await made.provider.registry.directory.read(Entity, [("200000001A",)])).values()))
    await made.write(replace(acme, name="Acme Holdings"))
    assert "For Acme Holdings" in (await at_account(made, "sign-ins")).page.text
    client = await made.provider.registry.clients.get("rp1")
    event = AuditEvent(actor="operator", action="test.remove")
    await made.provider.registry.directory.write(
        [Change(Membership(user_id=ALICE, entity_id="200000001A"), None), Change(acme, None), Change(client, None)],
        event,
    )
    text = (await at_account(made, "sign-ins")).page.text
    assert "A service that is no longer available" in text
    assert "For an organisation that is no longer available" in text
    assert "rp1" not in re.split(r"[^\w-]+", text)
    assert "200000001A" not in text


async def test_only_browsers_that_are_still_signed_in_are_listed() -> None:
    """D30: the same rule as for opening a page; neither an account nobody used, nor single sign-on once it is off."""
    async with new_world(session_seconds=3600) as made:
        await at_account(made, agent=PHONE)
        other = await made.browser()
        made.clock.pass_(60)
        await walk_to(made, other, await made.relying_party(), ("password", "code", "entity"))
        made.clock.pass_(ACCOUNT_IDLE_SECONDS)
        browser = await at_account(made, "browsers")
        assert "iPhone" not in browser.page.text
        assert browser.page.text.count("Last used") == 1
        request = await context(made.provider)
        policy = dataclasses.replace(made.provider.policy, session_seconds=0)
        off = dataclasses.replace(request, provider=dataclasses.replace(made.provider, policy=policy))
        single = next(each for each in await sessions(made) if each.purpose == "sign_in")
        assert browsers.ends_at(request, single) > made.clock()
        assert browsers.ends_at(off, single) == 0
