"""Every dead end of an enrolment says what happened and what to do (D15, D34, D45, D48)."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from corpid.flows import namespaces
from corpid.flows.authentication import browsers
from corpid.rules.authentication import records, totp
from corpid.rules.limits import CODE_MISSES, ENROLMENT_SECONDS, PASSWORD_LINK_SECONDS, SET_UP_LINK_SECONDS
from corpid.web.telemetry import access_log
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import ELSEWHERE, GONE, NEW, NINA, SET_UP
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.world import PASSWORD, SECRET, World, cookies_of, form_of, new_world, post, wear

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.authentication.records import LinkPurpose
    from corpid_dev.relying_party.browser import Browser


async def heading(made: World, url: str) -> tuple[int, str]:
    browser = await made.browser()
    await newcomer.followed(browser, url)
    return newcomer.status(browser), browser.page.heading


@pytest.mark.parametrize(
    ("purpose", "seconds"),
    [("invitation", SET_UP_LINK_SECONDS), ("password", PASSWORD_LINK_SECONDS), ("second_factor", 86400)],
)
async def test_a_link_ends_at_its_very_second(made: World, purpose: LinkPurpose, seconds: int) -> None:
    await made.person("nina")
    url = await newcomer.link(made, purpose)
    made.clock.pass_(seconds - 1)
    assert (await heading(made, url))[0] == 200
    made.clock.pass_(1)
    assert await heading(made, url) == (404, GONE)


async def test_an_end_between_two_writes_of_its_beginning_costs_a_browser_nothing(made: World) -> None:
    """D34, D49: the claim of a link stands, the enrolment does not, as where Valkey keeps both."""
    await newcomer.nina(made)
    url, provider = await newcomer.link(made), made.provider
    browser = await made.browser()
    await newcomer.followed(browser, url)
    [cookie] = cookies_of(browser).values()
    own = await browsers.recognise(await context(provider), cookie)
    assert own is not None
    claim = namespaces.LINK_CLAIM.entry(provider.policy.base_url, records.hash_code(url)).key
    mine = f"{own.browser_id} {provider.new_id()}".encode()
    async with provider.transient.batch(made.clock()) as batch:
        assert await batch.add(namespaces.LINK_CLAIM.name, claim, namespaces.LINK_CLAIM.seconds, mine)
    await browser.submit(browser.page.forms[0])
    assert newcomer.status(browser) == 200
    assert (await newcomer.opened(made, url)).page.heading == ELSEWHERE
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    assert await newcomer.kept(browser) == SET_UP


async def _used(made: World, url: str) -> None:
    browser = await newcomer.opened(made, url)
    await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, newcomer.new_key()))
    assert browser.page.heading == SET_UP


async def _factors_changed(made: World, _: str) -> None:
    await factors.change(made, NINA, after=replace(await newcomer.credentials(made), password_hash="another"))


async def _followed_by_another(made: World, _: str) -> None:
    await newcomer.link(made)


async def _disabled(made: World, _: str) -> None:
    await made.disable("nina")


@pytest.mark.parametrize("void", [_used, _factors_changed, _followed_by_another, _disabled])
async def test_a_link_is_void_once_it_was_used_or_something_changed(
    made: World, void: Callable[[World, str], Awaitable[None]]
) -> None:
    """D50: also for who has begun with it, and nothing is written then."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    if void is not _used:
        begun = await newcomer.opened(made, url)
        await void(made, url)
        assert await newcomer.password(begun) == GONE
    else:
        await void(made, url)
    assert await heading(made, url) == (404, GONE)


@pytest.mark.parametrize("path", ["/enrolment/", "/enrolment/x", "/enrolment/x/y", "/enrolment/%00/x"])
async def test_an_address_that_never_was_one_says_the_same(made: World, path: str) -> None:
    browser = await made.browser()
    await browser.open(made.base + path)
    assert (newcomer.status(browser), browser.page.heading) == (404, GONE)


async def test_a_second_browser_is_told_to_go_on_in_the_first(made: World) -> None:
    """D34: and the first goes on, also by opening the link again."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    first, second = await newcomer.opened(made, url), await newcomer.opened(made, url)
    assert (newcomer.status(second), second.page.heading) == (403, ELSEWHERE)
    await second.open(first.url)
    assert second.page.heading == ELSEWHERE
    await newcomer.password(first)
    await newcomer.followed(first, url)
    await first.submit(first.page.forms[0])
    assert first.page.heading == "Set up your second step"


async def test_a_browser_without_cookies_can_allow_them_and_try_again(made: World) -> None:
    """D34: nothing was claimed for it."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await made.browser()
    await browser.open(url)
    wear(browser, {})
    await browser.fill_and_submit(code=urlsplit(url).fragment)
    assert browser.page.heading == ELSEWHERE
    assert "allow cookies for this site" in browser.page.text
    again = await newcomer.opened(made, url)
    assert again.page.heading == "Choose how you sign in"


