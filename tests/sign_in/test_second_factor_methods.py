"""The second factor in other ways: a code by e-mail, a recovery code; which are offered, and to whom (D45, D47)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.authentication.records import Credentials
from corpid.rules.limits import CODE_MISSES, MAILED_CODE_SECONDS, MAILED_CODES_PER_HOUR
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, at_sign_in, change, choose, offered, recovery, type_code, wrong
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, query_of, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

CHOICE, SIGN_IN = "Choose who you act for", "Sign in"
APP, SEND = "Enter your 6-digit code", "Get a code by e-mail"
TYPE, RECOVERY = "Enter the code we sent you", "Enter a recovery code"
ADDRESS = "mei.tan@harbour.example"


async def reach(made: World) -> None:
    """Alice gets an e-mail address."""
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email=ADDRESS))


async def without_app(made: World) -> None:
    """Alice has no app any more."""
    await made.write(Credentials(user_id=ALICE, password_hash=await made.passwords.hash(PASSWORD)))


async def past_password(made: World, rp: RelyingParty | None = None) -> Browser:
    browser = await at_sign_in(made, rp)
    await browser.fill_and_submit(user_name="alice", password=PASSWORD)
    return browser


async def test_a_code_by_email_is_the_second_factor() -> None:
    """D45: and amr says what it was (RFC 8176)."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        rp = await made.relying_party()
        browser = await past_password(made, rp)
        assert (browser.page.heading, offered(browser), postbox.emails) == (APP, ["email"], [])
        assert await choose(browser, "email") == TYPE
        assert "Step " not in browser.page.text
        assert "m•••@harbour.example" in browser.page.text
        assert ADDRESS not in browser.page.text
        (email,) = postbox.emails
        assert email.to == ADDRESS
        assert str(email.subject) == "Your code for CorpID"
        assert "Relying Party 1" in email.text
        code = postbox.code()
        assert await type_code(browser, f" {code[:3]} {code[3:]} ") == CHOICE
        await browser.fill_and_submit(entity="200000001A")
        assert browser.left is not None
        claims = (await rp.redeem(browser.left)).id_token
        assert (claims["amr"], claims["acr"]) == (["pwd", "otp", "mfa"], "urn:idp:authentication:loa:2")
        assert [entry.detail["way"] for entry in await made.audit("sign_in.second_factor")] == ["email"]


async def test_who_has_no_app_is_asked_before_a_code_is_sent() -> None:
    """D45: the mail is theirs to ask for."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        await without_app(made)
        browser = await past_password(made)
        assert (browser.page.heading, postbox.emails) == (SEND, [])
        assert await choose(browser, "email") == TYPE
        assert await type_code(browser, postbox.code()) == CHOICE


@pytest.mark.parametrize("case", ["no address", "no mail", "not allowed"])
async def test_a_code_by_email_is_offered_only_where_one_can_arrive(case: str) -> None:
    """D45: nor is one sent when the form is forged."""
    postbox = Postbox(works=case != "no mail")

    async with new_world(postbox=postbox, email_codes=case != "not allowed") as made:
        if case != "no address":
            await reach(made)
        browser = await past_password(made)
        assert offered(browser) == []
        fields = {**form_of(browser, "code"), "decision": "email"}
        assert (await post(browser, "way", fields)).status_code == 303
        assert postbox.emails == []


async def test_nobody_learns_the_ways_before_the_password_was_right() -> None:
    """D28."""
    async with new_world(postbox=Postbox()) as made:
        await reach(made)
        await recovery(made)
        browser = await at_sign_in(made)
        fields = {**form_of(browser, "password"), "decision": "email"}
        answer = await post(browser, "way", fields)
        assert answer.status_code == 303
        await browser.fill_and_submit(user_name="alice", password="wrong horse battery")
        assert (browser.page.heading, offered(browser)) == (SIGN_IN, [])


async def test_only_the_newest_code_works_and_three_are_sent_at_most() -> None:
    """D45."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        browser = await past_password(made)
        for _ in range(3):
            assert await choose(browser, "email") == TYPE
        assert offered(browser) == ["app"]
        first = postbox.code()
        postbox.emails.append(postbox.emails[0])
        assert await type_code(browser, postbox.code()) == TYPE
        assert "This code is not right." in browser.page.text
        await browser.reload()
        fields = {**form_of(browser, "code"), "decision": "email"}
        assert (await post(browser, "way", fields)).status_code == 303
        assert len(postbox.emails) == 4
        assert await type_code(browser, first) == CHOICE


