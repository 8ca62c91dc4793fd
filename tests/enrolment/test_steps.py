"""Setting up one's sign-in, step by step, to the end (D44, D45, D46)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import segno

from corpid.rules.authentication import records, totp
from corpid.rules.authentication.records import Session
from corpid_dev.relying_party.people import Person
from tests.enrolment import newcomer
from tests.enrolment.newcomer import NEW, NINA, SET_UP
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.world import PASSWORD, SECRET, World, new_world


async def test_an_invitation_says_what_it_is_for_and_whose_it_is_and_spends_nothing(made: World) -> None:
    """docs/accessibility.md: mail programs look, too."""
    await newcomer.nina(made)
    url = await newcomer.link(made)
    for _ in range(3):
        browser = await made.browser()
        await newcomer.followed(browser, url)
        assert browser.page.heading == "Set up your sign-in"
        assert "Nina Novak" in browser.page.text
        assert "nina" in browser.page.text
        assert "CorpID" in browser.page.text
        assert "This takes 1 step with a passkey, or 3 with a password." in browser.page.text
    await browser.submit(browser.page.forms[0])
    assert browser.page.heading == "Choose how you sign in"
    assert urlsplit(url).fragment not in browser.url


async def test_a_newcomer_chooses_a_password_sets_up_an_app_keeps_codes_and_signs_in() -> None:
    """D44, D45: everything is written at the end, and nothing before."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await newcomer.nina(made)
        browser = await newcomer.opened(made, await newcomer.link(made))
        assert "Step " not in browser.page.text
        assert await newcomer.password(browser) == "Set up your second step"
        assert "Step 2 of 3" in browser.page.text
        key = await newcomer.app(made, browser)
        assert browser.page.heading == "Save your recovery codes"
        shown = newcomer.codes(browser)
        assert len(set(shown)) == records.RECOVERY_CODES
        assert (await newcomer.credentials(made)).password_hash is None
        assert not postbox.emails
        assert await newcomer.kept(browser) == SET_UP
        [email] = postbox.emails
        assert (email.to, email.subject) == (newcomer.MAILBOX, "Your sign-in is set up")
        assert [entry.actor for entry in await made.audit("factors.invitation")] == [f"user:{NINA}"]
        assert await made.provider.registry.factors.recovery_codes_left(NINA) == records.RECOVERY_CODES
        made.clock.pass_(60)
        person = Person(user_name="nina", password=NEW, totp_secret=key)
        visitor = await factors.at_sign_in(made)
        await made.factors(visitor, person)
        assert visitor.left is not None or visitor.page.heading.startswith("Do you agree"), visitor.page.heading


async def test_the_code_that_set_up_the_app_cannot_sign_in(made: World) -> None:
    """D45: a step works once, here or there."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    key = await newcomer.app(made, browser)
    await newcomer.kept(browser)
    visitor = await factors.at_sign_in(made)
    await visitor.fill_and_submit(user_name="nina", password=NEW)
    await visitor.fill_and_submit(code=totp.code_at(key, made.clock()))
    assert "This code is not right" in visitor.page.text


async def test_a_newcomer_who_makes_a_passkey_is_done_and_signs_in_with_it(made: World) -> None:
    """D46: it counts as both factors, so there is nothing else to set up."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    key = newcomer.new_key()
    await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, key))
    assert browser.page.heading == SET_UP
    [stored] = await made.provider.registry.factors.passkeys(NINA)
    assert stored.created_at == int(made.clock())
    assert await made.provider.registry.factors.recovery_codes_left(NINA) == 0
    visitor = await factors.at_sign_in(made)
    await visitor.fill_and_submit(passkey=factors.answer_of(made, visitor, key))
    assert visitor.page.heading != "Sign in"


async def test_a_passkey_beside_a_password_comes_with_recovery_codes(made: World) -> None:
    """D45, D46: they stand beside the password."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    key = newcomer.new_key()
    await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, key))
    assert browser.page.heading == "Save your recovery codes"
    assert await newcomer.kept(browser) == SET_UP
    assert (await newcomer.credentials(made)).totp_secret is None
    visitor = await factors.at_sign_in(made)
    await visitor.fill_and_submit(user_name="nina", password=NEW)
    assert visitor.page.heading == "Sign in with your passkey"
    await visitor.fill_and_submit(passkey=factors.answer_of(made, visitor, key))
    assert len(await made.audit("sign_in.complete")) == 1
    assert await made.provider.registry.factors.recovery_codes_left(NINA) == records.RECOVERY_CODES


async def test_a_forgotten_password_needs_the_second_factor_and_ends_every_session() -> None:
    """D44, D45: and other factors stay as they are."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        await factors.recovery(made, NINA)
        session = Session(
            session_id="s",
            user_id=NINA,
            browser_id="b",
            auth_time=1,
            amr=(),
            level=2,
            expires_at=int(made.clock()) + 99,
        )
        await made.provider.registry.sessions.put(session)
        browser = await newcomer.opened(made, await newcomer.link(made, "password"))
        assert (browser.page.heading, "Step 1 of 2" in browser.page.text) == ("Confirm it is you", True)
        await browser.fill_and_submit(code=totp.code_at(SECRET, made.clock()))
        assert browser.page.heading == "Choose a new password"
        assert await made.provider.registry.sessions.list_for_user(NINA, now=made.clock()) == [session]
        assert await newcomer.password(browser) == "Your password has been changed"
        assert await made.provider.registry.sessions.list_for_user(NINA, now=made.clock()) == []
        stored = await newcomer.credentials(made)
        assert stored.totp_secret == SECRET
        assert await made.passwords.verify(stored.password_hash, NEW)
        assert await made.provider.registry.factors.recovery_codes_left(NINA) == len(factors.CODES)
        assert [email.subject for email in postbox.emails] == ["Your password was changed"]


