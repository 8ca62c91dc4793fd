"""E-mails to people: in their language, and through a real server (D45, D48)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from corpid import engines
from corpid.flows import notifications
from corpid.flows.account import links
from corpid.flows.authentication import throttle
from corpid.texts import phrase
from tests.adapters.test_smtp import bodies, post_office
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX
from tests.enrolment.test_forgotten_password import at_the_page, sent
from tests.postbox import Postbox
from tests.sign_in.world import PASSWORD, new_world, world

if TYPE_CHECKING:
    from corpid.flows.notifications import Notice
    from corpid.rules.authentication.records import LinkPurpose

codes_paused = partial(
    notifications.codes_paused, 20, duration=throttle.pause_duration(900), recover="https://id.example/recover"
)
NOTICES = (
    notifications.SET_UP, notifications.PASSWORD_CHANGED, notifications.APP_ADDED, notifications.APP_REPLACED, notifications.APP_REMOVED,
    notifications.second_factor_changed(phrase("A new passkey was set up for your account.")),
    notifications.PASSKEY_ADDED, notifications.PASSKEY_REMOVED, notifications.NEW_RECOVERY_CODES, notifications.RECOVERY_CODES_REMOVED,
    notifications.WRONG_CODES, codes_paused(known=True), codes_paused(known=False), notifications.code_used(1), notifications.new_device("Firefox on Windows"), notifications.new_device(""),
)  # fmt: skip


@pytest.mark.parametrize("notice", NOTICES, ids=lambda notice: str(notice.subject))
async def test_a_notice_says_what_happened_to_whom_and_what_to_do(notice: Notice) -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", name="Nina Novak", email=MAILBOX, language="ms")
        user = await made.provider.registry.directory.user(newcomer.NINA)
        notifications.notify(await context(made.provider), user, notice)
        [email] = postbox.emails
        assert (email.to, email.language, email.subject) == (MAILBOX, "ms", notice.subject)
        for part in (
            "Nina Novak",
            notice.text,
            "User name: nina",
            "tell your organisation's CorpID administrator",
        ):
            assert part in email.text


@pytest.mark.parametrize("made_now", ["app", "passkey"])
async def test_a_second_factor_changed_is_told_with_everything_that_ended(made_now: str) -> None:
    """D45, D46: the app, the recovery codes and the sessions from before."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
        await newcomer.password(browser, PASSWORD)
        if made_now == "app":
            await newcomer.app(made, browser)
        else:
            await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, newcomer.new_key()))
        await newcomer.kept(browser)
        [email] = postbox.emails
        assert email.subject == "Your second step was changed"
        assert {"app": "A new authenticator app was set up", "passkey": "A new passkey was set up"}[
            made_now
        ] in email.text
        for ended in ("Your old authenticator app and recovery codes no longer work", "sign in again"):
            assert ended in email.text


async def test_nobody_is_written_to_who_has_no_address() -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina")
        user = await made.provider.registry.directory.user(newcomer.NINA)
        notifications.notify(await context(made.provider), user, notifications.PASSWORD_CHANGED)
        notifications.no_link(await context(made.provider), user)
        assert not postbox.emails


@pytest.mark.parametrize(
    ("purpose", "lasts"), [("invitation", "72 hours"), ("password", "30 minutes"), ("second_factor", "24 hours")]
)
async def test_an_email_with_a_link_says_how_long_it_works(purpose: LinkPurpose, lasts: str) -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        user = await made.provider.registry.directory.user(newcomer.NINA)
        link = await newcomer.new_link(made, purpose)
        notifications.link(
            made.provider.mail,
            user,
            link,
            heading=links.PURPOSES[purpose].heading,
            lead=links.PURPOSES[purpose].lead,
            provider_name="CorpID",
        )
        assert newcomer.link_in(postbox) == link.url
        assert f"within {lasts}" in postbox.emails[0].text
        # the code has a line of its own, for who cannot follow the link
        assert link.code in postbox.emails[0].text.splitlines()
        assert f"open {made.base}/enrol and enter it there" in postbox.emails[0].text


async def test_what_waits_is_sent_before_corpid_stops() -> None:
    """The whole way: settings, page, server."""
    async with post_office() as office:
        async with world(mail_url=f"smtp://127.0.0.1:{office.port}", mail_from="sign-in@corp.example") as made:
            await made.person("nina", email=MAILBOX)
            await sent(made, await at_the_page(made), "nina")
        [(recipients, message)] = office.taken
        assert recipients == [MAILBOX]
        for body in bodies(message):
            assert "/enrol#" in body


@pytest.mark.parametrize(
    ("language", "subject"),
    [("en", "Choose a new password"), ("zh-Hans", "设置新密码"), ("ms", "Pilih kata laluan baharu"), ("ta", "புதிய கடவுச்சொல்லைத் தேர்ந்தெடுங்கள்")],
)  # fmt: skip
async def test_an_email_goes_out_in_the_language_of_its_reader_whatever_the_browser_asks_for(
    language: str, subject: str
) -> None:
    """Each part of it: the greeting, what to do, and the end."""
    async with post_office() as office:
        async with world(mail_url=f"smtp://127.0.0.1:{office.port}", mail_from="sign-in@corp.example") as made:
            await made.person("nina", name="7", email=MAILBOX, language=language)
            await sent(made, await at_the_page(made), "nina", **{"Accept-Language": "ms"})
        [(_, message)] = office.taken
        assert (message["Content-Language"], message["Subject"]) == (language, subject)
        for part in ("Hello", "with this link", "User name"):
            for body in bodies(message):
                assert (part in body) is (language == "en")


@pytest.mark.parametrize("language", ["fr", "", "zh-Hant-HK"])
async def test_an_email_names_the_language_that_it_is_written_in(language: str) -> None:
    """RFC 3282: whatever its reader would rather have."""
    async with post_office() as office:
        async with world(mail_url=f"smtp://127.0.0.1:{office.port}", mail_from="sign-in@corp.example") as made:
            await made.person("nina", email=MAILBOX, language=language)
            await sent(made, await at_the_page(made), "nina")
        [(_, message)] = office.taken
        named = message["Content-Language"]
        assert (named == "en", "Hello" in bodies(message)[0]) == (not language.startswith("zh"),) * 2


async def test_a_mail_server_that_is_down_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_LAST_EMAILS_SECONDS", 0.1)

    async with new_world(mail_url="smtp://127.0.0.1:1", mail_from="sign-in@corp.example") as made:
        await newcomer.nina(made)
        browser = await newcomer.opened(made, await newcomer.link(made))
        await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, newcomer.new_key()))
        assert browser.page.heading == newcomer.SET_UP
