"""Guessing a form of the last factor with the cookie value that it replaced (D34).

The attacker wears the victim's cookie value from before the sign-in: they planted it, or read it somewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.limits import REPEAT_MISSES
from tests import engines
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, answer_of, at_sign_in, choose, offered, passkey, recovery, wrong
from tests.sign_in.world import World, cookies_of, form_of, new_world, post, walk_to, wear, world_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import httpx

    from corpid_dev.relying_party.browser import Browser

CHOICE = "Choose who you act for"
FOREIGN = "This sign-in belongs to another browser"
WAYS = ("app", "email", "recovery")


async def ready(made: World) -> None:
    """Alice gets recovery codes and an e-mail address."""
    await recovery(made)
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email="mei.tan@harbour.example"))


async def at_way(made: World, way: str) -> Browser:
    """A browser in which Alice has typed her password, at the page of a way."""
    browser = await at_sign_in(made)
    await made.password(browser, made.people["alice"])
    if way != "app":
        await choose(browser, way)
    return browser


async def accomplice(made: World, browser: Browser) -> Browser:
    """Another browser with the same cookie value, at the same page."""
    other = await made.browser()
    wear(other, cookies_of(browser))
    await other.open(browser.url)
    assert other.page.heading == browser.page.heading
    return other


def right(made: World, way: str, postbox: Postbox) -> str:
    match way:
        case "app":
            return made.people["alice"].fresh_code(made.clock())
        case "email":
            return postbox.code()
        case _:
            return CODES[0]


async def attempt(browser: Browser, cookies: dict[str, str], fields: dict[str, str], action: str = "code") -> bool:
    """Whether a form that is sent with these cookies brings another value."""
    wear(browser, cookies)
    answer = await post(browser, action, fields)
    assert answer.status_code == 303
    return "set-cookie" in answer.headers


async def misses(made: World) -> list[tuple[str, str, str]]:
    return [(each.actor, each.object, each.outcome) for each in await made.audit("sign_in.repeat")]


@engines.STORES
@pytest.mark.parametrize("way", WAYS)
async def test_whoever_has_the_old_cookie_value_and_the_page_cannot_guess_the_form(
    way: str, memory: Callable[[], AbstractContextManager[str]] | None
) -> None:
    """D34: not even with the right code; after three misses the right form is worth nothing either."""
    postbox = Postbox()

    async with world_on(memory, postbox=postbox) as made:
        await ready(made)
        victim = await at_way(made, way)
        old, attacker = cookies_of(victim), await accomplice(made, victim)
        code = right(made, way, postbox)
        sent = form_of(victim, "code") | {"code": code}
        known = form_of(attacker, "code")
        assert await attempt(victim, old, sent)
        guesses = [code, *(f"{number:06}" for number in range(20)), code]
        for guess in guesses:
            assert not await attempt(attacker, old, known | {"code": guess}), guess
        assert not await attempt(attacker, old, sent)
        assert await misses(made) == [("anonymous", ALICE, "refused")] * REPEAT_MISSES
        await attacker.open(attacker.url)
        assert attacker.page.heading == FOREIGN
        await victim.reload()
        assert victim.page.heading == CHOICE


@engines.STORES
async def test_two_other_forms_leave_a_double_click_alone_and_the_third_ends_it(
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D34: a stale tab does not strand the person; the form itself is no miss, however often it comes."""
    async with world_on(memory) as made:
        browser = await at_way(made, "app")
        old = cookies_of(browser)
        sent = form_of(browser, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
        other = sent | {"code": wrong(sent["code"])}
        assert await attempt(browser, old, sent)
        for _ in range(REPEAT_MISSES - 1):
            assert not await attempt(browser, old, other)
            for _ in range(3):
                assert await attempt(browser, old, sent)
                await browser.reload()
                assert browser.page.heading == CHOICE
        assert not await attempt(browser, old, other)
        assert not await attempt(browser, old, sent)
        assert len(await misses(made)) == REPEAT_MISSES


async def test_a_hundred_guesses_at_once_bring_nothing_and_write_three_lines(made: World) -> None:
    """D34: where other requests really run in between; nobody fills the audit either."""
    victim = await at_way(made, "app")
    old, attacker = cookies_of(victim), await accomplice(made, victim)
    sent = form_of(victim, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
    known = form_of(attacker, "code")
    assert await attempt(victim, old, sent)
    answers = await asyncio.gather(*(post(attacker, "code", known | {"code": f"{number:06}"}) for number in range(100)))
    assert not [answer for answer in answers if "set-cookie" in answer.headers]
    assert not await attempt(attacker, old, sent)
    assert len(await misses(made)) == REPEAT_MISSES


async def test_guesses_while_the_form_is_being_handled_bring_nothing(made: World) -> None:
    """D34, D15: the same guess twice at that moment, which waits for its twin, is a miss as well."""
    victim = await at_way(made, "app")
    old, attacker = cookies_of(victim), await accomplice(made, victim)
    sent = form_of(victim, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
    guess = form_of(attacker, "code") | {"code": sent["code"]}
    forms = [(victim, sent), (attacker, guess), (attacker, guess), (victim, sent), (attacker, guess)]
    answers = await asyncio.gather(*(post(browser, "code", form) for browser, form in forms))
    values = [_value(answer) for answer in answers]
    won = sent if values[0] else guess
    assert {bool(value) for value, (_, form) in zip(values, forms, strict=True) if form != won} == {False}
    assert len({value for value in values if value}) == 1
    assert old not in ({"corpid": value} for value in values)


def _value(answer: httpx.Response) -> str:
    header: str = answer.headers.get("set-cookie", "")
    return header.partition(";")[0].partition("=")[2]


async def test_each_rendering_of_a_page_of_a_factor_has_another_token_and_each_works() -> None:
    """D34, D35: password, app, e-mail, recovery code and passkey; a page that was left open is not too old."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await ready(made)
        key = await passkey(made, count=None)
        seen: list[str] = []

        async def look(browser: Browser, field: str) -> dict[str, str]:
            first = form_of(browser, field)
            seen.append(first["form_token"])
            for _ in range(3):
                await browser.reload()
                seen.append(form_of(browser, field)["form_token"])
            return first

        browser = await at_sign_in(made)
        first = await look(browser, "password")
        assert form_of(browser, "passkey")["form_token"] == seen[-1]
        typed = {"user_name": "alice", "password": made.people["alice"].password}
        assert (await post(browser, "password", first | typed)).status_code == 303
        await browser.reload()
        for way in ("app", "email", "recovery", "passkey"):
            if way in offered(browser):
                await choose(browser, way)
            first = await look(browser, "passkey" if way == "passkey" else "code")
        assert len(set(seen)) == len(seen) == 20
        given = first | {"passkey": answer_of(made, browser, key)}
        assert await attempt(browser, cookies_of(browser), given, "passkey")


async def test_after_a_minute_nothing_is_counted_any_more(made: World) -> None:
    """D34: the value is dead then, and whoever sends it is told nothing and noted nowhere."""
    browser = await at_way(made, "app")
    old = cookies_of(browser)
    sent = form_of(browser, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
    assert await attempt(browser, old, sent)
    made.clock.pass_(60)
    for form in (sent, sent | {"code": wrong(sent["code"])}):
        assert not await attempt(browser, old, form)
    assert await misses(made) == []


async def test_a_passkey_form_can_be_sent_twice_but_no_other_with_it(made: World) -> None:
    """D34, D46: the same holds where a passkey is both factors at once."""
    key, browser = await passkey(made, count=None), await made.browser()
    await walk_to(made, browser, await made.relying_party())
    old = cookies_of(browser)
    sent = form_of(browser, "passkey") | {"passkey": answer_of(made, browser, key)}
    for _ in range(2):
        assert await attempt(browser, old, sent, "passkey")
    again = sent | {"passkey": f"{sent['passkey']} "}
    for _ in range(REPEAT_MISSES):
        assert not await attempt(browser, old, again, "passkey")
    assert not await attempt(browser, old, sent, "passkey")
    assert len(await misses(made)) == REPEAT_MISSES