async def test_who_comes_back_to_the_mail_types_the_code_that_was_sent() -> None:
    """D45: nothing is sent for looking elsewhere; where nothing more can be sent, nothing is offered."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        browser = await past_password(made)
        for _ in range(3):
            await choose(browser, "email")
        assert await choose(browser, "app") == APP
        assert await choose(browser, "Use the code we sent you") == TYPE
        assert len(postbox.emails) == 3
        await choose(browser, "app")
        form = next(form for form in browser.page.forms if form.action.endswith("/extend"))
        made.clock.pass_(590)
        await browser.submit(form)
        made.clock.pass_(11)
        await browser.reload()
        assert (browser.page.heading, offered(browser)) == (APP, [])


async def test_a_double_click_sends_one_code() -> None:
    """D15."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        browser = await past_password(made)
        fields = {**form_of(browser, "decision"), "decision": "email"}
        answers = await asyncio.gather(*(post(browser, "way", fields) for _ in range(4)))
        assert {answer.status_code for answer in answers} == {303}
        assert len(postbox.emails) == 1
        await browser.reload()
        assert await type_code(browser, postbox.code()) == CHOICE


async def test_a_code_works_for_ten_minutes() -> None:
    """D45: however long the sign-in itself is extended."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        browser = await past_password(made)
        await choose(browser, "email")
        made.clock.pass_(MAILED_CODE_SECONDS - 60)
        form = next(form for form in browser.page.forms if form.action.endswith("/extend"))
        await browser.submit(form)
        made.clock.pass_(59)
        await browser.reload()
        assert browser.page.heading == TYPE
        made.clock.pass_(1)
        assert await type_code(browser, postbox.code()) == SEND
        assert "This code is not right." in browser.page.text
        assert await choose(browser, "email") == TYPE
        assert await type_code(browser, postbox.code()) == CHOICE


async def test_a_code_works_in_its_own_sign_in_only_and_once() -> None:
    """D45: it is derived from the interaction."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        mine, other = await past_password(made), await past_password(made)
        await choose(mine, "email")
        code = postbox.code()
        await choose(other, "email")
        assert await type_code(other, code) == TYPE
        answers = {**form_of(mine, "code"), "code": code}
        await asyncio.gather(*(post(mine, "code", answers) for _ in range(3)))
        assert len(await made.audit("sign_in.complete")) == 0
        await mine.reload()
        assert mine.page.heading == CHOICE


async def test_codes_to_one_person_are_bounded_by_the_hour() -> None:
    """D47: who has a password can still not flood its owner; an hour later it goes on."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        while len(postbox.emails) < MAILED_CODES_PER_HOUR:
            browser = await past_password(made)
            for _ in range(min(3, MAILED_CODES_PER_HOUR - len(postbox.emails))):
                await choose(browser, "email")
            made.clock.pass_(30)
        browser = await past_password(made)
        assert await choose(browser, "email") == APP
        assert "We have sent you too many codes." in browser.page.text
        assert len(postbox.emails) == MAILED_CODES_PER_HOUR
        made.clock.pass_(3600)
        assert await choose(await past_password(made), "email") == TYPE


async def test_a_known_browser_gets_codes_when_others_have_used_up_the_hour() -> None:
    """D47: who has only the password has no such browser; its own allowance ends as well."""
    postbox = Postbox()

    async def known(made: World, browser: Browser) -> str:
        await walk_to(made, browser, await made.relying_party())
        await browser.fill_and_submit(user_name="alice", password=PASSWORD)
        return await choose(browser, "email")

    async with new_world(postbox=postbox) as made:
        await reach(made)
        own = await made.browser()
        await walk_to(made, own, await made.relying_party(), ("password", "code", "entity"))
        made.clock.pass_(60)
        while len(postbox.emails) < MAILED_CODES_PER_HOUR:
            await choose(await past_password(made), "email")
            made.clock.pass_(60)
        assert await choose(await past_password(made), "email") == APP
        for _ in range(MAILED_CODES_PER_HOUR):
            assert await known(made, own) == TYPE
            made.clock.pass_(60)
        assert await known(made, own) == APP


async def test_a_recovery_code_works_once_and_its_owner_is_told() -> None:
    """D45: however it is typed."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        await recovery(made)
        browser = await past_password(made)
        assert offered(browser) == ["email", "recovery"]
        assert await choose(browser, "recovery") == RECOVERY
        assert await type_code(browser, CODES[0].upper().replace("-", " ")) == CHOICE
        (email,) = postbox.emails
        assert email.to == ADDRESS
        assert "2 codes are left" in email.text
        again = await past_password(made)
        await choose(again, "recovery")
        assert await type_code(again, CODES[0]) == RECOVERY
        assert "was already used" in again.page.text
        assert await type_code(again, CODES[1]) == CHOICE
        assert "1 code is left" in postbox.emails[-1].text


