"""A person's entities as the registry finds them: the law of `entity_choice`, applied by statements."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from corpid.rules.directory.entity_choice import FORMS, accepted_entities, search_text, search_words, usable
from corpid.rules.directory.records import Change, Entity, EntityStatus, EntityType, Membership, Service, User
from corpid.stores.sql.directory import count_choices, select_choices, select_usable
from corpid.stores.sql.sqlite import SqliteDatabase
from tests.adapters.databases import Place
from tests.adapters.opened import EVENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores

ANYTHING = accepted_entities([])
TAN = User(user_id="u1", user_name="tan", name="Tan")
LIM = User(user_id="u2", user_name="lim", name="Lim")


def entity(entity_id: str, name: str = "", **more: Any) -> Entity:
    fields = {"type": "UEN", "registration_number": f"R-{entity_id}", "status": "Registered", **more}
    return Entity(entity_id=entity_id, country="SG", name=name or f"Entity {entity_id}", **fields)


def held_by(user_id: str, *entities: Entity, enabled: bool = True) -> list[KeyedRecord]:
    memberships = [Membership(user_id=user_id, entity_id=one.entity_id, enabled=enabled) for one in entities]
    return [*entities, *memberships]


@asynccontextmanager
async def peopled(place: Place) -> AsyncIterator[SqlStores]:
    async with place.opened() as stores:
        await write(stores, TAN, LIM)
        yield stores


async def write(stores: SqlStores, *records: KeyedRecord) -> None:
    await stores.registry.directory.write([Change(None, record) for record in records], EVENT)


async def found(stores: SqlStores, query: str = "", *, first: str = "", limit: int = 50) -> list[str]:
    pairs, total = await stores.registry.directory.choices(
        "u1", ANYTHING, words=search_words(query), first=first, limit=limit
    )
    assert total >= len(pairs)
    return [one.entity_id for one, _ in pairs]


def subsets(values: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [
        tuple(v for v, kept in zip(values, mask, strict=True) if kept) for mask in product((0, 1), repeat=len(values))
    ]


SERVICES = [
    Service(service_id="S", name="S", entity_types=types, entity_statuses=statuses, enabled=enabled)  # type: ignore[arg-type]
    for types in subsets(get_args(EntityType))
    for statuses in subsets(get_args(EntityStatus))
    for enabled in (True, False)
]
SETS_OF_SERVICES = [[], *([one] for one in SERVICES), *([one, SERVICES[37]] for one in SERVICES)]


@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True)
async def test_statements_and_law_agree_on_every_combination(place: Place) -> None:
    """Spec 3, R-19, R-20: type, status, entity and membership enabled or not, and every service; each alone."""
    async with peopled(place) as stores:
        held: list[tuple[Entity, Membership]] = []
        for number, ((form, status), on, member) in enumerate(product(FORMS, (True, False), (True, False))):
            one = entity(f"E{number:02}", type=form, status=status, enabled=on)
            held.append((one, Membership(user_id=f"of-{number:02}", entity_id=one.entity_id, enabled=member)))
            person = msgspec.structs.replace(TAN, user_id=f"of-{number:02}", user_name=f"of-{number:02}")
            everybody = Membership(user_id="u1", entity_id=one.entity_id, enabled=member)
            await write(stores, person, one, held[-1][1], everybody)
        for services in SETS_OF_SERVICES:
            pairs = accepted_entities(services)
            by_law = {one.entity_id for one, member in held if usable(one, member, services).usable}
            by_statement = [
                found.entity.entity_id
                for _, member in held
                for found in await stores.registry.directory.usable(member.user_id, pairs)
            ]
            assert sorted(by_law) == by_statement
            listed, total = await stores.registry.directory.choices("u1", pairs, words=(), first="", limit=1000)
            assert {one.entity_id for one, _ in listed[: len(by_law)]} == by_law, "usable ones come first"
            assert len(listed) == total == len(held)


async def test_the_search_for_usable_ones_ends_at_the_second(place: Place) -> None:
    """D30: one, or more than one, is all that has to be known; of nobody else's."""
    async with peopled(place) as stores:
        directory = stores.registry.directory
        await write(stores, *held_by("u2", entity("E0"), entity("E9")))
        assert await directory.usable("u1", ANYTHING) == []
        await write(stores, *held_by("u1", entity("E1")), *held_by("u1", entity("E2"), enabled=False))
        assert [each.entity.entity_id for each in await directory.usable("u1", ANYTHING)] == ["E1"]
        await write(stores, *held_by("u1", entity("E3"), entity("E4")))
        found = await directory.usable("u1", ANYTHING)
        assert [each.entity.entity_id for each in found] == ["E1", "E3"]
        assert found[0] == await directory.acting("u1", "E1")
        assert await directory.usable("u1", frozenset()) == []
        assert await directory.usable("nobody", ANYTHING) == []


async def test_entities_stand_by_name_in_every_case_and_script(place: Place) -> None:
    """Spec 3: usable ones first; of these the one that was used last; names without regard to case."""
    async with peopled(place) as stores:
        named = {"E4": "beta", "E3": "Beta Two", "E2": "Alpha", "E1": "Émile", "E0": "émile 2"}
        await write(stores, *held_by("u1", *(entity(number, name) for number, name in named.items())))
        await write(stores, *held_by("u1", entity("EX", "Aardvark", enabled=False)))
        assert await found(stores) == ["E2", "E4", "E3", "E1", "E0", "EX"]
        assert await found(stores, first="E1") == ["E1", "E2", "E4", "E3", "E0", "EX"]
        assert await found(stores, first="EX") == ["E2", "E4", "E3", "E1", "E0", "EX"]
        assert await found(stores, "beta", first="E1") == ["E4", "E3"]


