"""Setting up codes by e-mail, in place of an app or a passkey (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.flows.authentication import sign_in
from corpid.rules.authentication import records
from corpid.rules.limits import CODE_MISSES, MAILED_CODE_SECONDS, MAILED_CODES_PER_HOUR, MAILED_CODES_PER_SIGN_IN
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX, NEW, NINA, SET_UP
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.factors import choose, offered, type_code, wrong
from tests.sign_in.world import PASSWORD, World, form_of, new_world, post, rejected

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

APP, TYPE, SEND = "Set up your second step", "Enter the code we sent you", "Get a code by e-mail"


async def at_second_factor(made: World) -> Browser:
    """Nina has been invited and has chosen a password."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    assert await newcomer.password(browser) == APP
    return browser


async def test_an_error_about_a_code_that_has_expired_leads_to_no_field() -> None:
    """D45, docs/accessibility.md: the page asks to send another, and has nothing to type."""
    async with new_world(postbox=Postbox()) as made:
        browser = await at_second_factor(made)
        assert await choose(browser, "email") == TYPE
        made.clock.pass_(MAILED_CODE_SECONDS + 1)
        assert await type_code(browser, "000000") == SEND
        assert browser.response is not None
        assert "This code is not right" in browser.page.text
        assert "#code" not in browser.response.text


async def test_a_newcomer_without_app_and_passkey_chooses_codes_by_email_and_signs_in_with_them() -> None:
    """D45: the mailbox is proved by a code; the steps stay three, and recovery codes are kept as beside an app."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        assert (offered(browser), postbox.emails) == (["email"], [])
        assert await choose(browser, "email") == TYPE
        assert "Step 2 of 3" in browser.page.text
        assert "n•••@example.org" in browser.page.text
        [email] = postbox.emails
        assert (email.to, str(email.subject)) == (MAILBOX, "Your code for CorpID")
        assert "You are setting up your sign-in" in email.text
        assert await type_code(browser, postbox.code()) == "Save your recovery codes"
        assert (await newcomer.credentials(made)).password_hash is None
        assert await newcomer.kept(browser) == SET_UP
        assert (await newcomer.credentials(made)).totp_secret is None
        assert await made.provider.registry.factors.recovery_codes_left(NINA) == records.RECOVERY_CODES
        [written] = await made.audit("factors.invitation")
        assert written.detail["set"] == "password email"
        visitor = await factors.at_sign_in(made)
        await visitor.fill_and_submit(user_name="nina", password=NEW)
        assert visitor.page.heading == SEND
        await visitor.fill_and_submit("decision", button="email")
        await visitor.fill_and_submit(code=postbox.code())
        assert visitor.page.heading not in {TYPE, "Sign in"}


@pytest.mark.parametrize("case", ["no address", "no mail", "not allowed"])
async def test_they_are_offered_only_where_one_can_arrive(case: str) -> None:
    """D45: nor is one sent when the form is forged."""
    postbox = Postbox(works=case != "no mail")

    async with new_world(postbox=postbox, email_codes=case != "not allowed") as made:
        if case == "no address":
            await made.person("nina")
            browser = await newcomer.opened(made, await newcomer.link(made))
            await newcomer.password(browser)
        else:
            browser = await at_second_factor(made)
        assert offered(browser) == []
        refused = await post(browser, "way", {**form_of(browser, "code"), "decision": "email"})
        assert "Choose one of the options." in (await rejected(browser, refused)).text
        assert postbox.emails == []


async def test_who_has_chosen_them_can_go_back_to_an_app_and_forth_without_another_email() -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        await choose(browser, "email")
        assert await choose(browser, "app") == APP
        assert await choose(browser, "email") == TYPE
        assert len(postbox.emails) == 1
        await choose(browser, "app")
        key = await newcomer.app(made, browser)
        assert await newcomer.kept(browser) == SET_UP
        assert (await newcomer.credentials(made)).totp_secret == key


async def test_only_the_newest_code_works_for_ten_minutes_and_three_are_sent_at_most() -> None:
    """D45"""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        await choose(browser, "email")
        first = postbox.code()
        for _ in range(MAILED_CODES_PER_SIGN_IN - 1):
            assert await choose(browser, "email") == TYPE
        assert offered(browser) == ["app"]
        fields = {**form_of(browser, "code"), "decision": "email"}
        assert (
            "We cannot send any more codes here." in (await rejected(browser, await post(browser, "way", fields))).text
        )
        assert len(postbox.emails) == MAILED_CODES_PER_SIGN_IN
        assert await type_code(browser, first) == TYPE
        assert "Enter the one from the latest e-mail" in browser.page.text
        made.clock.pass_(MAILED_CODE_SECONDS + 1)
        await type_code(browser, postbox.code())
        assert "We cannot send any more codes here." in browser.page.text
        assert await choose(browser, "app") == APP
        assert offered(browser) == []


async def test_five_wrong_codes_stop_the_enrolment() -> None:
    """D45: and nothing has changed."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        await choose(browser, "email")
        for _ in range(CODE_MISSES):
            await type_code(browser, wrong(postbox.code()))
        assert browser.page.heading == "We stopped this for your security"
        assert (await newcomer.credentials(made)).password_hash is None


async def test_the_code_of_one_enrolment_does_not_open_another() -> None:
    """D45: it is made for this one."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        await choose(browser, "email")
        foreign = postbox.code()
        again = await newcomer.opened(made, await newcomer.link(made))
        await newcomer.password(again)
        await choose(again, "email")
        if foreign != postbox.code():
            assert await type_code(again, foreign) == TYPE


async def test_a_form_of_the_code_before_one_was_sent_leads_to_the_page_that_is_current() -> None:
    """D15: a second tab, or a forged form."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        browser = await at_second_factor(made)
        before = form_of(browser, "code")
        await choose(browser, "email")
        late = await post(browser, "code", {**before, "code": "000000"})
        assert late.status_code == 303
        assert await type_code(browser, postbox.code()) == "Save your recovery codes"


async def test_a_lost_app_gives_way_to_codes_by_email() -> None:
    """D45: whoever has the lost phone has its app; the e-mail says what was done."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
        await newcomer.password(browser, PASSWORD)
        await choose(browser, "email")
        await type_code(browser, postbox.code())
        assert await newcomer.kept(browser) == "Your second step has been changed"
        assert (await newcomer.credentials(made)).totp_secret is None
        assert "Codes by e-mail were set up for your account." in postbox.emails[-1].text


async def test_a_browser_that_has_signed_out_keeps_its_own_number_of_codes() -> None:
    """D45, D47: others who sign in with the person's password do not use it up."""
    postbox = Postbox()

    async with new_world(postbox=postbox, session_seconds=3600) as made:
        await made.person("nina", email=MAILBOX)
        browser = await factors.at_sign_in(made)
        await made.factors(browser, made.people["nina"])
        await browser.open(f"{made.base}/sign-out")
        await browser.fill_and_submit("form_token")
        assert browser.page.heading == "You are signed out"
        request = await context(made.provider, address="192.0.2.9")
        user = await made.provider.registry.directory.user(NINA)
        for _ in range(MAILED_CODES_PER_HOUR):
            await sign_in.count_email(request, user, "a stranger", known=False)
        await newcomer.followed(browser, await newcomer.link(made, "second_factor"))
        await browser.submit(browser.page.forms[0])
        await newcomer.password(browser, PASSWORD)
        assert await choose(browser, "email") == TYPE
        assert postbox.code()