async def test_of_simultaneous_uses_of_one_recovery_code_one_is_accepted(made: World) -> None:
    """D45: taken by one statement."""
    await recovery(made)
    browsers = [await past_password(made) for _ in range(3)]
    for browser in browsers:
        await choose(browser, "recovery")
    await asyncio.gather(*(type_code(browser, CODES[0]) for browser in browsers))
    assert sorted(browser.page.heading for browser in browsers) == [CHOICE, RECOVERY, RECOVERY]
    assert await made.provider.registry.factors.recovery_codes_left(ALICE) == len(CODES) - 1


async def test_anothers_recovery_code_is_wrong(made: World) -> None:
    """D45: a code belongs to its owner, by its hash."""
    await made.person("bob")
    await recovery(made, "id-bob")
    await change(made, recovery_codes=("0" * 64,))
    browser = await past_password(made)
    await choose(browser, "recovery")
    for typed in (CODES[0], "", "x" * 5000, "0" * 64, "%", "é\u0000"):
        await browser.fill_and_submit(code=typed)
        assert browser.response is not None
        assert browser.response.status_code in {200, 303, 429}
        made.clock.pass_(301)
        if browser.response.status_code == 200:
            break
    assert await made.audit("sign_in.complete") == []


async def test_misses_count_together_in_every_way() -> None:
    """D45: five end the sign-in."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        await recovery(made)
        browser = await past_password(made)
        assert await type_code(browser, "000000") == APP
        await choose(browser, "email")
        for _ in range(2):
            assert await type_code(browser, wrong(postbox.code())) == TYPE
        await choose(browser, "recovery")
        assert await type_code(browser, "none of them") == RECOVERY
        made.clock.pass_(5)
        assert CODE_MISSES == 5
        assert await type_code(browser, "none of them") == "This sign-in was stopped"
        back = next(target for target, _ in browser.page.links if target.endswith("/leave"))
        await browser.open(f"{made.base}{back}", site="same-origin")
        assert query_of(browser.left)["error"] == "access_denied"


async def test_ways_lead_to_and_fro_and_an_old_form_to_the_current_page(made: World) -> None:
    """D15."""
    await recovery(made)
    browser = await past_password(made)
    page, where = browser.page, browser.url
    assert await choose(browser, "recovery") == RECOVERY
    assert offered(browser) == ["app"]
    browser.page, browser.url = page, where
    assert await type_code(browser, "123456") == RECOVERY
    assert await made.audit("sign_in.second_factor") == []
    assert await choose(browser, "app") == APP
    await browser.fill_and_submit("decision", button="recovery")
    await made.code(await past_password(made), made.people["alice"])
    assert browser.page.heading == RECOVERY


async def test_a_way_that_was_taken_away_meanwhile_is_no_longer_asked_for(made: World) -> None:
    """D50."""
    await recovery(made)
    browser = await past_password(made)
    await choose(browser, "recovery")
    await change(made, recovery_codes=())
    await browser.reload()
    assert browser.page.heading == APP


async def test_a_password_alone_is_told_what_to_do(made: World) -> None:
    """D45: only whoever typed it right; the audit says that it was."""
    await without_app(made)
    browser = await past_password(made)
    assert browser.page.heading == SIGN_IN
    assert "for a link" in browser.page.text
    assert await made.audit("sign_in.password") == []
    (entry,) = await made.audit("sign_in.second_factor")
    assert (entry.actor, entry.outcome) == (f"user:{ALICE}", "refused")


async def test_a_new_start_forgets_the_code_and_not_how_many_were_sent() -> None:
    """D45: another person at the same page gets no use of it."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reach(made)
        browser = await past_password(made)
        await choose(browser, "email")
        await change(made, after=Credentials(user_id=ALICE, password_hash=await made.passwords.hash(PASSWORD)))
        await browser.reload()
        assert browser.page.heading == SIGN_IN
        await browser.fill_and_submit(user_name="alice", password=PASSWORD)
        assert browser.page.heading == SEND
        for _ in range(2):
            await choose(browser, "email")
        assert len({email.text for email in postbox.emails}) == 3
        assert "email" not in offered(browser)
