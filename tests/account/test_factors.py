"""A person's own factors: what they change in the account, and that one way in always remains (D44, D45, D46)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pyotp
import pytest
from msgspec.structs import replace

from corpid.jose.encoding import base64url
from corpid.rules.authentication.records import Credentials
from corpid.rules.limits import PASSKEYS_PER_PERSON
from tests.account.scene import account, at_account, go, hidden, send, sessions
from tests.authenticator import Authenticator
from tests.enrolment import newcomer
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, CODES, change, options_of, passkey, recovery
from tests.sign_in.world import BASE, World, new_world

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

NEW_PASSWORD = "seven grey herons wading"
ONLY_WAY = "This passkey is your only way to sign in."


async def reachable(made: World) -> None:
    """Give Alice an address."""
    user = await made.provider.registry.directory.user(ALICE)
    await made.write(replace(user, email="alice@example.com", language="ms"))


async def credentials(made: World) -> Credentials:
    stored: Credentials = await made.provider.registry.factors.credentials(ALICE)
    return stored


async def keys(made: World) -> list[Any]:
    found: list[Any] = await made.provider.registry.factors.passkeys(ALICE)
    return found


def page_of(browser: Browser, name: str) -> str:
    """The page of the passkey with this name, of those that are listed."""
    return next(target for target, text in browser.page.links if text == name).removeprefix("/account/")


def told(postbox: Postbox) -> list[str]:
    return [email.subject for email in postbox.emails]


async def test_a_new_password_signs_in_and_ends_every_other_session() -> None:
    """D44: the person is told by e-mail, in their language; this browser stays."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        other, browser = await at_account(made), await at_account(made, "password")
        await browser.fill_and_submit(password=NEW_PASSWORD)
        assert browser.page.heading == "Your account"
        assert "Your password has been changed." in browser.page.text
        assert await go(made, other) == "Sign in"
        assert await made.passwords.verify((await credentials(made)).password_hash, NEW_PASSWORD)
        assert told(postbox)[-1] == "Your password was changed"
        assert postbox.emails[-1].language == "ms"
        assert account(made) in postbox.emails[-1].text
        assert [entry.object for entry in await made.audit("factors.password")] == [ALICE]


@pytest.mark.parametrize(
    ("password", "sentence"),
    [("short", "at least 12"), ("alice alice alice", "too close to your user name"), ("", "at least 12")],
)
async def test_a_password_that_nobody_may_have_is_refused_calmly(made: World, password: str, sentence: str) -> None:
    """D44."""
    browser = await at_account(made, "password")
    before = await credentials(made)
    await browser.fill_and_submit(password=password)
    assert browser.response is not None
    assert browser.response.status_code == 200
    assert sentence in browser.page.text
    assert await credentials(made) == before


async def test_an_app_is_set_up_anew_by_its_first_code() -> None:
    """D45: the code was used up by it, the app before no longer works, and the same key is never offered again."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        browser = await at_account(made, "app")
        found = re.search(r'<code class="key" dir="ltr">([A-Z2-7 ]+)</code>', browser.response.text)  # type: ignore[union-attr]
        assert found is not None
        secret = found[1].replace(" ", "")
        await browser.fill_and_submit(code="000000")
        assert "This code is not right." in browser.page.text
        await browser.fill_and_submit(code=pyotp.TOTP(secret).at(int(made.clock())))
        assert browser.page.heading == "Your account"
        stored = await credentials(made)
        assert stored.totp_secret == secret
        assert stored.totp_last_step == int(made.clock()) // 30
        await go(made, browser, "app")
        assert found[1] not in browser.page.text
        assert told(postbox)[-1] == "Your authenticator app was changed"


async def test_a_first_app_is_told_as_one_and_never_as_the_end_of_another() -> None:
    """D45: who has signed in with a passkey so far."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        key = await passkey(made)
        await change(made, after=replace(await credentials(made), totp_secret=None))
        browser = await at_account(made, "app", key=key)
        await browser.fill_and_submit(code=pyotp.TOTP(newcomer.secret(browser)).at(int(made.clock())))
        email = postbox.emails[-1]
        assert email.subject == "An authenticator app was added"
        assert "The old one" not in email.text


