"""Guesses at the code of the app by whoever reads somebody's mailbox, with link after link (D45)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from corpid.flows.authentication import throttle
from corpid.flows.authentication.throttle import LINK_GUESSES, Paused
from corpid.rules.authentication import totp
from corpid.rules.limits import CODE_GUESSES, CODE_MISSES
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX, NINA
from tests.sign_in import factors
from tests.sign_in.test_lost_codes import after_loss
from tests.sign_in.world import SECRET, World

if TYPE_CHECKING:
    from pathlib import Path

    from corpid_dev.relying_party.browser import Browser

PROVED = "Choose a new password"
PAUSED = "codes from an app or by e-mail are not accepted here for 15 minutes"
A_LINK = 4
"""guesses that a link stands; the fifth ends it"""


async def opened(made: World) -> Browser:
    return await newcomer.opened(made, await newcomer.link(made, "password", NINA))


async def use_up(made: World) -> None:
    """All guesses of the allowance, each of which is tried."""
    for _ in range(CODE_GUESSES // A_LINK):
        browser = await opened(made)
        for _ in range(A_LINK):
            await browser.fill_and_submit(code="000000")
            assert newcomer.status(browser) == 200


async def test_after_twenty_misses_with_however_many_links_codes_of_the_app_are_paused(made: World) -> None:
    """D45: nobody who only reads the mailbox guesses for ever; a recovery code works, and so does the sign-in."""
    await made.person("nina", email=MAILBOX)
    await factors.recovery(made, NINA)
    await use_up(made)
    browser = await opened(made)
    await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
    assert (newcomer.status(browser), PAUSED in browser.page.text) == (429, True)
    await browser.fill_and_submit(code=factors.CODES[0])
    assert browser.page.heading == PROVED
    (entry,) = await made.audit("enrolment.pause_codes")
    assert (entry.object, entry.detail["guesses"], entry.detail["browser"]) == (NINA, "20", "link")
    assert (await made.provider.registry.code_guesses.get(NINA, LINK_GUESSES)).guesses == 0


async def test_guesses_with_links_pause_no_sign_in_and_guesses_in_sign_ins_no_link(made: World) -> None:
    """D45, D47: each way to mend the other stays open."""
    await made.person("nina", email=MAILBOX)
    await use_up(made)
    browser = await factors.at_sign_in(made)
    await browser.fill_and_submit(user_name="nina", password=made.people["nina"].password)
    await made.code(browser, made.people["nina"])
    assert browser.page.heading != "Enter your 6-digit code"


async def test_of_many_guesses_at_once_no_more_are_tried_than_are_allowed(made: World) -> None:
    """D45: with as many links and addresses as there are guesses."""
    await made.person("nina", email=MAILBOX)
    known = await newcomer.credentials(made)

    async def tried(number: int) -> bool:
        request = await context(made.provider, address=f"2001:db8:{number:x}::1")
        try:
            seen = await throttle.guesses_with_links(request, known.user_id)
            await throttle.attempt_code_with_link(request, seen, known, f"link{number}")
        except Paused:
            return False
        return True

    assert sum(await asyncio.gather(*(tried(number) for number in range(3 * CODE_GUESSES)))) == CODE_GUESSES


async def test_a_right_code_that_may_have_been_used_before_a_loss_counts_nowhere(tmp_path: Path) -> None:
    """D45, D67: neither the link nor the person has a guess less; the next code works."""
    async with after_loss(tmp_path) as made:
        browser = await newcomer.opened(made, await newcomer.link(made, "password", "id-person0"))
        for wait in range(60, 60 - 2 * CODE_MISSES, -1):
            await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
            assert f"Wait {wait} seconds, then enter the next code from your app." in browser.page.text
            made.clock.pass_(1)
        assert (await made.provider.registry.code_guesses.get("id-person0", LINK_GUESSES)).guesses == 0
        made.clock.pass_(wait)
        await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        assert browser.page.heading == PROVED
