"""The index of words on both engines (D83): what records are found by is what they say, whatever changes them."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from corpid.flows.directory.lists import list_records
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.lists import CLIENTS, ENTITIES, MEMBERS, SERVICES, USERS
from corpid.rules.directory.memberships import RoleSearch, accepted_by
from corpid.rules.directory.records import (
    Accept,
    Assignment,
    Change,
    Conflict,
    Entity,
    Membership,
    Precondition,
    Service,
    User,
)
from corpid.rules.directory.words import words_of, words_of_search
from corpid.rules.oauth.records import Client
from corpid.stores.sql import schema
from corpid.stores.sql.migration import MigrationStopped, read_steps
from tests.adapters.opened import EVENT
from tests.adapters.stored_records import BOOKS, LEVY, LIM, write
from tests.upgrades.databases import StopAfter, make_oldest

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

BY = CommandLine(by="lee@node1")
PEOPLE = ("u1", "u2", "u3")
FIRMS = ("E1", "E2")
NAMES = ("Tan Mei", "TAN", "Zoë 陈伟明", "Jean-Luc o'Neil", "குமார்")
ADDRESSES = ("", "mei@harbour.example", "Zoe.Tan@home.example")


def listed(words: str) -> set[str]:
    return {each for found in json.loads(words).values() for each in found}


async def expected(stores: SqlStores) -> dict[str, set[tuple[str, ...]]]:
    """The words that the stored records say."""
    directory = stores.registry.directory
    users = {each.user_id: each async for each in directory.scan(User)}
    entities = [each async for each in directory.scan(Entity)]
    services = [each async for each in directory.scan(Service)]
    clients = [each async for each in directory.scan(Client)]
    members: set[tuple[str, ...]] = set()
    async for each in directory.scan(Membership):
        person = users[each.user_id]
        shown = {"user_name"} | {name for name in ("name", "email") if not getattr(each, name)}
        of_person = {} if person.placeholder else json.loads(words_of(person))
        words = listed(words_of(each)) | {word for name in shown for word in of_person.get(name, ())}
        state = (
            "invited" if each.invited else "suspended" if not each.enabled else "active" if person.enabled else "locked"
        )
        members |= {(each.entity_id, word, each.user_id) for word in words | {f" {state}"}}
    return {
        "user_words": {
            (word, each.user_id) for each in users.values() if not each.placeholder for word in listed(words_of(each))
        },
        "entity_words": {(word, each.entity_id) for each in entities for word in listed(words_of(each))},
        "service_words": {(word, each.service_id) for each in services for word in listed(words_of(each))},
        "client_words": {(word, each.client_id) for each in clients for word in listed(words_of(each))},
        "member_words": members,
    }  # fmt: skip


def stored(place: Place) -> dict[str, set[tuple[str, ...]]]:
    columns = {
        "user_words": "word, user_id",
        "entity_words": "word, entity_id",
        "service_words": "word, service_id",
        "client_words": "word, client_id",
        "member_words": "entity_id, word, user_id",
    }
    return {table: set(place.sql(f"SELECT {names} FROM {table}")) for table, names in columns.items()}


def user(user_id: str, name: str, email: str, enabled: bool) -> User:
    return User(user_id=user_id, user_name=user_id, name=name, email=email, enabled=enabled)


def member(user_id: str, entity_id: str, name: str, email: str, enabled: bool, department: str) -> Membership:
    return Membership(
        user_id=user_id, entity_id=entity_id, name=name, email=email, enabled=enabled, department=department
    )


def client(client_id: str, name: str) -> Client:
    return Client(client_id=client_id, name=name, redirect_uris=("https://shop.example/cb",))


people = st.sampled_from(PEOPLE)
firms = st.sampled_from(FIRMS)
written = st.one_of(
    st.builds(user, people, st.sampled_from(NAMES), st.sampled_from(ADDRESSES), st.booleans()),
    st.builds(
        member, people, firms, st.sampled_from(("", *NAMES)), st.sampled_from(ADDRESSES), st.booleans(),
        st.sampled_from(("", "Finance")),
    ),
    st.builds(lambda key, name: replace(BOOKS, entity_id=key, name=name), firms, st.sampled_from(NAMES)),
    st.builds(lambda name: Service(service_id="S1", name=name), st.sampled_from(NAMES)),
    st.builds(lambda name: client("shop", name), st.sampled_from(NAMES)),
)  # fmt: skip
steps = st.lists(st.tuples(st.sampled_from(("write", "write", "remove", "invite", "accept")), written), max_size=25)


async def invite(stores: SqlStores, of: Membership, numbers: count[int]) -> None:
    invited = replace(of, user_id=f"p{next(numbers)}", invited=True)
    guard = Precondition(Membership, invited.key, None)
    await stores.registry.directory.write([guard, Change(None, invited, EVENT)])


async def accept(stores: SqlStores, user_id: str) -> None:
    waiting = [each async for each in stores.registry.directory.scan(Membership) if each.invited]
    if waiting:
        becomes = accepted_by(waiting[0], user_id, now=9)
        await stores.registry.directory.write([Accept(waiting[0], becomes, EVENT)])


@pytest.mark.full
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_after_any_changes_the_index_has_the_words_of_the_records(place: Place, changes: list[tuple[str, Any]]) -> None:
    """D83, D61, D68: also of people and entities that end, and of those who are invited."""
    place.run(lambda stores: carry_out(place, stores, changes))


async def carry_out(place: Place, stores: SqlStores, changes: list[tuple[str, Any]]) -> None:
    """Make the changes in a directory of three people and two entities, and compare."""
    numbers = count()
    for table in ("member_words", "user_words", "entity_words", "memberships", "users", "entities"):
        place.sql(f"DELETE FROM {table}")
    await write(stores, *(replace(BOOKS, entity_id=each) for each in FIRMS))
    await write(stores, *(user(each, "N", "", True) for each in PEOPLE))
    for verb, record in changes:
        try:
            if verb == "remove":
                await stores.registry.directory.write([Change(record, None)], EVENT)
            elif verb == "invite":
                await invite(stores, member("p", "E1", "Mei", "m@x.example", True, "HR"), numbers)
            elif verb == "accept":
                await accept(stores, getattr(record, "user_id", "u1"))
            else:
                await write(stores, record)
        except Conflict:
            continue
    assert stored(place) == await expected(stores)


async def test_words_are_found_in_any_order_by_their_beginning(place: Place) -> None:
    """D83: without accents, in every script; where words follow each other without spaces, from any letter on."""
    names = {
        "a": "Tan Mei Ling",
        "b": "Zoë Müller-Straße",
        "c": "陈伟明",
        "d": "குமார் சிவன்",
        "e": "สมชาย ใจดี",
        "f": "ABC貿易 Pte",
    }

    async with place.opened() as stores:
        await write(stores, *(User(user_id=key, user_name=f"user.{key}", name=name) for key, name in names.items()))

        async def found(search: str) -> str:
            page = await list_records(stores.registry, BY, USERS, search=search, limit=10)
            return "".join(each.user_id for each in page.found)

        assert await found("ling tan") == await found("  LI, me ") == await found("TAN") == "a"
        assert await found("an") == await found("tan x") == ""
        assert await found("zoe strasse") == await found("ZOË mull") == "b"
        assert await found("明") == await found("伟明") == await found("陈") == "c"
        assert await found("陈明") == ""
        assert await found("குமா") == await found("சிவ குமார்") == "d"
        assert await found("ชาย") == await found("ใจ") == "e"
        assert await found("貿易") == await found("易 abc") == await found("ABC貿") == "f"
        assert await found("user.b") == "b"
        assert await found("user") == "abcdef"
        assert await found("...") == await found("%") == ""
        assert await found("") == "abcdef"


async def test_an_entity_finds_what_it_wrote_and_of_the_rest_the_persons(place: Place) -> None:
    """D61: where it wrote a name or address, the person's own is not found by; the user name always is (D68)."""
    person = User(user_id="u2", user_name="lim", name="Private Name", email="private@home.example")

    async with place.opened() as stores:
        await write(stores, replace(BOOKS, enabled=True), person, member("u2", "E2", "", "", True, ""))

        async def found(search: str, **narrowed: Any) -> int:
            page = await list_records(
                stores.registry, BY, MEMBERS, {"entity_id": "E2"}, search=search, limit=9, **narrowed
            )
            return len(page.found)

        assert await found("private name") == await found("lim home") == await found("", state="active") == 1
        await write(stores, member("u2", "E2", "Lim W.", "lim@books.example", True, "Finance"))
        assert await found("private") == await found("home") == 0
        assert await found("lim finance books") == 1
        await write(stores, replace(person, name="Other", enabled=False))
        assert await found("other") == await found("", state="active") == 0
        assert await found("w", state="locked") == 1
        await write(stores, member("u2", "E2", "", "", True, ""))
        assert await found("other") == 1


