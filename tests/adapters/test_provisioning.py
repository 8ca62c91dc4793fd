"""Invited members and provisioning tokens in both engines (D60)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from msgspec.structs import replace

from corpid.flows.directory.lists import list_records
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.lists import MEMBERS
from corpid.rules.directory.memberships import MemberCondition, MemberQuery, accepted_by, account, placeholder
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import (
    Accept,
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    Conflict,
    ExternalIdTaken,
    MemberNameTaken,
    Membership,
    MissingReference,
    Precondition,
    ThirdPartyAssignment,
    User,
)
from tests.adapters.opened import EVENT
from tests.adapters.stored_records import ACME, BOOKS, LEVY, LIM, TRADE, write

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

BY = CommandLine(by="lee@node1")
BY_TOKEN = AuditEvent(actor="token:t1", action="test.change")
BY_LIM = AuditEvent(actor="user:u2", action="test.change")
INVITED = Membership(
    user_id="p1", entity_id="E2", membership_id="m1", invited=True, user_name="Lim@books", external_id="7",
    name="Lim", email="lim@books.example", created_at=5, changed_at=5,
)  # fmt: skip
ACCEPTED = accepted_by(INVITED, "u2", now=9)
TOKEN = RegisteredProvisioningToken(
    token_id="t1", entity_id="E2", name="HR", token_hash="ab" * 32, created_at=1, expires_at=100,
    created_by="command:root@node1",
)  # fmt: skip


async def invite(stores: SqlStores, membership: Membership = INVITED) -> None:
    guard = Precondition(Membership, membership.key, None)
    await stores.registry.directory.write([guard, Change(None, membership, BY_TOKEN)])


async def prepared(stores: SqlStores) -> None:
    await write(stores, LIM, ACME, replace(BOOKS, enabled=True), LEVY, TRADE)
    await invite(stores)


async def people(stores: SqlStores) -> dict[str, User]:
    return {user.user_id: user async for user in stores.registry.directory.scan(User)}


async def memberships(stores: SqlStores) -> list[Membership]:
    return [each async for each in stores.registry.directory.scan(Membership)]


async def test_an_invited_member_stands_on_a_placeholder_that_ends_with_it(place: Place) -> None:
    """D60: whatever ends the membership, nobody is left behind."""
    async with place.opened() as stores:
        await prepared(stores)
        assert (await people(stores))["p1"] == placeholder(INVITED)
        assert await memberships(stores) == [INVITED]
        await stores.registry.directory.write([Change(INVITED, None, EVENT)])
        assert list(await people(stores)) == ["u2"]
        await invite(stores)
        await stores.registry.directory.write([Change(BOOKS, None, EVENT)])
        assert list(await people(stores)) == ["u2"]


async def test_an_invitation_makes_nobody_who_is_there_a_member(place: Place) -> None:
    """D60: not the person themselves, and not another invitation's placeholder."""
    async with place.opened() as stores:
        await prepared(stores)
        for user_id, entity_id in (("u2", "E2"), ("p1", "E1")):
            with pytest.raises(ChangedMeanwhile):
                await invite(stores, replace(INVITED, user_id=user_id, entity_id=entity_id, membership_id="m2"))
        assert await memberships(stores) == [INVITED]


async def test_a_late_write_neither_renews_an_invitation_that_ended_nor_takes_back_an_acceptance(place: Place) -> None:
    """D60: a command that read the membership before goes on with what it read."""
    async with place.opened() as stores:
        await prepared(stores)
        directory = stores.registry.directory
        became = account("p1", user_name="newcomer", name="New", email="lim@books.example", language="en")
        await directory.write([Change(None, became), Change(None, replace(INVITED, invited=False))])
        await directory.write(
            [Change(None, replace(INVITED, enabled=False)), Change(None, replace(became, placeholder=True))]
        )
        [membership] = await memberships(stores)
        assert (membership.invited, membership.enabled, membership.membership_id) == (False, False, "m1")
        assert not (await people(stores))["p1"].placeholder
        await directory.write([Change(became, None)])
        with pytest.raises(MissingReference):
            await directory.write([Change(None, INVITED)])


