"""A sign-in takes time: arriving, staying, extending, and the minute after the end (D15, D16, WCAG 2.2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.flows import namespaces
from corpid.flows.authentication import interactions
from corpid.rules.limits import INTERACTION_EXTENSIONS, INTERACTION_SECONDS
from corpid_dev.relying_party.people import cancel
from tests.contexts import context
from tests.sign_in.world import World, form_of, new_world, post, query_of, rejected, walk_to, way_back

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def extend(browser: Browser) -> None:
    await browser.submit(next(form for form in browser.page.forms if form.id == "extend"))


async def test_a_browser_that_arrived_in_time_is_let_in_again_after_the_sixty_seconds(made: World) -> None:
    """D15: the 60 s govern arriving; another browser then gets invalid_request_uri at the relying party (D16)."""
    browser, late, rp = await made.browser(), await made.browser(), await made.relying_party()
    url = await rp.begin()
    await browser.open(url)
    made.clock.pass_(60)
    await browser.open(url)
    assert browser.page.heading == "Sign in"
    await late.open(url)
    answer = query_of(late.left)
    assert (answer["error"], answer["state"]) == ("invalid_request_uri", rp.sign_in.state)


async def test_arriving_in_the_sixtieth_second_is_in_time(made: World) -> None:
    """D15, Spec 2.2."""
    browser, rp = await made.browser(), await made.relying_party()
    url = await rp.begin()
    made.clock.pass_(59.9)
    await browser.open(url)
    assert browser.page.heading == "Sign in"


@pytest.mark.generations("legacy", "current", differ=True)
async def test_an_expired_sign_in_says_so_and_leads_back_with_an_error(speaking: str) -> None:
    """D15, D16: on the page and on every form of it; only who sent a request_uri hears of it."""
    error = {"legacy": "access_denied", "current": "invalid_request_uri"}[speaking]

    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password",))
        made.clock.pass_(INTERACTION_SECONDS)
        await made.code(browser, made.people["alice"])
        assert browser.page.heading == "This sign-in has expired"
        await browser.reload()
        assert browser.page.heading == "This sign-in has expired"
        await browser.open(f"{made.base}{way_back(browser)}", site="same-origin")
        answer = query_of(browser.left)
        assert (answer["error"], answer["state"]) == (error, rp.sign_in.state)
        assert await made.audit("sign_in.second_factor") == []


@pytest.mark.generations("legacy", "current")
async def test_a_person_can_ask_for_more_time_ten_times_at_any_step(speaking: str) -> None:
    """D15, WCAG 2.2.1: nothing that was done is lost, and the eleventh time is not offered."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password",))
        for _ in range(INTERACTION_EXTENSIONS):
            made.clock.pass_(INTERACTION_SECONDS - 1)
            await extend(browser)
            assert browser.page.heading == "Enter your 6-digit code"
        assert not any(form.id == "extend" for form in browser.page.forms)
        answer = await rejected(browser, await post(browser, "extend", form_of(browser, "code")))
        assert "You cannot get more time" in answer.text
        made.clock.pass_(INTERACTION_SECONDS - 1)
        await made.code(browser, made.people["alice"])
        await browser.fill_and_submit(entity="200000001A")
        await rp.redeem(browser.left or "")


