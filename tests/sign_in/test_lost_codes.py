"""Sign-ins after the database has lost which codes of apps were used: refused, but nobody's attempt (D45, D47, D67)."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from corpid import engines, settings
from corpid.rules.limits import CODE_MISSES
from corpid.stores.data_loss import forget
from corpid.stores.sql.open import open_sqlite
from tests import engines as servers
from tests.postbox import Postbox
from tests.sign_in.world import World, form_of, new_world, post, rejected, walk_to
from tests.tiers import first_or_full
from tests.world.clock import Clock
from tests.world.provider import copied, template
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

    from corpid_dev.relying_party.browser import Browser

OFFICE = "198.51.100.20"
WINDOW = 60
"""seconds: the loss falls on the beginning of a step, and the next one's code may have been used before it"""


async def lose(directory: Path, now: float) -> None:
    """As `corpid restore` and a promoted standby do."""
    stores = await open_sqlite(
        directory / "corpid.sqlite", engines.secret_cipher(settings.load(data_dir=directory)), Clock()
    )
    try:
        async with stores.database.transaction():
            await forget(stores.database, now=now)
    finally:
        await stores.close()


@asynccontextmanager
async def after_loss(path: Path, **options: object) -> AsyncIterator[World]:
    """A provider whose database has lost its last changes at this moment."""
    directory = copied(template(), path)
    async with new_world(data_dir=directory, **options) as before:
        await people(before, 60)
    await lose(directory, Clock()())
    async with new_world(data_dir=directory, **options) as made:
        await people(made, 60)
        yield made


async def people(made: World, number: int) -> None:
    for each in range(number):
        await made.person(f"person{each}", name=f"Person {each}", email=f"person{each}@example.com")


async def at_code(made: World, user_name: str, address: str = OFFICE) -> Browser:
    """A new browser of this address, after the right password."""
    browser = await made.browser(address)
    await walk_to(made, browser, await made.relying_party())
    await made.password(browser, made.people[user_name])
    assert browser.page.form_with("code") is not None, browser.page.text
    return browser


async def type_code(made: World, browser: Browser, user_name: str) -> httpx.Response:
    """The code that the person's app shows now, whatever became of it before."""
    person = made.people[user_name]
    person.used_step = 0
    # Each is a form of its own: the same bytes again would get the same answer (D73).
    fields = {**form_of(browser, "code"), "code": person.fresh_code(made.clock()), "form": str(made.clock())}
    return await post(browser, "code", fields)


async def waits(browser: Browser, answer: httpx.Response) -> int:
    """The seconds that the page says."""
    page = await rejected(browser, answer)
    said = re.search(
        r"not accepted any more\. Wait (\d+) seconds?, then enter the next code from your app\.", page.text
    )
    assert said is not None, page.text
    return int(said[1])


@pytest.mark.parametrize("store", first_or_full(["", "redis"]))
async def test_a_right_code_that_may_have_been_used_counts_nowhere_and_the_next_one_works(
    tmp_path: Path, store: str
) -> None:
    """D45, D47: neither the person, their address nor the sign-in has an attempt less, and nobody is warned."""
    with servers.redis() if store else nullcontext("") as url:
        postbox = Postbox()
        async with after_loss(tmp_path, postbox=postbox, **({"transient_url": url} if store else {})) as made:
            browser = await at_code(made, "person0")
            seen = [await waits(browser, await type_code(made, browser, "person0"))]
            for _ in range(CODE_MISSES + 2):
                made.clock.pass_(1)
                seen.append(await waits(browser, await type_code(made, browser, "person0")))
            assert seen == [WINDOW - second for second in range(len(seen))]
            guesses = await made.provider.registry.code_guesses.list_for_user("id-person0")
            assert [each.guesses for each in guesses if each.guesses] == []
            made.clock.pass_(seen[-1])
            assert (await type_code(made, browser, "person0")).status_code == 303
            await browser.open(browser.url.partition("?")[0])
            assert browser.page.form_with("code") is None, browser.page.text
            assert [each for each in postbox.emails if "Wrong codes" in str(each.subject)] == []
            refused = [each for each in await made.audit("sign_in.second_factor") if each.outcome == "refused"]
            assert {each.detail["reason"] for each in refused} == {"the code may have been used before a loss of data"}


@pytest.mark.full
async def test_an_office_behind_one_address_signs_in_after_the_wait(tmp_path: Path) -> None:
    """D47: 60 people, each with a new browser; an address has 50 attempts."""
    async with after_loss(tmp_path) as made:
        browsers = {}
        for number in range(60):
            name = f"person{number}"
            browsers[name] = await at_code(made, name)
            await waits(browsers[name], await type_code(made, browsers[name], name))
        made.clock.pass_(WINDOW)
        for name, browser in browsers.items():
            assert (await type_code(made, browser, name)).status_code == 303
        late = await at_code(made, "alice")
        assert (await type_code(made, late, "alice")).status_code == 303


async def test_a_sign_in_begun_in_the_wait_gives_its_address_nothing_for_other_guesses(tmp_path: Path) -> None:
    """D47: an own account is no licence to try the passwords of others."""
    async with after_loss(tmp_path) as made:
        browser = await at_code(made, "person0")
        made.clock.pass_(WINDOW)
        assert (await type_code(made, browser, "person0")).status_code == 303
        store = ShortLived(made.directory)
        try:
            counted = [row[3] for row in store.entries(made.clock()) if row[0] == "attempt_bucket"]
        finally:
            store.close()
        assert [each for each in counted if each] == []


async def test_a_wrong_code_counts_as_ever(tmp_path: Path) -> None:
    """D45: a loss gives no guesses away: the fifth wrong code ends the sign-in."""
    async with after_loss(tmp_path) as made:
        browser = await at_code(made, "person0")
        for number in range(CODE_MISSES):
            fields = {**form_of(browser, "code"), "code": "000000", "guess": str(number)}
            answer = await post(browser, "code", fields)
        assert answer.status_code == 200
        assert "This sign-in was stopped" in answer.text


async def test_a_code_that_was_certainly_used_is_a_wrong_one(tmp_path: Path) -> None:
    """D45: it is of a step that the loss does not concern."""
    async with after_loss(tmp_path) as made:
        made.clock.pass_(WINDOW)
        first, second = await at_code(made, "person0"), await at_code(made, "person0")
        assert (await type_code(made, first, "person0")).status_code == 303
        page = await rejected(second, await type_code(made, second, "person0"))
        assert "This code is not right." in page.text
