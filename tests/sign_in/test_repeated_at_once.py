"""The same form several times at the same moment, on every engine: it counts once (D15, D73, docs/architecture.md, "One-time use")."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests import engines
from tests.manage.scene import ACME, appoint, in_portal, send
from tests.sign_in.world import World, form_of, new_world, post, rejected, walk_to
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from corpid_dev.relying_party.browser import Browser

SEALING: Final = b64encode(bytes(32)).decode()
PATIENCE_SECONDS: Final = 30
TIMES: Final = 4
ON_EACH: Final = pytest.mark.parametrize("engine", first_or_full(["sqlite", "postgresql", "redis"]))


@asynccontextmanager
async def on(engine: str) -> AsyncIterator[World]:
    """A world whose short-lived data is kept by this engine."""
    if engine == "sqlite":
        async with new_world() as made:
            yield made
    elif engine == "redis":
        with engines.redis() as url:
            async with new_world(transient_url=url) as made:
                yield made
    else:
        with engines.postgresql(migrated=True) as dsn:
            async with new_world(database_url=dsn, key_encryption_key=SEALING) as made:
                yield made


async def at_once(browser: Browser, action: str, fields: dict[str, str]) -> list[httpx.Response]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await asyncio.gather(*(post(browser, action, fields) for _ in range(TIMES)))


async def outcomes(made: World, action: str) -> list[str]:
    return [each.outcome for each in await made.audit(action)]


@ON_EACH
async def test_a_wrong_password_counts_once(engine: str) -> None:
    """Also D47: each is counted before it is given back, and six would have to wait."""
    async with on(engine) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party())
        for attempt in (1, 2):
            wrong = {"user_name": "alice", "password": f"wrong horse battery {attempt}"}
            fields = {**form_of(browser, "password"), **wrong}
            for answer in await at_once(browser, "password", fields):
                assert "is not right" in (await rejected(browser, answer)).text
            assert await outcomes(made, "sign_in.password") == ["refused"] * attempt
            await browser.reload()


@ON_EACH
async def test_a_wrong_code_counts_once_also_after_another_one(engine: str) -> None:
    """Also D45: five wrong ones would end the sign-in."""
    async with on(engine) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password",))
        for attempt in range(1, 4):
            fields = {**form_of(browser, "code"), "code": f"00000{attempt}"}
            for answer in await at_once(browser, "code", fields):
                assert "is not right" in (await rejected(browser, answer)).text
            assert await outcomes(made, "sign_in.second_factor") == ["refused"] * attempt
            await browser.reload()
        fields = {**form_of(browser, "code"), "code": made.people["alice"].fresh_code(made.clock())}
        assert {answer.status_code for answer in await at_once(browser, "code", fields)} == {303}
        assert (await outcomes(made, "sign_in.second_factor")).count("ok") == 1
        await browser.reload()
        assert browser.page.heading == "Choose who you act for"


@ON_EACH
async def test_a_wrong_code_that_is_tried_again_after_another_one_counts_once_more(engine: str) -> None:
    """D45, D73: somebody who goes Back to one page and wavers between two."""
    async with on(engine) as made:
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(), ("password",))
        page = form_of(browser, "code")
        for count, code in enumerate(("000001", "000002", "000001", "000002"), 1):
            for answer in await at_once(browser, "code", {**page, "code": code}):
                assert answer.status_code == 303
            assert await outcomes(made, "sign_in.second_factor") == ["refused"] * count


@ON_EACH
async def test_a_form_of_the_portal_is_used_once_also_after_another_one(engine: str) -> None:
    async with on(engine) as made:
        await appoint(made)
        browser = await in_portal(made, "tokens/new")
        for count, name in enumerate(("HR", "Payroll"), 1):
            fields = {**form_of(browser, "name"), "name": name, "days": "90"}
            async with asyncio.timeout(PATIENCE_SECONDS):
                answers = await asyncio.gather(*(send(made, browser, "tokens/new", **fields) for _ in range(TIMES)))
            assert len({answer.headers["location"] for answer in answers}) == 1
            assert len(await made.provider.registry.provisioning.tokens(ACME)) == count
            await browser.open(f"{made.base}/manage/tokens/new", site="none")
