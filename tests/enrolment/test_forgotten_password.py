"""A forgotten password: everybody is told the same, and only the person gets an e-mail (D44, D45, D47)."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
from msgspec.structs import replace

from corpid.flows.authentication import throttle
from corpid.flows.authentication.sign_in import no_second_factor
from corpid.flows.background_tasks import WAITING
from corpid.rules import networks
from corpid.rules.authentication import totp
from corpid.rules.limits import CODE_MISSES, PASSWORD_LINK_SECONDS, RECOVERIES_PER_ACCOUNT, RECOVERIES_PER_ADDRESS
from tests.contexts import context
from tests.enrolment import newcomer
from tests.enrolment.newcomer import MAILBOX, NINA
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.test_entity_selection import statements
from tests.sign_in.world import FORM, SECRET, World, entity, form_of, new_world
from tests.world.short_lived import ShortLived

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

ASKED: Final = "Check your e-mail"
SEALED: Final = re.compile(r"(?<=corpid_form=)([A-Za-z0-9_-]+)")
HEADERS: Final = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}


async def ask(made: World, user_name: str, address: str = "127.0.0.1") -> httpx.Response:
    answer = await sent(made, await at_the_page(made, address), user_name)
    await made.provider.background_tasks.settle()
    return answer


async def at_the_page(made: World, address: str = "127.0.0.1") -> Browser:
    """A new browser that was shown the page."""
    browser = await made.browser(address)
    await browser.open(f"{made.base}/recover")
    return browser


async def sent(made: World, browser: Browser, user_name: str, **headers: str) -> httpx.Response:
    """What the form of a browser is answered with, which does the rest later."""
    fields = {**form_of(browser, "user_name"), "user_name": user_name}
    return await browser.http.post(f"{made.base}/recover", content=urlencode(fields), headers={**HEADERS, **headers})


async def _bare(made: World) -> None:
    """Without the second factor."""
    stored = replace(await newcomer.credentials(made), totp_secret=None)
    await made.write(stored)


async def test_a_person_gets_a_link_opens_it_shows_the_second_factor_and_chooses_a_password() -> None:
    """D44, D45: the way there is in the sign-in page."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", name="Nina Novak", email=MAILBOX)
        visitor = await factors.at_sign_in(made)
        assert newcomer.shown(visitor).text.count('href="/recover?sign_in=') == 1
        browser = await made.browser()
        await browser.open(f"{made.base}/recover")
        await browser.fill_and_submit(user_name=" NINA ")
        await made.provider.background_tasks.settle()
        assert browser.page.heading == ASKED
        [email] = postbox.emails
        assert (email.to, email.subject) == (MAILBOX, "Choose a new password")
        assert "within 30 minutes" in email.text
        other = await newcomer.opened(made, newcomer.link_in(postbox))
        await other.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        assert await newcomer.password(other) == "Your password has been changed"
        assert "go back to it" in other.page.text


async def test_nobody_learns_from_the_answer_who_exists() -> None:
    """D47: the same bytes and headers, whoever was named."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await made.person("omar")
        await made.person("petra", email="petra@example.org")
        await made.disable("petra")
        answers = [await ask(made, name) for name in ("nina", "omar", "petra", "nobody", "no name\u200b", "x" * 5000)]
        told = {(answer.status_code, answer.content, *_headers(answer)) for answer in answers}
        assert len(told) == 1, told
        assert (answers[0].status_code, answers[0].headers["location"]) == (303, "/recover?sent=1")


def _headers(answer: httpx.Response) -> list[tuple[str, str]]:
    """Of a sealed cookie (D73) its length."""
    shown = [(name, value) for name, value in answer.headers.items() if name != "date"]
    return sorted((name, SEALED.sub(lambda found: str(len(found[1])), value)) for name, value in shown)


async def test_nothing_that_depends_on_the_account_is_done_within_the_request() -> None:
    """D47: it says the same to the database whoever is named, so the next request waits for nothing either."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await made.person("petra", email="petra@example.org")
        await made.disable("petra")
        told = []
        for number, name in enumerate(("warms up", "nina", "petra", "nobody")):
            browser = await at_the_page(made, f"192.0.2.{number}")
            with closing(ShortLived(made.directory)) as short_lived, statements(made) as heard:
                before = {entry[:2] for entry in short_lived.entries()}
                await sent(made, browser, name)
                stored = sorted(kind for kind, key, *_ in short_lived.entries() if (kind, key) not in before)
            told.append(([said.split("'")[0] for said in heard], stored))
        assert told[1] == told[2] == told[3]
        assert stored
        assert not postbox.emails
        await made.provider.background_tasks.settle()
        assert [email.to for email in postbox.emails] == [MAILBOX, "petra@example.org"]


async def _disabled(made: World) -> None:
    await made.disable("nina")