async def test_an_enrolment_ends_after_an_hour_and_the_invitation_can_be_opened_again(made: World) -> None:
    """In another browser, too."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await newcomer.opened(made, url)
    made.clock.pass_(ENROLMENT_SECONDS)
    assert await newcomer.password(browser) == GONE
    again = await newcomer.opened(made, url)
    assert again.page.heading == "Choose how you sign in"


async def test_a_double_click_takes_a_step_once_and_both_see_the_next_page(made: World) -> None:
    """D15"""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    fields = {**form_of(browser, "password"), "password": NEW}
    answers = await asyncio.gather(*(post(browser, "password", fields) for _ in range(3)))
    assert {(answer.status_code, answer.headers["location"]) for answer in answers} == {
        (303, browser.url.removeprefix(made.base))
    }
    await browser.reload()
    assert browser.page.heading == "Set up your second step"


async def test_a_page_of_an_earlier_step_leads_to_the_current_one(made: World) -> None:
    """D15"""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    old = {**form_of(browser, "password"), "password": "another password altogether"}
    await newcomer.password(browser)
    assert (await post(browser, "password", old)).status_code == 303
    await newcomer.app(made, browser)
    await newcomer.kept(browser)
    stored = await newcomer.credentials(made)
    assert await made.passwords.verify(stored.password_hash, NEW)
    assert (await post(browser, "finish", old)).status_code == 303


async def test_of_two_that_finish_at_once_one_writes() -> None:
    """SECURITY.md: a link and the factors that it was made for are spent together."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await newcomer.nina(made)
        browser = await newcomer.opened(made, await newcomer.link(made))
        await newcomer.password(browser)
        await newcomer.app(made, browser)
        fields = {**form_of(browser, "kept"), "kept": "yes"}
        await asyncio.gather(*(post(browser, "codes", fields) for _ in range(4)))
        await browser.reload()
        assert browser.page.heading == SET_UP
        assert len(await made.audit("factors.invitation")) == 1
        assert len(postbox.emails) == 1


async def test_of_two_enrolments_of_one_person_the_first_to_finish_ends_the_other() -> None:
    """SECURITY.md: what was proved before the change no longer holds after it."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        lost = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
        forgotten = await newcomer.opened(made, await newcomer.link(made, "password"))
        await newcomer.password(lost, PASSWORD)
        await newcomer.app(made, lost)
        await forgotten.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        fields = {**form_of(forgotten, "password"), "password": NEW}
        kept = {**form_of(lost, "kept"), "kept": "yes"}
        await asyncio.gather(post(forgotten, "password", fields), post(lost, "codes", kept))
        for browser in (lost, forgotten):
            await browser.reload()
        headings = {lost.page.heading, forgotten.page.heading}
        assert GONE in headings
        assert len(headings) == 2
        assert len(postbox.emails) == 1


async def test_a_delay_after_wrong_passwords_ends_with_the_new_one(made: World) -> None:
    """D47"""
    await made.person("nina")
    visitor = await factors.at_sign_in(made)
    for _ in range(8):
        await visitor.fill_and_submit(user_name="nina", password="not the right password")
    assert newcomer.status(visitor) == 429
    made.clock.pass_(60)
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
    await newcomer.password(browser)
    await visitor.fill_and_submit(user_name="nina", password=NEW)
    assert visitor.page.heading == "Enter your 6-digit code"


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("short", "at least 12 characters"),
        ("x" * 129, "at most 128 characters"),
        ("nina nina nina", "too close to your user name"),
        ("", "at least 12 characters"),
    ],
)
async def test_a_password_that_may_not_be_chosen_is_refused_beside_its_field(
    made: World, password: str, told: str
) -> None:
    """D44"""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser, password)
    assert (newcomer.status(browser), told in browser.page.text) == (200, True)
    assert await newcomer.password(browser) == "Set up your second step"


async def test_a_wrong_code_of_the_new_app_leaves_the_same_key_to_try_again(made: World) -> None:
    """D45"""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    key = newcomer.secret(browser)
    await browser.fill_and_submit(code="000000")
    assert "This code is not right" in browser.page.text
    assert newcomer.secret(browser) == key


async def test_the_codes_have_to_be_kept(made: World) -> None:
    """D45"""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    shown = newcomer.codes(browser)
    await browser.fill_and_submit("kept")
    assert "Save your codes first" in browser.page.text
    assert newcomer.codes(browser) == shown


async def test_five_wrong_codes_end_it_and_its_link() -> None:
    """D45: whoever reads the mailbox does not get to guess."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        url = await newcomer.link(made, "password")
        browser = await newcomer.opened(made, url)
        for _ in range(CODE_MISSES):
            await browser.fill_and_submit(code="not a code at all")
        assert browser.page.heading == "We stopped this for your security"
        made.clock.pass_(600)
        await newcomer.followed(browser, url)
        await browser.submit(browser.page.forms[0])
        assert browser.page.heading == "We stopped this for your security"
        assert len(await made.audit("enrolment.second_factor")) == CODE_MISSES
        assert not postbox.emails


