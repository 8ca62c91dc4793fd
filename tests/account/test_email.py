"""A person's e-mail address: prove a new one, wait 72 hours, undo (D61)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from msgspec.structs import replace

from corpid.flows.account import own_email
from corpid.flows.directory.people import load_person
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication.records import Credentials, EmailChange
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Change, SignOut, User
from corpid.rules.limits import (
    CODE_MISSES,
    EMAIL_CODES_PER_ADDRESS,
    EMAIL_CODES_PER_PERSON,
    EMAIL_UNDO_SECONDS,
    MAILED_CODE_SECONDS,
)
from tests.account.scene import at_account, go, hidden, rejected, send, sessions
from tests.enrolment.newcomer import GONE, followed, link_in, new_link
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE
from tests.sign_in.world import PASSWORD, World, entity, new_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from corpid_dev.relying_party.browser import Browser

OLD: Final = "alice@old.example"
NEW: Final = "alice.tan@new.example"
ASK: Final = "Your e-mail address"
PROVE: Final = "Confirm your new e-mail address"
WAITING: Final = "Your e-mail address is about to change"
UNDO: Final = "Stop the change of your e-mail address?"
STAYS: Final = "Your e-mail address stays the same"
CHANGED: Final = "Your e-mail address was changed"


@asynccontextmanager
async def mailed_world(**options: Any) -> AsyncIterator[tuple[World, Postbox]]:
    """A world with a postbox, in which Alice has an address."""
    postbox = Postbox()
    async with new_world(postbox=postbox, **{"entities": 1, **options}) as made:
        await made.write(replace(await alice(made), email=OLD, language="ms"))
        yield made, postbox


async def alice(made: World) -> User:
    user: User | None = await made.provider.registry.directory.user(ALICE)
    assert user is not None
    return user


async def waiting(made: World) -> EmailChange | None:
    found: EmailChange | None = await made.provider.registry.email_changes.find(ALICE)
    return found


async def asked(made: World, email: str = NEW) -> Browser:
    """A browser in which the code for a new address is asked for."""
    browser = await at_account(made, "email")
    assert browser.page.heading == ASK
    await submit(browser, email=email)
    assert browser.page.heading == PROVE, browser.page.text
    return browser


async def submit(browser: Browser, **fields: str) -> None:
    """Send the form with these fields, by its first button."""
    form = browser.page.form_with(*fields)
    assert form is not None, browser.page.text
    for name, value in fields.items():
        form.fill(name, value)
    await browser.submit(form)


async def press(browser: Browser, decision: str) -> None:
    form = next(each for each in browser.page.forms if decision in {one.value for one in each.buttons})
    await browser.submit(form, button=decision)


async def proven(made: World, postbox: Postbox, email: str = NEW) -> Browser:
    """A browser in which a new address was proven."""
    browser = await asked(made, email)
    await submit(browser, code=postbox.code())
    assert "Your new e-mail address is confirmed." in browser.page.text
    return browser


def undo_link(postbox: Postbox) -> str:
    """The link of the e-mail to the old address."""
    return link_in(postbox)


async def later(made: World, seconds: float = EMAIL_UNDO_SECONDS) -> None:
    """Let time pass, and the background task run."""
    made.clock.pass_(seconds)
    await own_email.finish_due(made.provider, now=made.clock())


async def undone(made: World, url: str) -> Browser:
    """Another browser, without a sign-in, that follows the link and presses its button."""
    browser = await made.browser("203.0.113.9")
    await followed(browser, url)
    assert browser.page.heading == UNDO
    await browser.submit(browser.page.forms[0])
    return browser


async def test_a_proven_address_takes_effect_after_72_hours_and_both_are_told() -> None:
    """D61: in the person's language; the audit has the addresses as erasable details."""
    async with mailed_world() as (made, postbox):
        browser = await proven(made, postbox)
        assert f"Changes to {NEW}" in browser.page.text
        assert (await alice(made)).email == OLD
        email = postbox.emails[-1]
        assert (email.to, email.language) == (OLD, "ms")
        assert NEW not in email.text
        assert "a•••@new.example" in email.text
        await later(made, EMAIL_UNDO_SECONDS - 1)
        assert (await alice(made)).email == OLD
        await later(made, 1)
        assert (await alice(made)).email == NEW
        assert await waiting(made) is None
        assert [(each.to, each.subject) for each in postbox.emails[-2:]] == [(NEW, CHANGED), (OLD, CHANGED)]
        assert NEW not in postbox.emails[-1].text
        [entry] = await made.audit("user.change_email")
        assert (entry.actor, entry.object, entry.outcome) == (f"user:{ALICE}", ALICE, "ok")
        assert (entry.before["email"], entry.after["email"]) == (OLD, NEW)
        [proof] = await made.audit("user.prove_email")
        assert proof.detail["effective_at"]
        await later(made)
        assert len(await made.audit("user.change_email")) == 1


