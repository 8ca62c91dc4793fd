"""Guessing is slowed, and nobody is locked out for good (D47)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING

from corpid.flows.authentication import throttle
from corpid.flows.authentication.throttle import Throttled
from corpid.flows.directory.people import unlock_user
from corpid.rules.directory.access import CommandLine
from tests import engines
from tests.contexts import context
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, walk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from corpid_dev.relying_party.browser import Browser

WRONG = "wrong horse battery"
LONGEST = 300
GUESSES = count()


async def guess(made: World, browser: Browser, user_name: str, password: str = WRONG, **headers: str) -> httpx.Response:
    # Each is a form of its own: the same bytes again would be no further guess (D73).
    fields = {**form_of(browser, "password"), "user_name": user_name, "password": password, "guess": str(next(GUESSES))}
    return await post(browser, "password", fields, **headers)


async def at_password(made: World, address: str = "127.0.0.1") -> Browser:
    browser = await made.browser(address)
    await walk_to(made, browser, await made.relying_party())
    return browser


async def keep_guessing(made: World, browser: Browser, times: int, user_name: str = "alice") -> list[int]:
    """Guess at once, again and again, as far as one is let; the waits that were asked for."""
    waits = []
    for _ in range(times):
        answer = await guess(made, browser, user_name)
        waits.append(int(answer.headers.get("Retry-After", 0)))
    return waits


async def test_after_five_misses_guessing_is_slowed_even_with_the_right_password(made: World) -> None:
    """D47, Spec 7: 429 with Retry-After, and the page says how long; then the person gets in."""
    browser = await at_password(made)
    assert await keep_guessing(made, browser, 5) == [0] * 5
    await guess(made, browser, "alice")
    answer = await guess(made, browser, "alice", PASSWORD)
    assert answer.status_code == 429
    wait = int(answer.headers["Retry-After"])
    assert 1 <= wait <= LONGEST
    assert f"Too many attempts. Wait {wait} seconds, then try again." in answer.text
    assert "Relying Party 1" in answer.text
    assert "Cancel" in answer.text
    made.clock.pass_(wait)
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 303


async def test_the_delay_grows_and_stays_below_five_minutes(made: World) -> None:
    """D47: never a permanent lock: after 300 guesses the person waits as told and gets in."""
    browser, waits = await at_password(made), []
    for _ in range(12):
        waits.append(max(await keep_guessing(made, browser, 2)))
        made.clock.pass_(waits[-1])
    slowed = [wait for wait in waits if wait]
    assert slowed == sorted(slowed)
    assert slowed[0] < 10
    assert slowed[-1] == LONGEST
    await keep_guessing(made, await at_password(made), 100)
    browser = await at_password(made)
    answer = await guess(made, browser, "alice", PASSWORD)
    made.clock.pass_(int(answer.headers["Retry-After"]))
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 303


async def test_an_unknown_account_is_slowed_in_the_same_way(made: World) -> None:
    """D44, D47: whether a user exists cannot be told from the delays."""
    known = await keep_guessing(made, await at_password(made, "198.51.100.1"), 12, "alice")
    unknown = await keep_guessing(made, await at_password(made, "198.51.100.2"), 12, "nobody")
    assert known == unknown
    assert any(known)


async def test_spelling_the_name_in_other_ways_gives_no_further_guesses(made: World) -> None:
    """D47, D51: the account is what counts."""
    browser, waits = await at_password(made), []
    for spelling in ("alice", "ALICE", "Alice", "\uff41\uff4c\uff49\uff43\uff45", "aLICE", "alicE", "ALice"):
        answer = await guess(made, browser, spelling)
        waits.append(answer.status_code)
    assert waits[-1] == 429


async def test_a_known_browser_keeps_its_own_allowance(made: World) -> None:
    """D47: strangers who guess cannot keep a person out of the browser that they use."""
    own, rp = await made.browser("198.51.100.1"), await made.relying_party()
    await walk_to(made, own, rp, ("password", "code", "entity"))
    await keep_guessing(made, await at_password(made, "198.51.100.1"), 12)
    stranger = await at_password(made, "198.51.100.1")
    assert (await guess(made, stranger, "alice", PASSWORD)).status_code == 429
    await walk_to(made, own, await made.relying_party())
    assert (await guess(made, own, "alice", PASSWORD)).status_code == 303


async def thief_of_the_password(made: World) -> int:
    """Guess codes after the right password, until that is slowed; the status of the last answer."""
    browser = await at_password(made, "203.0.113.7")
    await made.password(browser, made.people["alice"])
    fields = {**form_of(browser, "code"), "code": "000000"}
    answers = [await post(browser, "code", fields | {"guess": each}) for each in "1234"]
    return answers[-1].status_code


async def test_who_has_only_the_password_shuts_the_second_factor_in_no_known_browser(made: World) -> None:
    """D45, D47: elsewhere guesses at codes are counted together, or a thief could go on in browser after browser."""
    own, rp = await made.browser("198.51.100.1"), await made.relying_party()
    await walk_to(made, own, rp, ("password", "code", "entity"))
    made.clock.pass_(60)
    assert [await thief_of_the_password(made) for _ in range(2)] == [303, 429]
    await walk_to(made, own, await made.relying_party())
    await made.factors(own, made.people["alice"])
    assert own.page.heading == "Choose who you act for"


async def test_an_operator_unlocks_a_known_browser_too(made: World) -> None:
    """D47: whoever mistyped at their own desk is let in at once, as one who mistyped elsewhere."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    await walk_to(made, browser, await made.relying_party())
    assert max(await keep_guessing(made, browser, 8)) > 0
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 429
    registry, transient = made.provider.registry, made.provider.transient
    await unlock_user(registry, transient, made.base, "alice", actor=CommandLine(by="lee@node1"), now=made.clock())
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 303


