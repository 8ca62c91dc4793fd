"""A person downloads everything that is kept about them (D61)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.account.own_data import FORMAT
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    Membership,
    ThirdPartyAssignment,
    ThirdPartyGrant,
)
from corpid.rules.limits import DATA_COPIES_PER_DAY
from corpid.rules.oauth.consent import Consent
from tests.account.scene import at_account, go, hidden, rejected, send
from tests.sign_in.factors import ALICE, CODES, passkey, recovery
from tests.sign_in.world import SECRET, World, entity

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ACME, BANYAN = "200000001A", "200000002A"


async def copy(made: World, browser: Browser) -> Any:
    """The file of a person who is at its page."""
    await go(made, browser, "data")
    answer = await send(made, browser, "data", **hidden(browser))
    assert answer.status_code == 200, answer.text
    return answer


async def furnished(made: World) -> None:
    """Alice with something of every kind."""
    registry, now = made.provider.registry, int(made.clock())
    user = await registry.directory.user(ALICE)
    await made.write(
        replace(user, email="alice@example.com", identity_number="S8979373D", identity_country="SG"),
        Membership(user_id=ALICE, entity_id=ACME, user_name="tan.a", external_id="4711"),
        Administrator(user_id=ALICE, entity_id=ACME, level="owner"),
        Assignment(user_id=ALICE, entity_id=ACME, service_id="PERMITS", role="Maker"),
        ThirdPartyGrant(client_entity_id=BANYAN, entity_id=ACME, service_id="PERMITS"),
        ThirdPartyAssignment(
            user_id=ALICE, entity_id=ACME, client_entity_id=BANYAN, service_id="PERMITS", role="Maker"
        ),
    )  # fmt: skip
    await passkey(made)
    await recovery(made)
    consent = Consent(
        user_id=ALICE, entity_id=ACME, client_id="rp1", issuer_id="first", scopes=("openid", "user.name"), given_at=now,
        expires_at=now + 86400,
    )  # fmt: skip
    assert await registry.consents.give(consent, (await registry.audit.entries(limit=1))[0])


async def test_the_file_has_everything_and_nothing_secret(made: World) -> None:
    """D61: one JSON file with a documented form, to be stored, and kept in no cache."""
    await furnished(made)
    answer = await copy(made, await at_account(made))
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"].startswith('attachment; filename="my-data-')
    found = answer.json()
    assert (found["format"], found["complete"], list(found)[-1]) == (FORMAT, True, "complete")
    profile = found["profile"]
    assert (profile["user_name"], profile["email"], profile["identity_number"]) == (
        "alice", "alice@example.com", "S8979373D",
    )  # fmt: skip
    factors = found["factors"]
    assert (factors["password"], factors["recovery_codes_left"]) == (True, len(CODES))
    assert factors["app"]["last_used_at"]
    assert [each["name"] for each in factors["passkeys"]] == ["A key"]
    assert [(each["purpose"], each["this_browser"]) for each in found["sessions"]] == [("account", True)]
    [first, second] = found["memberships"]
    assert (first["entity_name"], first["level"], second["level"]) == ("Acme Pte. Ltd.", "owner", None)
    assert first["written_by_entity"] == {"user_name": "tan.a", "external_id": "4711"}
    assert [each["role"] for each in found["roles"]] == ["Maker"]
    assert [each["client_entity_name"] for each in found["third_party_roles"]] == ["Banyan Trading"]
    assert [each["scopes"] for each in found["consents"]] == [["openid", "user.name"]]
    assert found["events"][0]["action"] == "user.download"
    assert "sign_in.complete" in {each["action"] for each in found["events"]}
    keys = await made.provider.registry.factors.passkeys(ALICE)
    credentials = await made.provider.registry.factors.credentials(ALICE)
    for secret in (SECRET, credentials.password_hash, keys[0].public_key, keys[0].credential_id, *CODES):
        assert secret not in answer.text


async def test_what_others_did_and_what_was_done_to_others_says_nothing_about_them(made: World) -> None:
    """D61: of others only what kind of actor they are."""
    registry = made.provider.registry
    secret = {
        "address": "203.0.113.99",
        "device": "Safari on iPad",
        "reason_given": "He is a thief",
        "by": "root@h1",
    }
    for actor, subject in (
        ("user:id-boss", f"{ALICE}/{ACME}"), ("command:root@h1", ALICE), (f"user:{ALICE}", f"id-victim/{ACME}"),
        ("client:hr-system", ALICE), ("anonymous", ALICE),
    ):  # fmt: skip
        event = AuditEvent(actor=actor, action="membership.update", object=subject, entity_id=ACME, detail=secret)
        await registry.audit.write(event, now=made.clock())
    await registry.directory.write(
        [
            Change(
                None,
                Membership(user_id=ALICE, entity_id=ACME, name="Alice T."),
                AuditEvent(actor="user:id-boss", action="membership.update", object=f"{ALICE}/{ACME}"),
            )
        ]
    )
    answer = await copy(made, await at_account(made))
    events = [each for each in answer.json()["events"] if each["action"] == "membership.update"]
    assert [each["by"] for each in events] == ["person", "unknown", "program", "you", "operator", "person"]
    assert events[0]["after"]["name"] == "Alice T."
    assert "record" not in events[3], "the record is somebody else's"
    assert events[3]["details"]["device"] == "Safari on iPad", "it was the person's own"
    assert all("details" not in each or each["by"] == "you" or set(each["details"]) <= {"members"} for each in events)
    for told in ("id-boss", "id-victim", "root@h1", "hr-system", "thief"):
        assert told not in answer.text


@pytest.mark.full
async def test_thousands_of_roles_and_events_come_whole_and_in_pieces(made: World) -> None:
    """docs/costs.md: a page at a time, each role once."""
    many = [entity(f"E{number:04}", f"Entity {number}") for number in range(1100)]
    await made.write(*many)
    await made.write(*(Membership(user_id=ALICE, entity_id=each.entity_id) for each in many))
    await made.write(
        *(Assignment(user_id=ALICE, entity_id=each.entity_id, service_id="PERMITS", role="Maker") for each in many)
    )
    for number in range(1100):
        event = AuditEvent(actor="system", action="user.update", object=ALICE, request_id=str(number))
        await made.provider.registry.audit.write(event, now=made.clock())
    browser = await at_account(made)
    found = (await copy(made, browser)).json()
    assert len({each["entity"] for each in found["memberships"]}) == len(found["memberships"]) == 1102
    assert len({each["entity"] for each in found["roles"]}) == len(found["roles"]) == 1100
    assert len([each for each in found["events"] if each["action"] == "user.update"]) == 1100


async def test_it_takes_a_fresh_sign_in_and_the_form_of_this_session(made: World) -> None:
    """D35, D45."""
    browser, other = await at_account(made, "data"), await at_account(made, "data")
    form = hidden(browser)
    for asking, site in ((other, "same-origin"), (browser, "cross-site")):
        answer = await send(made, asking, "data", site=site, **form)
        assert answer.status_code in {303, 400, 403}
    assert not await made.audit("user.download")
    made.clock.pass_(400)
    await go(made, browser, "data")
    assert browser.page.heading == "Download your data", "a page that is open stays so"
    made.clock.pass_(400)
    answer = await send(made, browser, "data", **form)
    assert "/sign-in/" in answer.headers["location"]
    assert (await browser.http.get(f"{made.base}/account/data", headers={"Sec-Fetch-Site": "none"})).status_code == 303


async def test_nobody_downloads_it_again_and_again_also_not_at_once(made: World) -> None:
    """D47: so many times a day, each with an entry of the audit, and of one person only."""
    await made.person("bob")
    browser = await at_account(made, "data")
    form = hidden(browser)
    answers = await asyncio.gather(*(send(made, browser, "data", **form) for _ in range(DATA_COPIES_PER_DAY + 3)))
    assert sorted(answer.status_code for answer in answers) == [200] * DATA_COPIES_PER_DAY + [303] * 3
    assert len(await made.audit("user.download")) == DATA_COPIES_PER_DAY
    refused = next(answer for answer in answers if answer.status_code == 303)
    assert "You have downloaded your data 5 times today." in (await rejected(browser, refused)).text
    assert json.loads((await copy(made, await at_account(made, who="bob"))).text)["profile"]["user_name"] == "bob"
    made.clock.pass_(86400)
    assert (await copy(made, await at_account(made))).status_code == 200
