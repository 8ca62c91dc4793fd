"""The offer of a passkey after a sign-in with a password: to whom, once, and with either answer (D15, D46)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from corpid.rules.authentication.sign_in import Interaction
from corpid.rules.limits import PASSKEY_OFFER_AGAIN_SECONDS
from corpid.rules.oauth.authorization_request import AuthorizationRequest
from tests.authenticator import Authenticator
from tests.postbox import Postbox
from tests.sign_in import factors
from tests.sign_in.factors import ALICE, at_sign_in, options_of, use
from tests.sign_in.world import World, form_of, new_world, post, query_of, walk_to, way_back, wear

if TYPE_CHECKING:
    from corpid.rules.authentication.records import Passkey
    from corpid_dev.relying_party.browser import Browser
    from corpid_dev.relying_party.relying_party import RelyingParty

OFFER: Final = "Sign in with a passkey next time?"
CHOICE: Final = "Choose who you act for"


async def signed_in(
    made: World,
    browser: Browser | None = None,
    *,
    able: str = "yes",
    rp: RelyingParty | None = None,
    name: str = "alice",
) -> Browser:
    """A browser after password and code, whose page said this about passkeys."""
    made.clock.pass_(60)
    browser = browser or await made.browser()
    await walk_to(made, browser, rp or await made.relying_party())
    return await code(made, browser, able=able, name=name)


async def code(made: World, browser: Browser, *, able: str = "yes", name: str = "alice") -> Browser:
    await made.password(browser, made.people[name])
    await browser.fill_and_submit(code=made.people[name].fresh_code(made.clock()), passkeys=able)
    return browser


def new_key(user_id: str = ALICE) -> Authenticator:
    return Authenticator(user_handle=user_id.encode(), count=None)


def made_answer(made: World, browser: Browser, key: Authenticator, **changes: Any) -> str:
    """What the script of the offer sends."""
    return key.make(options_of(browser), **{"origin": made.base, **changes})


async def not_now(browser: Browser) -> str:
    await browser.fill_and_submit("decision", button="not_now")
    return browser.page.heading


async def passkeys(made: World, user_id: str = ALICE) -> list[Passkey]:
    found: list[Passkey] = await made.provider.registry.factors.passkeys(user_id)
    return found


async def test_not_now_leads_on_and_the_client_gets_what_it_gets_without_an_offer() -> None:
    """D15, D45: with one organisation straight back; the passkey is no part of what was shown."""
    async with new_world(entities=1) as made:
        rp = await made.relying_party()
        browser = await signed_in(made, rp=rp)
        assert browser.page.heading == OFFER
        assert browser.left is None
        await not_now(browser)
        assert browser.left is not None
        claims = (await rp.redeem(browser.left)).id_token
        assert claims["amr"] == ["pwd", "otp", "mfa"]
        assert await passkeys(made) == []
        assert len(await made.audit("sign_in.complete")) == 1


async def test_who_creates_one_is_led_on_and_signs_in_with_it_next_time() -> None:
    """D46: with an entry in the audit and an e-mail, as in the account."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        user = await made.provider.registry.directory.user(ALICE)
        await made.write(msgspec.structs.replace(user, email="alice@example.org"))
        key, rp = new_key(), await made.relying_party()
        browser = await signed_in(made, rp=rp)
        await browser.fill_and_submit(passkey=made_answer(made, browser, key))
        assert browser.page.heading == CHOICE
        await browser.fill_and_submit(entity="200000001A")
        assert browser.left is not None
        assert (await rp.redeem(browser.left)).id_token["amr"] == ["pwd", "otp", "mfa"]
        (entry,) = await made.audit("factors.add_passkey")
        assert (entry.actor, entry.outcome, entry.client_id) == (f"user:{ALICE}", "ok", "rp1")
        await made.provider.background_tasks.settle()
        assert "A passkey was added" in [email.subject for email in postbox.emails]
        other = await at_sign_in(made)
        assert await use(made, other, key) == CHOICE


async def test_consent_and_choice_follow_the_offer(made: World) -> None:
    """D17, D29"""
    await made.client(sector="private")
    browser = await signed_in(made, rp=await made.relying_party(**made.decided))
    assert await not_now(browser) == CHOICE
    await browser.fill_and_submit(entity="200000001A")
    await browser.fill_and_submit("decision", button="agree")
    assert "code" in query_of(browser.left)


@pytest.mark.parametrize("asked", [{"prompt": "login"}, {"max_age": "300"}, {"prompt": "login select_account"}])
async def test_who_is_asked_to_sign_in_anew_is_not_kept(made: World, asked: dict[str, str]) -> None:
    """D40: the client waits for a proof of presence."""
    browser = await signed_in(made, rp=await made.relying_party(**asked))
    assert browser.page.heading == CHOICE