@pytest.mark.parametrize("lack", [_bare, _disabled])
async def test_who_has_only_the_mailbox_or_is_switched_off_gets_no_link(lack: Any) -> None:
    """D45: the mailbox alone would be one factor for both."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await lack(made)
        await ask(made, "nina")
        [email] = postbox.emails
        assert "/enrol/" not in email.text
        assert "ask the operator of CorpID" in email.text


async def test_a_passkey_or_a_recovery_code_is_a_second_factor_too() -> None:
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await _bare(made)
        await factors.recovery(made, NINA)
        await ask(made, "nina")
        assert newcomer.link_in(postbox)


async def test_one_account_gets_a_few_emails_while_a_link_works_and_never_waits_without_one() -> None:
    """D47: silently, since a refusal would tell that there is such an account."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        for number in range(RECOVERIES_PER_ACCOUNT + 2):
            assert (await ask(made, "nina", f"192.0.2.{number}")).status_code == 303
        assert len(postbox.emails) == RECOVERIES_PER_ACCOUNT
        made.clock.pass_(PASSWORD_LINK_SECONDS - 1)
        await ask(made, "nina")
        assert (len(postbox.emails), await _opens(made, newcomer.link_in(postbox))) == (RECOVERIES_PER_ACCOUNT, True)
        made.clock.pass_(1)
        await ask(made, "nina")
        assert len(postbox.emails) == RECOVERIES_PER_ACCOUNT + 1


async def test_a_crowd_of_requests_from_some_networks_keeps_the_email_of_nobody_else() -> None:
    """D47: what is left undone is theirs."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        for number in range(WAITING):
            stranger = networks.neighbourhood(f"2001:db8:{number // RECOVERIES_PER_ADDRESS:x}::1")
            made.provider.background_tasks.later(_nothing, place=stranger)
        await ask(made, "nina", "203.0.113.5")
        assert [email.to for email in postbox.emails] == [MAILBOX]


async def _nothing() -> None:
    pass


async def test_strangers_never_use_up_the_emails_of_a_browser_that_is_known() -> None:
    """D47: as with codes by e-mail."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        person = await made.person("nina", entity("200000009Z", "Nina's Own"), email=MAILBOX)
        own = await factors.at_sign_in(made)
        await made.factors(own, person)
        for number in range(RECOVERIES_PER_ACCOUNT + 1):
            await ask(made, "nina", f"192.0.2.{number}")
        postbox.emails.clear()
        for _ in range(RECOVERIES_PER_ACCOUNT + 1):
            await own.open(f"{made.base}/recover")
            await sent(made, own, "nina")
            await made.provider.background_tasks.settle()
        assert len(postbox.emails) == RECOVERIES_PER_ACCOUNT


async def test_one_address_asks_a_few_times_an_hour() -> None:
    """D47: whoever is named."""
    async with new_world(postbox=Postbox()) as made:
        for number in range(RECOVERIES_PER_ADDRESS):
            assert (await ask(made, f"nobody{number}")).status_code == 303
        refused = await ask(made, "nina")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) <= 3600
        assert "minutes, then try again" in refused.text
        assert (await ask(made, "nina", "192.0.2.7")).status_code == 303


async def test_somebody_else_who_asks_again_ends_nothing_that_was_begun() -> None:
    """D47: whoever has begun goes on; a link that nobody has opened gives way to the new one."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await ask(made, "nina")
        browser = await newcomer.opened(made, newcomer.link_in(postbox))
        await ask(made, "nina", "192.0.2.1")
        unopened = newcomer.link_in(postbox)
        await ask(made, "nina", "192.0.2.2")
        await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        newest = newcomer.link_in(postbox)
        assert (await _opens(made, unopened), await _opens(made, newest)) == (False, True)
        assert await newcomer.password(browser) == "Your password has been changed"
        assert not await _opens(made, newest)
        asked = await made.audit("link.password")
        assert {(entry.actor, entry.object) for entry in asked} == {("anonymous", NINA)}


async def test_guesses_at_the_code_in_sign_ins_never_shut_the_proof_in_a_recovery() -> None:
    """D45, D47: the enrolment has its own five misses."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        thief = await context(made.provider, address="198.51.100.7")
        with pytest.raises(throttle.Throttled):
            for number in range(CODE_MISSES + 2):
                async with made.provider.transient.batch(made.clock()) as batch:
                    await throttle.attempt_second_factor(thief, batch, "nina", f"b{number}", known=False)
        await ask(made, "nina")
        browser = await newcomer.opened(made, newcomer.link_in(postbox))
        await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        assert await newcomer.password(browser) == "Your password has been changed"


async def test_an_enrolment_that_was_stopped_gives_way_to_a_new_link() -> None:
    """D45"""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        await ask(made, "nina")
        first = newcomer.link_in(postbox)
        browser = await newcomer.opened(made, first)
        for _ in range(CODE_MISSES):
            await browser.fill_and_submit(code="not a code at all")
        await ask(made, "nina")
        assert (await _opens(made, first), await _opens(made, newcomer.link_in(postbox))) == (False, True)


