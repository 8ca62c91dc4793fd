"""Pages of the directory's records, on both engines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import lists
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.lists import ENTITIES as ENTITY_LIST
from corpid.rules.directory.lists import MEMBERS, REQUESTS
from corpid.rules.directory.lists import SERVICES as SERVICE_LIST
from corpid.rules.directory.lists import USERS as USERS_LIST
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    ChangeRequest,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from tests.adapters.stored_records import BOOKS, write

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from tests.adapters.databases import Place

NAMES = ("anna", "b-1", "b_1", "ba", "bó", "c")
USERS = [User(user_id=f"u{9 - number}", user_name=name, name=name) for number, name in enumerate(NAMES)]
ENTITIES = [
    Entity(entity_id=entity_id, type="UEN", registration_number=entity_id, country="SG", name=entity_id)
    for entity_id in ("A-1", "A.1", "A1", "B2")
]
SERVICES = [Service(service_id=service_id, name=service_id, roles=("R",)) for service_id in ("S1", "S2")]
MEMBERSHIPS = [
    Membership(user_id=user.user_id, entity_id=entity_id) for user in USERS[:4] for entity_id in ("A1", "B2")
]
ROLES = [
    Assignment(user_id=held.user_id, entity_id=held.entity_id, service_id=service.service_id, role="R", ref=ref)
    for held in MEMBERSHIPS
    for service in SERVICES
    for ref in ("", "two")
]
LEVELS = [Administrator(user_id=held.user_id, entity_id=held.entity_id, level="owner") for held in MEMBERSHIPS]
THIRD = [
    ThirdPartyAssignment(user_id=held.user_id, entity_id=held.entity_id, client_entity_id="A-1", service_id="S1")
    for held in MEMBERSHIPS
]
EVERYTHING: tuple[KeyedRecord, ...] = (*ENTITIES, *SERVICES, *USERS, *MEMBERSHIPS, *LEVELS, *ROLES, *THIRD)


async def test_records_are_paged_by_identifier_byte_by_byte(place: Place) -> None:
    """The order and the bounds do not depend on the language that a database was made with."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        find = stores.registry.lists.find
        users = await find(USERS_LIST, limit=10)
        assert [user.user_name for user in users] == sorted(NAMES)
        within = await find(USERS_LIST, beginning="b", limit=3)
        assert [user.user_name for user in within] == ["b-1", "b_1", "ba"]
        further = await find(USERS_LIST, beginning="b", after=("ba",), limit=3)
        assert [user.user_name for user in further] == ["bó"]
        entities = await find(ENTITY_LIST, beginning="A", limit=10)
        assert [entity.entity_id for entity in entities] == ["A-1", "A.1", "A1"]
        assert await find(SERVICE_LIST, limit=1) == SERVICES[:1]


