"""What lists, searches and changes of the directory cost on a large database beside a small one, as commands make them."""

from __future__ import annotations

import statistics
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks import fill, people
from corpid.engines import new_user_id
from corpid.flows.directory import appointments, lists, object_lists, objects
from corpid.flows.directory.import_people import import_people
from corpid.flows.directory.lists import Wanted
from corpid.flows.directory.person import person
from corpid.outbound.passwords import Argon2Passwords
from corpid.ports import Upsert
from corpid.rules.directory.actors import ALL_SCOPES, ApiClient, CommandLine
from corpid.rules.directory.objects import RESOURCES
from corpid.rules.directory.records import Entity, User
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.stores.sql.open import open_postgresql

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.fill import Size
    from corpid.ports import Registry
    from corpid.rules.directory.json_nodes import Json
    from corpid.stores.encryption_at_rest import SecretCipher

CROWD, CROWD_ID = 20_000, "CROWD"
"""people of one entity on the large database, and its identifier"""
ROUNDS, PAGE = 30, 50
BY = CommandLine(by="benchmark@localhost")


async def figures(dsn: str, cipher: SecretCipher, size: Size) -> dict[str, Any]:
    """How many people the largest entity has, what each cost to import, and the median of each look, in milliseconds."""
    crowd = max(PAGE, min(CROWD, size.users * CROWD // fill.USERS))
    passwords = Argon2Passwords(threads=1)
    stores = await open_postgresql(dsn, cipher, time.time)
    try:
        registry = stores.registry
        imported = await _import(registry, passwords, crowd)
        looks = _looks(registry, passwords, size, crowd)
        return {
            "crowd": crowd,
            "import_ms": round(imported / crowd, 3),
            "steps": {name: await _median(look) for name, look in looks.items()},
        }
    finally:
        passwords.close()
        await stores.close()


async def _import(registry: Registry, passwords: Argon2Passwords, crowd: int) -> float:
    firm = Entity(entity_id=CROWD_ID, type="UEN", registration_number=CROWD_ID, country="SG", name="The Crowd")
    await registry.directory.write([Upsert(firm)])
    rows = "".join(f"crowd{number:05},Person {number}\n" for number in range(crowd))
    begun = time.perf_counter()
    await import_people(
        registry, passwords, f"user_name,name\n{rows}".encode(), file="crowd.csv", entity_id=CROWD_ID,
        actor=BY, new_user_id=new_user_id, report=lambda *_: None,
    )  # fmt: skip
    return 1000 * (time.perf_counter() - begun)


def _looks(
    registry: Registry, passwords: Argon2Passwords, size: Size, crowd: int
) -> dict[str, Callable[[int], Awaitable[object]]]:
    """Each at another place for each number, so that none finds the pages of the one before."""

    def user(number: int) -> str:
        return fill.user_name(number * 7919 % size.users)

    def firm(number: int) -> str:
        return fill.own_entities(number * 7919 % size.users, size)[0]

    async def changed(number: int) -> None:
        given = user(number), firm(number), people.SERVICE
        members = {"role": "Maker", "ref": "benchmark"}
        await appointments.add_role(registry, passwords, *given, members, actor=BY)
        wanted = appointments.WantedRole(user=given[0], entity=given[1], service=given[2], ref="benchmark")
        await appointments.remove_role(registry, wanted, actor=BY)

    return {
        "people": lambda n: lists.people(registry, BY, search="", after=user(n), limit=PAGE),
        "people by the beginning of their user name": lambda n: lists.people(
            registry, BY, search=user(n)[:-1], after="", limit=PAGE
        ),
        "people of the largest entity": lambda n: lists.members(
            registry, BY, CROWD_ID, search="", after=f"crowd{n * 7919 % crowd:05}", limit=PAGE
        ),
        "entities by the beginning of their name": lambda n: lists.entities_by_name(
            registry, BY, name=f"company {n * 7919 % size.entities}", after="", limit=PAGE
        ),
        "roles for an entity": lambda n: lists.roles(registry, BY, Wanted(entity=firm(n)), after="", limit=PAGE),
        "roles at a service": lambda _: lists.roles(registry, BY, Wanted(service=people.SERVICE), after="", limit=PAGE),
        "a person with what they may do": lambda n: person(registry, BY, user(n), limit=PAGE, now=time.time()),
        "a role given and taken": changed,
        **_of_api(registry, passwords, user),
    }


def _of_api(
    registry: Registry, passwords: Argon2Passwords, user: Callable[[int], str]
) -> dict[str, Callable[[int], Awaitable[object]]]:
    """What the admin API does for a page of people, of an entity's people, a search and a change."""
    by = objects.Administration(
        registry=registry,
        passwords=passwords,
        actor=ApiClient(client_id="benchmark", scopes=ALL_SCOPES),
        rules=PLAIN_RULES,
        new_user_id=new_user_id,
        tag=lambda record: sha256(msgspec.json.encode(record)).hexdigest(),
        now=time.time(),
        new_id=new_user_id,
    )
    of_people = next(each for each in RESOURCES if each.record is User)

    def listed(wanted: dict[str, str], after: str = "") -> Awaitable[object]:
        place = (after,) if after else ()
        return object_lists.listed(by, of_people, wanted, after=place, limit=PAGE)

    async def changed(number: int) -> None:
        found = await registry.directory.user_by_name(user(number))
        if found is None:
            raise LookupError(user(number))
        patch: Json = {"name": f"Person {number}"}
        await objects.changed(by, of_people, found.user_id, patch, matches=lambda _: True)

    return {
        "API: people": lambda n: listed({}, user(n)),
        "API: people of the largest entity": lambda n: listed({"entity": CROWD_ID}, f"{n * 7919 % 65536:04x}"),
        "API: people by the beginning of their user name": lambda n: listed({"search": user(n)[:-1]}),
        "API: people by the beginning of their name": lambda n: listed({"name": f"person {n}"}),
        "API: a person renamed": changed,
    }


async def _median(look: Callable[[int], Awaitable[object]]) -> float:
    spent = []
    for number in range(ROUNDS):
        begun = time.perf_counter()
        await look(number)
        spent.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(spent), 3)
