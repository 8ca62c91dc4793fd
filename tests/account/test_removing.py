"""An app and recovery codes are looked after as passkeys are: seen in use, and removed (D45)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
from tests.account.scene import at_account, go, hidden, send
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, change, passkey, recovery
from tests.sign_in.world import World, new_world

ALONE = "Works once you have a password"
NO_WAY = "you could no longer sign in"


async def credentials(made: World) -> Credentials:
    stored: Credentials = await made.provider.registry.factors.credentials(ALICE)
    return stored


async def codes_left(made: World) -> int:
    left: int = await made.provider.registry.factors.recovery_codes_left(ALICE)
    return left


async def reachable(made: World, **more: Any) -> None:
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email="alice@example.com", **more))


async def test_an_app_is_seen_in_use_and_removed_after_a_question() -> None:
    """D45: its codes no longer work, every other session ends, the person is told and the audit says it."""
    postbox = Postbox()

    async with new_world(postbox=postbox, email_codes=True) as made:
        await reachable(made)
        key = await passkey(made)
        other, browser = await at_account(made, key=key), await at_account(made)
        signed_in = datetime.fromtimestamp(made.clock(), UTC)
        assert f"Authenticator app In use · Last used {signed_in:%-d %b %Y, %H:%M} UTC" in browser.page.text
        await go(made, browser, "app")
        assert "Your current app stops working once the new one is set up." in browser.page.text
        target = next(target for target, text in browser.page.links if text == "Remove your current app")
        assert target == "/account/remove-app"
        assert await go(made, browser, "remove-app") == "Remove the authenticator app?"
        assert (await credentials(made)).totp_secret
        await browser.submit(next(f for f in browser.page.forms if f.action == "/account/remove-app"))
        assert "Your authenticator app has been removed." in browser.page.text
        assert "Authenticator app None" in browser.page.text
        assert not (await credentials(made)).totp_secret
        assert await go(made, other) == "Sign in"
        assert postbox.emails[-1].subject == "Your authenticator app was removed"
        assert [entry.object for entry in await made.audit("factors.remove_app")] == [ALICE]
        assert await go(made, browser, "remove-app") == "Your account"


async def test_recovery_codes_are_removed_after_a_question() -> None:
    """D45."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        await recovery(made)
        browser = await at_account(made, "remove-codes")
        assert "The 3 codes that are left will no longer work" in browser.page.text
        form = hidden(browser)
        await browser.submit(next(f for f in browser.page.forms if f.action == "/account/remove-codes"))
        assert "Recovery codes None" in browser.page.text
        assert await codes_left(made) == 0
        assert postbox.emails[-1].subject == "Your recovery codes were removed"
        assert (await send(made, browser, "remove-codes", **form)).headers["location"] == "/account"
        assert len(await made.audit("factors.remove_recovery_codes")) == 1


@pytest.mark.parametrize("what", ["app", "codes"])
async def test_nobody_removes_what_they_need_to_get_in(made: World, what: str) -> None:
    """D45: recovery codes run out, so that they are no way that stays; but they are not taken from who has nothing else."""
    await recovery(made)
    browser = await at_account(made, f"remove-{what}")
    if what == "codes":
        await change(made, after=replace(await credentials(made), totp_secret=None))
    before = await credentials(made)
    await browser.submit(next(f for f in browser.page.forms if f.action.endswith(f"remove-{what}")))
    assert NO_WAY in browser.page.text
    assert (await credentials(made), await codes_left(made)) == (before, len(CODES))


async def test_of_the_last_two_ways_removed_at_once_one_remains(made: World) -> None:
    """D45, D46: the rule is kept where the change is written."""
    await passkey(made)
    one, two = await at_account(made, "remove-app"), await at_account(made, "passkeys")
    page = next(target for target, text in two.page.links if text == "A key").removeprefix("/account/")
    await go(made, two, page)
    await asyncio.gather(
        send(made, one, "remove-app", **hidden(one)), send(made, two, page, **hidden(two), decision="remove")
    )
    keys = await made.provider.registry.factors.passkeys(ALICE)
    assert bool(keys) != bool((await credentials(made)).totp_secret)


async def test_what_opens_nothing_alone_is_said_to_need_the_other(made: World) -> None:
    """D45: an app or codes without a password, a password without a second factor."""
    key = await passkey(made)
    await change(made, after=Credentials(user_id=ALICE))
    browser = await at_account(made, key=key)
    for page, text in (("app", "An app works only with a password"), ("codes", "Recovery codes work only")):
        await go(made, browser, page)
        assert text in browser.page.text
    await change(made, after=Credentials(user_id=ALICE, totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"))
    await recovery(made)
    browser = await at_account(made, key=key)
    assert f"Authenticator app {ALONE}" in browser.page.text
    assert f"Recovery codes {ALONE}" in browser.page.text


async def test_a_password_that_nothing_goes_with_is_said_to_need_a_second_factor(made: World) -> None:
    """D45: passkeys count only where they work."""
    browser = await at_account(made)
    await change(made, after=replace(await credentials(made), totp_secret=None))
    await go(made, browser)
    assert "Password Works once you have a second step" in browser.page.text
    await go(made, browser, "password")
    assert "A password works only with a second step" in browser.page.text
