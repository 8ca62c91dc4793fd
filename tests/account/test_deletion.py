"""A person asks to be deleted, and an operator erases them (D57, D61)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.directory.write import Refused
from corpid.flows.operations import erasure
from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.access import CommandLine, Forbidden, Person
from corpid.rules.directory.records import Assignment, ChangedMeanwhile, DeletionRequest, Membership, User
from corpid.rules.oauth.consent import Consent
from corpid.stores.sql.audit_retention import AuditRetention
from tests.account.scene import at_account, go, hidden, reachable, send, sessions
from tests.postbox import Postbox
from tests.sign_in.factors import ALICE, passkey, recovery
from tests.sign_in.world import PASSWORD, SECRET, World, new_world, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ACME = "200000001A"
ASKED = "You have asked to delete your account"
SIGNED_IN = AuditEvent(actor="user:id-new", action="sign_in.complete", detail={"amr": "pwd otp mfa"})
OPERATOR = CommandLine(by="ops@node1")


async def request(made: World, user_id: str = ALICE) -> DeletionRequest | None:
    found = await made.provider.registry.directory.read(DeletionRequest, [(user_id,)])
    asked: DeletionRequest | None = found.get((user_id,))
    return asked


async def ask(made: World, browser: Browser) -> None:
    await go(made, browser, "delete")
    await browser.submit(next(form for form in browser.page.forms if form.action == "/account/delete"))


async def erase(made: World, user_id: str = ALICE, **more: Any) -> erasure.ErasureResult:
    given = {
        "actor": OPERATOR, "now": made.clock(), "mail": made.provider.mail, "provider_name": "CorpID", **more,
    }  # fmt: skip
    return await erasure.erase(made.provider.registry, user_id, **given)


async def test_who_asks_to_be_deleted_keeps_their_account_until_then_and_can_withdraw() -> None:
    """D61: said on the page and by e-mail, and kept in the audit."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        browser = await at_account(made)
        assert await go(made, browser, "delete") == "Delete your account?"
        assert "A deleted account cannot be brought back." in browser.page.text
        await ask(made, browser)
        assert "Your request to delete your account has been received." in browser.page.text
        assert "Delete your account You have asked for it" in browser.page.text
        asked = await request(made)
        assert asked is not None
        assert postbox.emails[-1].subject == "You asked for your account to be deleted"
        assert [entry.object for entry in await made.audit("user.request_deletion")] == [ALICE]
        browser = await at_account(made, "delete")
        assert browser.page.heading == ASKED
        await browser.submit(next(form for form in browser.page.forms if form.action == "/account/delete"))
        assert "You have withdrawn your request." in browser.page.text
        assert await request(made) is None
        assert postbox.emails[-1].subject == "Your account will not be deleted"
        assert [entry.object for entry in await made.audit("user.withdraw_deletion")] == [ALICE]


async def test_it_takes_a_sign_in_of_these_minutes_and_a_form_of_this_session(made: World) -> None:
    """D35, D45."""
    browser, other = await at_account(made, "delete"), await at_account(made, "delete")
    stolen = hidden(browser)
    await send(made, other, "delete", **stolen, decision="request")
    assert await request(made) is None, "a form of another session"
    made.clock.pass_(1200)
    answer = await send(made, browser, "delete", **stolen, decision="request")
    assert "/sign-in/" in answer.headers["location"]
    assert await request(made) is None, "a page that was opened long ago"


async def test_of_two_requests_at_once_one_is_kept_and_a_repeated_one_changes_nothing(made: World) -> None:
    """D45: also from two browsers."""
    one, two = await at_account(made, "delete"), await at_account(made, "delete")
    first = hidden(one)
    answers = await asyncio.gather(
        send(made, one, "delete", **first, decision="request"),
        send(made, two, "delete", **hidden(two), decision="request"),
    )
    assert {answer.status_code for answer in answers} == {303}
    assert len(await made.audit("user.request_deletion")) == 1
    await send(made, one, "delete", **first, decision="request")
    await send(made, one, "delete", **first, decision="withdraw")
    assert await request(made) is not None, "a page that was used is closed"


async def test_nobody_else_asks_for_a_person_and_no_person_erases(made: World) -> None:
    """D53."""
    await made.person("bob")
    await at_account(made)
    await ask(made, await at_account(made, who="bob"))
    assert await request(made) is None
    assert await request(made, "id-bob") is not None
    for actor in (Person(user_id=ALICE), Person(user_id="id-bob")):
        with pytest.raises(Forbidden):
            await erase(made, "id-bob", actor=actor)
    assert await made.provider.registry.directory.user("id-bob") is not None


