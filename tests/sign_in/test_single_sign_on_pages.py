"""What the pages of single sign-on say of who is signed in, and the way to another account (D17, D29, D30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid_dev.relying_party.people import sign_in, step_of
from tests.account.scene import sessions
from tests.sign_in.world import EVERY_SCOPE, World, entity, new_world, query_of, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

HOUR = 3600
NO_ENTITY = "You cannot use this service yet"


async def signed_in(made: World) -> Browser:
    browser, rp = await made.browser(), await made.relying_party()
    await sign_in(browser, await rp.begin(), made.people["alice"], now=made.clock)
    made.clock.pass_(60)
    return browser


def says(browser: Browser) -> bool:
    return "User name alice" in browser.page.text


async def test_the_choice_and_consent_say_who_is_signed_in_and_how_many_steps_remain() -> None:
    """Nobody chooses for whom they act without seeing as whom they are signed in."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await signed_in(made)
        await made.client(sector="private")
        await walk_to(made, browser, await made.relying_party(scope=EVERY_SCOPE))
        assert says(browser)
        assert "Step " not in browser.page.text
        await browser.fill_and_submit(entity="200000001A")
        assert says(browser)
        assert "Step 2 of 2" in browser.page.text
        await browser.fill_and_submit("decision", button="agree")
        assert "code" in query_of(browser.left)


@pytest.mark.parametrize(("entities", "parameters"), [(2, {}), (1, {"prompt": "consent"})], ids=["choice", "consent"])
async def test_a_lone_page_is_the_only_step(entities: int, parameters: dict[str, str]) -> None:
    async with new_world(entities=entities, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        await walk_to(made, browser, await made.relying_party(**parameters))
        assert says(browser)
        assert "Step 1 of 1" in browser.page.text


async def test_another_account_can_be_used_where_consent_is_asked() -> None:
    """D29, D30."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        bob = await made.person("bob", entity("200000009A", "Bobs Bakery"), name="Bob Lim")
        browser = await signed_in(made)
        rp = await made.relying_party(prompt="consent")
        await walk_to(made, browser, rp)
        await browser.fill_and_submit("decision", button="other_account")
        assert browser.page.heading == "Sign in"
        await made.factors(browser, bob)
        assert "User name bob" in browser.page.text
        await browser.fill_and_submit("decision", button="agree")
        assert "id-bob" in (await rp.redeem(browser.left or "")).id_token["sub"]


async def test_who_is_signed_in_and_has_no_usable_entity_can_use_another_account() -> None:
    """D17, D30: the session alone would lead to the same page again and again."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        bob = await made.person("bob", entity("200000009A", "Bobs Bakery"), name="Bob Lim")
        browser = await signed_in(made)
        gone = entity("200000001A", "Acme Pte. Ltd.", enabled=False)
        await made.write(gone)
        rp = await made.relying_party()
        await walk_to(made, browser, rp)
        assert browser.page.heading == NO_ENTITY
        assert "User name alice" in browser.page.text
        assert step_of(browser) == "return"
        await browser.fill_and_submit("decision", button="other_account")
        assert browser.page.heading == "Sign in"
        await made.factors(browser, bob)
        assert "id-bob" in (await rp.redeem(browser.left or "")).id_token["sub"]


async def test_the_last_use_is_noted_also_where_no_page_is_shown() -> None:
    """D30: at most every two minutes, so that a busy person costs no write for each client."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await signed_in(made)
        (first,) = await sessions(made)
        moments = []
        for seconds in (1, 60, 1):
            made.clock.pass_(seconds)
            await browser.open(await (await made.relying_party()).begin())
            assert "code" in query_of(browser.left)
            moments.append((await sessions(made))[0].seen_at - first.seen_at)
        assert moments == [0, 121, 121]