async def test_members_of_an_entity_are_paged_by_user_name(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        find = partial(stores.registry.lists.find, MEMBERS, order="user_name", limit=2)
        found = await find({"entity_id": "A1"}, after=("anna",))
        assert [each.user.user_name for each in found] == ["b-1", "b_1"]
        assert await find({"entity_id": "A-1"}) == []


async def test_every_way_to_narrow_rows_pages_through_exactly_those(place: Place) -> None:
    """Each combination of the members that a page can be narrowed by, in pages of three."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        values = {"user_id": "u8", "entity_id": "A1", "service_id": "S2"}
        for chosen in range(8):
            where = {name: values[name] for bit, name in enumerate(values) if chosen >> bit & 1}
            expected = [row for row in ROLES if all(getattr(row, name) == value for name, value in where.items())]
            found: list[Assignment] = []
            after: tuple[str, ...] = ("",) * 6
            while page := await stores.registry.directory.page(Assignment, where, after=after, limit=3):
                found += page
                after = page[-1].key
            assert found == sorted(expected, key=lambda row: row.key), where


async def test_other_rows_are_narrowed_alike(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        page = stores.registry.directory.page
        levels = await page(Administrator, {"entity_id": "B2"}, after=("u7", "B2"), limit=9)
        assert [held.key for held in levels] == [("u8", "B2"), ("u9", "B2")]
        held = await page(Membership, {"user_id": "u9"}, after=("u9", "A1"), limit=9)
        assert [each.entity_id for each in held] == ["B2"]
        third = await page(
            ThirdPartyAssignment, {"entity_id": "A1", "client_entity_id": "A-1"}, after=("",) * 7, limit=9
        )
        assert [row.user_id for row in third] == ["u6", "u7", "u8", "u9"]


async def test_entities_are_found_by_words_in_the_order_of_their_names(place: Place) -> None:
    """D83: capital, full-width and composed letters are one, and a long name is found, too."""
    names = {
        "E1": "Acme Foods",
        "E2": "ACME \uff26oods",
        "E3": "acme",
        "E4": "Zebra",
        "E5": "\ufdfa" * 200,
        "E6": "Acmeville",
    }

    async with place.opened() as stores:
        await write(stores, *(replace(BOOKS, entity_id=key, name=name) for key, name in names.items()))
        actor = CommandLine(by="lee@node1")

        async def listed(name: str, after: str = "", limit: int = 10) -> tuple[list[str], str]:
            page = await lists.list_records(
                stores.registry, actor, ENTITY_LIST, order="name", search=name, after=after, limit=limit
            )
            return [each.entity_id for each in page.found], page.after

        assert await listed("ACME") == (["E3", "E1", "E2", "E6"], "")
        assert await listed("f  acme") == (["E1", "E2"], "")
        assert await listed("acme", limit=2) == (["E3", "E1"], "acme%20foods%0A2%0Ae1/E1")
        assert await listed("acme", "acme%20foods%0A2%0Ae1/E1", 2) == (["E2", "E6"], "")
        assert await listed("\ufdfa" * 150) == (["E5"], "")
        assert await listed("foods") == (["E1", "E2"], "")
        assert await listed("oods") == ([], "")
        with pytest.raises(Refused, match="is not a place in this list"):
            await listed("acme", "E7")


async def test_the_people_of_an_entity_are_paged_by_their_memberships(place: Place) -> None:
    """docs/costs.md: a page costs the same however many people there are; of another entity nobody is seen."""
    async with place.opened() as stores:
        await write(stores, *EVERYTHING)
        found: list[tuple[Membership, User]] = []
        after = ""
        where = {"entity_id": "A1"}
        while page := await stores.registry.lists.find(MEMBERS, where, after=(after,), limit=3):
            found += [(each.membership, each.user) for each in page]
            after = page[-1].membership.membership_id
        assert {user.user_id for _, user in found} == {each.user_id for each in MEMBERSHIPS if each.entity_id == "A1"}
        assert all((held.user_id, held.entity_id) == (user.user_id, "A1") for held, user in found)
        identifiers = [held.membership_id for held, _ in found]
        assert identifiers == sorted(set(identifiers)) and all(identifiers)


async def test_an_entity_is_counted_up_to_a_limit(place: Place) -> None:
    """docs/costs.md: the numbers of an entity's home page; nothing of another entity is counted."""
    ends = [replace(each, end_date=f"2027-01-{day:02}") for day, each in enumerate(ROLES, start=1)]
    offers = [
        ThirdPartyGrant(client_entity_id="B2", entity_id="A1", service_id="S1", state="offered"),
        ThirdPartyGrant(client_entity_id="B2", entity_id="A1", service_id="S2"),
    ]

    async with place.opened() as stores:
        await write(stores, *ENTITIES, *SERVICES, *USERS, *MEMBERSHIPS, *ends, *offers)
        directory = stores.registry.directory
        in_time = [each for each in ends if each.entity_id == "A1" and "2027-01-03" <= each.end_date <= "2027-01-09"]
        found = await directory.totals("A1", first="2027-01-03", last="2027-01-09", most=100)
        assert (found.people, found.ending, found.offers) == (4, len(in_time), 1)
        bounded = await directory.totals("A1", first="2027-01-01", last="2027-12-31", most=2)
        assert (bounded.people, bounded.ending, bounded.offers) == (2, 2, 1)


async def test_people_who_are_found_are_paged_in_the_order_of_their_names(place: Place) -> None:
    """D83: words in any order; the order folds letters of ASCII alone, the words all."""
    names = ("Tan Mei", "TAN MEI", "tan ming", "Tan_Ming", "Zoë Tan", "ZOË", "Tanner")
    people = [User(user_id=f"n{number}", user_name=f"n{number}", name=name) for number, name in enumerate(names)]

    async with place.opened() as stores:
        await write(stores, *people)

        async def named(text: str) -> list[str]:
            found: list[str] = []
            after = ""
            while after or not found:
                page = await lists.list_records(
                    stores.registry, CommandLine(by="ops@node1"), USERS_LIST, order="name", search=text,
                    after=after, limit=2,
                )  # fmt: skip
                found += [each.user_id for each in page.found]
                after = page.after
                if not after:
                    break
            return found

        assert await named("m TAN") == ["n0", "n1", "n2", "n3"]
        assert await named("TAN") == ["n0", "n1", "n2", "n3", "n6", "n4"]
        assert await named("zoe") == await named("ZOË") == ["n5", "n4"]
        assert await named("%") == await named("tan mei zoe") == []


async def test_an_entitys_change_requests_are_paged_backwards(place: Place) -> None:
    """D55: those that have ended are read from the latest one."""
    made = [
        ChangeRequest(
            request_id=f"{number:08x}-x", entity_id=entity_id, requester="user:u1", changes=(), reason="why",
            created_at=number, state="declined" if number % 2 else "pending",
        )
        for number, entity_id in enumerate(("A1", "A1", "B2", "B2", "A1", "A1"))
    ]  # fmt: skip

    async with place.opened() as stores:
        await write(stores, *ENTITIES, *made)
        declined = partial(
            stores.registry.lists.find, REQUESTS, {"entity_id": "A1", "state": "declined"}, backwards=True
        )
        latest = await declined(limit=1)
        assert latest == [made[5]]
        assert await declined(after=(latest[0].request_id,), limit=5) == [made[1]]


async def test_people_are_found_by_their_address_in_the_order_of_addresses(place: Place) -> None:
    """Letters of ASCII are alike, also in one address of two people."""
    addresses = ("mei@harbour.example", "MEI@harbour.example", "mei.l@harbour.example", "", "zoe@harbour.example")
    people = [User(user_id=f"n{n}", user_name=f"n{n}", name="N", email=each) for n, each in enumerate(addresses)]

    async with place.opened() as stores:
        await write(stores, *people)
        actor = CommandLine(by="ops@node1")

        async def listed(email: str, after: str = "") -> tuple[list[str], str]:
            page = await lists.list_records(
                stores.registry, actor, USERS_LIST, order="email", search=email, after=after, limit=2
            )
            return [each.user_id for each in page.found], page.after

        assert await listed("Mei") == (["n2", "n0"], "mei%40harbour.example/n0")
        assert await listed("Mei", "mei%40harbour.example/n0") == (["n1"], "")
        assert await listed("zoe@harbour.example") == await listed("harbour zo") == (["n4"], "")
        assert await listed("%") == ([], "")


async def test_grants_are_narrowed_by_their_state(place: Place) -> None:
    """D56: offers that wait are found among what was accepted."""
    held = ThirdPartyGrant(client_entity_id="A-1", entity_id="A1", service_id="S1")
    made = [held, *(replace(held, client_entity_id=client, state="offered") for client in ("A.1", "B2"))]

    async with place.opened() as stores:
        await write(stores, *ENTITIES, *SERVICES, *made)
        page = stores.registry.directory.page
        where = {"entity_id": "A1", "state": "offered"}
        assert await page(ThirdPartyGrant, where, after=("",) * 6, limit=5) == made[1:]


async def test_entities_are_found_by_their_registration_number_in_its_order(place: Place) -> None:
    numbers = {"E1": "T08-12", "E2": "T08-1", "E3": "T09-1", "E4": "T08-1"}

    async with place.opened() as stores:
        await write(stores, *(replace(BOOKS, entity_id=key, registration_number=n) for key, n in numbers.items()))
        actor = CommandLine(by="ops@node1")

        async def listed(number: str, after: str = "") -> tuple[list[str], str]:
            page = await lists.list_records(
                stores.registry, actor, ENTITY_LIST, order="number", search=number, after=after, limit=2
            )
            return [each.entity_id for each in page.found], page.after

        assert await listed("T08") == (["E2", "E4"], "T08-1/E4")
        assert await listed("T08", "T08-1/E4") == (["E1"], "")
        assert await listed("t08-12") == (["E1"], "")