async def test_the_code_alone_proves_an_address() -> None:
    """D45, D61: neither a wrong code, nor one for another address, nor one that was used; five wrong ones end it."""
    async with mailed_world() as (made, postbox):
        browser = await asked(made)
        assert (postbox.emails[-1].to, postbox.emails[-1].language) == (NEW, "ms")
        first = postbox.code()
        await press(browser, "other")
        await submit(browser, email="else@new.example")
        for _ in range(CODE_MISSES - 1):
            await submit(browser, code=first)
            assert "This code is not right." in browser.page.text
        await submit(browser, code=first)
        assert "Too many wrong codes." in browser.page.text
        assert browser.page.heading == ASK
        assert await waiting(made) is None
        assert (await alice(made)).email == OLD


async def test_a_code_ends_with_its_time_and_a_new_one_ends_the_earlier() -> None:
    """D45."""
    async with mailed_world() as (made, postbox):
        browser = await asked(made)
        earlier = postbox.code()
        await press(browser, "again")
        assert postbox.code() != earlier
        await submit(browser, code=earlier)
        assert "This code is not right." in browser.page.text
        form = hidden(browser)
        made.clock.pass_(MAILED_CODE_SECONDS - 60)
        await send(made, browser, "extend/email", **form)
        made.clock.pass_(61)
        answer = await send(made, browser, "email", decision="code", code=postbox.code(), **form)
        assert "This code no longer works." in (await rejected(browser, answer)).text
        assert await waiting(made) is None


@pytest.mark.parametrize(
    ("email", "sentence"),
    [
        ("", "Enter your new e-mail address."),
        ("alice", "Enter an e-mail address such as"),
        ("a@b.example\r\nBcc: c@d.example", "Remove the invisible character U+000D."),
        (f" {OLD.upper()} ", "This is already your e-mail address."),
    ],
)
async def test_what_cannot_be_a_new_address_is_refused(email: str, sentence: str) -> None:
    """RFC 5321 §4.1.2: nothing is sent."""
    async with mailed_world() as (made, postbox):
        browser = await at_account(made, "email")
        sent = len(postbox.emails)
        answer = await send(made, browser, "email", decision="send", email=email, **hidden(browser))
        assert sentence in (await rejected(browser, answer)).text
        assert len(postbox.emails) == sent


async def test_a_sign_in_of_these_minutes_is_needed() -> None:
    """D45: a stolen session that is older changes nothing, nor does one that has ended."""
    async with mailed_world() as (made, postbox):
        browser = await at_account(made)
        made.clock.pass_(360)
        assert await go(made, browser, "email") == "Confirm it is you, Alice Tan"
        thief = await asked(made)
        form, code = hidden(thief), postbox.code()
        await made.provider.registry.directory.write([SignOut(ALICE)])
        answer = await send(made, thief, "email", decision="code", code=code, **form)
        assert answer.status_code == 303
        assert await waiting(made) is None