async def test_an_erased_person_leaves_identifiers_and_nothing_else() -> None:
    """D50, D57: whatever they had ends; names are found in no row of the database."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        registry = made.provider.registry
        user = User(
            user_id=ALICE, user_name="alice", name="Qwertine Vexley", email="qwertine@example.com",
            identity_number="S8979373D", identity_country="SG",
        )  # fmt: skip
        await made.write(
            user, Assignment(user_id=ALICE, entity_id=ACME, service_id="PERMITS", role="Maker"),
            Membership(user_id=ALICE, entity_id=ACME, user_name="vexley.q", name="Qwertine Vexley"),
        )  # fmt: skip
        await passkey(made)
        await recovery(made)
        now = int(made.clock())
        consent = Consent(
            user_id=ALICE, entity_id=ACME, client_id="rp1", issuer_id="first", scopes=("openid",), given_at=now,
            expires_at=now + 86400,
        )  # fmt: skip
        assert await registry.consents.give(consent, (await registry.audit.entries(limit=1))[0])
        rp, walking = await made.relying_party(), await made.browser()
        await walk_to(made, walking, rp, ("password", "code", "entity"))
        browser = await at_account(made)
        await ask(made, browser)
        erased = await erase(made)
        made.provider.registry_cache.drop()
        assert erased.user_id == ALICE
        assert erased.details > 0
        assert await registry.directory.user(ALICE) is None
        assert await sessions(made) == []
        assert await registry.consents.list_for_user(ALICE, now=made.clock()) == []
        assert await registry.factors.passkeys(ALICE) == []
        assert await registry.factors.recovery_codes_left(ALICE) == 0
        assert (await registry.factors.credentials(ALICE)).password_hash is None
        assert await registry.directory.read(Membership, [(ALICE, ACME)]) == {}
        assert await request(made) is None
        assert await go(made, browser) == "Sign in"
        refused = await rp.token(walking.left or "")
        assert refused.status_code == 400
        assert postbox.emails[-1].subject == "Your account has been deleted"
        entries = await registry.audit.entries(limit=1000)
        assert any(entry.object == ALICE and entry.action == "user.remove" for entry in entries)
        told = str(entries)
        assert "Firefox" not in told, "the details of what they did are gone, too"
        for name in ("Qwertine", "vexley", "qwertine@example.com", "S8979373D", "373D"):
            assert name not in told


async def test_without_a_request_or_after_its_withdrawal_nobody_is_erased_by_mistake(made: World) -> None:
    """D57: a withdrawal at this moment, too."""
    with pytest.raises(Refused, match="has not asked to be deleted"):
        await erase(made)
    browser = await at_account(made)
    await ask(made, browser)
    browser = await at_account(made, "delete")

    async def withdrawn() -> None:
        await send(made, browser, "delete", **hidden(browser), decision="withdraw")

    found = await asyncio.gather(erase(made), withdrawn(), return_exceptions=True)
    gone = await made.provider.registry.directory.user(ALICE) is None
    assert gone == isinstance(found[0], erasure.ErasureResult)
    assert gone or isinstance(found[0], ChangedMeanwhile | Refused)
    assert gone != bool(await made.audit("user.withdraw_deletion"))
    if not gone:
        assert (await erase(made, unrequested=True)).user_id == ALICE


async def test_an_interrupted_erasure_is_finished_by_the_same_command(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D57: the record goes first, so the details may be left."""
    await ask(made, await at_account(made))

    async def fails(*_: Any, **__: Any) -> int:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(AuditRetention, "erase", fails)
        with pytest.raises(ConnectionError):
            await erase(made)
    assert await made.provider.registry.directory.user(ALICE) is None
    assert (await erase(made)).details > 0
    assert "Firefox" not in str(await made.provider.registry.audit.entries(limit=1000))


async def test_somebody_new_of_the_same_user_name_inherits_nothing() -> None:
    """D47, D51: an identifier is never given again; a browser of before is a new one for its next person."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        await reachable(made)
        old = await at_account(made)
        await ask(made, old)
        await erase(made)
        credentials = Credentials(
            user_id="id-new", password_hash=await made.passwords.hash(PASSWORD), totp_secret=SECRET
        )
        await made.write(
            User(user_id="id-new", user_name="alice", name="Alice Again", email="again@example.com"), credentials
        )
        await made.provider.registry.audit.write(SIGNED_IN, now=made.clock())
        assert await go(made, old) == "Sign in"
        made.clock.pass_(60)
        await made.factors(old, made.people["alice"])
        assert await go(made, old) == "Your account"
        for said in ("Alice Again", "Passkeys None", "1 browser", "Services you share data with None"):
            assert said in old.page.text
        assert postbox.emails[-1].to == "again@example.com"
        assert postbox.emails[-1].subject == "Your account was used on a new device"
        await go(made, old, "sign-ins")
        assert old.page.text.count("Password and authenticator app") == 1
        assert await go(made, old, "delete") == "Delete your account?"


async def test_details_of_an_invitation_that_the_person_accepted_are_erased_too(made: World) -> None:
    """D57, D60: until it was accepted it had an identifier of its own."""
    audit, told = made.provider.registry.audit, {"address": "203.0.113.7"}
    for subject, action, more in (
        (f"id-waiting/{ACME}", "membership.invite", {}),
        (f"{ALICE}/{ACME}", "membership.accept", {"invited_as": "id-waiting"}),
        (f"id-another/{ACME}", "membership.invite", {}),
    ):
        event = AuditEvent(actor="client:hr", action=action, object=subject, detail={**told, **more})
        await audit.write(event, now=made.clock())
    await erase(made, unrequested=True)
    invited = await made.audit("membership.invite")
    assert [entry.object for entry in invited if entry.detail.get("address")] == [f"id-another/{ACME}"]
    assert {entry.object for entry in await made.audit("audit.erase")} == {ALICE, "id-waiting"}
