"""Requests of people that CorpID refuses for its own reasons: nothing is counted against anybody (D47, D49)."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from corpid.rules.authentication import totp
from tests.account.scene import at_account, hidden, reachable
from tests.account.scene import send as send_to_account
from tests.enrolment import newcomer
from tests.enrolment import test_forgotten_password as forgotten
from tests.enrolment.newcomer import NINA
from tests.manage.access_scene import staffed
from tests.manage.scene import in_portal
from tests.manage.scene import send as send_to_portal
from tests.manage.test_helping_members import MARCUS, PAGES, able
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.world import PASSWORD, SECRET, World, form_of, new_world, post, walk_to
from tests.world.provider import copied, template
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    import httpx

    from corpid_dev.relying_party.browser import Browser

    Prepare = Callable[[World], Awaitable[Callable[[], Awaitable[httpx.Response]]]]

NOTED: Final = frozenset({"rejected_once", "help_unlock_of_member", "help_unlock_of_person"})
"""kinds of entries that limit something by being there"""


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    """Alice, with an e-mail address, at a provider that sends mail, on a database of its own."""
    async with new_world(data_dir=copied(template(), tmp_path), postbox=Postbox()) as world:
        await reachable(world)
        yield world


@contextmanager
def without(made: World, table: str) -> Iterator[None]:
    """A database that fails as soon as this table is read or written."""
    with closing(sqlite3.connect(made.directory / "corpid.sqlite", isolation_level=None)) as other:
        other.execute("PRAGMA legacy_alter_table = ON")
        other.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
        try:
            yield
        finally:
            other.execute(f"ALTER TABLE {table}_away RENAME TO {table}")


def counted(made: World) -> dict[tuple[str, bytes], int]:
    """Every counter that is not at zero, and what limits by being there."""
    store = ShortLived(made.directory)
    try:
        rows = store.entries(made.clock())
    finally:
        store.close()
    return {(kind, key): count for kind, key, _, count, _ in rows if count or kind in NOTED}


async def _password(made: World, password: str) -> Callable[[], Awaitable[httpx.Response]]:
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    fields = {**form_of(browser, "password"), "user_name": "alice", "password": password}
    return lambda: post(browser, "password", fields)


async def _at_second_factor(made: World) -> Browser:
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password",))
    return browser


async def _code(made: World, code: str) -> Callable[[], Awaitable[httpx.Response]]:
    browser = await _at_second_factor(made)
    fields = {**form_of(browser, "code"), "code": code or totp.code_at(SECRET, made.clock())}
    return lambda: post(browser, "code", fields)


async def _recovery_code(made: World) -> Callable[[], Awaitable[httpx.Response]]:
    await factors.recovery(made)
    browser = await _at_second_factor(made)
    await factors.choose(browser, "recovery")
    fields = {**form_of(browser, "code"), "code": factors.CODES[0]}
    return lambda: post(browser, "code", fields)


async def _passkey(made: World) -> Callable[[], Awaitable[httpx.Response]]:
    key = await factors.passkey(made)
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    fields = {**form_of(browser, "passkey"), "passkey": factors.answer_of(made, browser, key)}
    return lambda: post(browser, "passkey", fields)


async def _mailed_code(made: World) -> Callable[[], Awaitable[httpx.Response]]:
    await factors.recovery(made)
    browser = await _at_second_factor(made)
    fields = {**form_of(browser, "decision"), "decision": "email"}
    return lambda: post(browser, "way", fields)


async def _nina(made: World) -> None:
    await made.person("nina", name="Nina", email=newcomer.MAILBOX)


async def _link_code(made: World) -> Callable[[], Awaitable[httpx.Response]]:
    await _nina(made)
    url = await newcomer.link(made, "password", NINA)
    browser = await made.browser()
    await browser.open(url)
    fields = {**form_of(browser, "code"), "code": url.partition("#")[2]}
    return lambda: _post_here(made, browser, fields)


async def _post_here(made: World, browser: Browser, fields: dict[str, str]) -> httpx.Response:
    headers = {"Sec-Fetch-Site": "same-origin"}
    return await browser.http.post(browser.url.partition("#")[0], data=fields, headers=headers)


async def _code_with_link(made: World, code: str) -> Callable[[], Awaitable[httpx.Response]]:
    await _nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made, "password", NINA))
    form = browser.page.form_with("code")
    assert form is not None
    fields = {control.name: control.value for control in form.controls if not control.choice}
    fields["code"] = code or totp.code_at(SECRET, made.clock())
    headers = {"Sec-Fetch-Site": "same-origin"}
    return lambda: browser.http.post(made.base + form.action, data=fields, headers=headers)


async def _account(made: World, page: str, **fields: str) -> Callable[[], Awaitable[httpx.Response]]:
    browser = await at_account(made, page)
    return lambda: send_to_account(made, browser, page, **hidden(browser), **fields)


async def _portal(made: World, page: str, **fields: str) -> Callable[[], Awaitable[httpx.Response]]:
    browser = await in_portal(made, page)
    return lambda: send_to_portal(made, browser, page, **{**form_of(browser, "form_token"), **fields})


async def _help(made: World, page: str) -> Callable[[], Awaitable[httpx.Response]]:
    await staffed(made)
    await able(made)
    return await _portal(made, f"{MARCUS}/{page}")


async def _invite(made: World) -> Callable[[], Awaitable[httpx.Response]]:
    await staffed(made)
    return await _portal(made, "invite", name="Priya Nair", email="priya@example.org")


CASES: Final[dict[str, tuple[str, Prepare]]] = {
    "wrong password": ("audit", lambda made: _password(made, "wrong horse battery")),
    "right password": ("audit", lambda made: _password(made, PASSWORD)),
    "password, nobody looked up": ("credentials", lambda made: _password(made, PASSWORD)),
    "wrong code": ("audit", lambda made: _code(made, "000000")),
    "right code": ("audit", lambda made: _code(made, "")),
    "code, no guess counted": ("code_guesses", lambda made: _code(made, "000000")),
    "recovery code": ("audit", _recovery_code),
    "passkey": ("audit", _passkey),
    "code by e-mail": ("audit", _mailed_code),
    "code of a link": ("links", _link_code),
    "wrong code with a link": ("audit", lambda made: _code_with_link(made, "000000")),
    "right code with a link": ("audit", lambda made: _code_with_link(made, "")),
    "own password": ("audit", lambda made: _account(made, "password", password="another horse battery")),
    "own data": ("audit", lambda made: _account(made, "data")),
    "own address": ("audit", lambda made: _account(made, "email", email="new@example.com")),
    "help with a password": ("audit", lambda made: _help(made, PAGES["password"])),
    "unlocking": ("audit", lambda made: _help(made, PAGES["unlock"])),
    "invitation": ("audit", _invite),
}


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
async def test_a_request_that_meets_a_store_that_is_away_counts_nowhere(made: World, case: str) -> None:
    """D47: neither against the person, nor the address, nor the organisation; the same form is taken afterwards."""
    table, prepare = CASES[case]
    send = await prepare(made)
    before = counted(made)
    guesses = await made.provider.registry.code_guesses.list_for_user("id-alice")
    with without(made, table):
        answers = [await send() for _ in range(8)]
    assert [answer.status_code for answer in answers] == [503] * 8, [answer.text for answer in answers]
    assert counted(made) == before
    assert await made.provider.registry.code_guesses.list_for_user("id-alice") == guesses
    assert (await send()).status_code in {200, 303}


async def test_a_forgotten_password_whose_e_mail_cannot_be_made_counts_nowhere(made: World) -> None:
    """D44, D47: everybody is told the same; once the store is back, the person asks again."""
    await made.person("nina", name="Nina", email=newcomer.MAILBOX)
    postbox = made.provider.mail
    browser = await forgotten.at_the_page(made)
    before = counted(made)
    with without(made, "links"):
        for _ in range(8):
            assert (await forgotten.sent(made, browser, "nina")).status_code == 303
            await made.provider.background_tasks.settle()
    assert counted(made) == before
    assert postbox.emails == []
    await forgotten.ask(made, "nina")
    assert [each.to for each in postbox.emails] == [newcomer.MAILBOX]


async def test_an_administrators_help_that_cannot_be_carried_out_counts_nowhere(made: World) -> None:
    """D69: the help was recorded, but nothing came of it."""
    await staffed(made)
    await able(made)
    browser = await in_portal(made, f"{MARCUS}/{PAGES['password']}")
    before = counted(made)
    with without(made, "links"):
        answer = await send_to_portal(made, browser, f"{MARCUS}/{PAGES['password']}", **form_of(browser, "form_token"))
        await made.provider.background_tasks.settle()
    assert answer.status_code == 303
    assert [key for key in counted(made) if key[0].startswith("help")] == [
        key for key in before if key[0].startswith("help")
    ]