async def test_every_membership_has_an_identifier_that_stays(place: Place) -> None:
    """D60: also what a file or the version before writes, which know none."""
    async with place.opened() as stores:
        await write(stores, LIM, ACME, BOOKS, *(Membership(user_id="u2", entity_id=each) for each in ("E1", "E2")))
        first, second = await memberships(stores)
        assert len(first.membership_id) == len(second.membership_id) == 36
        assert first.membership_id != second.membership_id
        await write(stores, Membership(user_id="u2", entity_id="E1", enabled=False, membership_id="another"))
        assert (await memberships(stores))[0] == replace(first, enabled=False)
        found = await stores.registry.provisioning.member(second.membership_id)
        assert found is not None
        assert (found.membership, found.user) == (second, LIM)
        assert await stores.registry.provisioning.member("") is None
    with_none = "UPDATE memberships SET membership_id = '' WHERE membership_id <> ''"
    place.sql(with_none)
    assert [len(str(row[0])) for row in place.sql("SELECT membership_id FROM memberships")] == [36, 36]


async def test_what_an_entity_calls_a_member_is_unique_in_it_and_nowhere_else(place: Place) -> None:
    """D61: capital and small letters of a user name are alike; many members have none."""
    async with place.opened() as stores:
        await prepared(stores)
        other = replace(INVITED, user_id="p2", membership_id="m2")
        with pytest.raises(MemberNameTaken):
            await invite(stores, replace(other, user_name="LIM@BOOKS", external_id=""))
        with pytest.raises(ExternalIdTaken):
            await invite(stores, replace(other, user_name="tan"))
        with pytest.raises(Conflict):
            await invite(stores, replace(other, user_name="", external_id="", membership_id="m1"))
        await invite(stores, replace(other, entity_id="E1"))
        await invite(stores, replace(other, user_id="p3", membership_id="m3", user_name="", external_id=""))
        await invite(stores, replace(other, user_id="p4", membership_id="m4", user_name="", external_id="x"))
        assert len(await people(stores)) == 5


ROWS: tuple[Administrator | Assignment | ThirdPartyAssignment, ...] = (
    Administrator(user_id="p1", entity_id="E2", level="administrator"),
    *(Assignment(user_id="p1", entity_id="E2", service_id="s2", ref=str(number)) for number in range(250)),
    ThirdPartyAssignment(user_id="p1", entity_id="E2", client_entity_id="E1", service_id="s1", role="Preparer"),
)


async def test_acceptance_moves_a_membership_with_level_and_roles(place: Place) -> None:
    """D60: in one transaction, however many roles there are; identifier, sources and what the entity wrote stay."""
    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, *ROWS)
        await stores.registry.directory.write([Accept(INVITED, ACCEPTED, BY_LIM)])
        assert await memberships(stores) == [ACCEPTED]
        assert list(await people(stores)) == ["u2"]
        directory = stores.registry.directory
        assert [each.user_id async for each in directory.scan(Administrator)] == ["u2"]
        assert [each.user_id async for each in directory.scan(Assignment)] == ["u2"] * 250
        assert [each.user_id async for each in directory.scan(ThirdPartyAssignment)] == ["u2"]
        held = await directory.sourced(Membership, [ACCEPTED.key])
        assert held[ACCEPTED.key].sources.record == "token:t1"


@pytest.mark.parametrize("meanwhile", ["changed", "ended", "accepted", "belongs already"])
async def test_an_acceptance_that_comes_too_late_changes_nothing(place: Place, meanwhile: str) -> None:
    """D60: two at once, or one and a revocation, have one outcome."""
    async with place.opened() as stores:
        await prepared(stores)
        directory = stores.registry.directory
        if meanwhile == "changed":
            await directory.write([Change(None, replace(INVITED, email="mallory@books.example"), BY_TOKEN)])
        elif meanwhile == "ended":
            await directory.write([Change(INVITED, None, BY_TOKEN)])
        elif meanwhile == "accepted":
            await directory.write([Accept(INVITED, ACCEPTED, BY_LIM)])
        else:
            await write(stores, Membership(user_id="u2", entity_id="E2", enabled=False))
        before = await memberships(stores), await people(stores)
        with pytest.raises(ChangedMeanwhile):
            await directory.write([Accept(INVITED, ACCEPTED, BY_LIM)])
        assert (await memberships(stores), await people(stores)) == before


