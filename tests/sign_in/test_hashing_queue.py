"""One network that floods the password checks keeps nobody else out (D47)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters

from corpid.flows.authentication import factors
from corpid.flows.authentication.throttle import Attempt
from corpid.outbound.passwords import WAITING_PER_THREAD, Argon2Passwords
from corpid.rules.authentication.records import Credentials
from tests.account.scene import at_account, hidden, send
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import NEW
from tests.sign_in.hashing import full, held
from tests.sign_in.test_throttle import WRONG, at_password, guess
from tests.sign_in.world import CHEAP, PASSWORD, PASSWORD_HASH, SECRET, World, new_world, walk_to

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

PLACES = WAITING_PER_THREAD
"""that may wait in a world, whose only thread is held"""
COMMON = PLACES - PLACES // 4
ROUNDS = 12
BUSY = "Please try again in a moment"


async def begun(made: World, *guesses: asyncio.Task[httpx.Response], waiting: int) -> None:
    """Return when so many checks wait or run, or all these were answered."""
    while made.passwords.pending < waiting and not all(guess.done() for guess in guesses):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def flood(made: World, browsers: list[Browser]) -> list[asyncio.Task[httpx.Response]]:
    """Guesses at many names, twice as many as there are places; the places that a network can take are taken then."""
    guesses = [
        asyncio.create_task(guess(made, browsers[number % len(browsers)], f"person{number}", WRONG))
        for number in range(2 * PLACES)
    ]
    while sum(each.done() for each in guesses) < 2 * PLACES - COMMON:
        await asyncio.wait([each for each in guesses if not each.done()], return_when=asyncio.FIRST_COMPLETED)
    return guesses


@pytest.mark.parametrize("known", [False, True], ids=["a new browser", "a known browser"])
async def test_a_flood_from_one_network_shuts_the_password_for_nobody_elsewhere(made: World, *, known: bool) -> None:
    """D47: many addresses of one IPv6 /48, many names; everybody else is checked in their turn."""
    own = await made.browser("198.51.100.1")
    if known:
        await walk_to(made, own, await made.relying_party(), ("password", "code", "entity"))
    await walk_to(made, own, await made.relying_party())
    strangers = [await at_password(made, f"2001:db8:1:{number:x}::1") for number in range(4)]
    with held(made):
        guesses = await flood(made, strangers)
        refused = [each for each in guesses if each.done()]
        assert {each.result().status_code for each in refused} == {503}
        answer = asyncio.create_task(guess(made, own, "alice", PASSWORD))
        if known:
            await begun(made, answer, waiting=2 + COMMON)
        else:
            await asyncio.wait(
                {answer, *(each for each in guesses if not each.done())}, return_when=asyncio.FIRST_COMPLETED
            )
        assert not answer.done()
    assert (await answer).status_code == 303
    statuses = [each.status_code for each in await asyncio.gather(*guesses)]
    assert statuses.count(303) == COMMON - (not known)


async def test_a_known_browser_is_checked_though_every_network_there_is_floods(made: World) -> None:
    """D47: a part of the places is kept for known browsers."""
    own = await made.browser("198.51.100.1")
    await walk_to(made, own, await made.relying_party(), ("password", "code", "entity"))
    await walk_to(made, own, await made.relying_party())
    new = await at_password(made, "198.51.100.2")
    strangers = [await at_password(made, f"2001:db8:{number:x}::1") for number in range(COMMON)]
    with held(made):
        guesses = [asyncio.create_task(guess(made, each, "nobody")) for each in strangers]
        await begun(made, *guesses, waiting=1 + COMMON)
        assert (await guess(made, new, "alice", PASSWORD)).status_code == 503
        answer = asyncio.create_task(guess(made, own, "alice", PASSWORD))
        await begun(made, answer, waiting=2 + COMMON)
    assert (await answer).status_code == 303
    await asyncio.gather(*guesses)


async def test_an_attempt_that_met_a_full_queue_is_not_counted(made: World) -> None:
    """D47: whoever comes again and again is told to retry, never that they have tried too often."""
    browser = await at_password(made)
    with full(made):
        for _ in range(ROUNDS):
            answer = await guess(made, browser, "alice", PASSWORD)
            assert answer.status_code == 503
            assert answer.headers["Retry-After"]
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 303


async def test_a_delay_that_met_a_full_queue_has_not_begun(made: World) -> None:
    """D47: whoever has waited for their turn, and was not looked at, waits for no other one."""
    browser = await at_password(made)
    for _ in range(6):
        assert (await guess(made, browser, "alice")).status_code == 303
    slowed = await guess(made, browser, "alice", PASSWORD)
    assert slowed.status_code == 429
    made.clock.pass_(int(slowed.headers["Retry-After"]))
    with full(made):
        assert (await guess(made, browser, "alice", PASSWORD)).status_code == 503
    assert (await guess(made, browser, "alice", PASSWORD)).status_code == 303


async def test_what_was_given_back_buys_no_guess() -> None:
    """D47: neither in the same quarter of an hour, nor after a sign-in, nor in the next one."""

    async def guesses(made: World, browser: Browser) -> int:
        """How many are looked at before one is slowed."""
        tried = 0
        while (await guess(made, browser, "alice")).status_code == 303:
            tried += 1
        return tried

    async with new_world() as made:
        thief, owner = await at_password(made), await at_password(made)
        with full(made):
            for _ in range(ROUNDS):
                assert (await guess(made, thief, "alice")).status_code == 503
        assert await guesses(made, thief) == 6
        for step in (made.password, made.code):
            made.clock.pass_(60)
            await step(owner, made.people["alice"])
        assert owner.page.heading == "Choose who you act for"
        assert await guesses(made, thief) == 6
        with full(made):
            made.clock.pass_(2)
            for _ in range(ROUNDS):
                assert (await guess(made, thief, "alice")).status_code == 503
        made.clock.pass_(900)
        assert await guesses(made, await at_password(made)) == 6


async def test_a_change_of_password_that_met_a_full_queue_is_not_counted(made: World) -> None:
    """D47: in the account, and with a link, where people choose a password or show the one they have."""
    await newcomer.nina(made)
    own = await at_account(made, "password")
    invited = await newcomer.opened(made, await newcomer.link(made))
    proving = await newcomer.opened(made, await newcomer.link(made, "second_factor", "id-alice"))
    with full(made):
        for _ in range(ROUNDS):
            assert (await send(made, own, "password", password=NEW, **hidden(own))).status_code == 503
            assert await newcomer.password(invited) == BUSY
            await invited.reload()
            assert await newcomer.password(proving, PASSWORD) == BUSY
            await proving.reload()
    assert (await send(made, own, "password", password=NEW, **hidden(own))).status_code == 303
    assert await newcomer.password(invited) != BUSY
    assert newcomer.status(invited) == 200
    made.clock.pass_(1)


DEARER: Final = replace(CHEAP, memory_cost=2 * CHEAP.memory_cost, time_cost=CHEAP.time_cost + 1)


async def test_a_sign_in_with_the_right_password_does_not_fail_for_want_of_a_stronger_hash() -> None:
    """D44: the hash is raised at the next sign-in that finds room."""
    async with new_world(passwords=Argon2Passwords(threads=1, profile=DEARER)) as made:
        stored = Credentials(user_id="id-alice", password_hash=PASSWORD_HASH)
        await made.write(stored)
        request = await context(made.provider, address="198.51.100.1")
        raised = partial(factors.rehash_if_outdated, request, Attempt(counts=()), "alice", credentials=stored)
        with full(made):
            assert await raised(password=PASSWORD) == stored
        stronger = await raised(password=PASSWORD)
        assert stronger.password_hash != PASSWORD_HASH
        assert await made.provider.registry.factors.credentials("id-alice") == stronger


@pytest.mark.parametrize("by_setting", [CHEAP, DEARER], ids=["lower", "higher"])
async def test_a_sign_in_raises_a_hash_to_the_setting_and_never_lowers_one(by_setting: Parameters) -> None:
    """D44, decision 0031: also of two sign-ins at once, which end with one hash that both passwords checks fit."""
    async with new_world(passwords=Argon2Passwords(threads=1, profile=by_setting)) as made:
        before = PasswordHasher.from_parameters(replace(CHEAP, time_cost=2)).hash(PASSWORD)
        await made.write(Credentials(user_id="id-alice", password_hash=before, totp_secret=SECRET))
        browsers = [await at_password(made, address) for address in ("198.51.100.1", "203.0.113.1")]
        await asyncio.gather(*(each.fill_and_submit(user_name="alice", password=PASSWORD) for each in browsers))
        assert all(each.page.form_with("code") for each in browsers)
        after = (await made.provider.registry.factors.credentials("id-alice")).password_hash
        assert after is not None
        if by_setting is CHEAP:
            assert after == before
        else:
            assert extract_parameters(after).memory_cost == DEARER.memory_cost
        assert await made.passwords.verify(after, PASSWORD)
        for browser in browsers:
            made.clock.now += 30
            await made.code(browser, made.people["alice"])
            assert browser.page.form_with("entity")


async def test_a_password_that_is_changed_while_its_hash_is_raised_stays_changed() -> None:
    """D44: the raised hash replaces only the one it was made from."""
    async with new_world(passwords=Argon2Passwords(threads=1, profile=DEARER)) as made:
        seen = Credentials(user_id="id-alice", password_hash=PASSWORD_HASH, totp_secret=SECRET)
        changed = msgspec.structs.replace(seen, password_hash=await made.passwords.hash("another horse battery"))
        await made.write(changed)
        request = await context(made.provider, address="198.51.100.1")
        attempt = Attempt(counts=())
        kept = await factors.rehash_if_outdated(request, attempt, "alice", credentials=seen, password=PASSWORD)
        assert kept == seen
        assert await made.provider.registry.factors.credentials("id-alice") == changed
