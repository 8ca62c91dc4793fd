"""Past the password and with nothing to go with it: used up elsewhere, or taken away meanwhile (D45, D50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, at_sign_in, change, recovery
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

CHOICE, SIGN_IN = "Choose who you act for", "Sign in"
SENTENCE = "After your password we ask for a second step, such as a code, and your account has none that works here."


async def only_password(made: World, **more: Any) -> None:
    await made.write(Credentials(user_id=ALICE, password_hash=await made.passwords.hash(PASSWORD), **more))


async def past_password(made: World) -> Browser:
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    return browser


async def _used_up(made: World) -> Browser:
    """The last recovery code is used in another browser."""
    await only_password(made)
    await recovery(made)
    for code in CODES[1:]:
        spent = await past_password(made)
        await spent.fill_and_submit(code=code)
        made.clock.pass_(60)
    first, second = await past_password(made), await past_password(made)
    await first.fill_and_submit(code=CODES[0])
    assert first.page.heading == CHOICE
    return second


async def _address_gone(made: World) -> Browser:
    """A code was sent, and then the address is taken away."""
    await only_password(made)
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email="mei.tan@harbour.example"))
    browser = await past_password(made)
    await browser.fill_and_submit("decision", button="email")
    await made.write(replace(user, email=""))
    return browser


async def _codes_removed(made: World) -> Browser:
    await only_password(made)
    await recovery(made)
    browser = await past_password(made)
    await change(made, recovery_codes=())
    return browser


@pytest.mark.parametrize("lose", [_used_up, _address_gone, _codes_removed])
async def test_the_person_is_sent_back_and_told_and_it_is_audited(lose: Any) -> None:
    """D45: nobody is asked for what they do not have; looking and typing say the same."""
    async with new_world(postbox=Postbox()) as made:
        browser = await lose(made)
        page, where, code = browser.page, browser.url, form_of(browser, "code")
        before = len(await made.audit("sign_in.second_factor"))
        assert (await post(browser, "code", {**code, "code": "123456"})).status_code == 303
        (*_, entry) = await made.audit("sign_in.second_factor")
        assert len(await made.audit("sign_in.second_factor")) == before + 1
        assert (entry.actor, entry.outcome, entry.detail["reason"]) == (
            f"user:{ALICE}", "refused", "no second factor is left",
        )  # fmt: skip
        for _ in range(2):
            await browser.reload()
            assert (browser.page.heading, SENTENCE in browser.page.text) == (SIGN_IN, True)
        browser.page, browser.url = page, where
        await browser.fill_and_submit(code="123456")
        assert (browser.page.heading, SENTENCE in browser.page.text) == (SIGN_IN, True)


async def test_the_page_that_they_are_sent_back_to_takes_another_person(made: World) -> None:
    """D15: and says the same again to the first one."""
    await made.person("bob")
    browser = await _codes_removed(made)
    await browser.reload()
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    assert (browser.page.heading, SENTENCE in browser.page.text) == (SIGN_IN, True)
    await made.factors(browser, made.people["bob"])
    assert browser.page.heading == "You cannot use this service yet"


async def test_a_way_that_is_given_back_is_asked_for_again(made: World) -> None:
    """D50: nothing was written for having been looked at."""
    browser = await _codes_removed(made)
    await browser.reload()
    assert SENTENCE in browser.page.text
    await recovery(made)
    await browser.reload()
    assert browser.page.heading == "Enter a recovery code"


async def test_who_sends_it_again_and_again_is_slowed_and_does_not_fill_the_audit(made: World) -> None:
    """D47: the audit is never emptied by the one who fills it."""
    browser = await _codes_removed(made)
    code = {**form_of(browser, "code"), "code": "123456"}
    answers = [(await post(browser, "code", code)).status_code for _ in range(60)]
    assert answers[-1] == 429
    assert len(await made.audit("sign_in.second_factor")) == answers.count(303)