async def test_a_role_given_at_the_moment_of_acceptance_is_not_lost(place: Place) -> None:
    """D60: it is given before, and moves, or its giver is told."""
    async with place.opened() as stores:
        await prepared(stores)
        directory = stores.registry.directory
        role = Assignment(user_id="p1", entity_id="E2", service_id="s2")
        accepting = directory.write([Accept(INVITED, ACCEPTED, BY_LIM)])
        done, given = await asyncio.gather(
            accepting, directory.write([Change(None, role, BY_TOKEN)]), return_exceptions=True
        )
        assert done is None
        rows = [each async for each in directory.scan(Assignment)]
        assert rows == ([replace(role, user_id="u2")] if given is None else [])
        assert given is None or isinstance(given, MissingReference)


async def test_members_are_found_by_what_the_entity_wrote_else_by_the_person(place: Place) -> None:
    """RFC 7644 §3.4.2.2: `eq`, `co` and `sw`; D61: an empty member is the person's."""
    belongs = Membership(user_id="u2", entity_id="E2", membership_id="m0", enabled=False)
    elsewhere = replace(INVITED, user_id="p9", entity_id="E1", membership_id="m9")

    async with place.opened() as stores:
        await prepared(stores)
        await invite(stores, elsewhere)
        await write(stores, replace(LIM, email="Lim@Home.example"), belongs)

        async def found(*conditions: MemberCondition) -> list[str]:
            query = MemberQuery(entity_id="E2", conditions=conditions, limit=10)
            total, members = await stores.registry.provisioning.members(query)
            counted, _ = await stores.registry.provisioning.members(replace(query, limit=0))
            assert total == counted == len(members)
            return [each.membership.membership_id for each in members]

        assert await found() == ["m0", "m1"]
        assert await found(("user_name", "eq", "LIM@BOOKS")) == ["m1"]
        assert await found(("user_name", "eq", "Lim")) == ["m0"]
        assert await found(("user_name", "eq", "\u202e")) == []
        assert await found(("user_name", "sw", "LI")) == ["m0", "m1"]
        assert await found(("user_name", "co", "%")) == []
        assert await found(("external_id", "eq", "7")) == ["m1"]
        assert await found(("external_id", "eq", "")) == []
        assert await found(("email", "eq", "lim@HOME.example")) == ["m0"]
        assert await found(("email", "co", "books")) == ["m1"]
        assert await found(("active", "eq", "true")) == ["m1"]
        assert await found(("active", "eq", "false"), ("user_name", "sw", "l")) == ["m0"]


async def test_members_are_found_by_the_beginning_of_names_and_addresses(place: Place) -> None:
    """RFC 7644 §3.4.2.2: `sw`, whatever the case; what is a wildcard elsewhere stands for itself."""
    wanted = {"m%": "m%a@x.example", "m_": "m_b@x.example", "Mei": "MEI@x.example", "me\u00ef": "mey@x.example"}

    async with place.opened() as stores:
        await prepared(stores)
        for number, (name, email) in enumerate(wanted.items()):
            made = {"user_id": f"q{number}", "membership_id": f"n{number}", "user_name": name, "email": email}
            await invite(stores, replace(INVITED, external_id=name, **made))

        async def found(*condition: str) -> list[str]:
            query = MemberQuery(entity_id="E2", conditions=(condition,), limit=10)  # type: ignore[arg-type]
            total, members = await stores.registry.provisioning.members(query)
            assert total == len(members)
            return [each.membership.user_name for each in members]

        assert await found("user_name", "sw", "m") == list(wanted)
        assert await found("user_name", "sw", "ME") == ["Mei", "me\u00ef"]
        assert await found("user_name", "sw", "me\u00cf") == ["me\u00ef"]
        assert await found("user_name", "sw", "m%") == await found("user_name", "co", "%") == ["m%"]
        assert await found("user_name", "sw", "m_") == await found("email", "co", "_b@") == ["m_"]
        assert await found("email", "sw", "m%A") == ["m%"]
        assert await found("email", "sw", "mei@") == await found("email", "eq", "Mei@X.example") == ["Mei"]
        assert await found("external_id", "sw", "M") == await found("external_id", "sw", "Me") == ["Mei"]
        assert await found("user_name", "sw", "mz") == await found("email", "sw", "\U0010fffd") == []