async def test_roles_are_found_by_the_words_of_their_members(place: Place) -> None:
    """D61, D83: as members are, at that entity only."""
    async with place.opened() as stores:
        people = user("u1", "Zoë Tan", "zoe@home.example", True), user("u2", "Tan Mei", "mei@home.example", True)
        belong = [member(each.user_id, "E2", "", "", True, "Finance") for each in people]
        other = member("u2", "E1", "Elsewhere", "", True, "")
        roles = [Assignment(user_id=each.user_id, entity_id="E2", service_id="s2", role="Filer") for each in people]
        await write(stores, replace(BOOKS, entity_id="E1"), BOOKS, LEVY, *people, *belong, other, *roles)

        async def found(text: str) -> list[str]:
            wanted = RoleSearch(entity_id="E2", words=words_of_search(text), role="Filer")
            page, _ = await stores.registry.provisioning.search_roles(wanted, after=(), limit=5, examined=100)
            return [member.user.user_id for (_, member), _ in page]

        assert await found("") == await found("tan fin") == ["u1", "u2"]
        assert await found("TAN zoe") == ["u1"]
        assert await found("u2 home finance") == ["u2"]
        assert await found("elsewhere") == await found("an") == []


async def test_what_a_server_of_the_version_before_writes_is_found_after_the_next_round(place: Place) -> None:
    """docs/decisions/0009: it knows neither the words nor the tables."""
    async with place.opened() as stores:
        of_entity = LIM, Membership(user_id="u2", entity_id="E2")
        await write(stores, BOOKS, *of_entity, Service(service_id="S1", name="Tax"), client("shop", "Shop"))
        assert await stores.registry.outdated_words.refresh() == 0
        place.sql("UPDATE users SET name = 'Zoe Quek', email = 'zoe@home.example' WHERE user_id = 'u2'")
        place.sql("UPDATE entities SET name = 'Harbour' WHERE entity_id = 'E2'")
        place.sql("UPDATE services SET name = 'Permits' WHERE service_id = 'S1'")
        place.sql("UPDATE clients SET name = 'Fish shop', record = replace(record, 'Shop', 'Fish shop')")
        place.sql("UPDATE memberships SET email = 'q@books.example' WHERE user_id = 'u2'")
        place.sql(
            "INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, "
            "identity_country, account_type, enabled) VALUES ('u7', 'kim', 'kim', 'Kim', '', '', '', '', '', true)"
        )
        place.sql("INSERT INTO memberships (user_id, entity_id, enabled, name) VALUES ('u7', 'E2', true, 'Kimmy')")
        assert await stores.registry.outdated_words.refresh() == 7
        assert await stores.registry.outdated_words.refresh() == 0
        assert stored(place) == await expected(stores)
        assert {("permits", "S1"), ("fish", "shop")} <= stored(place)["service_words"] | stored(place)["client_words"]
        assert ("E2", "q", "u2") in {(row[0], row[1], row[2]) for row in stored(place)["member_words"]}