async def test_what_was_typed_before_more_time_was_asked_for_can_still_be_sent(made: World) -> None:
    """WCAG 2.2.1: the script asks in the background, and the form stays as it is."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password",))
    shown = browser.page
    await extend(browser)
    browser.page = shown
    await made.code(browser, made.people["alice"])
    assert browser.page.heading == "Choose who you act for"


async def test_the_same_request_stays_claimed_and_completed_longer_than_every_extension(made: World) -> None:
    """D15: a sign-in that took two hours is completed once."""
    browser, rp = await made.browser(), await made.relying_party()
    url = await rp.begin()
    await browser.open(url)
    for _ in range(INTERACTION_EXTENSIONS):
        made.clock.pass_(INTERACTION_SECONDS - 1)
        await extend(browser)
    await made.factors(browser, made.people["alice"])
    await browser.fill_and_submit(entity="200000001A")
    assert "code" in query_of(browser.left)
    await browser.open(url)
    assert browser.left is None
    assert browser.page.heading == "This sign-in is finished"


async def test_the_completing_address_repeats_the_same_redirect_for_sixty_seconds(made: World) -> None:
    """D15: to the byte; afterwards it is invalid_request_uri, and authorize never repeats a code."""
    browser, rp = await made.browser(), await made.relying_party()
    url = await rp.begin()
    await browser.open(url)
    where = browser.url
    await made.factors(browser, made.people["alice"])
    await browser.fill_and_submit(entity="200000001A")
    first = browser.left
    made.clock.pass_(59)
    for address in (f"{where}/return", f"{where}/leave"):
        await browser.open(address)
        assert browser.left == first
    await browser.open(url)
    assert query_of(browser.left)["error"] == "invalid_request_uri"
    made.clock.pass_(1)
    for address in (f"{where}/return", f"{where}/leave"):
        await browser.open(address)
        answer = query_of(browser.left)
        assert (answer["error"], answer["state"]) == ("invalid_request_uri", rp.sign_in.state)
        assert "code" not in answer
    assert len(await made.audit("sign_in.complete")) == 1


@pytest.mark.parametrize("time", [" {now}", ""], ids=["", "written before an upgrade"])
async def test_a_completion_whose_process_died_ends_after_sixty_seconds(made: World, time: str) -> None:
    """D15, D16: on Redis nothing is undone; who waits is told, and led back with an error."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code"))
    transient, now = made.provider.transient, made.clock()
    interaction = await interactions.load(await context(made.provider), browser.url.rpartition("/")[2])
    assert interaction is not None
    completed = namespaces.COMPLETED.entry(made.base, "rp1", interaction.reference)
    winner = interaction.interaction_id + time.format(now=int(now))
    async with transient.batch(now) as batch:
        await completed.add(batch, winner)
    if time:
        made.clock.pass_(59)
        assert "One moment" in (await browser.http.get(browser.url, headers={"Accept": "text/html"})).text
        made.clock.pass_(1)
    await browser.reload()
    assert browser.page.heading == "This sign-in is finished"
    await browser.open(f"{made.base}{way_back(browser)}", site="same-origin")
    answer = query_of(browser.left)
    assert (answer["error"], answer["state"]) == ("invalid_request_uri", rp.sign_in.state)


@pytest.mark.generations("legacy", "current")
async def test_only_the_own_browser_can_repeat_the_redirect(speaking: str) -> None:
    """D15, D34: the address of a finished sign-in gives nobody else a code."""
    async with new_world(generations=(speaking,)) as made:
        browser, other, rp = await made.browser(), await made.browser(), await made.relying_party()
        await browser.open(await rp.begin())
        where = browser.url
        await made.factors(browser, made.people["alice"])
        await browser.fill_and_submit(entity="200000001A")
        await other.open(f"{where}/leave")
        assert other.left is None
        assert other.page.heading == "This sign-in belongs to another browser"


@pytest.mark.generations("legacy", "current")
async def test_a_cancelled_sign_in_repeats_its_refusal_and_cannot_go_on(speaking: str) -> None:
    """D15, D17."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password",))
        where, page = browser.url, browser.page
        refused = query_of(await cancel(browser))
        await browser.open(f"{where}/leave")
        again = query_of(browser.left)
        assert (again["error"], again["state"]) == (refused["error"], refused["state"])
        browser.url, browser.page = where, page
        await made.code(browser, made.people["alice"])
        assert query_of(browser.left)["error"] == "access_denied"
        await browser.open(where)
        assert browser.page.heading == "This sign-in is finished"
        assert await made.audit("sign_in.complete") == []


async def test_a_page_long_after_the_end_says_that_it_is_gone(made: World) -> None:
    """D15: claims, completions and interactions live two hours, then a plain page remains."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp)
    made.clock.pass_(3 * 3600)
    await browser.reload()
    assert browser.response is not None
    assert browser.response.status_code == 404
    assert browser.page.heading == "We cannot find this sign-in"