async def test_a_member_who_gets_another_name_or_address_is_found_by_it(place: Place) -> None:
    """D61: where the entity wrote none, whichever version of CorpID wrote the rows."""
    belongs = Membership(user_id="u2", entity_id="E2", membership_id="m0")

    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, replace(LIM, email="lim@home.example"), belongs)

        async def found(member: str, text: str) -> list[str]:
            query = MemberQuery(entity_id="E2", conditions=((member, "sw", text),), limit=10)  # type: ignore[arg-type]
            return [each.membership.membership_id for each in (await stores.registry.provisioning.members(query))[1]]

        assert (await found("user_name", "lim"), await found("email", "lim@h")) == (["m0", "m1"], ["m0"])
        await write(stores, replace(LIM, user_name="Zoe", email="ZOE@home.example"))
        assert (await found("user_name", "zo"), await found("email", "zoe@")) == (["m0"], ["m0"])
        assert (await found("user_name", "lim"), await found("email", "lim@")) == (["m1"], ["m1"])
        by_name = partial(stores.registry.lists.find, MEMBERS, {"entity_id": "E2"}, order="shown_name", limit=10)
        assert [each.membership.membership_id for each in await by_name()] == ["m0", "m1"]
        await write(stores, replace(LIM, user_name="Zoe", email="ZOE@home.example", name="Zoe"))
        assert [each.membership.membership_id for each in await by_name()] == ["m1", "m0"]
        listed = partial(stores.registry.lists.find, MEMBERS, order="user_name", beginning="zoe", limit=10)
        assert [each.user.user_name for each in await listed({"entity_id": "E2"})] == ["Zoe"]
        place.sql("UPDATE memberships SET person_name_key = '', person_email = '' WHERE user_id = 'u2'")
        assert await found("user_name", "zo") == ["m0"]
        place.sql("INSERT INTO memberships (user_id, entity_id, enabled) VALUES ('u2', 'E1', true)")
        assert len(await listed({"entity_id": "E1"})) == 1


async def test_a_list_of_members_is_cut_and_sorted(place: Place) -> None:
    """RFC 7644 §3.4.2.3 and §3.4.2.4."""
    async with place.opened() as stores:
        await prepared(stores)
        for number, name in enumerate(("b", "c", "a")):
            each = replace(INVITED, user_id=f"q{number}", membership_id=f"n{number}", user_name=name, external_id="")
            await invite(stores, each)
        query = MemberQuery(entity_id="E2", sorted_by="user_name", limit=2)
        total, members = await stores.registry.provisioning.members(query)
        assert (total, [each.membership.user_name for each in members]) == (4, ["a", "b"])
        total, members = await stores.registry.provisioning.members(replace(query, descending=True, offset=1))
        assert (total, [each.membership.user_name for each in members]) == (4, ["c", "b"])
        for limit in range(6):
            for offset in range(6):
                page = replace(query, limit=limit, offset=offset)
                total, members = await stores.registry.provisioning.members(page)
                assert (total, len(members)) == (4, min(limit, max(4 - offset, 0))), page


async def test_the_last_sign_ins_of_members_are_those_for_the_entity(place: Place) -> None:
    """D84: the latest one of each; neither of another entity, nor of a stranger."""
    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, Membership(user_id="u2", entity_id="E2", membership_id="m0"))
        for number, (user_id, entity_id) in enumerate([("u2", "E2"), ("u2", "E2"), ("u2", "E1"), ("u9", "E2")]):
            event = AuditEvent(actor=f"user:{user_id}", action="sign_in.complete", entity_id=entity_id)
            await stores.registry.audit.write(event, now=1000 + number)
        await stores.registry.audit.write(AuditEvent(actor="user:u2", action="user.add", entity_id="E2"), now=2000)
        assert await stores.registry.provisioning.last_sign_ins("E2", ["u2", "p1", "u9"]) == {"u2": 1001}
        assert await stores.registry.provisioning.last_sign_ins("E2", []) == {}


async def test_members_are_searched_by_every_word_state_and_service(place: Place) -> None:
    """D61, D83: by what the entity sees; the total is that of what is found."""
    belongs = Membership(user_id="u2", entity_id="E2", membership_id="m0", enabled=False)
    held = Assignment(user_id="u2", entity_id="E2", service_id="s1", role="Preparer")

    async with place.opened() as stores:
        await prepared(stores)
        await write(stores, replace(LIM, email="Lim@Home.example"), belongs, held)

        async def found(search: str = "", **narrowed: Any) -> list[str]:
            page = await list_records(
                stores.registry, BY, MEMBERS, {"entity_id": "E2"}, order="shown_user_name", search=search, limit=10,
                count_to=10, **narrowed,
            )  # fmt: skip
            assert page.total is not None and page.total.count == len(page.found)
            return [each.membership.membership_id for each in page.found]

        assert await found() == ["m0", "m1"]
        assert await found("LI") == ["m0", "m1"]
        assert await found("BOOKS.example lim") == ["m1"]
        assert await found("home") == ["m0"]
        assert await found("%") == []
        assert await found(state="invited") == ["m1"]
        assert await found(state="suspended") == ["m0"]
        assert await found(state="active") == []
        assert await found(state="locked") == []
        assert await found(service_id="s1") == await found("lim", service_id="s1") == ["m0"]
        assert await found("books", service_id="s1") == await found(service_id="s2") == []
        assert await found("lim", state="suspended", service_id="s1") == ["m0"]
        assert await stores.registry.provisioning.roles("E2", ["u2", "p1"]) == [("u2", "s1", 1)]
        assert await stores.registry.provisioning.roles("E2", []) == []