async def test_proving_ends_the_other_sessions_of_the_person() -> None:
    """D30: whoever else is signed in has to show the factors again."""
    async with mailed_world() as (made, postbox):
        other = await at_account(made)
        browser = await proven(made, postbox)
        assert await go(made, other) == "Sign in"
        assert await go(made, browser) == "Your account"
        assert len(await sessions(made)) == 1


async def test_looking_at_the_link_undoes_nothing_and_its_button_does_once() -> None:
    """D34, D61: programs that check e-mail look; the button needs no sign-in and ends every session and link."""
    async with mailed_world() as (made, postbox):
        browser = await proven(made, postbox)
        url, operators = undo_link(postbox), (await new_link(made, "password", ALICE)).url
        scanner = await made.browser("198.51.100.7")
        for _ in range(2):
            await followed(scanner, url)
            assert scanner.page.heading == UNDO
            assert NEW not in scanner.page.text
        assert await waiting(made) is not None
        at = await undone(made, url)
        assert at.page.heading == STAYS
        assert "Choose a new password" in at.page.text
        assert await waiting(made) is None
        assert await sessions(made) == []
        assert await go(made, browser) == "Sign in"
        [entry] = await made.audit("user.undo_email")
        assert (entry.actor, entry.object, entry.detail["way"]) == (f"user:{ALICE}", ALICE, "link")
        assert [(each.to, each.subject) for each in postbox.emails[-2:]] == [(OLD, STAYS), (NEW, STAYS)]
        for gone in (url, operators):
            visitor = await made.browser()
            await followed(visitor, gone)
            assert "does not work" in visitor.page.text or visitor.page.heading == GONE
        await scanner.submit(scanner.page.forms[0])
        assert scanner.page.heading == GONE
        await at.open(at.url)
        assert at.page.heading == STAYS
        await later(made)
        assert (await alice(made)).email == OLD
        assert len(await made.audit("user.undo_email")) == 1


async def test_a_forged_form_undoes_nothing() -> None:
    """D35: of another browser, or from another site."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        victim, other = await made.browser(), await made.browser()
        for each in (victim, other):
            await followed(each, undo_link(postbox))
        path, token = victim.url.removeprefix(made.base), hidden(other)["form_token"]
        for site, sent in (("cross-site", hidden(victim)["form_token"]), ("same-origin", token)):
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": site}
            answer = await victim.http.post(f"{made.base}{path}", content=f"form_token={sent}", headers=headers)
            assert answer.status_code >= 400
        assert await waiting(made) is not None


async def test_after_72_hours_the_link_undoes_nothing() -> None:
    """D61: also if the background task is late."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        made.clock.pass_(EMAIL_UNDO_SECONDS)
        visitor = await made.browser()
        await followed(visitor, undo_link(postbox))
        assert visitor.page.heading == GONE
        await later(made, 0)
        assert (await alice(made)).email == NEW


async def test_recovery_and_notices_go_to_the_old_address_meanwhile() -> None:
    """D44, D61: a thief of a session and a second factor gets no link; nor does a new password wait for one."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        postbox.emails.clear()
        visitor = await made.browser()
        await visitor.open(f"{made.base}/recover")
        await visitor.fill_and_submit(user_name="alice")
        await made.provider.background_tasks.settle()
        await at_account(made)
        assert {each.to for each in postbox.emails} == {OLD}
        await later(made)
        postbox.emails.clear()
        made.clock.pass_(3600)
        await visitor.open(f"{made.base}/recover")
        await visitor.fill_and_submit(user_name="alice")
        await made.provider.background_tasks.settle()
        assert {each.to for each in postbox.emails} == {NEW}


async def test_codes_by_e_mail_go_to_the_old_address_meanwhile() -> None:
    """D45, D61: a thief who knows the password cannot sign in with the new mailbox."""
    async with mailed_world(email_codes=True) as (made, postbox):
        await proven(made, postbox)
        await made.write(Credentials(user_id=ALICE, password_hash=await made.passwords.hash(PASSWORD)))
        made.clock.pass_(60)
        thief = await made.browser()
        await thief.open(f"{made.base}/account", site="none")
        await made.password(thief, made.people["alice"])
        assert "a•••@old.example" in thief.page.text
        await press(thief, "email")
        assert postbox.emails[-1].to == OLD


@pytest.mark.parametrize("who", ["operator", "link"])
async def test_a_new_factor_by_an_operator_or_a_link_ends_a_waiting_change(who: str) -> None:
    """D61: perhaps the answer to a theft, and then the new address is the thief's."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        if who == "operator":
            await made.provider.registry.directory.write([SignOut(ALICE)])
        else:
            url = (await new_link(made, "password", ALICE)).url
            browser = await made.browser()
            await followed(browser, url)
            await browser.submit(browser.page.forms[0])
            made.clock.pass_(60)
            await made.code(browser, made.people["alice"])
            await browser.fill_and_submit(password="seven grey herons wading")
        assert await waiting(made) is None
        await later(made)
        assert (await alice(made)).email == OLD


