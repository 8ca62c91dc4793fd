"""Signing in with a passkey, through the pages (WebAuthn Level 3, D15, D34, D46, D50)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from corpid.flows.authentication import interactions, throttle
from corpid.jose.encoding import base64url
from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import Change, User
from tests.authenticator import KEYS, MAY_SYNC, PRESENT, SYNCED, VERIFIED, Authenticator, client_data
from tests.contexts import context
from tests.sign_in.factors import ALICE, REFUSED, answer_of, at_sign_in, change, options_of, passkey, use
from tests.sign_in.world import World, cookies_of, form_of, new_world, post, query_of

CHOICE, SIGN_IN = "Choose who you act for", "Sign in"
NOT_PROVED: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "http://localhost:8081"},
    "another relying party": {"rp_id": "login.example"},
    "a challenge of one's own": {"challenge": base64url(b"nonce.mac")},
    "a challenge that is no text": {"challenge": base64url(b"\xff\x00.\xfe")},
    "an empty challenge": {"challenge": ""},
    "a registration": {"type": "webauthn.create"},
    "a frame in another page": {"crossOrigin": True},
}


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_passkey_signs_in_without_user_name_or_password(made: World, algorithm: str) -> None:
    """D46: two factors at once, and what was done stands truthfully in the ID token (RFC 8176, D10)."""
    key, rp = await passkey(made, algorithm=algorithm), await made.relying_party()
    browser = await at_sign_in(made, rp)
    assert "Step " not in browser.page.text
    assert await use(made, browser, key) == CHOICE
    assert "Step 2 of 2" in browser.page.text
    assert "alice" in browser.page.text
    await browser.fill_and_submit(entity="200000001A")
    assert browser.left is not None
    claims = (await rp.redeem(browser.left)).id_token
    assert (claims["amr"], claims["auth_time"]) == (["pop", "user", "mfa"], int(made.clock()))
    assert claims["acr"] == "urn:idp:authentication:loa:2"
    (entry,) = await made.audit("sign_in.passkey")
    assert (entry.actor, entry.outcome) == (f"user:{ALICE}", "ok")
    kept = await made.provider.registry.factors.passkey(base64url(key.credential_id))
    assert (kept.sign_count, kept.used_at) == (1, int(made.clock()))


async def test_with_one_organisation_it_leads_straight_back() -> None:
    """D30, D37: nothing remains to be asked."""
    async with new_world(entities=1) as made:
        browser = await at_sign_in(made)
        await browser.fill_and_submit(passkey=answer_of(made, browser, await passkey(made)))
        assert "code" in query_of(browser.left)


async def test_a_page_that_got_more_time_keeps_its_challenge(made: World) -> None:
    """D15, WCAG 2.2.1: the script that asks for more time leaves the page as it is."""
    key, browser = await passkey(made), await at_sign_in(made)
    page, where, answer = browser.page, browser.url, answer_of(made, browser, key)
    made.clock.pass_(590)
    await browser.submit(next(form for form in browser.page.forms if form.action.endswith("/extend")))
    made.clock.pass_(590)
    browser.page, browser.url = page, where
    await browser.fill_and_submit(passkey=answer)
    assert browser.page.heading == CHOICE


async def test_where_consent_is_asked_it_is_the_third_of_three_steps(made: World) -> None:
    await made.client(sector="private")
    browser = await at_sign_in(made, await made.relying_party(**made.decided))
    await use(made, browser, await passkey(made))
    assert "Step " not in browser.page.text
    await browser.fill_and_submit(entity="200000001A")
    assert "Step 3 of 3" in browser.page.text


async def test_a_person_without_password_signs_in_with_a_passkey(made: World) -> None:
    """A person without credentials has none, and that is no error."""
    await made.write(User(user_id="id-new", user_name="new", name="New"))
    key = await passkey(made, "id-new")
    await made.provider.registry.directory.write(
        [Change(Credentials(user_id="id-new"), None)], AuditEvent(actor="operator", action="test.write")
    )
    browser = await at_sign_in(made)
    assert await use(made, browser, key) == "You cannot use this service yet"


@pytest.mark.parametrize("changes", NOT_PROVED.values(), ids=NOT_PROVED.keys())
async def test_what_proves_nothing_gets_one_sentence(made: World, changes: dict[str, Any]) -> None:
    """WebAuthn §7.2, D46: and an entry in the audit, which says why."""
    key, browser = await passkey(made), await at_sign_in(made)
    assert await use(made, browser, key, **changes) == SIGN_IN
    assert browser.response is not None
    assert browser.response.status_code == 200
    assert REFUSED in browser.page.text
    (entry,) = await made.audit("sign_in.passkey")
    assert entry.outcome == "refused"
    assert entry.detail["reason"]
    assert await use(made, browser, key) == CHOICE


@pytest.mark.parametrize("flags", [0, PRESENT, VERIFIED])
async def test_a_person_who_was_not_there_or_not_verified_is_refused(made: World, flags: int) -> None:
    """D46."""
    browser = await at_sign_in(made)
    assert await use(made, browser, await passkey(made, flags=flags)) == SIGN_IN
    assert REFUSED in browser.page.text


async def test_unknown_removed_disabled_and_foreign_owners_read_the_same(made: World) -> None:
    """D28: nobody learns which passkeys exist."""
    await made.person("bob")
    disabled, removed = await passkey(made, "id-bob"), await passkey(made)
    await made.disable("bob")
    await change(made, remove_passkey=base64url(removed.credential_id))
    foreign = await passkey(made)
    foreign.user_handle = b"id-bob"
    stolen = await passkey(made)
    known = stolen.credential_id
    stolen = await passkey(made, "id-bob")
    stolen.credential_id = known
    texts = set()
    for key in (disabled, removed, foreign, stolen):
        browser = await at_sign_in(made)
        assert await use(made, browser, key) == SIGN_IN
        texts.add(browser.page.text)
    assert len(texts) == 1
    assert REFUSED in texts.pop()


async def test_the_challenge_of_another_sign_in_proves_nothing(made: World) -> None:
    """D46: whoever looks over a shoulder, or owns another site, cannot carry an answer over."""
    key, theirs, mine = await passkey(made), await at_sign_in(made), await at_sign_in(made)
    answer = answer_of(made, theirs, key)
    await mine.fill_and_submit(passkey=answer)
    assert mine.page.heading == SIGN_IN
    assert REFUSED in mine.page.text
    await theirs.fill_and_submit(passkey=answer)
    assert theirs.page.heading == CHOICE


async def test_an_answer_works_once(made: World) -> None:
    """D46: the challenge is spent, also by an answer that was refused, and where the sign-in begins anew."""
    key, browser = await passkey(made, count=None), await at_sign_in(made)
    options = options_of(browser)
    wrong = key.use(options, "http://localhost:8081")
    await browser.fill_and_submit(passkey=wrong)
    assert REFUSED in browser.page.text
    await browser.fill_and_submit(passkey=key.use(options, made.base))
    assert (browser.page.heading, REFUSED in browser.page.text) == (SIGN_IN, False)
    assert await use(made, browser, key) == CHOICE


async def test_of_simultaneous_uses_of_one_answer_one_is_accepted(made: World) -> None:
    """D15, D46: by `add`; the double click gets the page that is current."""
    key, browser = await passkey(made, count=None), await at_sign_in(made)
    fields = {**form_of(browser, "passkey"), "passkey": answer_of(made, browser, key)}
    answers = await asyncio.gather(*(post(browser, "passkey", fields) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [303] * 4
    assert len(await made.audit("sign_in.passkey")) == 1
    await browser.reload()
    assert browser.page.heading == CHOICE


@pytest.mark.parametrize("count", [4, 5])
async def test_a_counter_that_does_not_rise_is_refused_and_audited(made: World, count: int) -> None:
    """D46: it may be a copy."""
    key, browser = await passkey(made, count=5), await at_sign_in(made)
    assert await use(made, browser, key, count=count) == SIGN_IN
    assert REFUSED in browser.page.text
    (entry,) = await made.audit("sign_in.passkey")
    assert entry.outcome == "refused"
    assert "counter" in entry.detail["reason"]


@pytest.mark.parametrize(("before", "flags"), [(False, MAY_SYNC), (False, MAY_SYNC | SYNCED), (True, 0)])
async def test_a_passkey_that_became_one_of_another_kind_is_refused_and_audited(
    made: World, before: bool, flags: int
) -> None:
    """WebAuthn §7.2: whether it can be on several devices is decided when it is made."""
    key = Authenticator(user_handle=ALICE.encode(), flags=PRESENT | VERIFIED | flags)
    await change(made, add_passkey=key.record(ALICE, synced=before))
    browser = await at_sign_in(made)
    assert await use(made, browser, key) == SIGN_IN
    assert REFUSED in browser.page.text
    (entry,) = await made.audit("sign_in.passkey")
    assert entry.outcome == "refused"
    assert "several devices" in entry.detail["reason"]
    key.flags = PRESENT | VERIFIED | (MAY_SYNC if before else 0)
    assert await use(made, browser, key) == CHOICE


async def test_of_two_browsers_with_one_count_one_signs_in(made: World) -> None:
    """D46: the counter that was looked at is part of the write."""
    key, browsers = await passkey(made), [await at_sign_in(made) for _ in range(3)]
    await asyncio.gather(*(use(made, browser, key, count=7) for browser in browsers))
    assert sorted(browser.page.heading for browser in browsers) == [CHOICE, SIGN_IN, SIGN_IN]


async def test_a_passkey_without_counter_works_again_and_again(made: World) -> None:
    """D46: as synced passkeys do; each time is a new sign-in (D40)."""
    key = await passkey(made, count=None)
    for _ in range(3):
        assert await use(made, await at_sign_in(made), key) == CHOICE


async def test_a_passkey_that_is_removed_meanwhile_ends_its_sign_in(made: World) -> None:
    """D50."""
    key, browser = await passkey(made), await at_sign_in(made)
    assert await use(made, browser, key) == CHOICE
    await change(made, remove_passkey=base64url(key.credential_id))
    await browser.reload()
    assert browser.page.heading == SIGN_IN


@pytest.mark.parametrize("parameters", [{"prompt": "login"}, {"max_age": "60"}])
async def test_a_request_for_a_new_sign_in_is_answered_by_a_new_assertion(parameters: dict[str, str]) -> None:
    """D40: with single sign-on."""
    async with new_world(session_seconds=3600) as made:
        key, browser = await passkey(made), await at_sign_in(made)
        await use(made, browser, key)
        await browser.fill_and_submit(entity="200000001A")
        made.clock.pass_(90)
        rp = await made.relying_party(**parameters)
        await browser.open(await rp.begin())
        assert browser.page.heading == SIGN_IN
        assert await use(made, browser, key) == CHOICE
        await browser.fill_and_submit(entity="200000001A")
        assert browser.left is not None
        assert (await rp.redeem(browser.left)).id_token["auth_time"] == int(made.clock())


async def test_a_level_that_was_not_reached_is_refused_and_never_lowered(made: World) -> None:
    """D10, D17: whatever came in between, the end of the sign-in looks at it."""
    browser = await at_sign_in(made)
    await use(made, browser, await passkey(made))
    interaction_id = browser.url.split("/sign-in/")[1].partition("/")[0]
    interaction = await interactions.load(await context(made.provider), interaction_id)
    assert interaction is not None
    async with made.provider.transient.batch(made.clock()) as batch:
        await interactions.save(await context(made.provider), batch, replace(interaction, level=1))
    await browser.fill_and_submit(entity="200000001A")
    assert query_of(browser.left)["error"] == "access_denied"


async def test_a_session_says_what_began_it() -> None:
    """D30, RFC 8176."""
    async with new_world(session_seconds=3600) as made:
        browser = await at_sign_in(made)
        await use(made, browser, await passkey(made))
        (session,) = await made.provider.registry.sessions.list_for_user(ALICE, now=made.clock())
        assert (session.amr, session.level) == (("pop", "user", "mfa"), 2)


async def test_the_cookie_is_new_afterwards(made: World) -> None:
    """D34: no session that somebody else prepared goes on."""
    browser = await at_sign_in(made)
    before = cookies_of(browser)
    await use(made, browser, await passkey(made))
    assert cookies_of(browser).keys() == before.keys()
    assert cookies_of(browser) != before


@pytest.mark.parametrize(
    "base", ["https://login.example:8443", "https://login.example/idp", "http://localhost:8080/a/b"]
)
async def test_port_and_path_of_the_provider_do_no_harm(base: str) -> None:
    """WebAuthn §5.1.2, D32."""
    async with new_world(base=base) as made:
        browser = await at_sign_in(made)
        assert await use(made, browser, await passkey(made)) == CHOICE


async def test_an_address_offers_no_passkeys() -> None:
    """WebAuthn §5.1.3: a passkey belongs to a name; so the page does not ask for one (D34)."""
    async with new_world(base="http://127.0.0.1:8080") as made:
        browser = await at_sign_in(made)
        assert browser.page.form_with("passkey") is None
        assert browser.page.form_with("user_name") is not None


async def test_attempts_are_slowed_like_every_other(made: World) -> None:
    """D47: 429 and when to try again; counted by the address, for a passkey that is known and for another alike."""
    for key in (await passkey(made), await passkey(made)):
        key.credential_id = b"unknown" if key.count else key.credential_id
        browser, answers = await at_sign_in(made), []
        for _ in range(53):
            await use(made, browser, key, rp_id="evil.example")
            assert browser.response is not None
            answers.append(browser.response.status_code)
        assert answers[:51] == [200] * 51
        assert 429 in answers[51:]
        assert browser.page.heading == SIGN_IN
        made.clock.pass_(3600)


async def test_what_cannot_even_be_read_is_slowed_too(made: World) -> None:
    """D47: or anybody could fill the audit, which only grows."""
    browser = await at_sign_in(made)
    junk = {**form_of(browser, "passkey"), "passkey": "x"}
    statuses = [(await post(browser, "passkey", junk | {"guess": str(each)})).status_code for each in range(55)]
    assert statuses[:51] == [303] * 51
    assert statuses[52:] == [429] * 3
    assert len(await made.audit("sign_in.passkey")) == statuses.count(303)


async def test_guesses_at_the_password_never_shut_the_way_of_a_passkey(made: World) -> None:
    """D46, D47: it is counted by the address only."""
    key = await passkey(made)
    for number in range(7):
        with suppress(throttle.Throttled):
            await throttle.attempt_password(await context(made.provider), "alice", f"b{number}", known=False)
    assert await use(made, await at_sign_in(made), key) == "Choose who you act for"


async def test_a_password_form_still_shown_after_the_passkey_leads_to_the_current_page(made: World) -> None:
    """D15, D34: in another tab, or by Back."""
    browser = await at_sign_in(made)
    page, where = browser.page, browser.url
    await use(made, browser, await passkey(made))
    browser.page, browser.url = page, where
    await browser.fill_and_submit(user_name="alice", password="whatever it may be")
    assert browser.page.heading == CHOICE


async def sent(made: World, answers: list[str]) -> None:
    browser = await at_sign_in(made)
    fields = form_of(browser, "passkey")
    for answer in answers:
        reply = await post(browser, "passkey", {**fields, "passkey": answer})
        assert reply.status_code in {400, 413, 303, 429}, reply.status_code
        made.clock.pass_(1)


PARTS = st.dictionaries(
    st.sampled_from(("clientDataJSON", "authenticatorData", "signature", "userHandle")),
    st.text() | st.none(),
    max_size=4,
)


@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(max_size=50) | PARTS.map(lambda parts: json.dumps({"id": "AAAA", "response": parts})), max_size=6)
)
async def test_anything_may_be_sent_as_an_answer(made: World, answers: list[str]) -> None:
    """D33: malformed JSON, base64 and CBOR are refused like everything else."""
    await sent(made, answers)


async def test_an_endless_answer_is_refused() -> None:
    """D47."""
    challenge = base64url(b"x" * 30_000)
    client = client_data("webauthn.get", challenge, "http://localhost:8080")
    async with new_world() as made:
        await sent(
            made, ["A" * 65_536, json.dumps({"id": "AAAA", "response": {"clientDataJSON": client}}), "[" * 16_000]
        )
