"""Forms of enrolments, links and forgotten passwords survive Back and Reload (D73)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin, urlsplit

import pytest

from corpid.rules.authentication import records
from corpid.rules.limits import CODE_MISSES
from corpid.web.account import links
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX
from tests.enrolment.test_nothing_stored import kept
from tests.postbox import Postbox
from tests.sign_in.world import FORM, World, form_of, new_world, post
from tests.world.provider import EVENT

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

WRONG_PASSWORD = "not the right password"
TEN_MINUTES = 600
HEADERS = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
LINK_CODE = "0000-0000-0000-0000-0000"


async def at_proof(made: World) -> Browser:
    """At the password that a new second factor needs."""
    await made.person("nina", email=MAILBOX)
    return await newcomer.opened(made, await newcomer.link(made, "second_factor"))


async def sent(made: World, browser: Browser, page: str, fields: dict[str, str]) -> httpx.Response:
    """Post a form as it is, following nothing."""
    return await browser.http.post(f"{made.base}{page}", content=urlencode(fields), headers=HEADERS)


async def in_malay(browser: Browser) -> None:
    """Pick another language on the page that is shown."""
    malay = next(url for url, _ in browser.page.links if "/language/ms" in url)
    await browser.open(urljoin(browser.url, malay), site="same-origin")
    assert 'lang="ms"' in newcomer.shown(browser).text


async def test_a_reload_of_an_error_counts_nothing_and_back_shows_the_page_before(made: World) -> None:
    """D73, D47."""
    browser = await at_proof(made)
    before = browser.url
    await newcomer.password(browser, WRONG_PASSWORD)
    for _ in range(8):
        assert (newcomer.shown(browser).request.method, newcomer.status(browser)) == ("GET", 200)
        assert "is not right" in browser.page.text
        assert WRONG_PASSWORD not in newcomer.shown(browser).text
        await browser.reload()
    assert len(await made.audit("enrolment.password")) == 1
    shown_with_error = browser.url
    await browser.open(before)
    assert "is not right" not in browser.page.text
    await newcomer.password(browser, made.people["nina"].password)
    await browser.open(shown_with_error)
    assert "is not right" not in browser.page.text, "a step that has moved on shows nothing of the one before"


async def test_recovery_codes_stay_readable_for_a_minute_and_are_replaced_if_they_were_not_saved(made: World) -> None:
    """D73."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    lost, before = newcomer.codes(browser), form_of(browser, "kept")
    made.clock.pass_(59)
    await browser.reload()
    assert newcomer.codes(browser) == lost
    made.clock.pass_(1)
    await browser.reload()
    assert "Your codes are no longer shown" in browser.page.text
    assert newcomer.codes(browser) == []
    await browser.fill_and_submit("kept", button="other-codes")
    shown = newcomer.codes(browser)
    assert len(shown) == len(lost)
    assert not set(shown) & set(lost)
    await post(browser, "codes", {**before, "kept": "yes"})
    await browser.reload()
    assert newcomer.codes(browser) == shown, "the form of the codes before is no longer taken"
    made.clock.pass_(60)
    await newcomer.kept(browser)
    for code, works in ((lost[0], False), (shown[0], True)):
        code_hash = records.recovery_code_hash(newcomer.NINA, code)
        taken = await made.provider.registry.factors.take_recovery_code(newcomer.NINA, code_hash, EVENT)
        assert taken == works


async def test_another_language_keeps_the_error(made: World) -> None:
    """D73: in the language that was picked."""
    browser = await at_proof(made)
    await newcomer.password(browser, WRONG_PASSWORD)
    english = browser.page.text
    await in_malay(browser)
    assert "?entered=1" in browser.url
    assert 'aria-invalid="true"' in newcomer.shown(browser).text
    assert browser.page.text != english


async def test_more_time_keeps_the_error(made: World) -> None:
    """D73, WCAG 2.2.1: without JavaScript."""
    browser = await at_proof(made)
    await newcomer.password(browser, WRONG_PASSWORD)
    await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
    assert "is not right" in browser.page.text


async def test_another_browser_reads_nothing_and_after_ten_minutes_nobody_does(made: World) -> None:
    """D73."""
    browser, other = await at_proof(made), await made.browser()
    await newcomer.password(browser, WRONG_PASSWORD)
    await other.open(browser.url)
    assert (newcomer.status(other), other.page.heading) == (403, newcomer.ELSEWHERE)
    made.clock.pass_(TEN_MINUTES)
    await browser.reload()
    assert newcomer.status(browser) == 200
    assert "is not right" not in browser.page.text


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_same_wrong_password_sent_twice_counts_once(made: World, *, at_once: bool) -> None:
    """D73, D47: the bytes of one form that was shown, as by a double click."""
    browser = await at_proof(made)
    fields = {**form_of(browser, "password"), "password": WRONG_PASSWORD}
    if at_once:
        answers = await asyncio.gather(*(post(browser, "password", fields) for _ in range(2)))
    else:
        answers = [await post(browser, "password", fields) for _ in range(12)]
    assert {(each.status_code, each.headers["location"][-10:]) for each in answers} == {(303, "?entered=1")}
    assert len(await made.audit("enrolment.password")) == 1
    for _ in range(4):
        await browser.reload()
        await newcomer.password(browser, WRONG_PASSWORD)
        assert newcomer.status(browser) == 200
    await browser.reload()
    await newcomer.password(browser, made.people["nina"].password)
    assert newcomer.status(browser) == 200, "five wrong ones are free"


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_same_wrong_code_sent_twice_is_one_guess(made: World, *, at_once: bool) -> None:
    """D73, D45: it is not tried again either, since the app's code changes."""
    await made.person("nina", email=MAILBOX)
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    fields = {**form_of(browser, "code"), "code": "000000"}
    if at_once:
        await asyncio.gather(*(post(browser, "code", fields) for _ in range(2)))
    else:
        for _ in range(2 * CODE_MISSES):
            assert (await post(browser, "code", fields)).status_code == 303
            made.clock.pass_(30)
    assert len(await made.audit("enrolment.second_factor")) == 1
    guesses = await made.provider.registry.code_guesses.get(newcomer.NINA, "link")
    assert guesses.guesses == 1
    await browser.reload()
    assert newcomer.status(browser) == 200


