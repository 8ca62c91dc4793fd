"""Forms of the account survive Back and Reload (D73)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from corpid.rules.authentication import records
from corpid.rules.limits import ACCOUNT_PAGE_EXTENSIONS, FACTOR_CHANGES
from tests.account.scene import at_account, go, hidden, rejected, send
from tests.account.test_email import NEW, asked, mailed_world
from tests.account.test_page_lifetime import codes_on
from tests.sign_in.factors import ALICE
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from tests.sign_in.world import World

SHORT = "short"
TOO_SHORT = "Choose a password of at least"


async def test_recovery_codes_stay_readable_for_a_minute_and_are_taken_afterwards(made: World) -> None:
    """D73: a reload, a form without the tick and Back show the same ones, for as long."""
    browser = await at_account(made, "codes")
    printed = codes_on(browser)
    assert len(printed) == 10
    made.clock.pass_(59)
    for _ in range(2):
        await browser.reload()
        assert codes_on(browser) == printed
    form = next(each for each in browser.page.forms if "kept" in each.names())
    await browser.submit(form)
    assert "Save your codes first" in browser.page.text
    assert codes_on(browser) == printed
    made.clock.pass_(1)
    await browser.reload()
    assert "Save your codes first" in browser.page.text
    assert codes_on(browser) == []
    assert "Your codes are no longer shown" in browser.page.text
    await browser.fill_and_submit(kept="yes")
    assert "10 codes left" in browser.page.text
    await go(made, browser, "codes")
    assert len(codes_on(browser)) == 10
    assert not set(codes_on(browser)) & set(printed)


async def test_codes_that_were_not_saved_in_time_are_replaced_by_others(made: World) -> None:
    """D73: the ones before never work, and a double click shows one set."""
    browser = await at_account(made, "codes")
    lost, form = codes_on(browser), hidden(browser)
    made.clock.pass_(60)
    await browser.reload()
    await browser.fill_and_submit("kept", button="other-codes")
    shown = codes_on(browser)
    assert len(shown) == 10
    assert not set(shown) & set(lost)
    assert (await send(made, browser, "codes", **form, decision="other-codes")).status_code == 303
    await browser.reload()
    assert codes_on(browser) == shown
    assert (await send(made, browser, "codes", **form, kept="yes")).headers["location"] == "/account"
    await browser.fill_and_submit(kept="yes")
    assert "10 codes left" in browser.page.text
    for code, works in ((lost[0], False), (shown[0], True)):
        taken = made.provider.registry.factors.take_recovery_code(ALICE, records.recovery_code_hash(ALICE, code), EVENT)
        assert await taken == works


async def test_codes_are_readable_in_the_session_to_which_they_were_shown(made: World) -> None:
    """D73, D45: another one of the same browser can finish with those that were saved."""
    browser = await at_account(made, "codes")
    assert codes_on(browser)
    await made.provider.registry.sessions.end_all(ALICE, EVENT)
    made.clock.pass_(30)
    await go(made, browser, "codes")
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Save your recovery codes"
    assert codes_on(browser) == []
    await browser.fill_and_submit(kept="yes")
    assert "10 codes left" in browser.page.text


async def test_more_time_keeps_the_error(made: World) -> None:
    """D73, WCAG 2.2.1: without JavaScript, and also once no more time is given."""
    browser = await at_account(made, "password")
    await browser.fill_and_submit(password=SHORT)
    fields = {**hidden(browser), "entered": browser.url.partition("entered=")[2]}
    long = await send(made, browser, "extend/password", **{**fields, "entered": "é&\r\n" * 4000})
    assert len(long.headers["location"]) < 200
    for _ in range(ACCOUNT_PAGE_EXTENSIONS - 1):
        await browser.reload()
        await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
        assert TOO_SHORT in browser.page.text
    page = (await rejected(browser, await send(made, browser, "extend/password", **fields))).text
    assert "You cannot get more time on this page." in page
    assert TOO_SHORT in page


async def test_the_same_refusal_of_more_time_is_said_once(made: World) -> None:
    """D73: however often a page that is still open in a tab asks."""
    browser = await at_account(made, "password")
    await browser.fill_and_submit(password=SHORT)
    fields = {**hidden(browser), "entered": browser.url.partition("entered=")[2]}
    for _ in range(ACCOUNT_PAGE_EXTENSIONS):
        await browser.reload()
        await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))
    counts: set[tuple[int, int]] = set()
    for _ in range(3):
        page = (await rejected(browser, await send(made, browser, "extend/password", **fields))).text
        counts.add((page.count("You cannot get more time on this page."), page.count(TOO_SHORT)))
    assert len(counts) == 1


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_rejected_password_sent_twice_counts_once(made: World, *, at_once: bool) -> None:
    """D73, D47: the bytes of one form that was shown."""
    browser = await at_account(made, "password")
    first = hidden(browser)
    twice = [send(made, browser, "password", password=SHORT, **first) for _ in range(2)]
    answers = await asyncio.gather(*twice) if at_once else [await each for each in twice]
    assert len({each.headers["location"] for each in answers}) == 1
    for _ in range(FACTOR_CHANGES - 1):
        await go(made, browser, "password")
        await browser.fill_and_submit(password=SHORT)
        assert browser.response is not None
        assert browser.response.status_code == 200
    await go(made, browser, "password")
    await browser.fill_and_submit(password="six green bicycles in a row")
    assert "Your password has been changed." in browser.page.text


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_wrong_code_sent_twice_counts_once(*, at_once: bool) -> None:
    """D73, D45: five different ones end it."""
    async with mailed_world() as (made, postbox):
        browser = await asked(made, NEW)
        form = hidden(browser)
        wrong = "00000000" if postbox.code() != "00000000" else "11111111"
        sends = [send(made, browser, "email", decision="code", code=wrong, **form) for _ in range(2)]
        answers = await asyncio.gather(*sends) if at_once else [await each for each in sends]
        assert {each.status_code for each in answers} == {303}
        for _ in range(3):
            await go(made, browser, "email")
            await browser.fill_and_submit("code", code=wrong)
            assert "This code is not right." in browser.page.text