async def test_the_password_is_throttled_as_in_the_sign_in(made: World) -> None:
    """D47"""
    await made.person("nina")
    browser = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
    statuses = []
    for _ in range(8):
        await newcomer.password(browser, "not the right password")
        statuses.append(newcomer.status(browser))
    assert statuses[:5] == [200] * 5
    assert statuses[-1] == 429


async def test_a_code_of_the_app_works_once(made: World) -> None:
    """D45: also when it was used to sign in."""
    person = await made.person("nina")
    visitor = await factors.at_sign_in(made)
    await made.password(visitor, person)
    code = totp.code_at(SECRET, made.clock())
    await visitor.fill_and_submit(code=code)
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    await browser.fill_and_submit(code=code)
    assert "was already used" in browser.page.text


async def test_another_persons_passkey_or_a_strangers_is_refused(made: World) -> None:
    """D46: the audit says why, the page does not."""
    await made.person("nina")
    await factors.passkey(made, NINA)
    others = await factors.passkey(made, factors.ALICE)
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    for key in (others, newcomer.new_key()):
        await browser.fill_and_submit(passkey=factors.answer_of(made, browser, key))
        assert "This passkey was not accepted" in browser.page.text
    assert browser.page.heading == "Confirm it is you"
    reasons = [entry.detail.get("reason", "") for entry in await made.audit("enrolment.passkey")]
    assert ["not one of" in reasons[0], "no such passkey" in reasons[1]] == [True, True], reasons


async def test_a_passkey_that_was_made_for_another_page_or_twice_is_refused(made: World) -> None:
    """WebAuthn §7.1: the challenge is this enrolment's, and works once."""
    await newcomer.nina(made)
    await made.person("omar")
    other = await newcomer.opened(made, await newcomer.link(made, user_id="id-omar"))
    browser = await newcomer.opened(made, await newcomer.link(made))
    for answer in (
        newcomer.made_passkey(made, other, newcomer.new_key()),
        newcomer.made_passkey(made, browser, newcomer.new_key(), crossOrigin=True),
        "no json",
    ):
        await browser.fill_and_submit(passkey=answer)
        assert "The passkey could not be set up" in browser.page.text, answer
    await browser.reload()
    fields = {**form_of(browser, "passkey"), "passkey": newcomer.made_passkey(made, browser, newcomer.new_key())}
    await asyncio.gather(*(post(browser, "passkey", fields) for _ in range(3)))
    assert len(await made.provider.registry.factors.passkeys(NINA)) == 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
async def test_a_form_of_another_site_moves_nothing(made: World, site: str | None) -> None:
    """D35"""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await newcomer.opened(made, url)
    fields = {**form_of(browser, "password"), "password": NEW}
    assert (await post(browser, "password", fields, site=site)).status_code == 400
    assert (await post(browser, "password", {**fields, "form_token": "x"})).status_code == 400
    await browser.reload()
    assert browser.page.heading == "Choose how you sign in"


async def _every_page(made: World, browser: Browser, url: str) -> None:
    await newcomer.followed(browser, url)
    await browser.submit(browser.page.forms[0])
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    await newcomer.kept(browser)


async def test_the_log_shows_no_secret_of_an_enrolment(made: World) -> None:
    """D48: neither the link nor the enrolment, nor what was chosen; nor do pages say it to other sites."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await made.browser()
    written = BytesIO()
    access_log.configure(clock=made.clock, stream=written)
    await _every_page(made, browser, url)
    await heading(made, url)
    await asyncio.sleep(0)
    log = written.getvalue().decode()
    assert '"path":"/enrol"' in log
    for hidden in (
        urlsplit(url).fragment,
        records.canonical(url),
        browser.url.rpartition("/")[2],
        NEW,
        newcomer.MAILBOX,
    ):
        assert hidden not in log
    assert newcomer.shown(browser).headers["referrer-policy"] == "same-origin"
