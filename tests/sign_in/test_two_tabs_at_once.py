"""Two tabs of one browser that end at the same moment: one cookie value lives, and it is the first one's (D30, D34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.authentication import browsers, interaction_context, sessions, sign_in
from corpid.rules.authentication.sign_in import StaleStep
from tests import engines
from tests.account import scene
from tests.contexts import context
from tests.sign_in.world import Memory, World, cookies_of, query_of, walk_to, wear, world_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid_dev.relying_party.browser import Browser

HOUR = 3600
CODE = "Enter your 6-digit code"


def hour_long_world_on(memory: Memory | None, **options: Any) -> AbstractAsyncContextManager[World]:
    """A world in which a session lasts an hour."""
    return world_on(memory, session_seconds=HOUR, **options)


async def at_code(made: World, browser: Browser, who: str) -> InteractionContext:
    """What a request at a new tab's page of the code starts from."""
    await browser.open(await (await made.relying_party()).begin())
    await made.password(browser, made.people[who])
    assert browser.page.heading == CODE
    sent = cookies_of(browser)["corpid"]
    return await interaction_context.load_interaction(await context(made.provider), browser.url.rsplit("/", 1)[1], sent)


async def submit(made: World, visit: InteractionContext, who: str) -> InteractionContext:
    code = made.people[who].fresh_code(made.clock())
    return await sign_in.submit_code(await context(made.provider), visit, code=code)


@engines.STORES
async def test_of_two_last_factors_at_once_the_second_tries_again(
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D34, D15: nothing of its sign-in is left, and its tab goes on with the cookie of the first."""
    async with hour_long_world_on(memory) as made:
        await made.person("bob")
        browser = await made.browser()
        bob = await at_code(made, browser, "bob")
        alice = await at_code(made, browser, "alice")
        first = await submit(made, bob, "bob")
        with pytest.raises(StaleStep):
            await submit(made, alice, "alice")
        assert await scene.sessions(made) == []
        assert len(await scene.sessions(made, "id-bob")) == 1
        made.clock.pass_(60)
        wear(browser, {"corpid": first.cookie})
        await browser.reload()
        assert browser.page.heading == CODE
        await made.code(browser, made.people["alice"])
        await browser.fill_and_submit(entity="200000001A")
        assert "code" in query_of(browser.left)
        assert await scene.sessions(made, "id-bob") == []


@engines.STORES
@pytest.mark.parametrize("quicker", ["sign-in", "sign-out"])
async def test_of_a_sign_in_and_a_sign_out_at_once_one_is_told_that_it_was_too_late(
    quicker: str, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D30, D34: nobody reads that they are signed out while another value of theirs lives."""
    async with hour_long_world_on(memory) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password", "code"))
        made.clock.pass_(60)
        await browser.open(await (await made.relying_party(prompt="login")).begin())
        await made.password(browser, made.people["alice"])
        sent = cookies_of(browser)["corpid"]
        visit = await interaction_context.load_interaction(
            await context(made.provider), browser.url.rsplit("/", 1)[1], sent
        )
        held = await sessions.list_live_sessions(await context(made.provider), visit.browser)

        async def sign_out() -> str:
            return await sessions.sign_out(await context(made.provider), sent, visit.browser, held)

        async def sign_in() -> str:
            return (await submit(made, visit, "alice")).cookie

        first, second = (sign_in, sign_out) if quicker == "sign-in" else (sign_out, sign_in)
        successor = await first()
        with pytest.raises(StaleStep):
            await second()
        assert await browsers.recognise(await context(made.provider), sent) is None
        assert await browsers.recognise(await context(made.provider), successor) is not None
        assert len(await scene.sessions(made)) == {"sign-in": 2, "sign-out": 0}[quicker]
