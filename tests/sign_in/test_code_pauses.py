"""A stolen password, and guesses at the codes beside it (D45)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.people import reset_password, unlock_user
from corpid.rules.directory.access import CommandLine
from corpid.rules.limits import CODE_GUESSES
from corpid.web.pages.translations import ENGLISH, lookup, translator
from corpid.web.pages.translations import LANGUAGES as LANGUAGES_OF_PAGES
from tests.postbox import Postbox, Sent
from tests.sign_in.factors import ALICE, CODES, choose, passkey, recovery, type_code, use
from tests.sign_in.test_second_factor_methods import CHOICE, past_password, reach
from tests.sign_in.test_throttle import at_password, keep_guessing
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, walk_to
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

QUIET = 901
"""seconds after which nothing else slows a guess any more"""
FIRST = 900
LANGUAGES = {
    "en": "Change your password",
    "zh-Hans": "请更改密码",
    "ms": "Tukar kata laluan",
    "ta": "கடவுச்சொல்லை மாற்றுங்கள்",
}


async def guess(made: World, browser: Browser | None = None) -> httpx.Response:
    """A wrong code of the app after the right password, in a sign-in of its own; long after whatever was before."""
    made.clock.pass_(QUIET)
    browser = browser or await made.browser("203.0.113.7")
    await walk_to(made, browser, await made.relying_party(), ("password",))
    return await post(browser, "code", {**form_of(browser, "code"), "code": "000000"})


async def use_up(made: World, browser: Browser | None = None, *, times: int = CODE_GUESSES) -> None:
    """All guesses of the allowance, each of which is tried."""
    for _ in range(times):
        assert (await guess(made, browser)).status_code == 303


async def at_code(made: World) -> Browser:
    """A new browser that asks for the code of the app."""
    browser = await made.browser("198.51.100.9")
    await walk_to(made, browser, await made.relying_party(), ("password",))
    return browser


async def shown(made: World, browser: Browser) -> str:
    """The heading after the right code of the app."""
    await made.code(browser, made.people["alice"])
    return browser.page.heading


async def own_browser(made: World) -> Browser:
    """A browser in which Alice has signed in before."""
    browser = await made.browser("198.51.100.1")
    await walk_to(made, browser, await made.relying_party(), ("password", "code", "entity"))
    return browser


async def test_after_twenty_misses_codes_are_paused_and_then_one_guess_doubles_the_pause(made: World) -> None:
    """D45: for every browser that is not known, also for the right code; the page says what to do."""
    await use_up(made)
    browser = await at_code(made)
    assert await shown(made, browser) != CHOICE
    assert browser.response is not None
    assert browser.response.status_code == 429
    assert int(browser.response.headers["Retry-After"]) == FIRST
    for part in ("not accepted here for 15 minutes", "Use a passkey or a recovery code", "used before, or wait"):
        assert part in browser.page.text
    # A quarter of an hour between them, of the pauses of 15, 30 and 60 minutes.
    answers = [(await guess(made)).status_code for _ in range(8)]
    assert answers == [303, 429, 303, 429, 429, 429, 303, 429]


async def test_codes_of_an_app_and_by_email_share_the_count_and_no_code_is_sent_in_a_pause() -> None:
    """D45"""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        for number in range(CODE_GUESSES):
            made.clock.pass_(3600)
            browser = await past_password(made)
            if number % 2:
                await choose(browser, "email")
            await type_code(browser, "not it")
            assert browser.response is not None
            assert browser.response.status_code == 200
        sent = len(postbox.emails)
        browser = await past_password(made)
        await choose(browser, "email")
        assert browser.response is not None
        assert browser.response.status_code == 429
        assert "not accepted here for 15 minutes" in browser.page.text
        assert len(postbox.emails) == sent
        assert await shown(made, browser) != CHOICE


async def test_a_browser_that_is_known_has_an_allowance_of_its_own_and_a_success_there_resets_no_other(
    made: World,
) -> None:
    """D45, D47: a thief of the password neither keeps the owner out nor gains by their sign-ins."""
    own = await own_browser(made)
    await use_up(made)
    await walk_to(made, own, await made.relying_party(), ("password",))
    assert await shown(made, own) == CHOICE
    assert (await guess(made)).status_code == 303
    assert (await guess(made)).status_code == 429


@pytest.mark.full
async def test_a_known_browser_that_guesses_is_paused_by_itself_until_its_owner_signs_in(made: World) -> None:
    """D45: whoever sits at it has no more guesses than others; those elsewhere are not touched."""
    own = await own_browser(made)
    await use_up(made, own)
    await walk_to(made, own, await made.relying_party(), ("password",))
    assert await shown(made, own) != CHOICE
    assert own.response is not None
    assert own.response.status_code == 429
    assert "have one, or wait." in own.page.text
    assert await shown(made, await at_code(made)) == CHOICE
    made.clock.pass_(FIRST)
    await walk_to(made, own, await made.relying_party(), ("password",))
    assert await shown(made, own) == CHOICE
    await use_up(made, own, times=2)


@pytest.mark.parametrize("way", ["recovery", pytest.param("passkey", marks=pytest.mark.full)])
async def test_a_passkey_or_a_recovery_code_works_at_once_while_a_thief_guesses_on(made: World, way: str) -> None:
    """D45: in a new browser, whatever the thief has just tried; it is a success that ends the pause."""
    key = await passkey(made)
    await recovery(made)
    await use_up(made)
    thief = await at_code(made)
    for _ in range(8):
        assert (await post(thief, "code", {**form_of(thief, "code"), "code": "000000"})).status_code == 429
    await choose(thief, "recovery")
    for _ in range(3):
        await type_code(thief, "none of them")
    browser = await made.browser("192.0.2.77")
    await walk_to(made, browser, await made.relying_party(), ("password",))
    await choose(browser, way)
    if way == "recovery":
        assert await type_code(browser, CODES[0]) == CHOICE
    else:
        assert await use(made, browser, key) == CHOICE
    made.clock.pass_(60)
    assert await shown(made, await at_code(made)) == CHOICE


async def test_only_who_has_the_password_is_counted(made: World) -> None:
    """D45, D47: a stranger without it shuts nobody out."""
    for _ in range(CODE_GUESSES + 5):
        made.clock.pass_(QUIET)
        stranger = await at_password(made, "203.0.113.7")
        await keep_guessing(made, stranger, 1)
        token = {**form_of(stranger, "password"), "code": "000000"}
        assert (await post(stranger, "code", token)).status_code == 303
    assert await shown(made, await at_code(made)) == CHOICE


async def test_an_operator_or_a_new_password_ends_the_pause(made: World) -> None:
    """D45: `corpid user unlock`; a thief of the password from before knows nothing any more."""
    registry = made.provider.registry
    await use_up(made)
    await unlock_user(
        registry, made.provider.transient, made.base, "alice", actor=CommandLine(by="lee@node1"), now=made.clock()
    )
    await use_up(made)
    await reset_password(registry, made.passwords, "alice", PASSWORD, actor=CommandLine(by="lee@node1"))
    made.clock.pass_(60)
    assert await shown(made, await at_code(made)) == CHOICE


async def test_the_pause_survives_an_engine_that_has_forgotten_everything_else(made: World) -> None:
    """D45: as Redis has after a restart."""
    await use_up(made)
    with closing(ShortLived(made.directory)) as short_lived:
        short_lived.remove_all()
    browser = await at_code(made)
    assert await shown(made, browser) != CHOICE
    assert browser.response is not None
    assert browser.response.status_code == 429


@pytest.mark.full
async def test_the_audit_tells_when_a_pause_begins(made: World) -> None:
    """D45: once for each pause."""
    own = await own_browser(made)
    await use_up(made)
    assert (await guess(made)).status_code == 303
    await use_up(made, own)
    entries = await made.audit("sign_in.pause_codes")
    told = [tuple(each.detail[name] for name in ("guesses", "pause_seconds", "browser")) for each in entries]
    assert told == [("20", "900", "new"), ("21", "1800", "new"), ("20", "900", "known")]
    assert {(each.actor, each.outcome, each.client_id) for each in entries} == {(f"user:{ALICE}", "refused", "rp1")}


@pytest.mark.parametrize(
    "language", ["en", *(pytest.param(each, marks=pytest.mark.full) for each in LANGUAGES if each != "en")]
)
async def test_an_email_says_how_to_change_the_password_once_a_day(language: str) -> None:
    """D45: in the person's language."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        user = await made.provider.registry.directory.user(ALICE)
        await made.write(replace(user, language=language))
        await use_up(made)
        (email,) = of_pause(postbox)
        assert email.language == language
        said = translator(lookup((language,), LANGUAGES_OF_PAGES) or ENGLISH)
        assert LANGUAGES[language] in said.say(email.subject)
        body = email.text_in(language)
        assert f"{made.base}/recover" in body
        assert f"{made.base}/account" in body
        assert "20" in body
        await use_up(made, times=1)
        assert len(of_pause(postbox)) == 1
        made.clock.pass_(86400)
        await use_up(made, times=1)
        assert len(of_pause(postbox)) == 2


def of_pause(postbox: Postbox) -> list[Sent]:
    return [each for each in postbox.emails if str(each.subject).startswith(LANGUAGES["en"])]
