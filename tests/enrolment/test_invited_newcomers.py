"""New people who accept an invitation: names, steps, e-mails (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from corpid.rules.directory.records import Administrator, User
from corpid.rules.limits import CODE_MISSES
from tests.account.scene import account
from tests.enrolment import invited, newcomer
from tests.enrolment.invited import (
    ACCEPTED,
    FIRST,
    MAILBOX,
    PROFILE,
    WAITING,
    at_profile,
    membership,
    named,
    newcomers_id,
    stands,
)
from tests.enrolment.newcomer import NEW
from tests.postbox import Postbox
from tests.sign_in.factors import choose, type_code, wrong
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

OTHER: Final = "00000000-0000-4000-8000-000000000002"


async def test_a_new_person_becomes_a_member_with_the_last_step_and_not_before() -> None:
    """D60: user name and name as they choose, the address that the link has proved."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        waiting = await invited.invite(made)
        browser = await at_profile(made, await invited.link(made))
        assert "Step " not in browser.page.text
        form = browser.page.form_with("user_name")
        assert form is not None
        assert {each.name: each.value for each in form.controls}["user_name"] == "wei.ling"
        assert await named(browser) == FIRST
        await newcomer.password(browser)
        secret = await newcomer.app(made, browser)
        assert "Step 4 of 4" in browser.page.text
        assert await stands(made)
        assert await made.provider.registry.directory.user_by_name("wei.ling") is None
        assert await newcomer.kept(browser) == ACCEPTED
        new = await newcomers_id(made)
        person = await made.provider.registry.directory.user(new)
        assert person == User(user_id=new, user_name="wei.ling", name="Wei Ling Tan", email=MAILBOX)
        found = await membership(made, new)
        assert found is not None
        assert (found.membership_id, found.invited) == (waiting.membership_id, False)
        assert (await newcomer.credentials(made, new)).totp_secret == secret
        [event] = await made.audit("factors.membership")
        assert (event.actor, event.detail["set"]) == (f"user:{new}", "password app")
        assert [each.actor for each in await made.audit("membership.accept")] == [f"user:{new}"]
        assert [email.to for email in postbox.emails] == [MAILBOX]
        visitor = await made.browser()
        made.clock.pass_(60)
        await visitor.open(account(made), site="none")
        await visitor.fill_and_submit(user_name="wei.ling", password=NEW)
        assert visitor.page.heading == "Enter your 6-digit code"


async def joined(made: World) -> Browser:
    """A new person who has accepted, at the last page."""
    browser = await at_profile(made)
    await named(browser)
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    assert await newcomer.kept(browser) == ACCEPTED
    return browser


async def test_the_last_page_says_that_the_invitation_was_accepted_and_what_comes_next(made: World) -> None:
    """D60: which organisation, that roles may follow, where the account is; the opened link says the same."""
    await invited.invite(made)
    browser = await joined(made)
    text = browser.page.text
    assert "You have accepted the invitation, and your sign-in is set up." in text
    assert f"The administrators of {invited.NAME} decide which services you can use. This may take some time." in text
    assert ("/account", "Sign in to your account") in browser.page.links
    await browser.open(browser.url, site="none")
    assert browser.page.heading == ACCEPTED


async def test_an_invited_administrator_is_led_to_the_portal_if_there_is_one() -> None:
    """D53, D60."""
    for enabled in (True, False):
        async with new_world(manage_enabled=enabled) as made:
            await invited.invite(made)
            await made.write(Administrator(user_id=WAITING, entity_id=invited.HARBOUR, level="administrator"))
            browser = await joined(made)
            link = ("/manage", "Go to the administration") in browser.page.links
            says = f"You also administer {invited.NAME}" in browser.page.text
            assert (link, says) == (enabled, enabled)


async def test_a_new_person_is_told_who_sees_the_user_name_before_choosing_one(made: World) -> None:
    """D68."""
    await invited.invite(made)
    browser = await at_profile(made)
    assert f"You sign in with this, and {invited.NAME} sees it." in browser.page.text


async def test_a_new_person_gets_emails_in_the_language_of_the_page(made: World) -> None:
    await invited.invite(made)
    browser = await at_profile(made)
    browser.http.headers["Accept-Language"] = "ms"
    await named(browser)
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    await newcomer.kept(browser)
    person = await made.provider.registry.directory.user(await newcomers_id(made))
    assert person is not None
    assert person.language == "ms"


