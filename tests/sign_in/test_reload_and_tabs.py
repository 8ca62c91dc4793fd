"""Reload, Back, tabs and double clicks: each shows the page that is current, and exactly one code is written (D15)."""

from __future__ import annotations

import asyncio

import pytest

from corpid.rules.limits import INTERACTIONS_PER_REQUEST
from corpid_dev.relying_party.people import cancel
from tests.sign_in.world import World, cookies_of, form_of, new_world, post, query_of, walk_to, way_back, wear


@pytest.mark.generations("legacy", "current")
async def test_reloading_a_page_spends_nothing(speaking: str) -> None:
    """D15: each page, three times, and the sign-in still ends with a code."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await browser.open(await rp.begin())
        for step in ("password", "code", "entity"):
            before = browser.page.heading
            for _ in range(3):
                await browser.reload()
                assert browser.page.heading == before
            match step:
                case "password":
                    await made.password(browser, made.people["alice"])
                case "code":
                    await made.code(browser, made.people["alice"])
                case _:
                    await browser.fill_and_submit(entity="200000001A")
        assert "code" in query_of(browser.left)


@pytest.mark.generations("legacy", "current")
async def test_a_form_that_was_gone_back_to_leads_to_the_page_that_is_current(speaking: str) -> None:
    """D15: Back shows the password form again; sending it once more harms nothing and asks for nothing twice."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await browser.open(await rp.begin())
        old = browser.page
        await made.factors(browser, made.people["alice"])
        assert browser.page.heading == "Choose who you act for"
        browser.page = old
        await made.password(browser, made.people["alice"])
        assert browser.page.heading == "Choose who you act for"
        await browser.fill_and_submit(entity="200000001A")
        assert "code" in query_of(browser.left)


@pytest.mark.generations("legacy", "current")
async def test_a_second_tab_with_the_same_request_shares_the_sign_in(speaking: str) -> None:
    """D15: it is sent to the same interaction, and shows the step that the first tab has reached."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        url = await rp.begin()
        await browser.open(url)
        first = browser.url
        await made.password(browser, made.people["alice"])
        await browser.open(url)
        assert browser.url == first
        assert browser.page.heading == "Enter your 6-digit code"


@pytest.mark.generations("legacy", "current")
async def test_two_tabs_with_two_relying_parties_both_end_at_their_own(speaking: str) -> None:
    """D15, D34: step by step in turn; the cookie is replaced in one tab while the other is open."""
    async with new_world(generations=(speaking,)) as made:
        await made.client("rp2")
        browser, alice = await made.browser(), made.people["alice"]
        parties = [await made.relying_party("rp1"), await made.relying_party("rp2")]
        tabs = []
        for rp in parties:
            await browser.open(await rp.begin())
            tabs.append((browser.url, browser.page))
        for step in ("password", "code", "entity"):
            for number in (0, 1):
                browser.url, browser.page = tabs[number]
                assert f"Relying Party {number + 1}" in browser.page.text
                match step:
                    case "password":
                        await made.password(browser, alice)
                    case "code":
                        await made.code(browser, alice)
                    case _:
                        await browser.fill_and_submit(entity=f"20000000{number + 1}A")
                        tokens = await parties[number].redeem(browser.left or "")
                        assert tokens.access_token_claims["entity"]["sub"] == f"20000000{number + 1}A"
                tabs[number] = (browser.url, browser.page)


@pytest.mark.generations("legacy", "intermediate", "current", "fapi2")
async def test_twenty_simultaneous_clicks_on_the_last_button_write_one_code_and_all_end_well(speaking: str) -> None:
    """D15: one wins; everyone else is led to the same redirect."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        fields = {**form_of(browser, "entity"), "entity": "200000001A"}
        answers = await asyncio.gather(*(post(browser, "entity", fields) for _ in range(20)))
        assert {answer.status_code for answer in answers} == {303}
        ends = set()
        for answer in answers:
            await browser.open(f"{made.base}{answer.headers['location']}", site="same-origin")
            if browser.left is None:
                await browser.open(f"{made.base}{way_back(browser)}", site="same-origin")
            ends.add(browser.left)
        assert len(ends) == 1
        assert len(await made.audit("sign_in.complete")) == 1
        await rp.redeem(ends.pop() or "")


async def test_a_password_whose_answer_was_lost_can_be_sent_again(made: World) -> None:
    """D15: a second click throws the first answer away, with whatever cookie it brought; so does a bad connection."""
    browser, rp, alice = await made.browser(), await made.relying_party(), made.people["alice"]
    await browser.open(await rp.begin())
    had = cookies_of(browser)
    fields = {**form_of(browser, "password"), "user_name": alice.user_name, "password": alice.password}
    lost = await post(browser, "password", fields)
    assert lost.status_code == 303
    wear(browser, had)
    await made.password(browser, alice)
    assert browser.page.heading == "Enter your 6-digit code"


