"""People name the browsers in which they are signed in (D30)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.account.scene import account, at_account, go, hidden, rejected, send
from tests.sign_in.factors import ALICE

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser
    from tests.sign_in.world import World

IPAD = "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile/15E148 Safari/604.1"


async def pages(made: World, browser: Browser) -> list[str]:
    """The page of each browser in the list, in its order."""
    await go(made, browser, "browsers")
    return [target.removeprefix("/account/") for target, _ in browser.page.links if "/browser/" in target]


async def names(made: World, user_id: str = ALICE) -> list[str]:
    found = await made.provider.registry.sessions.browser_names(user_id)
    return sorted(found.values())


async def test_a_browser_is_named_and_keeps_its_name_after_signing_out(made: World) -> None:
    """D30: also one elsewhere; an empty name brings back what the browser says of itself."""
    other, browser = await at_account(made, agent=IPAD), await at_account(made)
    here, there = await pages(made, browser)
    assert "Firefox on Linux This browser" in browser.page.text
    await go(made, browser, here)
    assert "Firefox on Linux · This browser" in browser.page.text
    await browser.fill_and_submit(name="Work laptop")
    assert "The name has been saved." in browser.page.text
    assert "Work laptop Firefox on Linux This browser" in browser.page.text
    await go(made, browser, there)
    await browser.fill_and_submit(name="Kitchen")
    await go(made, other, "browsers")
    assert "Kitchen Safari on iPad This browser" in other.page.text
    assert len(await made.audit("session.name")) == 2
    assert "Kitchen" not in str(await made.audit("session.name"))
    await browser.open(f"{made.base}/sign-out", site="none")
    await browser.submit(next(form for form in browser.page.forms if form.action == "/sign-out"))
    made.clock.pass_(60)
    await browser.open(account(made, "browsers"), site="none")
    await made.factors(browser, made.people["alice"])
    assert "Work laptop" in browser.page.text
    [here, _] = await pages(made, browser)
    await go(made, browser, here)
    await browser.fill_and_submit(name=" ")
    assert "Work laptop" not in browser.page.text
    assert await names(made) == ["Kitchen"]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("x" * 61, "Enter a name of at most 60 characters."),
        ("a\u202eb", "Remove the invisible character U+202E (right-to-left override)."),
        ("tab\there", "Remove the invisible character U+0009 (tab)."),
        ("zero\u200bwidth", "Remove the invisible character U+200B (zero width space)."),
        ("line\nend", "Remove the invisible character U+000A."),
        ("\x1b[31m", "Remove the invisible character U+001B."),
    ],
)
async def test_a_name_is_short_and_shows_what_it_is(made: World, typed: str, sentence: str) -> None:
    """D51, D74: as of passkeys."""
    browser = await at_account(made)
    [page] = await pages(made, browser)
    answer = await send(made, browser, page, **hidden(browser), name=typed)
    assert sentence in (await rejected(browser, answer)).text
    assert await names(made) == []


async def test_nobody_names_another_persons_browser_and_of_two_names_at_once_one_stays(made: World) -> None:
    """D30, D35: also with a form of another session."""
    await made.person("bob")
    browser, bob = await at_account(made), await at_account(made, who="bob")
    [page], [theirs] = await pages(made, browser), await pages(made, bob)
    await send(made, bob, page, **hidden(bob), name="Mine now")
    await send(made, bob, theirs, **hidden(browser), name="Mine now")
    assert await names(made) == await names(made, "id-bob") == []
    form = hidden(browser)
    await asyncio.gather(*(send(made, browser, page, **form, name=each) for each in ("One", "Two")))
    assert len(await names(made)) == 1
    assert await names(made, "id-bob") == []