@pytest.mark.parametrize("able", ["", "no", "yes yes"])
async def test_a_browser_that_does_not_say_that_it_can_is_not_asked(made: World, able: str) -> None:
    """Without script the field stays empty."""
    assert (await signed_in(made, able=able)).page.heading == CHOICE


async def test_who_has_a_passkey_is_not_asked(made: World) -> None:
    await factors.passkey(made)
    assert (await signed_in(made)).page.heading == CHOICE


async def test_a_sign_in_to_the_account_leads_to_the_account(made: World) -> None:
    """It has a page for passkeys."""
    browser = await made.browser()
    await browser.open(f"{made.base}/account")
    await code(made, browser)
    assert browser.page.heading == "Your account"


async def test_single_sign_on_asks_nothing() -> None:
    """D30: nothing was shown at this sign-in."""
    async with new_world(session_seconds=3600) as made:
        browser = await signed_in(made, able="")
        await browser.fill_and_submit(entity="200000001A")
        await walk_to(made, browser, await made.relying_party())
        assert browser.page.heading == CHOICE


async def test_not_now_holds_for_thirty_days_in_every_browser_and_for_nobody_else(made: World) -> None:
    """In the registry, for the person."""
    await made.person("bob", name="Bob Lim")
    assert await not_now(await signed_in(made)) == CHOICE
    assert (await signed_in(made)).page.heading == CHOICE
    assert (await signed_in(made, name="bob")).page.heading == OFFER
    made.clock.pass_(PASSKEY_OFFER_AGAIN_SECONDS - 300)
    assert (await signed_in(made)).page.heading == CHOICE
    made.clock.pass_(300)
    browser = await signed_in(made)
    assert await not_now(browser) == CHOICE
    assert (await signed_in(made)).page.heading == CHOICE


async def test_an_offer_that_is_left_unanswered_comes_again_at_the_next_sign_in(made: World) -> None:
    browser = await signed_in(made)
    await browser.reload()
    assert browser.page.heading == OFFER
    assert (await signed_in(made)).page.heading == OFFER


async def test_when_the_time_runs_out_the_way_back_leads_to_the_client_and_nothing_was_written() -> None:
    """D15, D16"""
    async with new_world(entities=1) as made:
        browser = await signed_in(made)
        answer = made_answer(made, browser, new_key())
        made.clock.pass_(601)
        await browser.fill_and_submit(passkey=answer)
        assert browser.page.heading == "This sign-in has expired"
        assert await passkeys(made) == []
        await browser.open(f"{made.base}{way_back(browser)}")
        assert "error" in query_of(browser.left)


async def test_more_time_leaves_the_offer_as_it_is(made: World) -> None:
    """WCAG 2.2.1"""
    browser = await signed_in(made)
    page, where, answer = browser.page, browser.url, made_answer(made, browser, new_key())
    made.clock.pass_(590)
    await browser.submit(next(form for form in browser.page.forms if form.action.endswith("/extend")))
    made.clock.pass_(500)
    browser.page, browser.url = page, where
    await browser.fill_and_submit(passkey=answer)
    assert (browser.page.heading, len(await passkeys(made))) == (CHOICE, 1)


@pytest.mark.parametrize(
    "changes", [{"origin": "http://localhost:8081"}, {"crossOrigin": True}], ids=["another origin", "a frame"]
)
async def test_a_passkey_that_proves_nothing_is_refused_on_the_page(made: World, changes: dict[str, Any]) -> None:
    """WebAuthn §7.1: and Not now still leads on."""
    browser = await signed_in(made)
    await browser.fill_and_submit(passkey=made_answer(made, browser, new_key(), **changes))
    assert browser.response is not None
    assert (browser.response.status_code, browser.page.heading) == (200, OFFER)
    assert "The passkey could not be set up." in browser.page.text
    assert await passkeys(made) == []
    assert await not_now(browser) == CHOICE


async def test_an_answer_is_taken_once_and_a_form_of_before_changes_nothing(made: World) -> None:
    """D15, D46: sent again, and after the offer was declined."""
    browser = await signed_in(made)
    fields = {**form_of(browser, "passkey"), "passkey": made_answer(made, browser, new_key())}
    where = browser.url
    for _ in range(2):
        browser.url = where
        assert (await post(browser, "offer", fields)).status_code == 303
    assert len(await passkeys(made)) == 1
    declined = await signed_in(made, name=await bob(made))
    fields = {**form_of(declined, "passkey"), "passkey": made_answer(made, declined, new_key("id-bob"))}
    where = declined.url
    await not_now(declined)
    declined.url = where
    assert (await post(declined, "offer", fields)).status_code == 303
    assert await passkeys(made, "id-bob") == []


async def bob(made: World) -> str:
    await made.person("bob", *(), name="Bob Lim")
    return "bob"