async def test_simultaneous_clicks_on_each_step_take_it_once(made: World) -> None:
    """D15: password and code; the others change nothing."""
    browser, rp, alice = await made.browser(), await made.relying_party(), made.people["alice"]
    await browser.open(await rp.begin())
    typed = {"user_name": alice.user_name, "password": alice.password}
    for action, more in (("password", typed), ("code", {"code": alice.fresh_code(made.clock())})):
        fields = {**form_of(browser, *more), **more}
        answers = await asyncio.gather(*(post(browser, action, fields) for _ in range(4)))
        assert {answer.status_code for answer in answers} <= {303}
        await browser.reload()
    assert browser.page.heading == "Choose who you act for"


@pytest.mark.generations("legacy", "current")
async def test_cancel_and_agree_at_once_give_one_answer(speaking: str) -> None:
    """D15: exactly one wins, and both tabs end with it."""
    async with new_world(generations=(speaking,)) as made:
        browser, rp = await made.browser(), await made.relying_party()
        await walk_to(made, browser, rp, ("password", "code"))
        fields = form_of(browser, "entity")
        clicks = [("entity", {**fields, "entity": "200000001A"}), ("cancel", fields)] * 5
        answers = await asyncio.gather(*(post(browser, action, sent) for action, sent in clicks))
        assert {answer.status_code for answer in answers} == {303}
        ended = len(await made.audit("sign_in.complete")), len(await made.audit("sign_in.refuse"))
        assert sorted(ended) == [0, 1]


async def test_a_browser_that_comes_after_another_has_claimed_the_request_gets_an_error_page(made: World) -> None:
    """D15: the first to pass the first factor claims it; the other may go back to the relying party."""
    await made.person("mallory")
    first, second, rp = await made.browser(), await made.browser(), await made.relying_party()
    url = await rp.begin()
    await first.open(url)
    await second.open(url)
    assert first.url != second.url
    await made.password(first, made.people["alice"])
    await made.password(second, made.people["mallory"])
    assert second.response is not None
    assert second.response.status_code == 409
    assert second.page.heading == "This sign-in continues in another browser"
    assert "cookies" not in second.page.text
    assert ("https://rp.example/", "Go to Relying Party 1") in second.page.links
    await second.open(url)
    assert second.page.heading == "This sign-in continues in another browser"
    await made.code(first, made.people["alice"])
    await first.fill_and_submit(entity="200000001A")
    await rp.redeem(first.left or "")


async def test_a_browser_that_another_was_quicker_than_is_led_to_the_site_of_who_asked(made: World) -> None:
    """D15, D16: its own sign-in has no answer to give, and a way back to the same page would be none."""
    first, second, rp = await made.browser(), await made.browser(), await made.relying_party()
    url = await rp.begin()
    await first.open(url)
    await second.open(url)
    await made.factors(first, made.people["alice"])
    await first.fill_and_submit(entity="200000001A")
    await second.reload()
    assert second.page.heading == "This sign-in is finished"
    assert ("https://rp.example/", "Go to Relying Party 1") in second.page.links
    assert not [target for target, _ in second.page.links if target.endswith("/leave")]


async def test_a_browser_cannot_cancel_what_another_has_claimed(made: World) -> None:
    """D15: an error page for it, and the sign-in of the first goes on."""
    first, second, rp = await made.browser(), await made.browser(), await made.relying_party()
    url = await rp.begin()
    await first.open(url)
    await second.open(url)
    await made.password(first, made.people["alice"])
    fields = form_of(second, "password")
    answer = await post(second, "cancel", {name: fields[name] for name in ("form_token", "step")})
    assert answer.status_code == 409
    await made.code(first, made.people["alice"])
    await first.fill_and_submit(entity="200000001A")
    assert "code" in query_of(first.left)


async def test_somebody_elses_interaction_is_not_shown_and_leads_back(made: World) -> None:
    """D34: the address of a sign-in alone opens nothing."""
    first, second, rp = await made.browser(), await made.browser(), await made.relying_party()
    await walk_to(made, first, rp, ("password",))
    await second.open(first.url)
    assert second.response is not None
    assert second.response.status_code == 403
    assert second.page.heading == "This sign-in belongs to another browser"
    assert second.page.forms == []
    answer = await post(second, "cancel", form_of(first, "code"))
    assert answer.status_code == 303
    await first.reload()
    assert first.page.heading == "Enter your 6-digit code"


async def test_ten_browsers_may_open_a_request_and_the_eleventh_is_sent_back(made: World) -> None:
    """D15: at most ten interactions; a browser that is already there is not counted again."""
    rp = await made.relying_party()
    url = await rp.begin()
    for _ in range(INTERACTIONS_PER_REQUEST):
        browser = await made.browser()
        await browser.open(url)
        await browser.open(url)
        assert browser.page.heading == "Sign in"
    last = await made.browser()
    await last.open(url)
    assert query_of(last.left)["error"] == "invalid_request_uri"
    assert "code" not in query_of(await cancel(browser))