async def test_a_token_is_found_by_its_hash_and_its_use_noted_once_an_hour(place: Place) -> None:
    """D60: it ends with its entity."""
    async with place.opened() as stores:
        books = replace(BOOKS, enabled=True)
        await write(stores, ACME, books, TOKEN, replace(TOKEN, token_id="t0", token_hash="cd" * 32))
        provisioning = stores.registry.provisioning
        assert await provisioning.token(TOKEN.token_hash) == (TOKEN, books)
        assert await provisioning.token("") is None
        for at in (3600, 4000, 7199):
            await provisioning.note_use("t1", at=at, unless_since=at - 3599)
        assert await provisioning.token(TOKEN.token_hash) == (replace(TOKEN, last_used_at=3600), books)
        await provisioning.note_use("t1", at=7200, unless_since=3601)
        assert [each.last_used_at for each in await provisioning.tokens("E2")] == [0, 7200]
        with pytest.raises(Conflict):
            await write(stores, replace(TOKEN, token_id="t3"))
        await stores.registry.directory.write([Change(books, None)])
        assert await provisioning.token(TOKEN.token_hash) is None


async def test_a_change_of_a_person_and_one_of_their_membership_at_once_are_both_made(postgresql: Place) -> None:
    """D61: one waits for the other, and neither ends as a deadlock, whichever row each has first."""
    belongs = Membership(user_id="u2", entity_id="E2", membership_id="m0")

    async with postgresql.opened() as stores:
        await prepared(stores)
        await write(stores, LIM, belongs)
        address = "UPDATE users SET email = 'zoe@home.example' WHERE user_id = 'u2'"
        again = """INSERT INTO memberships (user_id, entity_id, enabled) VALUES ('u2', 'E2', false)
            ON CONFLICT (user_id, entity_id) DO UPDATE SET enabled = excluded.enabled"""
        member, person = [await asyncpg.connect(str(postgresql.address)) for _ in range(2)]
        try:
            async with member.transaction():
                await member.execute("SELECT 1 FROM memberships WHERE user_id = 'u2' AND entity_id = 'E2' FOR UPDATE")
                changing = asyncio.create_task(person.execute(address))
                while True:
                    if await member.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                        break
                    await asyncio.sleep(0.01)
                await member.execute(again)
            await changing
            row = await person.fetchrow("SELECT enabled, person_email FROM memberships WHERE user_id = 'u2'")
            assert tuple(row) == (False, "zoe@home.example")
        finally:
            await member.close()
            await person.close()


@pytest.mark.parametrize("change", ["UPDATE memberships SET enabled = false", "DELETE FROM memberships"])
async def test_a_name_that_is_cleared_changes_nothing_else_of_its_member(postgresql: Place, change: str) -> None:
    """D68: somebody suspends or removes the member while another one joins onto the name that the entity gave."""
    belongs = Membership(user_id="u1", entity_id="E2", membership_id="m0", user_name=LIM.user_name)
    async with postgresql.opened() as stores:
        await prepared(stores)
        await write(stores, User(user_id="u1", user_name="zoe", name="Zoe"), belongs)
        operator = await asyncpg.connect(str(postgresql.address))
        try:
            async with operator.transaction():
                await operator.execute(f"{change} WHERE user_id = 'u1' AND entity_id = 'E2'")
                joining = asyncio.create_task(stores.registry.directory.write([Accept(INVITED, ACCEPTED, BY_LIM)]))
                while not await operator.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await joining
        finally:
            await operator.close()
        held = await stores.registry.directory.find(Membership, *belongs.key)
        removed = change.startswith("DELETE")
        assert held is None if removed else (held is not None and not held.enabled and not held.user_name)