async def test_a_recovery_code_shows_that_it_is_you_and_is_spent_at_once() -> None:
    """D45: whatever becomes of the enrolment."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        await factors.recovery(made, NINA)
        browser = await newcomer.opened(made, await newcomer.link(made, "password"))
        await browser.fill_and_submit(code=f" {factors.CODES[0].upper()} ")
        assert browser.page.heading == "Choose a new password"
        assert await made.provider.registry.factors.recovery_codes_left(NINA) == len(factors.CODES) - 1
        assert [email.subject for email in postbox.emails] == ["A recovery code was used"]
        assert "2 codes are left" in postbox.emails[0].text


async def test_a_passkey_shows_that_it_is_you(made: World) -> None:
    """D46"""
    await made.person("nina")
    key = await factors.passkey(made, NINA)
    browser = await newcomer.opened(made, await newcomer.link(made, "password"))
    await browser.fill_and_submit(passkey=factors.answer_of(made, browser, key))
    assert browser.page.heading == "Choose a new password"


async def test_a_lost_second_factor_needs_the_password() -> None:
    """D44, D45: a new app and new codes replace the old ones."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await made.person("nina", email=newcomer.MAILBOX)
        await factors.recovery(made, NINA)
        browser = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
        assert browser.page.heading == "Enter your password"
        assert await newcomer.password(browser, "not the right password") == "Enter your password"
        assert "The password is not right" in browser.page.text
        assert await newcomer.password(browser, PASSWORD) == "Set up your second step"
        key = await newcomer.app(made, browser)
        assert await newcomer.kept(browser) == "Your second step has been changed"
        assert (await newcomer.credentials(made)).totp_secret == key
        assert await made.provider.registry.factors.recovery_codes_left(NINA) == records.RECOVERY_CODES
        assert [email.subject for email in postbox.emails] == ["Your second step was changed"]


async def test_who_has_lost_a_device_is_told_which_passkeys_are_left_and_led_to_them(made: World) -> None:
    """D46: the one that was just made is none of them."""
    await made.person("nina")
    await factors.passkey(made, NINA)
    await factors.recovery(made, NINA)
    browser = await newcomer.opened(made, await newcomer.link(made, "second_factor"))
    await newcomer.password(browser, PASSWORD)
    await browser.fill_and_submit(passkey=newcomer.made_passkey(made, browser, newcomer.new_key()))
    assert "Your old recovery codes stop working when you select Finish" in browser.page.text
    assert await newcomer.kept(browser) == "Your second step has been changed"
    assert (await newcomer.credentials(made)).totp_secret is None, "the app of the lost phone opens nothing any more"
    assert "These passkeys still open your account: A key." in browser.page.text
    assert ("/account/passkeys", "Check your passkeys") in browser.page.links


def drawn(svg: str) -> set[tuple[int, int]]:
    """The dark modules of a QR code, column and row: strokes of one unit's height."""
    found = re.search(r'class="qrline"[^>]* d="([^"]*)"', svg)
    assert found is not None, svg
    dark, x, y = set(), 0.0, 0.0
    for verb, numbers in re.findall(r"([Mmh])([-0-9. ]+)", found[1]):
        across, down = (*map(float, numbers.split()), 0.0)[:2]
        if verb == "h":
            dark |= {(int(x) + step, int(y)) for step in range(int(across))}
        x, y = (across, down) if verb == "M" else (x + across, y + down)
    return dark


async def test_the_qr_code_says_what_the_link_says(made: World) -> None:
    """D45, ISO/IEC 18004: drawn here, for this browser alone, with a quiet zone of four modules."""
    await newcomer.nina(made)
    browser = await newcomer.opened(made, await newcomer.link(made))
    await newcomer.password(browser)
    picture = await browser.http.get(f"{browser.url}/qr.svg")
    assert (picture.headers["content-type"], picture.headers["cache-control"]) == ("image/svg+xml", "no-store")
    assert "style" not in picture.text
    [address] = {target for target, _ in browser.page.links if target.startswith("otpauth:")}
    said = totp.otpauth_uri(newcomer.secret(browser), account="nina", issuer="CorpID")
    assert address == said
    rows = enumerate(segno.make_qr(said).matrix, start=4)
    assert drawn(picture.text) == {(x, y) for y, row in rows for x, dark in enumerate(row, start=4) if dark}
    stranger = await made.browser()
    assert (await stranger.http.get(f"{browser.url}/qr.svg")).status_code == 403
    await newcomer.app(made, browser)
    assert (await browser.http.get(f"{browser.url}/qr.svg")).status_code == 303