async def test_a_known_browser_is_slowed_when_it_guesses_itself(made: World) -> None:
    """D47: and it is known for the account that signed in there, not for others."""
    await made.person("bob")
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    await walk_to(made, browser, await made.relying_party())
    assert max(await keep_guessing(made, browser, 8)) > 0
    await keep_guessing(made, await at_password(made), 8, "bob")
    assert (await guess(made, browser, "bob")).status_code == 429


async def test_a_whole_sign_in_clears_what_was_mistyped(made: World) -> None:
    """D47: password alone does not, or a thief of it could guess codes for ever."""
    browser, alice = await at_password(made), made.people["alice"]
    await keep_guessing(made, browser, 4)
    await made.password(browser, alice)
    await browser.fill_and_submit(code="000000")
    await browser.fill_and_submit(code="000000")
    assert browser.response is not None
    assert browser.response.status_code == 429
    assert "Too many attempts." in browser.page.text
    made.clock.pass_(60)
    await made.code(browser, alice)
    assert browser.page.heading == "Choose who you act for"
    assert await keep_guessing(made, await at_password(made), 5) == [0] * 5


async def test_one_address_is_slowed_over_all_accounts_and_another_is_not(made: World) -> None:
    """D47: many names, one password each."""
    sprayer = await at_password(made, "198.51.100.1")
    codes = [(await guess(made, sprayer, f"person{number}")).status_code for number in range(60)]
    assert codes[:50] == [303] * 50
    assert codes[-1] == 429
    other = await at_password(made, "198.51.100.2")
    assert (await guess(made, other, "alice", PASSWORD)).status_code == 303


async def test_the_addresses_of_one_ipv6_site_count_as_one(made: World) -> None:
    """D47: whoever has a /64 has as many addresses as they like."""
    codes = []
    for number in range(60):
        sprayer = await at_password(made, f"2001:db8:1:1::{number + 1:x}")
        codes.append((await guess(made, sprayer, f"person{number}")).status_code)
    assert codes[-1] == 429
    other = await at_password(made, "2001:db8:1:2::1")
    assert (await guess(made, other, "alice", PASSWORD)).status_code == 303


async def test_a_forwarding_header_counts_only_from_a_trusted_proxy() -> None:
    """D47: anybody else would choose their address with it."""

    async def spray(made: World, address: str) -> int:
        browser = await at_password(made, address)
        code = 0
        for number in range(60):
            headers = {"X-Forwarded-For": f"203.0.113.{number}"}
            code = (await guess(made, browser, f"person{number}", **headers)).status_code
        return code

    async with new_world(trusted_proxies=("10.0.0.1",)) as made:
        assert await spray(made, "198.51.100.1") == 429
        assert await spray(made, "10.0.0.1") == 303


@engines.STORES
async def test_of_attempts_that_come_at_once_past_the_free_ones_one_is_tried(
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D47: whoever finds another delay than the one that they began takes back what they added."""

    async def tried(made: World) -> bool:
        try:
            await throttle.attempt_password(await context(made.provider), "alice", "b", known=False)
        except Throttled as slowed:
            return not 1 <= slowed.seconds <= LONGEST
        return True

    with nullcontext() if memory is None else memory() as url:
        async with new_world(**{"transient_url": url} if url else {}) as made:
            assert [await tried(made) for _ in range(5)] == [True] * 5
            assert sum(await asyncio.gather(*(tried(made) for _ in range(8)))) == 1
            made.clock.pass_(LONGEST)
            assert sum(await asyncio.gather(*(tried(made) for _ in range(8)))) == 1


@engines.STORES
async def test_what_an_account_refuses_is_not_counted_for_its_address(
    memory: Callable[[], AbstractContextManager[str]] | None,
) -> None:
    """D47: all buckets are raised together, and who guesses at one account slows nobody else behind their address."""

    async def attempt(made: World, user_name: str) -> bool:
        try:
            await throttle.attempt_password(await context(made.provider), user_name, "b", known=False)
        except Throttled:
            return False
        return True

    with nullcontext() if memory is None else memory() as url:
        async with new_world(**{"transient_url": url} if url else {}) as made:
            assert sum([await attempt(made, "alice") for _ in range(60)]) == 6
            assert sum([await attempt(made, f"person{number}") for number in range(44)]) == 44
            assert [await attempt(made, "person44"), await attempt(made, "person45")] == [True, False]