async def test_a_change_and_a_search_at_once_agree(place: Place) -> None:
    """D83: the words change with the record, in its transaction."""
    async with place.opened() as stores:
        await write(stores, BOOKS, LIM)

        async def rename(number: int) -> None:
            await write(stores, replace(LIM, name=f"Name{number} Lim"))

        async def search(number: int) -> None:
            page = await list_records(stores.registry, BY, USERS, search=f"name{number}", limit=5, count_to=5)
            assert page.total is not None
            assert page.total.count <= 1
            for each in page.found:
                assert each.user_id == "u2"

        await asyncio.gather(*(work(number) for number in range(20) for work in (rename, search)))
        assert stored(place) == await expected(stores)


@pytest.mark.full
async def test_changes_of_a_person_and_of_memberships_at_once_leave_no_other_words(postgresql: Place) -> None:
    """D83: of two transactions that write the same words, the second sees what the first has written."""
    async with postgresql.opened() as stores:
        await write(stores, *(replace(BOOKS, entity_id=each) for each in FIRMS), LIM)
        await write(stores, *(Membership(user_id="u2", entity_id=each) for each in FIRMS))

        async def change(number: int) -> None:
            await write(stores, replace(LIM, name=f"Lim {number}", enabled=number % 2 == 0))

        async def belong(number: int) -> None:
            await write(stores, member("u2", FIRMS[number % 2], ("", "Own")[number // 2 % 2], "", True, f"D{number}"))

        await asyncio.gather(*(work(number) for number in range(40) for work in (change, belong)))
        assert stored(postgresql) == await expected(stores)


@pytest.mark.full
async def test_a_new_membership_waits_for_its_persons_words(postgresql: Place) -> None:
    """D83: whichever of the two is committed first."""
    async with postgresql.opened() as stores:
        await write(stores, replace(BOOKS, enabled=True), LIM)
        connection = await asyncpg.connect(str(postgresql.address))
        try:
            async with connection.transaction():
                words = words_of(replace(LIM, name="Zoe"))
                await connection.execute("UPDATE users SET name = 'Zoe', words = $1 WHERE user_id = 'u2'", words)
                joining = asyncio.create_task(write(stores, Membership(user_id="u2", entity_id="E2")))
                while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110
                    await asyncio.sleep(0)
            await joining
        finally:
            await connection.close()
        assert stored(postgresql) == await expected(stores)


@pytest.mark.full
async def test_the_words_of_earlier_records_are_filled_and_an_interrupted_filling_goes_on(empty: Place) -> None:
    """docs/decisions/0009: in batches, each its own transaction; what has words already stays."""
    place = make_oldest(empty.address)
    place.sql(f"""
        INSERT INTO users (
            user_id, user_name, user_name_key, name, email, language, identity_number, identity_country, account_type, enabled
        ) {numbers(2500)} SELECT 'u' || i, 'u' || i, 'u' || i, 'Tan ' || i, '', 'en', '', '', '', TRUE FROM n
    """)
    place.sql("""
        INSERT INTO entities (entity_id, type, registration_number, country, name, status, enabled, search_text)
        VALUES ('E2', 'company', 'T08', 'SG', 'Books', 'active', TRUE, 'books')
    """)
    place.sql(f"""
        INSERT INTO memberships (user_id, entity_id, enabled, department)
        {numbers(1200)} SELECT 'u' || i, 'E2', TRUE, 'Part ' || i FROM n
    """)
    place.sql("""
        INSERT INTO services (service_id, name, roles, parameters, third_parties, sub_entity, entity_types, entity_statuses, enabled)
        VALUES ('S1', 'Company tax', '[]', '[]', FALSE, 'none', '[]', '[]', TRUE)
    """)
    record = msgspec.json.encode(client("shop", "Fish shop")).decode()
    place.sql(f"INSERT INTO clients (client_id, name, enabled, record) VALUES ('shop', 'Fish shop', TRUE, '{record}')")
    first = next(at for at, each in enumerate(read_steps()) if each.fill is not None)
    with pytest.raises(MigrationStopped, match="stopped after 2,000 of about 2,500 rows"):
        schema.migrate(place.address, stop=StopAfter(first + 2))
    schema.migrate(place.address)
    async with place.opened() as stores:
        assert stored(place) == await expected(stores)
    assert [len(words) for words in stored(place).values()] == [2500 * 3, 3, 3, 2, 1200 * 5]


def numbers(count: int) -> str:
    """What begins a statement that selects from `n`, numbers from 1 on."""
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"


async def test_entities_are_found_by_number_and_identifier_too(place: Place) -> None:
    """D83."""
    async with place.opened() as stores:
        await write(stores, replace(BOOKS, registration_number="T08-GB-12", name="Books Pte"))

        async def found(search: str) -> int:
            return len((await list_records(stores.registry, BY, ENTITIES, search=search, limit=5)).found)

        assert await found("gb t08") == await found("e2") == await found("pte books 12") == 1
        assert await found("books e3") == 0


async def test_services_and_clients_are_found_by_words_of_name_and_identifier_in_any_order(place: Place) -> None:
    """D83: as people and entities."""
    async with place.opened() as stores:
        await write(stores, Service(service_id="TAX-FILING", name="Company tax"), Service(service_id="S2", name="Fish"))
        await write(stores, client("harbour-permits", "Zoë's permits"), client("shop", "Permitted fish"))
        for listed, search, wanted in (
            (SERVICES, "filing comp", ["TAX-FILING"]),
            (SERVICES, "tax s2", []),
            (CLIENTS, "zoe harb", ["harbour-permits"]),
            (CLIENTS, "permit", ["harbour-permits", "shop"]),
            (CLIENTS, "arbour", []),
        ):
            page = await list_records(stores.registry, BY, listed, search=search, limit=5)
            assert [each.key[0] if listed is SERVICES else each.client_id for each in page.found] == wanted, search


@pytest.mark.full
@pytest.mark.parametrize("descending", [False, True])
async def test_many_that_are_found_are_paged_in_the_order_of_the_word(place: Place, descending: bool) -> None:
    """D83: each once, forwards and back, also who has two such words; the total says how many."""
    async with place.opened() as stores:
        await write(
            stores,
            *(user(f"u{number:04}", ("Tan", "Tanya Tan", "Mei Tania")[number % 3], "", True) for number in range(2100)),
        )
        for search, expected in (("tan", 2100), ("tan u", 2100), ("mei tan", 700)):
            found: list[str] = []
            back: list[str] = []
            after = ""
            while True:
                page = await list_records(
                    stores.registry, BY, USERS, order="name", descending=descending, search=search, after=after,
                    limit=400, count_to=10_000,
                )  # fmt: skip
                assert page.total is not None
                assert page.total.count == expected
                assert page.by_word is (expected > 2000)
                if found:
                    earlier = await list_records(
                        stores.registry, BY, USERS, order="name", descending=descending, search=search,
                        before=page.before, limit=400,
                    )  # fmt: skip
                    assert [each.user_id for each in earlier.found] == back
                back = [each.user_id for each in page.found]
                found += back
                if not page.after:
                    break
                after = page.after
                assert after.startswith("/") is (expected > 2000)
            assert len(found) == len(set(found)) == expected


@pytest.mark.full
@pytest.mark.parametrize("descending", [False, True])
async def test_words_that_are_each_very_common_are_searched_part_by_part(place: Place, descending: bool) -> None:
    """D83: the total is exact, and a page whole, also if the words are seldom together."""
    place.sql(
        "INSERT INTO users (user_id, user_name, user_name_key, name, email, language, identity_number, "
        "identity_country, account_type, enabled, words) WITH RECURSIVE rows(n) AS "
        "(SELECT 10001 UNION ALL SELECT n + 1 FROM rows WHERE n < 31000) SELECT 'u' || n, 'u' || n, 'u' || n, "
        "'N', '', '', '', '', '', true, CASE WHEN n < 20991 THEN '{\"name\":[\"alpha\",\"alphas\"]}' "
        'WHEN n < 21001 THEN \'{"name":["alpha","beta"]}\' ELSE \'{"name":["beta","u"]}\' END FROM rows'
    )
    expected = {"alpha beta": 10, "alpha u1": 0, "beta u": 10_000, "alphas alp": 10_000}
    async with place.opened() as stores:
        for search, count_of in expected.items():
            found: list[str] = []
            after = ""
            while True:
                page = await list_records(
                    stores.registry, BY, USERS, descending=descending, search=search, after=after, limit=4000,
                    count_to=10_000,
                )  # fmt: skip
                found += [each.user_id for each in page.found]
                assert page.total is not None
                assert page.total.count == count_of
                after = page.after
                if not after:
                    break
            assert len(found) == len(set(found))
            assert len(found) >= count_of