async def test_new_recovery_codes_replace_those_before_once_they_are_kept() -> None:
    """D45: each set is offered once, and sent twice it is written once."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        await recovery(made)
        other, browser = await at_account(made), await at_account(made, "codes")
        shown = re.findall(r"<li><code>([a-z0-9-]+)</code>", browser.response.text)  # type: ignore[union-attr]
        assert len(set(shown)) == 10
        assert "Your old recovery codes stop working when you select Finish" in browser.page.text
        await browser.submit(next(form for form in browser.page.forms if "kept" in form.names()))
        assert "Save your codes first" in browser.page.text
        assert shown[0] in browser.page.text
        assert await made.provider.registry.factors.recovery_codes_left(ALICE) == len(CODES)
        form = hidden(browser)
        await browser.fill_and_submit(kept="yes")
        assert "10 codes left" in browser.page.text
        answer = await send(made, browser, "codes", **form, kept="yes")
        assert answer.headers["location"] == "/account"
        assert len(await made.audit("factors.recovery_codes")) == 1
        assert told(postbox)[-1] == "You have new recovery codes"
        assert await go(made, other) == "Sign in"
        await go(made, browser, "codes")
        assert shown[0] not in browser.page.text


async def test_a_passkey_is_added_renamed_and_removed() -> None:
    """D46: it signs in from then on, and no longer."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        browser, key = await at_account(made, "new-passkey"), Authenticator(user_handle=ALICE.encode())
        await browser.fill_and_submit(passkey=key.make(options_of(browser), BASE))
        assert browser.page.heading == "Your passkeys"
        assert "Firefox on Linux, 2027-01-15" in browser.page.text
        signed_in = await at_account(made, key=key)
        assert signed_in.page.heading == "Your account"
        await browser.open(account(made, page_of(browser, "Firefox on Linux, 2027-01-15")))
        await browser.fill_and_submit(name="  My   key ")
        assert "My key" in browser.page.text
        assert [entry.object for entry in await made.audit("factors.rename_passkey")] == [ALICE]
        await browser.open(account(made, page_of(browser, "My key")))
        await browser.submit(next(f for f in browser.page.forms if any(b.value == "remove" for b in f.buttons)))
        assert browser.page.heading == "Your passkeys"
        assert await keys(made) == []
        assert await go(made, signed_in) == "Sign in"
        assert told(postbox)[:1] + told(postbox)[-1:] == ["A passkey was added", "A passkey was removed"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        *((name, "Enter a name of at most 60 characters.") for name in ("", "   ", "x" * 61)),
        ("a\x07b", "Remove the invisible character U+0007."),
        ("a\u202eb", "Remove the invisible character U+202E (right-to-left override)."),
        ("a\u200bb", "Remove the invisible character U+200B (zero width space)."),
    ],
)
async def test_a_passkey_gets_no_name_that_cannot_be_read(made: World, name: str, sentence: str) -> None:
    """D74."""
    await passkey(made)
    browser = await at_account(made, "passkeys")
    await browser.open(account(made, page_of(browser, "A key")))
    await browser.fill_and_submit(name=name)
    assert sentence in browser.page.text
    assert [each.name for each in await keys(made)] == ["A key"]


async def test_a_name_is_kept_in_its_one_form(made: World) -> None:
    """D51: NFC; sixty characters are counted in it."""
    await passkey(made)
    browser = await at_account(made, "passkeys")
    await browser.open(account(made, page_of(browser, "A key")))
    await browser.fill_and_submit(name="e\u0301" * 60)
    assert [each.name for each in await keys(made)] == ["\u00e9" * 60]


async def test_a_browser_that_names_no_device_gives_a_passkey_the_name_of_the_provider(made: World) -> None:
    """D51: a name that is kept is in no language."""
    browser, key = await at_account(made, "new-passkey", agent="curl/8"), Authenticator(user_handle=ALICE.encode())
    await browser.fill_and_submit(passkey=key.make(options_of(browser), BASE))
    assert [each.name for each in await keys(made)] == ["CorpID, 2027-01-15"]


async def test_there_are_as_many_passkeys_as_anybody_needs_and_no_more(made: World) -> None:
    """The page says so; of two that would be the last one, made at once, one is kept."""
    for _ in range(PASSKEYS_PER_PERSON - 1):
        await passkey(made)
    browsers = [await at_account(made, "new-passkey") for _ in range(2)]
    sent = []
    for browser in browsers:
        key = Authenticator(user_handle=ALICE.encode())
        answer = key.make(options_of(browser), BASE)
        sent.append(send(made, browser, "new-passkey", **hidden(browser), passkey=answer))
    await asyncio.gather(*sent)
    assert len(await keys(made)) == PASSKEYS_PER_PERSON
    assert await go(made, browsers[0], "passkeys") == "Your passkeys"
    assert "You have 20 passkeys, which is the maximum." in browsers[0].page.text
    assert "Add a passkey" not in browsers[0].page.text
    assert await go(made, await at_account(made), "new-passkey") == "Your passkeys"


async def only_passkeys(made: World, number: int) -> list[Authenticator]:
    """Alice has these passkeys, and neither password nor app."""
    made_keys = [await passkey(made) for _ in range(number)]
    await change(made, after=Credentials(user_id=ALICE))
    return made_keys


