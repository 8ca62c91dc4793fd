"""A session that ends while a change is on its way writes nothing any more (D30, D44)."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from corpid.flows.directory import people
from corpid.rules.authentication.passwords import COMMAND_LINE
from corpid.rules.directory.access import CommandLine
from tests.account.scene import at_account, go, hidden, send
from tests.sign_in.factors import ALICE
from tests.sign_in.world import PASSWORD, SECRET, World, new_world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid_dev.relying_party.browser import Browser

NEW_PASSWORD = "seven grey herons wading"


async def sign_out_everywhere_else(made: World, owner: Browser) -> None:
    answer = await send(made, owner, "browsers", decision="others", **hidden(owner))
    assert answer.status_code == 303


async def reset_by_the_operator(made: World, _owner: Browser) -> None:
    await people.reset_factors(made.provider.registry, "alice", SECRET, actor=CommandLine(by="lee@node1"))


@pytest.mark.parametrize("end", [sign_out_everywhere_else, reset_by_the_operator])
async def test_a_password_that_is_still_hashed_when_its_session_ends_is_not_written(
    end: Callable[[World, Browser], Awaitable[None]],
) -> None:
    """D30, D44: who throws a thief out is not locked out by what the thief sent just before."""
    free = threading.Event()

    async with new_world() as made:
        thief, owner = await at_account(made, "password"), await at_account(made, "browsers")
        made.passwords._threads.submit(lambda: free.wait(60), COMMAND_LINE)
        sent = asyncio.create_task(send(made, thief, "password", password=NEW_PASSWORD, **hidden(thief)))
        async with asyncio.timeout(30):
            while made.passwords.pending < 2:  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.001)
        await end(made, owner)
        free.set()
        assert "?entered=" in (await sent).headers["location"], "which shows it to whoever signs in there"
        stored = await made.provider.registry.factors.credentials(ALICE)
        assert await made.passwords.verify(stored.password_hash, PASSWORD)
        assert await made.audit("factors.password") == []
        assert await go(made, thief) == "Sign in"
