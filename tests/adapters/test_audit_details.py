"""What an entry of the audit tells of a change, where it stands, and how it is erased (D57, docs/decisions/0015)."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditEntry, AuditEvent, AuditQuery
from corpid.rules.authentication.records import Credentials, FactorChange, FactorLink, Passkey
from corpid.rules.directory.records import Change, Membership, MissingReference, User
from corpid.rules.oauth.records import Client, FetchedKeySet
from corpid.rules.signing_keys import ProviderKey
from corpid.stores.sql.audit_retention import RetentionPeriods
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import ACME, BOOKS, LIM, TAN, write

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

DAY = 86_400
MARK = "never-in-the-audit"
ADDRESS = "203.0.113.9"
PRUNED = AuditEvent(actor="system", action="audit.prune")
ERASED = AuditEvent(actor="operator", action="audit.erase", object="u1")


def about(user: User, action: str = "user.update", **detail: str) -> AuditEvent:
    return AuditEvent(actor="operator", action=action, object=user.user_id, detail={"address": ADDRESS, **detail})


async def entries(stores: SqlStores) -> list[AuditEntry]:
    return await stores.registry.audit.entries(limit=10_000)


async def last(stores: SqlStores) -> AuditEntry:
    return (await entries(stores))[-1]


def rows(place: Place) -> list[tuple[Any, ...]]:
    """Number, members, detail and digest of every entry; salt and text of its details, or empty."""
    return place.sql(
        "SELECT a.number, a.members, a.detail, a.digest, coalesce(d.salt, ''), coalesce(d.detail, '') "
        "FROM audit a LEFT JOIN audit_details d ON d.number = a.number ORDER BY a.number"
    )


async def test_a_change_tells_its_members_before_and_after(place: Place) -> None:
    """D57: those that differ; all that are set of a record that is added or removed."""
    async with place.opened() as stores:
        directory = stores.registry.directory
        await directory.write([Change(None, LIM, about(LIM, "user.add"))])
        assert (await last(stores)).before == {}
        assert (await last(stores)).after["user_name"] == "lim"
        await directory.write([Change(None, replace(LIM, name="Lim B", language="zh"), about(LIM))])
        changed = await last(stores)
        assert (changed.before, changed.after) == (
            {"language": "en", "name": "Lim"},
            {"language": "zh", "name": "Lim B"},
        )
        assert changed.detail == {"address": ADDRESS, "members": "name language"}
        await directory.write([Change(LIM, None, about(LIM, "user.remove"))])
        assert ((await last(stores)).before["name"], (await last(stores)).after) == ("Lim B", {})


async def test_what_is_personal_stands_in_the_details_and_the_entry_has_their_digest(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, TAN)
        changed = replace(TAN, name="Tan W M", email="new@example.org", identity_number="S7654321Z", language="en")
        await stores.registry.directory.write([Change(None, changed, about(TAN))])
    _, members, detail, digest, salt, private = rows(place)[-1]
    assert json.loads(members) == {"before": {"language": "zh"}, "after": {"language": "en"}}
    assert json.loads(detail) == {"members": "name email language identity_number"}
    told = json.loads(private)
    assert told["facts"] == {"address": ADDRESS}
    assert told["before"] == {"name": "Tan Wei Ming", "email": "tan@example.org", "identity_number": "•••••567D"}
    assert told["after"]["identity_number"] == "•••••321Z"
    assert digest == sha256(f"audit-detail:{salt}:{private}".encode()).hexdigest()
    assert len(salt) == 32


async def test_an_entry_without_anything_personal_has_no_details(place: Place) -> None:
    async with place.opened() as stores:
        await stores.registry.audit.write(EVENT, now=NOW)
    assert [row[3:] for row in rows(place)] == [("", "", "")]
    assert place.sql("SELECT count(*) FROM audit_details")[0][0] in {0, "0"}


async def test_the_details_refuse_to_be_changed_and_removed(place: Place) -> None:
    async with place.opened() as stores:
        await stores.registry.audit.write(about(LIM), now=NOW - 400 * DAY)
        kept = RetentionPeriods(audit_detail_days=30)
        assert (await stores.registry.retention.prune(PRUNED, now=NOW, kept=kept)).erased == 1
        await stores.registry.audit.write(about(LIM), now=NOW)
    for statement in ("DELETE FROM audit_details", "UPDATE audit_details SET detail = ''"):
        with pytest.raises(Exception, match="append-only"):
            place.sql(statement)


async def test_old_details_go_and_their_entry_stays_as_it_was(place: Place) -> None:
    """D58: whatever is computed over the rows of the table `audit` holds afterwards, too."""
    async with place.opened() as stores:
        await write(stores, TAN)
        for days, name in ((400, "Tan A"), (1, "Tan B")):
            event = AuditEvent(actor="operator", action="user.update", object="u1", detail={"address": ADDRESS})
            stores.registry.audit._clock = lambda days=days: NOW - days * DAY  # type: ignore[misc]
            await stores.registry.directory.write([Change(None, replace(TAN, name=name, language=name[-1]), event)])
    stored = [row[:4] for row in rows(place)]
    async with place.opened() as stores:
        kept = RetentionPeriods(audit_detail_days=365)
        pruned = await stores.registry.retention.prune(PRUNED, now=NOW, kept=kept)
        assert (pruned.removed, pruned.erased) == (0, 1)
        _, old, new, told = await entries(stores)
        assert (old.erased, old.after, old.detail) == (True, {"language": "A"}, {"members": "name language"})
        assert (new.erased, new.after["name"], new.detail["address"]) == (False, "Tan B", ADDRESS)
        assert (told.detail["removed"], told.detail["erased"]) == ("0", "1")
        assert (await stores.registry.retention.prune(PRUNED, now=NOW, kept=kept)).erased == 0
    assert [row[:4] for row in rows(place)][: len(stored)] == stored


async def test_no_details_are_left_of_entries_that_are_gone(place: Place) -> None:
    async with place.opened() as stores:
        for days in (400, 1):
            await stores.registry.audit.write(about(LIM), now=NOW - days * DAY)
        await stores.registry.retention.prune(PRUNED, now=NOW, kept=RetentionPeriods(audit_days=365))
    left = place.sql("SELECT number FROM audit_details WHERE number NOT IN (SELECT number FROM audit)")
    assert left == []
    assert len(rows(place)) == 2


async def test_the_details_of_one_person_are_erased_and_no_other(place: Place) -> None:
    async with place.opened() as stores:
        membership = Membership(user_id="u1", entity_id="E2")
        of_tan = [Change(None, TAN, about(TAN)), Change(None, membership, replace(about(TAN), object="u1/E2"))]
        await stores.registry.directory.write([Change(None, BOOKS), *of_tan, Change(None, LIM, about(LIM))])
        signed_in = AuditEvent(actor="user:u1", action="sign_in.complete", detail={"address": ADDRESS, "amr": "pwd"})
        await stores.registry.audit.write(signed_in, now=NOW)
        nearly = replace(about(TAN), object="u10")
        await stores.registry.audit.write(nearly, now=NOW)
        erased = await stores.registry.retention.erase(ERASED, AuditQuery(user_id="u1"), now=NOW)
        assert erased == 3
        found = await entries(stores)
        assert {(each.actor, each.object) for each in found if each.erased} == {
            ("operator", "u1"),
            ("operator", "u1/E2"),
            ("user:u1", ""),
        }
        assert (found[-1].action, found[-1].detail) == ("audit.erase", {"erased": "3"})
        assert {each.object for each in found if "address" in each.detail} == {"u2", "u10"}


async def test_no_secret_is_anywhere_in_the_audit(place: Place) -> None:
    """D57: every place for a secret is filled with a mark, in every state, and both tables are searched as they are."""
    async with place.opened() as stores:
        registry = stores.registry
        client = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/",), jwks=f"{MARK}1")
        passkey = Passkey(
            credential_id=f"{MARK}2", user_id="u2", public_key=f"{MARK}3", sign_count=0, name="Key", aaguid="a",
            synced=True, transports=(), created_at=1,
        )  # fmt: skip
        first = Credentials(user_id="u2", password_hash=f"{MARK}4", password_source=f"{MARK}5", totp_secret=f"{MARK}6")
        second = replace(first, password_hash=f"{MARK}7", totp_secret=f"{MARK}8")
        key = ProviderKey(
            kid="k", use="sig", secret=f"{MARK}9", created_at=1, active_from=1, certificate_chain=f"{MARK}10"
        )
        link = FactorLink(
            link_hash=f"{MARK}11", purpose="password", user_id="u2", created_at=1, expires_at=2, factors=f"{MARK}12"
        )
        add = [Change(None, LIM, EVENT), Change(None, client, EVENT), Change(None, first, EVENT)]
        await registry.directory.write(add)
        await registry.directory.write(
            [Change(None, replace(client, jwks=f"{MARK}13"), EVENT), Change(None, second, EVENT)]
        )
        changes = (
            FactorChange(before=second, after=first, add_passkey=passkey, recovery_codes=(f"{MARK}14", f"{MARK}15")),
            FactorChange(before=first, after=first, remove_passkey=passkey.credential_id, recovery_codes=()),
            FactorChange(before=first, after=Credentials(user_id="u2")),
        )
        for change in changes:
            assert await registry.factors.change(change, EVENT)
        await registry.factors.keep_link(link, EVENT)
        await registry.keys.add(key, EVENT)
        await registry.keys.update(replace(key, retired_at=5), EVENT)
        await registry.clients.keep_fetched_key_set(
            "rp", FetchedKeySet(jwks_uri="https://rp.example/j", jwks=f"{MARK}16", fetched_at=1)
        )
        await registry.clients.drop_fetched_key_set("rp", EVENT)
        await registry.directory.write(
            [Change(second, None, EVENT), Change(client, None, EVENT), Change(LIM, None, EVENT)]
        )
        told = await entries(stores)
        assert len(told) == 15
        assert told[2].after == {"user_id": "u2", "password_hash": "set", "totp_secret": "set"}
        assert told[4].after == {"password_hash": "changed", "totp_secret": "changed"}
        assert (told[5].before["recovery_codes"], told[5].after["recovery_codes"]) == (0, 2)
        assert [each["name"] for each in told[5].after["passkeys"]] == ["Key"]  # type: ignore[attr-defined]
        assert told[7].after == {"password_hash": None, "totp_secret": None}
    for table in ("audit", "audit_details"):
        text = str(place.sql(f"SELECT * FROM {table}"))
        assert "S1234567D" not in text
        assert MARK not in text, text


async def test_of_two_changes_at_the_same_moment_the_second_tells_what_the_first_left(place: Place) -> None:
    """Both planned from the same state; the audit tells what was replaced."""
    async with place.opened() as stores:
        await write(stores, LIM)
        named = [Change(None, replace(LIM, name=name), about(LIM)) for name in ("One", "Two", "Three", "Four")]
        await asyncio.gather(*(stores.registry.directory.write([change]) for change in named))
        told = [each for each in await entries(stores) if each.action == "user.update"]
        names = ["Lim", *(each.after["name"] for each in told)]
        assert sorted(names[1:]) == ["Four", "One", "Three", "Two"]  # type: ignore[type-var]
        assert [each.before["name"] for each in told] == names[:-1]
        stored = await stores.registry.directory.user(LIM.user_id)
        assert stored is not None
        assert stored.name == names[-1]


async def test_a_change_that_fails_leaves_neither_entry_nor_details(place: Place) -> None:
    async with place.opened() as stores:
        orphan = Membership(user_id="nobody", entity_id="E1")
        with pytest.raises(MissingReference):
            await stores.registry.directory.write(
                [Change(None, LIM, about(LIM)), Change(None, ACME), Change(None, orphan, about(LIM))]
            )
        assert await entries(stores) == []
    assert place.sql("SELECT * FROM audit_details") == []


async def test_an_entry_of_the_version_before_is_read(place: Place) -> None:
    """docs/upgrades.md: it wrote neither members nor digest, and its address into the row."""
    async with place.opened() as stores:
        await entries(stores)
    names = "at, actor, action, object, client_id, entity_id, outcome, request_id, detail"
    place.sql(
        f"INSERT INTO audit ({names}) VALUES (7, 'user:u1', 'sign_in.complete', '', 'rp', '', 'ok', 'r', "
        f"""'{{"address": "{ADDRESS}"}}')"""
    )

    async with place.opened() as stores:
        [entry] = await stores.registry.audit.sign_ins_of("u1", limit=5)
        assert (entry.detail, entry.before, entry.erased) == ({"address": ADDRESS}, {}, False)
        assert await entries(stores) == [entry]