@pytest.mark.parametrize(
    ("user_name", "name", "sentence"),
    [
        ("wei.ling", " ", "Enter your name."),
        ("wei.ling", "Wei\u202eLing", "Remove the invisible character U+202E (right-to-left override)."),
        ("wei.ling", "W" * 201, "Enter a name of at most 200 characters."),
        ("", "Wei Ling", "Choose a user name without spaces"),
        ("wei ling", "Wei Ling", "Choose a user name without spaces"),
        ("w" * 129, "Wei Ling", "Choose a user name without spaces"),
        ("alice", "Wei Ling", "This user name is taken."),
        ("ALICE", "Wei Ling", "This user name is taken."),
    ],
)
async def test_names_that_cannot_be_used_are_shown_again_with_a_sentence(
    made: World, user_name: str, name: str, sentence: str
) -> None:
    """D51, docs/accessibility.md: what was typed is kept."""
    await invited.invite(made)
    browser = await at_profile(made)
    assert await named(browser, user_name, name) == PROFILE
    assert newcomer.status(browser) == 200
    assert sentence in browser.page.text
    form = browser.page.form_with("user_name")
    assert form is not None
    assert {each.name: each.value for each in form.controls}["user_name"] == user_name
    assert await named(browser) == FIRST


@pytest.mark.full
async def test_trying_user_names_is_slowed_by_link_and_by_address(made: World) -> None:
    """D47: the page says which are taken; whoever gets a free one has not tried anything."""
    await invited.invite(made)
    browser = await at_profile(made)
    for _ in range(5):
        await named(browser, "alice")
        assert newcomer.status(browser) == 200
    # The first one beyond begins the delay.
    for _ in range(2):
        await named(browser, "alice")
    assert newcomer.status(browser) == 429
    made.clock.pass_(300)
    assert await named(browser) == FIRST
    many = 60
    for each in range(many):
        waiting = f"00000000-0000-4000-8000-{each + 10:012}"
        await invited.invite(made, waiting, email=f"p{each}@harbour.example", user_name=f"p{each}")
        other = await at_profile(made)
        await named(other, "alice")
        if newcomer.status(other) == 429:
            break
    assert newcomer.status(other) == 429


async def test_a_user_name_that_is_taken_at_the_last_moment_is_asked_for_again_and_no_other_step(made: World) -> None:
    """D60: and nothing of the other person changes."""
    await invited.invite(made)
    browser = await at_profile(made)
    await named(browser)
    await newcomer.password(browser)
    await newcomer.app(made, browser)
    await made.person("wei.ling", name="Another")
    before = await newcomer.credentials(made, "id-wei.ling")
    assert await newcomer.kept(browser) == PROFILE
    assert "This user name is taken." in browser.page.text
    assert await stands(made)
    assert await newcomer.credentials(made, "id-wei.ling") == before
    assert await named(browser, "wei.ling.2") == ACCEPTED
    assert (await newcomer.credentials(made, await newcomers_id(made, "wei.ling.2"))).password_hash is not None
    assert await newcomer.credentials(made, "id-wei.ling") == before


async def test_a_new_person_with_a_passkey_needs_two_steps(made: World) -> None:
    """D46, D60: names, then a passkey, which is both factors."""
    await invited.invite(made)
    browser = await at_profile(made)
    await named(browser)
    key = newcomer.new_key(WAITING)
    answer = newcomer.made_passkey(made, browser, key)
    form = browser.page.form_with("passkey")
    assert form is not None
    form.fill("passkey", answer)
    await browser.submit(form)
    assert browser.page.heading == ACCEPTED
    new = await newcomers_id(made)
    assert len(await made.provider.registry.factors.passkeys(new)) == 1
    assert await membership(made, new) is not None


async def test_a_new_person_chooses_codes_by_email_at_the_invited_address() -> None:
    """D45, D60: five wrong ones stop it, and nothing was written."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await invited.invite(made)
        browser = await at_profile(made, await invited.link(made))
        await named(browser)
        await newcomer.password(browser)
        postbox.emails.clear()
        assert await choose(browser, "email") == "Enter the code we sent you"
        assert [email.to for email in postbox.emails] == [MAILBOX]
        await type_code(browser, wrong(postbox.code()))
        assert "This code is not right." in browser.page.text
        await type_code(browser, postbox.code())
        assert await newcomer.kept(browser) == ACCEPTED
        new = await newcomers_id(made)
        assert (await newcomer.credentials(made, new)).password_set_by == "user"
        await invited.invite(made, OTHER, email="other@harbour.example", user_name="other")
        browser = await at_profile(made, await invited.link(made))
        await named(browser, "other")
        await newcomer.password(browser)
        await choose(browser, "email")
        for _ in range(CODE_MISSES):
            await type_code(browser, wrong(postbox.code()))
        assert browser.page.heading == "We stopped this for your security"
        assert await made.provider.registry.directory.user_by_name("other") is None
        assert await made.provider.registry.invitations.find(OTHER) is not None
