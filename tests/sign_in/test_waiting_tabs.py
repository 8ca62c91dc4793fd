"""A sign-in that waits in a tab, and what ends it: signing out, another person, its own end (D30, D34)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.failures import StoreUnavailable
from tests import engines
from tests.account.scene import account, sessions
from tests.sign_in.factors import at_sign_in
from tests.sign_in.world import PASSWORD, World, cookies_of, entity, form_of, new_world, post, query_of, walk_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from corpid.rules.authentication.records import Credentials, Session
    from corpid.stores.sql.statements import Statement
    from corpid_dev.relying_party.browser import Browser

HOUR = 3600
SIGN_IN = "Sign in"
CHOICE = "Choose who you act for"
EITHER_WAY = pytest.mark.parametrize("session_seconds", [0, HOUR], ids=["every sign-in anew", "single sign-on"])


async def waiting(made: World, browser: Browser) -> str:
    """Alice has shown every factor here, and has to choose; where that is."""
    made.clock.pass_(60)
    await walk_to(made, browser, await made.relying_party(prompt="login"), ("password", "code"))
    assert browser.page.heading == CHOICE
    return browser.url


async def sign_out(made: World, browser: Browser) -> None:
    await browser.open(f"{made.base}/sign-out")
    assert browser.page.heading == "Sign out?"
    await browser.fill_and_submit("form_token")


@EITHER_WAY
async def test_signing_out_ends_what_waits_in_another_tab(session_seconds: int) -> None:
    """D30: whoever sits there next gets no code for the one who has gone."""
    async with new_world(session_seconds=session_seconds) as made:
        browser = await made.browser()
        tab = await waiting(made, browser)
        await sign_out(made, browser)
        await browser.open(tab)
        assert browser.page.heading == "This sign-in belongs to another browser"
        assert await sessions(made) == []


@EITHER_WAY
@pytest.mark.parametrize("to_the_account", [False, True], ids=["a service", "the account"])
async def test_another_person_who_signs_in_ends_what_the_one_before_had_begun(
    session_seconds: int, *, to_the_account: bool
) -> None:
    """D30: in the same browser, without anybody signing out."""
    async with new_world(session_seconds=session_seconds) as made:
        bob = await made.person("bob", entity("200000009A", "Nine"), entity("200000008A", "Eight"), name="Bob Lim")
        browser = await made.browser()
        tab = await waiting(made, browser)
        where = account(made) if to_the_account else await (await made.relying_party(prompt="login")).begin()
        await browser.open(where, site="none")
        await made.factors(browser, bob)
        await browser.open(tab)
        assert browser.page.heading == SIGN_IN
        assert await sessions(made) == []


async def test_without_single_sign_on_a_session_ends_with_its_sign_in_and_with_no_other(made: World) -> None:
    """D30: nothing is left to sign out of; another tab stands on its own, and signing out still ends it."""
    browser = await made.browser()
    first, second, third = [await waiting(made, browser) for _ in range(3)]
    await browser.open(third)
    await browser.fill_and_submit(entity="200000001A")
    assert "code" in query_of(browser.left)
    await browser.open(second)
    assert browser.page.heading == CHOICE
    await post(browser, "entity", form_of(browser, "entity") | {"decision": "other_account"})
    assert len(await sessions(made)) == 1
    await browser.open(first)
    assert browser.page.heading == CHOICE
    await post(browser, "cancel", form_of(browser, "entity"))
    assert await sessions(made) == []
    await browser.open(f"{made.base}/sign-out")
    assert browser.page.heading == "You are signed out"
    last = await waiting(made, browser)
    await waiting(made, browser)
    await browser.fill_and_submit(entity="200000001A")
    await sign_out(made, browser)
    await browser.open(last)
    assert browser.page.heading != CHOICE


async def test_a_store_that_fails_right_after_the_last_factor_loses_no_sign_in(made: World) -> None:
    """D34: the old cookie value is dead by then; the answer with the new one needs no store any more."""
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    registry, before = made.provider.registry, cookies_of(browser)
    put, read = registry.sessions.put_if_unchanged, registry.directory._database.row
    written: list[Session] = []

    async def put_and_go_away(session: Session, seen: Credentials, **held: Any) -> bool:
        await put(session, seen, **held)
        written.append(session)
        return True

    async def away(statement: Statement, values: Mapping[str, Any]) -> Any:
        if written and statement.compiled(registry.database.dialect)[0].startswith("SELECT"):
            raise StoreUnavailable("the database is away")
        return await read(statement, values)

    registry.sessions.put_if_unchanged, registry.directory._database.row = put_and_go_away, away
    code = made.people["alice"].fresh_code(made.clock())
    answer = await post(browser, "code", form_of(browser, "code") | {"code": code})
    registry.sessions.put_if_unchanged, registry.directory._database.row = put, read
    assert (answer.status_code, len(written)) == (303, 1)
    assert cookies_of(browser) != before
    await browser.reload()
    assert browser.page.heading == CHOICE


@engines.STORES
async def test_a_store_that_fails_while_the_last_factor_is_written_leaves_the_sign_in_as_it_was(
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D34: the browser keeps its cookie, and the next code of the app goes on; on Redis what was claimed is given back."""
    with nullcontext() if memory is None else memory() as at:
        async with new_world(**{"transient_url": at} if at else {}) as made:
            made.clock.pass_(60)
            browser = await at_sign_in(made)
            await browser.fill_and_submit(user_name="alice", password=PASSWORD)
            registry, before = made.provider.registry, cookies_of(browser)
            put = registry.sessions.put_if_unchanged

            async def put_and_fail(session: Session, seen: Credentials, **held: Any) -> bool:
                await put(session, seen, **held)
                raise StoreUnavailable("the database is away")

            registry.sessions.put_if_unchanged = put_and_fail
            code = made.people["alice"].fresh_code(made.clock())
            answer = await post(browser, "code", form_of(browser, "code") | {"code": code})
            registry.sessions.put_if_unchanged = put
            assert answer.status_code == 503
            assert cookies_of(browser) == before
            assert await sessions(made) == [] or memory is not None
            await browser.reload()
            made.clock.pass_(60)
            await made.code(browser, made.people["alice"])
            assert browser.page.heading == CHOICE