async def test_both_answers_at_once_complete_the_request_once() -> None:
    """D15: one claims the step; the other is shown the page that is current."""
    async with new_world(entities=1) as made:
        browser = await signed_in(made)
        token = form_of(browser, "passkey")
        answers = await asyncio.gather(
            post(browser, "offer", {**token, "passkey": made_answer(made, browser, new_key())}),
            *(post(browser, "offer", {**token, "decision": "not_now"}) for _ in range(3)),
        )
        assert [answer.status_code for answer in answers] == [303] * 4
        assert len(await made.audit("sign_in.complete")) == 1
        await browser.reload()
        await browser.open(f"{made.base}{way_back(browser)}")
        assert "code" in query_of(browser.left)


async def test_another_browser_answers_nothing(made: World) -> None:
    """D34, D35: with the address, the form and the answer, but not the cookie; nor with the value from before."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    before = {cookie.name: cookie.value or "" for cookie in browser.http.cookies.jar}
    await code(made, browser)
    fields = {**form_of(browser, "passkey"), "passkey": made_answer(made, browser, new_key())}
    for cookies in ({}, before):
        thief = await made.browser()
        await walk_to(made, thief, await made.relying_party())
        thief.url = browser.url
        if cookies:
            wear(thief, cookies)
        for sent in (fields, {**form_of(browser, "passkey"), "decision": "not_now"}):
            await post(thief, "offer", sent)
    assert await passkeys(made) == []
    await browser.reload()
    assert browser.page.heading == OFFER


async def test_another_person_cannot_answer_with_what_was_asked_of_the_first(made: World) -> None:
    """D46: the challenge is for one person in one sign-in."""
    browser = await signed_in(made)
    of_alice = made_answer(made, browser, new_key())
    token = form_of(browser, "passkey")
    await post(browser, "offer", {**token, "decision": "other_account"})
    await browser.reload()
    await made.person("bob", name="Bob Lim")
    made.clock.pass_(60)
    await code(made, browser, name="bob")
    assert browser.page.heading == OFFER
    await browser.fill_and_submit(passkey=of_alice)
    assert browser.page.heading == OFFER
    assert (await passkeys(made), await passkeys(made, "id-bob")) == ([], [])


async def test_an_offer_cannot_be_answered_before_the_last_factor_or_where_none_was_made(made: World) -> None:
    """D15"""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    for step in (None, made.password, made.code):
        if step is not None:
            await step(browser, made.people["alice"])
        for answer in ({"decision": "not_now"}, {"passkey": "{}"}):
            sent = await post(browser, "offer", {**form_of(browser, "step"), **answer})
            assert sent.status_code == 303
    assert browser.page.heading == CHOICE
    assert (await signed_in(made)).page.heading == OFFER


@pytest.mark.parametrize("ended", ["sessions", "person", "password"])
async def test_whoever_was_signed_out_meanwhile_adds_no_passkey(made: World, ended: str) -> None:
    """D50: the session of the sign-in has to live."""
    browser = await signed_in(made)
    answer = made_answer(made, browser, new_key())
    if ended == "person":
        await made.disable("alice")
    elif ended == "password":
        stored = await made.provider.registry.factors.credentials(ALICE)
        await factors.change(made, after=msgspec.structs.replace(stored, password_hash="other"), end_sessions_but="")
    else:
        await factors.change(made, end_sessions_but="")
    await browser.fill_and_submit(passkey=answer)
    assert browser.page.heading == (OFFER if ended == "person" else "Sign in")
    assert await passkeys(made) == []


async def test_who_is_erased_while_answering_reads_no_error(made: World) -> None:
    """D57: an operator may erase a person between two statements of a request."""
    browser = await signed_in(made)
    kept = made.provider.registry.factors
    decline = kept.decline_passkey

    async def erased_before(user_id: str, *, at: int) -> None:
        user = await made.provider.registry.directory.user(user_id)
        await made.delete(user)
        await decline(user_id, at=at)

    kept.decline_passkey = erased_before
    answer = await post(browser, "offer", {**form_of(browser, "decision"), "decision": "not_now"})
    assert answer.status_code == 303


def test_a_sign_in_of_the_version_before_is_read_and_the_other_way_round() -> None:
    """Decision 0009: that version makes no offer, and goes on with one of ours where it is."""
    request = AuthorizationRequest(
        client_id="rp1", redirect_uri="https://rp.example/callback", scopes=("openid",), state="s", nonce="n",
        code_challenge="c", jkt="j", acr="a", generation="CURRENT",
    )  # fmt: skip
    ours = Interaction(
        interaction_id="i",
        browser_id="b",
        reference="r",
        request=request,
        expires_at=1,
        offers_passkey=True,
        language="ms",
    )
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(ours))
    known = [each.name for each in msgspec.structs.fields(Interaction)].index("offers_passkey")
    theirs = msgspec.msgpack.decode(msgspec.msgpack.encode(stored[:known]), type=Interaction)
    assert theirs == msgspec.structs.replace(ours, offers_passkey=False, language="")
    later = msgspec.msgpack.encode([*stored, "of a later version"])
    assert msgspec.msgpack.decode(later, type=Interaction) == ours