async def test_the_last_way_in_is_not_removed(made: World) -> None:
    """D46: a password alone, or recovery codes beside it, which run out, are no way that lasts."""
    (key,) = await only_passkeys(made, 1)
    password_hash = await made.passwords.hash(NEW_PASSWORD)
    for after in (Credentials(user_id=ALICE), Credentials(user_id=ALICE, password_hash=password_hash)):
        await change(made, after=after)
        await recovery(made)
        browser = await at_account(made, "passkeys", key=key)
        await browser.open(account(made, page_of(browser, "A key")))
        await browser.submit(next(f for f in browser.page.forms if any(b.value == "remove" for b in f.buttons)))
        assert ONLY_WAY in browser.page.text
        assert len(await keys(made)) == 1


async def test_of_the_last_two_passkeys_removed_at_once_one_remains(made: World) -> None:
    """D46: the rule is kept where the change is written."""
    both = await only_passkeys(made, 2)
    browsers = [await at_account(made, "passkeys", key=key) for key in both]
    pages = [each for each, text in browsers[0].page.links if text == "A key"]
    sent = []
    for browser, page in zip(browsers, pages, strict=True):
        await browser.open(f"{made.base}{page}")
        form = hidden(browser)
        sent.append(send(made, browser, page.removeprefix("/account/"), **form, decision="remove"))
    await asyncio.gather(*sent)
    assert len(await keys(made)) == 1


async def test_somebody_elses_passkey_can_be_neither_seen_nor_changed(made: World) -> None:
    """SECURITY.md: every write asks whose it is."""
    await made.person("bob")
    await passkey(made)
    alice = await at_account(made, "passkeys")
    page = page_of(alice, "A key")
    bob = await at_account(made, "passkeys", who="bob")
    form = hidden(await with_form(made, bob))
    assert (await bob.http.get(account(made, page))).status_code == 404
    for decision in ("rename", "remove"):
        assert (await send(made, bob, page, **form, decision=decision, name="Mine")).status_code == 404
    assert [each.name for each in await keys(made)] == ["A key"]


async def with_form(made: World, browser: Browser) -> Browser:
    """The browser at a page of the account that has a form."""
    await go(made, browser, "language")
    return browser


async def test_a_form_of_another_session_or_site_changes_nothing(made: World) -> None:
    """D35: the token is bound to browser and session; a POST has to come from our own pages."""
    await made.person("bob")
    browser, bob = await at_account(made, "password"), await at_account(made, "password", who="bob")
    own, foreign, before = hidden(browser), hidden(bob), await credentials(made)
    for form in (foreign, {}, {"form_token": ""}):
        answer = await send(made, browser, "password", **form, password=NEW_PASSWORD)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account/password")
    for site in ("cross-site", "same-site", "none", None):
        answer = await send(made, browser, "password", site=site, **own, password=NEW_PASSWORD)
        assert answer.status_code == 400
    made.clock.pass_(60)
    await browser.open(f"{made.base}/sign-out")
    await browser.submit(browser.page.forms[0])
    await browser.open(account(made))
    await made.factors(browser, made.people["alice"])
    answer = await send(made, browser, "password", **own, password=NEW_PASSWORD)
    assert answer.status_code == 303
    assert await credentials(made) == replace(before, totp_last_step=(await credentials(made)).totp_last_step)


async def test_a_passkey_made_for_another_session_is_refused(made: World) -> None:
    """D46: a challenge is good in one session, once."""
    await made.person("bob")
    browser, bob = await at_account(made, "new-passkey"), await at_account(made, "new-passkey", who="bob")
    key = Authenticator(user_handle=ALICE.encode())
    answer = key.make(options_of(bob), BASE)
    await browser.fill_and_submit(passkey=answer)
    assert "The passkey could not be set up." in browser.page.text
    made_here = key.make(options_of(browser), BASE)
    form = hidden(browser)
    for _ in range(2):
        await send(made, browser, "new-passkey", **form, passkey=made_here)
    assert [each.credential_id for each in await keys(made)] == [base64url(key.credential_id)]


async def test_two_changes_at_once_are_one_after_the_other_or_one_is_refused(made: World) -> None:
    """The change is conditional on the credentials as they were looked at."""
    browser = await at_account(made, "password")
    form = hidden(browser)
    wanted = [f"{NEW_PASSWORD} {number}" for number in range(3)]
    answers = await asyncio.gather(*(send(made, browser, "password", **form, password=password) for password in wanted))
    assert {answer.status_code for answer in answers} == {303}
    stored = (await credentials(made)).password_hash
    assert sum([await made.passwords.verify(stored, password) for password in wanted]) == 1
    assert len(await sessions(made)) == 1
