"""What is told of a right password and of wrong codes after it: to the audit, and to whose account it is (D45, D47)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.rules.limits import CODE_MISSES
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, at_sign_in
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

DAY = 86400


async def reach(made: World) -> None:
    """Alice gets an e-mail address."""
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email="mei.tan@harbour.example"))


async def past_password(made: World) -> Browser:
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    return browser


async def miss(made: World, times: int) -> None:
    """Somebody with the password types wrong codes, of which each is tried."""
    browser = await past_password(made)
    for _ in range(times):
        made.clock.pass_(301)
        if form := next((each for each in browser.page.forms if each.action.endswith("/extend")), None):
            await browser.submit(form)
        answer = await post(browser, "code", {**form_of(browser, "code"), "code": "000000"})
        assert answer.status_code in {200, 303}


async def test_the_audit_knows_of_a_right_password(made: World) -> None:
    """Also where nothing comes after it; it is no sign-in."""
    browser = await past_password(made)
    (entry,) = await made.audit("sign_in.password")
    assert (entry.actor, entry.outcome, entry.client_id) == (f"user:{ALICE}", "ok", "rp1")
    assert entry.detail["address"] == "127.0.0.1"
    assert await made.provider.registry.audit.sign_ins_of(ALICE, limit=9) == []
    await made.code(browser, made.people["alice"])
    assert len(await made.audit("sign_in.password")) == 1


async def test_whose_password_was_typed_before_wrong_codes_is_told() -> None:
    """D45: when a sign-in is stopped by them."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        await miss(made, CODE_MISSES - 1)
        assert postbox.emails == []
        await miss(made, 1)
        (email,) = postbox.emails
        assert (email.to, str(email.subject)) == (
            "mei.tan@harbour.example",
            "Wrong codes were entered after your password",
        )
        assert "somebody knows your password: choose a new one" in email.text


async def test_it_is_told_once_a_day_however_often_it_happens() -> None:
    """D47: who has the password cannot flood a mailbox."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        for _ in range(3):
            await miss(made, CODE_MISSES)
        assert len(postbox.emails) == 1
        made.clock.pass_(DAY)
        await miss(made, CODE_MISSES)
        assert len(postbox.emails) == 2
