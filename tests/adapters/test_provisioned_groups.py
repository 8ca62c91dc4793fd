"""Groups of an entity in both engines: who has a role, gets it and loses it (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import provisioning as groups
from corpid.flows.directory.provisioning import UnknownMembers
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Forbidden, ProvisioningToken
from corpid.rules.directory.records import Assignment, GroupRole, Membership, Service, User
from corpid.rules.oauth.errors import InvalidToken
from corpid.rules.oauth.refusals import Reason
from corpid.stores.sql.sqlite import SqliteDatabase
from tests.adapters.databases import Place
from tests.adapters.stored_records import ACME, BOOKS, write

if TYPE_CHECKING:
    from pathlib import Path

    from corpid.stores.sql.open import SqlStores

TODAY = "2026-11-22"
FIRM = replace(ACME, enabled=True, approvals="none")
MANY = 1001
TOKEN = ProvisioningToken(token_id="t1", entity_id=ACME.entity_id)
OF_BOOKS = ProvisioningToken(token_id="t2", entity_id=BOOKS.entity_id)
CLERK = GroupRole(service_id="PAY", role="Clerk")
PAY = Service(service_id="PAY", name="Pay", roles=("Clerk",), entity_types=(ACME.type,), entity_statuses=(ACME.status,))
PEOPLE = [User(user_id=f"p{number:04}", user_name=f"p{number:04}", name="P") for number in range(MANY)]
MEMBERS = [
    Membership(user_id=each.user_id, entity_id=ACME.entity_id, membership_id=f"m-{each.user_id}") for each in PEOPLE
]
HELD = [Assignment(user_id=each.user_id, entity_id=ACME.entity_id, service_id="PAY", role="Clerk") for each in PEOPLE]


async def prepared(stores: SqlStores) -> None:
    await write(stores, FIRM, BOOKS, PAY, *PEOPLE[:3], *MEMBERS[:3])


async def members(stores: SqlStores, *, most: int = MANY) -> list[str]:
    return await groups.list_group_members(stores.registry, CLERK, today=TODAY, most=most, actor=TOKEN)


async def change(
    stores: SqlStores, *, add: tuple[str, ...] = (), remove: tuple[str, ...] = (), replaced: bool = False
) -> None:
    await groups.change_group(
        stores.registry, CLERK, add=add, remove=remove, replaced=replaced, today=TODAY, actor=TOKEN
    )


async def test_members_come_and_go(place: Place) -> None:
    """D60: whoever has the role already keeps it, and whoever has it not loses nothing."""
    async with place.opened() as stores:
        await prepared(stores)
        assert await groups.list_groups(stores.registry, actor=TOKEN) == [CLERK]
        await change(stores, add=("m-p0000", "m-p0001"))
        await change(stores, add=("m-p0001",), remove=("m-p0002",))
        assert await members(stores) == ["m-p0000", "m-p0001"]
        assert await members(stores, most=1) == ["m-p0000"]
        held = await groups.list_groups_of_member(stores.registry, MEMBERS[0], today=TODAY, actor=TOKEN)
        assert held == {CLERK}
        await change(stores, add=("m-p0002",), replaced=True)
        assert await members(stores) == ["m-p0002"]
        with pytest.raises(UnknownMembers, match="m-none"):
            await change(stores, add=("m-p0000", "m-none"))
        assert await members(stores) == ["m-p0002"]


async def test_of_another_entity_nothing_is_read_or_written(place: Place) -> None:
    """D60."""
    async with place.opened() as stores:
        await prepared(stores)
        await change(stores, add=("m-p0000",))
        with pytest.raises(UnknownMembers):
            await groups.change_group(
                stores.registry, CLERK, add=("m-p0001",), remove=(), replaced=False, today=TODAY, actor=OF_BOOKS
            )
        await groups.change_group(stores.registry, CLERK, add=(), remove=(), replaced=True, today=TODAY, actor=OF_BOOKS)
        assert await members(stores) == ["m-p0000"]
        with pytest.raises(Forbidden):
            await groups.list_groups_of_member(stores.registry, MEMBERS[0], today=TODAY, actor=OF_BOOKS)


@pytest.mark.full
async def test_one_change_takes_the_role_from_so_many(place: Place) -> None:
    """D60: a whole company does not lose its roles by one careless request."""
    async with place.opened() as stores:
        await write(stores, FIRM, PAY, *PEOPLE, *MEMBERS, *HELD)
        with pytest.raises(Refused, match="1,000"):
            await change(stores, replaced=True)
        assert len(await members(stores)) == MANY
        await change(stores, add=("m-p0000",), replaced=True)
        assert await members(stores) == ["m-p0000"]


@pytest.mark.full
async def test_a_right_that_ends_between_two_transactions_changes_nothing_more(place: Place) -> None:
    """D50, D60: a change of a thousand members takes a while."""
    async with place.opened() as stores:
        await write(stores, FIRM, PAY, *PEOPLE, *MEMBERS)
        asked: list[int] = []

        async def still() -> None:
            asked.append(1)
            if len(asked) == 2:
                raise InvalidToken(Reason.PROVISIONING_TOKEN, "revoked")

        wanted = [each.membership_id for each in MEMBERS[:500]]
        with pytest.raises(InvalidToken):
            await groups.change_group(
                stores.registry, CLERK, add=wanted, remove=(), replaced=False, today=TODAY, actor=TOKEN, still=still
            )
        assert len(await members(stores)) == 200


async def test_thousands_of_unknown_members_cost_one_statement_for_each_hundred(tmp_path: Path) -> None:
    """D60: a client that names what is not there costs no more than one that names what is."""
    async with Place(tmp_path / "corpid.db").opened() as stores:
        await prepared(stores)
        await change(stores, add=("m-p0000",))
        database = stores.database
        assert isinstance(database, SqliteDatabase)
        heard: list[str] = []
        strangers = tuple(f"m-x{number:04}" for number in range(2000))
        database._connection.set_trace_callback(heard.append)
        with pytest.raises(UnknownMembers, match="m-x0000, m-x0001, m-x0002 and 1997 more"):
            await change(stores, add=(*strangers, "m-p0001"), remove=("m\0",))
        database._connection.set_trace_callback(None)
        assert len(heard) == 21
        with pytest.raises(UnknownMembers):
            await change(stores, add=("",))
        assert await members(stores) == ["m-p0000"]
