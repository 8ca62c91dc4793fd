"""A passkey as the second factor beside a password (WebAuthn Level 3, D45, D46, D50)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from corpid.jose.encoding import base64url
from corpid.rules.authentication.records import Credentials
from tests.sign_in.factors import (
    ALICE,
    CODES,
    REFUSED,
    answer_of,
    at_sign_in,
    change,
    offered,
    options_of,
    passkey,
    recovery,
    use,
)
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.authenticator import Authenticator

CHOICE, SIGN_IN, KEY = "Choose who you act for", "Sign in", "Sign in with your passkey"
APP, RECOVERY = "Enter your 6-digit code", "Enter a recovery code"


async def key_beside_password(made: World) -> Authenticator:
    """What an invitation leaves that ends with a passkey as the second factor."""
    await made.write(Credentials(user_id=ALICE, password_hash=await made.passwords.hash(PASSWORD)))
    await recovery(made)
    return await passkey(made)


async def past_password(made: World, rp: RelyingParty | None = None) -> Browser:
    browser = await at_sign_in(made, rp)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    return browser


def without_handle(answer: str) -> str:
    """What a browser may answer that was told which passkeys will do."""
    read = json.loads(answer)
    del read["response"]["userHandle"]
    return json.dumps(read)


async def test_it_is_asked_for_first_and_a_recovery_code_stands_beside_it(made: World) -> None:
    """D45, D46: and amr says both (RFC 8176); the recovery codes stay as they are."""
    key, rp = await key_beside_password(made), await made.relying_party()
    browser = await past_password(made, rp)
    assert (browser.page.heading, offered(browser)) == (KEY, ["recovery"])
    assert "Step " not in browser.page.text
    assert await use(made, browser, key) == CHOICE
    assert "Step 3 of 3" in browser.page.text
    await browser.fill_and_submit(entity="200000001A")
    assert browser.left is not None
    claims = (await rp.redeem(browser.left)).id_token
    assert (claims["amr"], claims["acr"]) == (["pwd", "pop", "user", "mfa"], "urn:idp:authentication:loa:2")
    (entry,) = await made.audit("sign_in.second_factor")
    assert (entry.actor, entry.outcome, entry.detail["way"]) == (f"user:{ALICE}", "ok", "passkey")
    assert await made.provider.registry.factors.recovery_codes_left(ALICE) == len(CODES)


async def test_the_browser_is_told_which_passkeys_will_do_and_nobody_learns_it_before_the_password(made: World) -> None:
    """WebAuthn §5.5, §14.6.3: those of this person."""
    await made.person("bob")
    await passkey(made, "id-bob")
    key = await key_beside_password(made)
    browser = await at_sign_in(made)
    assert not json.loads(options_of(browser)).get("allowCredentials")
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    asked = json.loads(options_of(browser))
    assert [each["id"] for each in asked["allowCredentials"]] == [base64url(key.credential_id)]
    assert asked["userVerification"] == "required"


async def test_an_answer_may_leave_out_whose_it_is(made: World) -> None:
    """WebAuthn §7.2, step 6: the person is known already. Without a password it may not."""
    key, browser = await key_beside_password(made), await at_sign_in(made)
    await browser.fill_and_submit(passkey=without_handle(answer_of(made, browser, key)))
    assert (browser.page.heading, REFUSED in browser.page.text) == (SIGN_IN, True)
    browser = await past_password(made)
    await browser.fill_and_submit(passkey=without_handle(answer_of(made, browser, key)))
    assert browser.page.heading == CHOICE


async def test_another_persons_passkey_does_not_go_with_the_password(made: World) -> None:
    """D46: and the audit names the person whose password it was."""
    await made.person("bob")
    theirs = await passkey(made, "id-bob")
    key, browser = await key_beside_password(made), await past_password(made)
    assert await use(made, browser, theirs) == KEY
    assert REFUSED in browser.page.text
    (entry,) = await made.audit("sign_in.second_factor")
    assert (entry.actor, entry.outcome) == (f"user:{ALICE}", "refused")
    assert entry.detail["reason"] == repr("this passkey is not one of this person's")
    assert await use(made, browser, key) == CHOICE


async def test_what_cannot_even_be_read_is_slowed_too(made: World) -> None:
    """D47: or whoever has the password could fill the audit, which only grows."""
    await key_beside_password(made)
    browser = await past_password(made)
    junk = {**form_of(browser, "passkey"), "passkey": "x"}
    statuses = [(await post(browser, "passkey", junk | {"guess": str(each)})).status_code for each in range(55)]
    assert statuses[:50] == [303] * 50
    assert statuses[51:] == [429] * 4
    assert len(await made.audit("sign_in.second_factor")) == statuses.count(303)


async def test_a_challenge_of_the_page_before_proves_nothing_after_the_password(made: World) -> None:
    """D46: each page has its own."""
    key, browser = await key_beside_password(made), await at_sign_in(made)
    before = answer_of(made, browser, key)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    await browser.fill_and_submit(passkey=before)
    assert (browser.page.heading, REFUSED in browser.page.text) == (KEY, True)


async def test_a_recovery_code_is_the_way_out_where_the_passkey_is_lost(made: World) -> None:
    """D45: and there is a way back."""
    key, browser = await key_beside_password(made), await past_password(made)
    await browser.fill_and_submit("decision", button="recovery")
    assert (browser.page.heading, offered(browser)) == (RECOVERY, ["passkey"])
    await browser.fill_and_submit("decision", button="passkey")
    assert await use(made, browser, key) == CHOICE
    browser = await past_password(made)
    await browser.fill_and_submit("decision", button="recovery")
    await browser.fill_and_submit(code=CODES[0])
    assert browser.page.heading == CHOICE


async def test_who_has_an_app_is_asked_for_its_code_and_offered_the_passkey(made: World) -> None:
    """D45: a code can be typed on any device."""
    key, browser = await passkey(made), await past_password(made)
    assert (browser.page.heading, offered(browser)) == (APP, ["passkey"])
    await browser.fill_and_submit("decision", button="passkey")
    assert await use(made, browser, key) == CHOICE


async def test_a_code_that_is_sent_to_the_page_of_the_passkey_is_not_looked_at(made: World) -> None:
    """D15: whatever a form says."""
    await key_beside_password(made)
    browser = await past_password(made)
    answer = await post(browser, "code", {**form_of(browser, "passkey"), "code": CODES[0]})
    assert answer.status_code == 303
    assert await made.audit("sign_in.second_factor") == []


async def test_a_passkey_that_is_removed_meanwhile_ends_its_sign_in(made: World) -> None:
    """D50: before it is shown and after it."""
    key = await key_beside_password(made)
    browser, other = await past_password(made), await past_password(made)
    assert await use(made, browser, key) == CHOICE
    await change(made, remove_passkey=base64url(key.credential_id))
    await browser.reload()
    assert browser.page.heading == SIGN_IN
    await other.reload()
    assert other.page.heading == RECOVERY


@pytest.mark.parametrize("base", ["http://localhost:8080", "http://127.0.0.1:8080"])
async def test_it_is_offered_where_passkeys_work(base: str) -> None:
    """WebAuthn §5.1.3: a passkey belongs to a name, never to an address."""
    async with new_world(base=base) as made:
        await key_beside_password(made)
        assert (await past_password(made)).page.heading == (KEY if "localhost" in base else RECOVERY)