async def _opens(made: World, url: str) -> bool:
    browser = await made.browser()
    await newcomer.followed(browser, url)
    return newcomer.status(browser) == 200


async def test_each_page_names_who_can_help_and_with_what() -> None:
    """D69: an administrator with one factor left, and only the operator with none."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        page = (await at_the_page(made)).page.text
        assert "They can unlock your account, or send a link to its e-mail address: for a new password if" in page
        assert "If you have lost both, if you are an owner of your organisation, or if nobody there can help" in page
        for purpose in ("password", "second_factor"):
            opened = await newcomer.opened(made, await newcomer.link(made, purpose))
            assert "Only the operator of CorpID can help. Ask them for a new invitation." in opened.page.text


async def test_without_mail_the_page_says_whom_to_ask(made: World) -> None:
    """D69: administrators help with e-mails only."""
    asked = (await at_the_page(made)).page
    assert asked.heading == "Ask the operator of CorpID"
    assert "The operator can also unlock your account" in asked.text
    assert "administrator" not in asked.text
    browser = await factors.at_sign_in(made)
    await follow(browser, "/recover")
    assert browser.page.heading == "Ask the operator of CorpID"
    await follow(browser, "/sign-in/")
    assert browser.page.heading == "Sign in"


async def test_the_second_step_promises_an_administrators_help_where_there_is_mail_only() -> None:
    """D69: so does the sentence for who has no second step at all."""
    for postbox in (None, Postbox()):
        async with new_world(postbox=postbox) as made:
            browser = await factors.at_sign_in(made)
            await made.password(browser, made.people["alice"])
            assert "I cannot sign in at all" in browser.page.text
            assert ("your organisation's CorpID administrator" in browser.page.text) is (postbox is not None)
            assert ("or ask the operator of CorpID. They can unlock your" in browser.page.text) is (postbox is None)
            helper = "your organisation's CorpID administrator" if postbox else "the operator of CorpID"
            assert f"Ask {helper} for a link to set one up." in no_second_factor(await context(made.provider))


async def follow(browser: Browser, start: str) -> None:
    """Press the link whose address begins so."""
    target = next(target for target, _ in browser.page.links if urlsplit(target).path.startswith(start))
    await browser.open(urljoin(browser.url, target), site="same-origin")


async def test_the_way_back_leads_to_the_pending_sign_in() -> None:
    """D44, docs/accessibility.md: in the same tab, from each page, in the language of the sign-in."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser = await factors.at_sign_in(made, await made.relying_party(ui_locales="ms"))
        where = browser.url
        await follow(browser, "/recover")
        assert 'lang="ms"' in newcomer.shown(browser).text
        await follow(browser, "/language/en")
        assert ('lang="en"' in newcomer.shown(browser).text, browser.page.heading) == (True, "Choose a new password")
        await follow(browser, "/sign-in/")
        assert (browser.url, browser.page.heading) == (where, "Sign in")
        await follow(browser, "/recover")
        await browser.fill_and_submit(user_name=" ")
        assert "Back to signing in to Relying Party 1" in browser.page.text
        await browser.fill_and_submit(user_name="nina")
        assert browser.page.heading == ASKED
        await follow(browser, "/sign-in/")
        assert (browser.url, browser.page.heading) == (where, "Sign in")


async def test_there_is_no_way_back_to_a_sign_in_that_has_ended_or_is_another_browsers() -> None:
    """D34: nor does the page say that there is such a sign-in."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        theirs = await factors.at_sign_in(made)
        named = f"{made.base}/recover?sign_in={urlsplit(theirs.url).path.rpartition('/')[2]}"
        for browser in (await made.browser(), await factors.at_sign_in(made)):
            await browser.open(named)
            assert ("/sign-in/" in newcomer.shown(browser).text, "Back to" in browser.page.text) == (False, False)
            await browser.fill_and_submit(user_name="alice")
            assert "go to the service that you want to use and sign in" in browser.page.text
        await theirs.open(named)
        assert "Back to signing in" in theirs.page.text
        made.clock.pass_(601)
        await theirs.open(named)
        assert "Back to signing in" not in theirs.page.text


async def test_no_name_is_asked_for_again_and_another_sites_or_browsers_form_is_refused() -> None:
    """D35"""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=MAILBOX)
        browser = await at_the_page(made)
        await browser.fill_and_submit(user_name="  ")
        assert (newcomer.status(browser), "Enter your user name." in browser.page.text) == (200, True)
        refused = [await sent(made, browser, "nina", **{"Sec-Fetch-Site": "cross-site"})]
        own = form_of(browser, "user_name")
        for token in ("", "x", own["form_token"]):
            other = await made.browser() if token == own["form_token"] else browser
            content = urlencode({**own, "form_token": token, "user_name": "nina"})
            refused.append(await other.http.post(f"{made.base}/recover", content=content, headers=HEADERS))
        await made.provider.background_tasks.settle()
        assert ([answer.status_code for answer in refused], postbox.emails) == ([400] * 4, [])