async def test_a_link_code_is_shown_again_to_its_browser_and_stored_nowhere(made: World) -> None:
    """D73, decision 0013: in a sealed cookie, for ten minutes, until a code opens something."""
    browser, other = await made.browser(), await made.browser()
    for each in (browser, other):
        await each.open(f"{made.base}/enrol")
    before = browser.url
    await browser.fill_and_submit(code="too short")
    for _ in range(3):
        assert newcomer.shown(browser).request.method == "GET"
        assert "Enter all 20 letters and digits" in browser.page.text
        assert form_of(browser, "code")["code"] == "too short"
        await browser.reload()
    await in_malay(browser)
    assert form_of(browser, "code")["code"] == "too short"
    assert kept(made) == []
    cookie = next(each for each in browser.http.cookies.jar if each.name == "corpid_form")
    other.http.cookies.jar.set_cookie(cookie)
    await other.open(browser.url)
    assert form_of(other, "code")["code"] == ""
    await browser.open(before)
    assert form_of(browser, "code")["code"] == ""
    made.clock.pass_(TEN_MINUTES)
    await browser.open(f"{before}?entered=1")
    assert form_of(browser, "code")["code"] == ""


async def test_a_form_that_is_too_long_for_a_cookie_keeps_its_error(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D73: what was typed is lost."""
    monkeypatch.setattr(links, "_COOKIE_CHARACTERS", 1000)
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    await browser.fill_and_submit(code="\U0001f511" * 500)
    assert "Enter all 20 letters and digits" in browser.page.text
    assert form_of(browser, "code")["code"] == ""


async def test_an_accepted_code_takes_the_cookie_away_and_without_cookies_the_page_comes_again(made: World) -> None:
    """D73."""
    await newcomer.nina(made)
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    await browser.fill_and_submit(code="too short")
    del browser.http.cookies["corpid_form"]
    await browser.reload()
    assert (newcomer.status(browser), form_of(browser, "code")["code"]) == (200, "")
    await browser.fill_and_submit(code=LINK_CODE)
    await browser.fill_and_submit(code=urlsplit(await newcomer.link(made)).fragment)
    assert "corpid_form" not in browser.http.cookies


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_same_wrong_link_code_sent_twice_counts_once(made: World, *, at_once: bool) -> None:
    """D73, D47."""
    browser = await made.browser()
    await browser.open(f"{made.base}/enrol")
    fields = {**form_of(browser, "code"), "code": LINK_CODE}
    sends = [sent(made, browser, "/enrol", fields) for _ in range(2)]
    answers = await asyncio.gather(*sends) if at_once else [await each for each in sends]
    assert {each.headers["location"] for each in answers} == {"/enrol?entered=1"}
    for _ in range(19):
        await browser.open(f"{made.base}/enrol")
        await browser.fill_and_submit(code=LINK_CODE)
        assert newcomer.status(browser) == 200
    await browser.fill_and_submit(code=LINK_CODE)
    await browser.fill_and_submit(code=LINK_CODE)
    assert newcomer.status(browser) == 429


async def test_check_your_email_is_a_page_to_reload_which_no_link_of_others_shows() -> None:
    """D73, D47: it sends nothing again."""
    postbox = Postbox()
    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser, other = await made.browser(), await made.browser()
        await browser.open(f"{made.base}/recover")
        await browser.fill_and_submit(user_name="nina")
        for _ in range(3):
            assert browser.page.heading == "Check your e-mail"
            await browser.reload()
        await in_malay(browser)
        assert "?sent=1" in browser.url
        await made.provider.background_tasks.settle()
        assert len(postbox.emails) == 1
        await other.open(browser.url)
        assert other.page.form_with("user_name"), "a cookie of another browser is needed"
        await browser.open(f"{made.base}/recover?entered=1")
        assert browser.page.form_with("user_name")


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_same_request_for_a_link_sent_twice_sends_one_email(*, at_once: bool) -> None:
    """D73, D44."""
    postbox = Postbox()
    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser = await made.browser()
        await browser.open(f"{made.base}/recover")
        fields = {**form_of(browser, "user_name"), "user_name": "nina"}
        sends = [sent(made, browser, "/recover", fields) for _ in range(2)]
        answers = await asyncio.gather(*sends) if at_once else [await each for each in sends]
        assert {each.headers["location"] for each in answers} == {"/recover?sent=1"}
        await made.provider.background_tasks.settle()
        assert len(postbox.emails) == 1