async def test_the_address_of_a_person_who_is_disabled_stays() -> None:
    """D50: also if nothing else ended the change; the audit says that it was dropped."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        await made.disable("alice")
        visitor = await made.browser()
        await followed(visitor, undo_link(postbox))
        assert visitor.page.heading == GONE
        sent = len(postbox.emails)
        await later(made)
        assert (await alice(made)).email == OLD
        assert len(postbox.emails) == sent
        assert [entry.outcome for entry in await made.audit("user.change_email")] == ["refused"]


async def test_a_change_by_somebody_else_wins() -> None:
    """D65: a file or an operator wrote another address meanwhile; the link then has nothing to undo."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        await made.write(replace(await alice(made), email="alice@payroll.example"))
        assert await waiting(made) is None
        visitor = await made.browser()
        await followed(visitor, undo_link(postbox))
        assert visitor.page.heading == GONE
        await later(made)
        assert (await alice(made)).email == "alice@payroll.example"
        await proven(made, postbox)
        assert (await waiting(made) or pytest.fail("nothing waits")).old_email == "alice@payroll.example"


async def test_the_page_says_that_the_address_comes_from_a_file_which_then_leaves_it_alone() -> None:
    """D65: the person's change is theirs, as their language is."""
    async with mailed_world() as (made, postbox):
        registry = made.provider.registry
        event = AuditEvent(actor="file:hr.yaml", action=AuditAction.USER_UPDATE)
        user = replace(await alice(made), email="alice@hr.example")
        await registry.directory.write([Change(None, user, event)])
        browser = await at_account(made, "email")
        assert "comes from a list that the operator of CorpID keeps" in browser.page.text
        await proven(made, postbox)
        await later(made)
        found = (await registry.directory.sourced(User, [user.key]))[user.key]
        assert found.sources.source_of("email") == f"user:{ALICE}"
        browser = await at_account(made, "email")
        assert "comes from a list" not in browser.page.text


async def test_an_operator_sees_what_waits() -> None:
    """`corpid user show`, D61."""
    async with mailed_world() as (made, postbox):
        await proven(made, postbox)
        found = await load_person(
            made.provider.registry, CommandLine(by="lee@node1"), "alice", limit=5, now=made.clock()
        )
        assert found.email_change is not None
        assert (found.user.email, found.email_change.new_email) == (OLD, NEW)


async def test_another_change_needs_the_first_one_undone_and_the_old_address_is_told_of_each() -> None:
    """D61: a thief who changes twice does not get rid of the old address; the first link is of no use any more."""
    async with mailed_world() as (made, postbox):
        browser = await proven(made, postbox)
        first = undo_link(postbox)
        made.clock.pass_(60)
        browser = await at_account(made, "email")
        assert browser.page.heading == WAITING
        answer = await send(made, browser, "email", decision="send", email="x@y.example", **hidden(browser))
        assert answer.status_code == 303
        await press(browser, "keep")
        assert f"{STAYS}." in browser.page.text
        assert await waiting(made) is None
        await proven(made, postbox, "third@new.example")
        assert postbox.emails[-1].to == OLD
        visitor = await made.browser()
        await followed(visitor, first)
        assert visitor.page.heading == GONE
        assert await waiting(made) is not None
        at = await undone(made, undo_link(postbox))
        assert at.page.heading == STAYS


