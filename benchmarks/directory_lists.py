"""What lists, searches and changes of the directory cost on a large database beside a small one, as commands make them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg

from benchmarks import fill, people
from benchmarks.in_turn import Call, Clock, compared
from corpid.engines import new_user_id
from corpid.flows.directory import lists
from corpid.flows.directory.imports import import_people
from corpid.flows.directory.people import load_person
from corpid.flows.directory.single_records import add_record, remove_record
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.lists import ASSIGNMENTS, ENTITIES, MEMBERS, MOST_COUNTED, USERS, RecordList
from corpid.rules.directory.records import Assignment, Change, Entity
from corpid.stores.sql.open import SqlStores, open_postgresql

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from benchmarks.fill import Size
    from corpid.stores.encryption_at_rest import SecretCipher
    from corpid.stores.sql.registry import Registry

CROWD, LEAST_CROWD, CROWD_ID = 20_000, 1_000, "CROWD"
"""people of one entity on the large database, on a small one, and its identifier"""
PAGE = 50
BY = CommandLine(by="benchmark@localhost")
_STRIDE = 7919
"""from one place to the next, so that none finds the pages of the one before"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a database is looked at: a number leads to another place, from which as much is found on each database."""

    size: Size

    @property
    def crowd(self) -> int:
        """How many people the largest entity has."""
        return max(LEAST_CROWD, self.size.users * CROWD // fill.USERS)

    def person(self, number: int) -> int:
        """A person whom at least a page of others follows."""
        return number * _STRIDE % (self.size.users - 2 * PAGE)

    def user(self, number: int) -> str:
        """Such a person's user name. Without its last character it is the beginning of ten."""
        return fill.user_name(self.person(number))

    def member(self, number: int) -> str:
        """The user name of somebody in the first half of the largest entity; as above."""
        return f"crowd{number * _STRIDE % (self.crowd // 2):05}"

    def members_name(self, number: int) -> str:
        """Words by which ten names of the largest entity are found: their numbers have five digits."""
        return f"member {number * _STRIDE % (self.crowd // 10):04}"

    def firm(self, number: int) -> str:
        """An entity for which the person with many entities acts, too."""
        return fill.entity_id(2 * (number * _STRIDE % (self.size.many // 2)))

    def firms_name(self, number: int) -> str:
        """The beginning of eleven names of entities."""
        return f"company {_of_eleven(number, self.size.entities)}"

    def entity(self, number: int) -> str:
        """An entity that at least a page of others follows."""
        return fill.entity_id(number * _STRIDE % (self.size.entities - PAGE - 1))


def _of_eleven(number: int, count: int) -> int:
    """One of so many numbers with which eleven begin: itself, and ten that have one digit more."""
    least = -(-count // 100)
    return least + number * _STRIDE % (count // 10 - least)


async def crowded(dsn: str, cipher: SecretCipher, places: Places) -> float:
    """Import the people of the largest entity, and give each a role: milliseconds for each import."""
    passwords = Argon2Passwords(threads=1)
    stores = await open_postgresql(dsn, cipher, time.time)
    try:
        spent = await _import(stores.registry, passwords, places.crowd)
    finally:
        passwords.close()
        await stores.close()
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("VACUUM ANALYZE")  # as PostgreSQL would by itself
    finally:
        await connection.close()
    return round(spent / places.crowd, 3)


async def _import(registry: Registry, passwords: Argon2Passwords, crowd: int) -> float:
    firm = Entity(entity_id=CROWD_ID, type="UEN", registration_number=CROWD_ID, country="SG", name="The Crowd")
    await registry.directory.write([Change(None, firm)])
    rows = "".join(f"crowd{number:05},Member {number:05}\n" for number in range(crowd))
    begun = time.perf_counter()
    await import_people(
        registry, passwords, f"user_name,name\n{rows}".encode(), file="crowd.csv", entity_id=CROWD_ID,
        actor=BY, new_user_id=new_user_id, report=lambda *_: None,
    )  # fmt: skip
    spent = 1000 * (time.perf_counter() - begun)
    known = await registry.lists.find(MEMBERS, {"entity_id": CROWD_ID}, limit=crowd)
    roles = [(each.user.user_id, CROWD_ID, people.SERVICE) for each in known]
    given = [Assignment(user_id=user, entity_id=of, service_id=at, role="Maker") for user, of, at in roles]
    await registry.directory.write([Change(None, each) for each in given])
    return spent


async def figures(databases: Mapping[str, tuple[str, SecretCipher, Places]], rounds: int) -> dict[str, dict[str, Any]]:
    """Each kind of look, by name, on both databases in turn. `databases` has address, cipher and places of each.

    Raises steps.Wrong if one database answers with more items than the other.
    """
    passwords = Argon2Passwords(threads=1)
    opened: dict[str, SqlStores] = {}
    try:
        for name, (dsn, cipher, _) in databases.items():
            opened[name] = await open_postgresql(dsn, cipher, time.time)
        calls = {name: _calls(stores.registry, passwords, databases[name][2]) for name, stores in opened.items()}
        return await compared(calls, {name: Clock() for name in calls}, rounds)
    finally:
        passwords.close()
        for stores in opened.values():
            await stores.close()


def _calls(registry: Registry, passwords: Argon2Passwords, places: Places) -> dict[str, Call]:
    user, size = places.user, places.size

    async def changed(number: int) -> int:
        entity = fill.own_entities(places.person(number), size)[0]
        row = {"user": user(number), "entity": entity, "service": people.SERVICE, "ref": "benchmark"}
        await add_record(registry, passwords, "assignment", {**row, "role": "Maker"}, {}, actor=BY)
        await remove_record(registry, "assignment", row, actor=BY)
        return 1

    async def shown(number: int) -> int:
        found = await load_person(registry, BY, user(number), limit=PAGE, now=time.time())
        return len(found.memberships.found) + len(found.roles.found)

    def listed(look: Callable[[int], Awaitable[lists.ListPage[Any]]]) -> Call:
        async def counted(number: int) -> int:
            return len((await look(number)).found)

        return _timed(counted)

    def records(kind: RecordList, given: Callable[[int], dict[str, str]]) -> Call:
        return listed(lambda n: lists.list_records(registry, BY, kind, limit=PAGE, **given(n)))  # type: ignore[arg-type]

    def roles(wanted: dict[str, str], after: str = "") -> Awaitable[lists.ListPage[Any]]:
        return lists.list_with_records(registry, BY, ASSIGNMENTS, wanted, after=after, limit=PAGE)

    def members(after: str = "", search: str = "", order: str = "user_name") -> Awaitable[lists.ListPage[Any]]:
        return lists.list_with_records(
            registry, BY, MEMBERS, {"entity": CROWD_ID}, order=order, search=search,
            after=after and f"{order}:{after}", limit=PAGE, count_to=MOST_COUNTED,
        )  # fmt: skip

    return {
        "people": records(USERS, lambda n: {"after": user(n)}),
        "people by the beginning of their user name": records(USERS, lambda n: {"search": user(n)[:-1]}),
        "people by the beginning of their name": records(
            USERS, lambda n: {"order": "name", "search": places.members_name(n)}
        ),
        "people of the largest entity": listed(lambda n: members(after=places.member(n))),
        "people of the largest entity in the order of names": listed(
            lambda n: members(after=f"member%20{places.member(n).removeprefix('crowd')}/", order="shown_name")
        ),
        "people of the largest entity by the beginning of their user name": listed(
            lambda n: members(search=places.member(n)[:-1])
        ),
        "entities by the beginning of their name": records(
            ENTITIES, lambda n: {"order": "name", "search": places.firms_name(n)}
        ),
        "roles for an entity": listed(lambda n: roles({"entity": places.firm(n)})),
        "roles at a service": listed(
            lambda n: roles({"service": people.SERVICE}, after=f"{fill.user_id(user(n))}/////")
        ),
        "a person with what they may do": _timed(shown),
        "a role given and taken": _timed(changed),
    }


def _timed(look: Callable[[int], Awaitable[int]]) -> Call:
    async def call(number: int) -> tuple[float, int]:
        begun = time.perf_counter()
        items = await look(number)
        return time.perf_counter() - begun, items

    return call