async def test_what_is_listed_is_what_was_written(place: Place) -> None:
    async with peopled(place) as stores:
        one, other = entity("E1", status="", enabled=False), entity("E2", type="GSTN")
        await write(stores, *held_by("u1", one, other, enabled=False))
        pairs, total = await stores.registry.directory.choices("u1", ANYTHING, words=(), first="", limit=2)
        member = Membership(user_id="u1", entity_id="E1", enabled=False)
        assert pairs == [(one, member), (other, msgspec.structs.replace(member, entity_id="E2"))]
        assert total == 2


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["E1", "E2", "E3", "E4"]),
        ("ÇELİK", ["E2"]),
        ("çeli\u0307k", ["E2"]),
        ("STRASSE", ["E3"]),
        ("straße 5%", ["E3"]),
        ("\uff21\uff23\uff2d\uff25", ["E1"]),
        ("ltd acme", ["E1"]),
        ("acme acme ltd ltd", ["E1"]),
        ("r-e", ["E1", "E2", "E3", "E4"]),
        ("r-e4", ["E4"]),
        ("e4", ["E4"]),
        ("株式会社", ["E4"]),
        ("5%", ["E3"]),
        ("%", ["E3"]),
        ("_", []),
        ("/", ["E4"]),
        ("/%", []),
        ("\\", []),
        ("acme celik", []),
        ("\x00", []),
        ("acme\x00", []),
        ("\ud800", []),
        ("acme\nr-e1", ["E1"]),
        ("x" * 10_000, []),
        ("e " * 2_000, ["E1", "E2", "E3", "E4"]),
        (" ".join(f"e{number}" for number in range(100)), []),
    ],
)
async def test_a_search_finds_the_entities_that_hold_every_word(place: Place, query: str, expected: list[str]) -> None:
    """Spec 3: by name or number, words in any order, capital and small letters of every script alike."""
    async with peopled(place) as stores:
        names = ("Acme Pte. Ltd.", "Çelİk", "Hauptstraße 5% GmbH", "株式会社 a/s")
        ours = [entity(f"E{number}", name) for number, name in enumerate(names, start=1)]
        await write(stores, *held_by("u1", *ours), *held_by("u2", entity("E9", "Acme % _ \\ Ltd")))
        assert sorted(await found(stores, query)) == expected


async def test_a_new_name_is_found_and_the_old_one_is_not(place: Place) -> None:
    async with peopled(place) as stores:
        await write(stores, *held_by("u1", entity("E1", "Acme")))
        await write(stores, entity("E1", "Banyan"))
        assert (await found(stores, "banyan"), await found(stores, "acme")) == (["E1"], [])


async def test_a_list_that_is_cut_says_how_many_there_are(tmp_path: Path) -> None:
    """Spec 3: the total is that of the search; a list that is whole needs no second statement."""
    async with peopled(Place(tmp_path / "corpid.db")) as stores:
        many = [entity(f"E{number:03}", ("Harbour", "Garden")[number % 2]) for number in range(120)]
        await write(stores, *held_by("u1", *many), *held_by("u2", entity("X", "Garden")))
        directory, database = stores.registry.directory, stores.database
        assert isinstance(database, SqliteDatabase)
        for words, limit, shown, total, expected in (
            ((), 50, 50, 120, 2),
            (("garden",), 50, 50, 60, 2),
            (("garden",), 60, 60, 60, 2),
            (("garden",), 61, 60, 60, 1),
            (("e119",), 50, 1, 1, 1),
            (("nothing",), 50, 0, 0, 1),
        ):
            heard: list[str] = []
            database._connection.set_trace_callback(heard.append)
            pairs, counted = await directory.choices("u1", ANYTHING, words=words, first="", limit=limit)
            database._connection.set_trace_callback(None)
            assert (len(pairs), counted, len(heard)) == (shown, total, expected)


async def test_every_look_reads_the_persons_memberships_and_their_entities_by_key(tmp_path: Path) -> None:
    """docs/costs.md: with thousands of entities a person costs what they hold, and no one else's."""
    async with peopled(Place(tmp_path / "corpid.db")) as stores:
        dialect = stores.database.dialect
        statements = [make(words) for make in (select_choices, count_choices) for words in (1, 3)]
        mine, theirs = (
            "SEARCH memberships USING PRIMARY KEY (user_id=?)",
            "SEARCH entities USING PRIMARY KEY (entity_id=?)",
        )
        for statement in statements:
            assert [step for step in plan(tmp_path, statement.compiled(dialect)[0]) if "TEMP B-TREE" not in step] == [
                mine,
                theirs,
            ]
        assert plan(tmp_path, count_choices(0).compiled(dialect)[0]) == [mine]
        person = "SEARCH users USING PRIMARY KEY (user_id=?)"
        level = "SEARCH administrators USING PRIMARY KEY (user_id=? AND entity_id=?) LEFT-JOIN"
        assert plan(tmp_path, select_usable.compiled(dialect)[0]) == [person, mine, theirs, level]


def plan(path: Path, statement: str) -> list[str]:
    connection = sqlite3.connect(path / "corpid.db")
    steps = connection.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?")).fetchall()
    connection.close()
    return [step[3] for step in steps]


def test_the_text_that_is_searched_begins_with_the_name() -> None:
    """It is sorted by as well: a name stands before longer ones that begin with it."""
    one = entity("E1", "ACME  Trading", registration_number="r 1")
    assert search_text(one) == "acme trading\nr 1\ne1"
    assert search_text(entity("E2", "Acme")) < search_text(one)
