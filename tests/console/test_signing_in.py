"""Signing in to the console: operators only, with a passkey unless the setting says otherwise (D53)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.records import Operator
from tests.sign_in.factors import choose, passkey, use
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def at_console(made: World, *, with_passkey: bool) -> Browser:
    """A new browser that Alice signs in to the console with."""
    key = await passkey(made) if with_passkey else None
    browser = await made.browser()
    made.clock.pass_(60)
    await browser.open(f"{made.base}/console", site="none")
    if key is None:
        await made.factors(browser, made.people["alice"])
    else:
        await use(made, browser, key)
    return browser


def status(browser: Browser) -> int:
    assert browser.response is not None
    return browser.response.status_code


async def test_an_operator_with_a_passkey_gets_in(made: World) -> None:
    """D53."""
    await made.write(Operator(user_id="id-alice", level="auditor"))
    browser = await at_console(made, with_passkey=True)
    assert browser.page.heading == "Overview"


async def test_a_passkey_as_the_second_factor_counts(made: World) -> None:
    """D53: it verifies its user after a password, too."""
    await made.write(Operator(user_id="id-alice", level="operator"))
    key = await passkey(made)
    browser = await made.browser()
    await browser.open(f"{made.base}/console", site="none")
    await made.password(browser, made.people["alice"])
    await choose(browser, "passkey")
    await use(made, browser, key)
    assert browser.page.heading == "Overview"


async def test_an_operator_without_a_passkey_is_told_to_use_one(made: World) -> None:
    """D53."""
    await made.write(Operator(user_id="id-alice", level="operator"))
    browser = await at_console(made, with_passkey=False)
    assert (status(browser), browser.page.heading) == (403, "Sign in with a passkey")


async def test_the_setting_admits_operators_without_a_passkey() -> None:
    """D53."""
    async with new_world(operators_need_passkey=False) as made:
        await made.write(Operator(user_id="id-alice", level="operator"))
        browser = await at_console(made, with_passkey=False)
        assert browser.page.heading == "Overview"


async def test_nobody_else_gets_in(made: World) -> None:
    """D53."""
    browser = await at_console(made, with_passkey=True)
    assert (status(browser), browser.page.heading) == (403, "You cannot open this page")


async def test_the_console_can_be_switched_off() -> None:
    async with new_world(console_enabled=False) as made:
        browser = await made.browser()
        await browser.open(f"{made.base}/console", site="none")
        assert status(browser) == 404


async def test_the_console_can_be_limited_to_networks() -> None:
    async with new_world(console_networks="10.9.0.0/16") as made:
        browser = await made.browser()
        await browser.open(f"{made.base}/console", site="none")
        assert status(browser) == 404