async def test_of_two_changes_at_the_same_moment_one_is_stored() -> None:
    """docs/architecture.md, "One-time use": from one browser twice, and from two."""
    async with mailed_world() as (made, postbox):
        browser = await asked(made)
        form, code = hidden(browser), postbox.code()
        answers = await asyncio.gather(
            *(send(made, browser, "email", decision="code", code=code, **form) for _ in range(3))
        )
        assert {each.status_code for each in answers} == {303}
        assert len(await made.audit("user.prove_email")) == 1
        stored = await waiting(made)
        assert stored is not None
        registry = made.provider.registry
        [session] = await sessions(made)
        event = (await registry.audit.entries(limit=1))[0]
        other = replace(stored, link_hash="other", new_email="other@new.example")
        assert not await registry.email_changes.begin(other, event, session_id=session.session_id)
        done = await asyncio.gather(
            registry.email_changes.undo(stored, event), registry.email_changes.finish(stored, event)
        )
        assert tuple(done) in {(True, "gone"), (False, "changed")}


async def test_codes_are_limited_for_a_person_and_for_an_address_each_day() -> None:
    """D47: nobody's mailbox is filled by way of the account."""
    async with mailed_world() as (made, postbox):
        for number in range(EMAIL_CODES_PER_PERSON):
            await asked(made, f"n{number}@new.example")
        browser = await at_account(made, "email")
        sent = len(postbox.emails)
        await submit(browser, email=NEW)
        assert "We have sent you too many codes." in browser.page.text
        assert len(postbox.emails) == sent
        for number in range(EMAIL_CODES_PER_ADDRESS + 1):
            made.clock.pass_(600)
            await made.person(f"p{number}", entity("200000001A", "Acme Pte. Ltd."), name="Pat Ng")
            other = await at_account(made, "email", who=f"p{number}")
            await submit(other, email=NEW.upper() if number % 2 else NEW)
        assert "We have sent too many codes to this address." in other.page.text
        assert [each.to.lower() for each in postbox.emails].count(NEW) == EMAIL_CODES_PER_ADDRESS


async def test_that_another_account_has_the_address_makes_no_difference() -> None:
    """D44: the page says nothing about who has an account."""
    async with mailed_world() as (made, postbox):
        await made.person("bob", entity("200000001A", "Acme Pte. Ltd."), name="Bob Lim", email=NEW)
        await proven(made, postbox)
        await later(made)
        bob = await made.provider.registry.directory.user("id-bob")
        assert bob is not None
        assert (bob.email, (await alice(made)).email) == (NEW, NEW)


async def test_a_first_address_waits_as_well() -> None:
    """D61: there is nobody to tell, and no recovery to it meanwhile."""
    async with mailed_world() as (made, postbox):
        await made.write(replace(await alice(made), email=""))
        await proven(made, postbox)
        postbox.emails.clear()
        visitor = await made.browser()
        await visitor.open(f"{made.base}/recover")
        await visitor.fill_and_submit(user_name="alice")
        await made.provider.background_tasks.settle()
        assert postbox.emails == []
        browser = await at_account(made, "email")
        assert "Until then, you get no e-mails." in browser.page.text
        await later(made)
        assert [each.to for each in postbox.emails] == [NEW]


async def test_without_mail_the_page_says_whom_to_ask() -> None:
    async with new_world(entities=1) as made:
        browser = await at_account(made, "email")
        assert "no e-mails are sent" in browser.page.text
        answer = await send(made, browser, "email", decision="send", email=NEW, **await _form(made, browser))
        assert answer.status_code == 303
        assert await waiting(made) is None


async def _form(made: World, browser: Browser) -> dict[str, str]:
    await go(made, browser, "language")
    return hidden(browser)
