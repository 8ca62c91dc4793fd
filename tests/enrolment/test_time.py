"""An enrolment takes time: it warns, and can be extended, but never past its link (WCAG 2.2.1, D15, D34)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from corpid.rules.limits import ENROLMENT_EXTENSIONS, ENROLMENT_SECONDS, PASSWORD_LINK_SECONDS, SET_UP_LINK_SECONDS
from tests.enrolment import newcomer
from tests.enrolment.newcomer import ELSEWHERE, GONE, NEW
from tests.sign_in.world import World, form_of, post, rejected

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


def more_time(browser: Browser) -> bool:
    """Whether the page offers more time."""
    return any(form.id == "extend" for form in browser.page.forms)


async def extend(browser: Browser) -> None:
    await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))


def seconds(browser: Browser) -> str:
    """What the script that warns is told."""
    return newcomer.shown(browser).text.partition('data-seconds="')[2].partition('"')[0]


async def test_an_enrolment_is_extended_ten_times_and_goes_on_in_the_same_browser(made: World) -> None:
    """WCAG 2.2.1: and what was claimed for it stays claimed."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    browser = await newcomer.opened(made, url)
    assert seconds(browser) == str(ENROLMENT_SECONDS)
    for _ in range(ENROLMENT_EXTENSIONS):
        made.clock.pass_(ENROLMENT_SECONDS - 1)
        await browser.reload()
        assert seconds(browser) == "1"
        await extend(browser)
        assert seconds(browser) == str(ENROLMENT_SECONDS)
    assert not more_time(browser)
    assert "You cannot get more time." in browser.page.text
    assert (await newcomer.opened(made, url)).page.heading == ELSEWHERE
    answer = await post(browser, "extend", form_of(browser, "password"))
    assert "You cannot get more time on this page" in (await rejected(browser, answer)).text
    assert await newcomer.password(browser) == "Set up your second step"
    made.clock.pass_(ENROLMENT_SECONDS)
    await browser.reload()
    assert browser.page.heading == GONE


async def test_more_time_never_outlasts_the_link_and_the_page_says_so(made: World) -> None:
    await newcomer.nina(made)
    url = await newcomer.link(made)
    made.clock.pass_(SET_UP_LINK_SECONDS - ENROLMENT_SECONDS - 60)
    browser = await newcomer.opened(made, url)
    made.clock.pass_(300)
    await extend(browser)
    assert seconds(browser) == str(ENROLMENT_SECONDS - 240)
    assert not more_time(browser)
    made.clock.pass_(ENROLMENT_SECONDS - 240)
    assert await newcomer.password(browser) == GONE


async def test_a_link_that_ends_within_the_hour_says_at_once_that_there_is_no_more_time(made: World) -> None:
    """WCAG 2.2.1: the script warns all the same."""
    await made.person("nina")
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    assert (seconds(browser), more_time(browser)) == (str(PASSWORD_LINK_SECONDS), False)
    assert "You cannot get more time." in browser.page.text
    assert 'id="time-warning"' in newcomer.shown(browser).text


async def test_more_time_leaves_the_form_that_is_being_filled_in_as_it_is(made: World) -> None:
    """D15: and of several requests for more time at once one counts."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    fields = form_of(browser, "password")
    answers = await asyncio.gather(*(post(browser, "extend", fields) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {303}
    assert (await post(browser, "password", {**fields, "password": NEW})).status_code == 303
    await browser.reload()
    assert browser.page.heading == "Set up your second step"
