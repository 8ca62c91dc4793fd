"""Questions to the audit find what fits, the latest first, each by an index (D57)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.ports import AuditEvent, AuditQuery
from corpid.stores.sql import audit
from corpid.stores.sql.audit import ways
from tests.adapters.opened import NOW
from tests.adapters.prepared_statements import QUESTIONS
from tests.adapters.test_plans import filled

if TYPE_CHECKING:
    from corpid.ports import AuditEntry
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place
    from tests.adapters.test_plans import Filled

__all__ = ["filled"]

ACTORS = ("operator", "user:u1", "user:u2", "file:a.yaml")
ACTIONS = ("client.add", "client.update", "user.add", "user.remove", "sign_in.complete")
OBJECTS = ("rp", "u1", "u1/E1", "u1/E2", "u10/E1", "u2", "")
ASKED = (
    *QUESTIONS,
    AuditQuery(user_id="u2", actor="operator"),
    AuditQuery(object="u1/E1", actions=("user.add",)),
    AuditQuery(actor="file:a.yaml", client_id="rp"),
    AuditQuery(since=int(NOW) - 100),
    AuditQuery(user_id="u1", since=int(NOW) - 100, actions=("sign_in.complete",)),
    AuditQuery(entity_id="E1"),
    AuditQuery(user_id="u1", entity_id="E1"),
    AuditQuery(entity_id="E2", since=int(NOW) + 5),
)


def fits(entry: AuditEntry, query: AuditQuery) -> bool:
    """What docs/audit.md says of each filter, without an index."""
    of_sign_in = entry.action.startswith("sign_in.")
    is_about = not of_sign_in and (entry.object == query.user_id or entry.object.startswith(f"{query.user_id}/"))
    return (
        (not query.user_id or entry.actor == f"user:{query.user_id}" or is_about)
        and query.actor in {"", entry.actor}
        and query.entity_id in {"", entry.entity_id, entry.other_entity_id}
        and query.client_id in {"", entry.client_id}
        and (not query.object or (entry.object == query.object and not of_sign_in))
        and (not query.actions or entry.action in query.actions)
        and entry.at >= query.since
    )


async def fill(stores: SqlStores, count: int) -> None:
    chosen = random.Random(7)
    async with stores.database.transaction():
        for number in range(count):
            event = AuditEvent(
                actor=chosen.choice(ACTORS),
                action=chosen.choice(ACTIONS),
                object=chosen.choice(OBJECTS),
                client_id=chosen.choice(("", "rp")),
                entity_id=chosen.choice(("", "E1", "E2")),
                other_entity_id=chosen.choice(("", "", "E1")),
                detail={"address": "a"} if number % 2 else {},
            )
            await stores.registry.audit.write(event, now=NOW - count + number)


@pytest.mark.parametrize("page", [3, 500])
def test_a_question_finds_the_last_that_fit(place: Place, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """Whatever the size of the pages in which they are read."""
    monkeypatch.setattr(audit, "PAGE", page)

    async def scenario(stores: SqlStores) -> None:
        await fill(stores, 400)
        every = await stores.registry.audit.entries(limit=1000)
        for query in ASKED:
            expected = [entry for entry in reversed(every) if fits(entry, query)]
            assert await stores.registry.audit.latest(query, limit=1000) == expected, query
            assert await stores.registry.audit.latest(query, limit=4) == expected[:4], query
        assert any(fits(entry, ASKED[2]) for entry in every)

    place.run(scenario)


@pytest.mark.parametrize(("limit", "examined"), [pytest.param(3, 7, marks=pytest.mark.full), (50, 30), (1000, 1000)])
def test_the_parts_of_an_answer_are_the_whole(place: Place, limit: int, examined: int) -> None:
    """D59: each looks at some entries only, and the next one goes on."""

    async def scenario(stores: SqlStores) -> None:
        await fill(stores, 200)
        every = await stores.registry.audit.entries(limit=1000)
        for query in ASKED:
            found: list[AuditEntry] = []
            parts, before = 0, 0
            while before or not parts:
                asked = replace(query, before=before)
                part = await stores.registry.audit.part(asked, limit=limit, examined=examined)
                assert len(part.entries) <= limit
                assert not part.before or not before or part.before < before
                found, before, parts = found + part.entries, part.before, parts + 1
            assert found == [entry for entry in reversed(every) if fits(entry, query)], query

    place.run(scenario)


def test_a_part_looks_no_further_than_it_may(place: Place) -> None:
    """D59: of a rare action of a busy entity."""

    async def scenario(stores: SqlStores) -> None:
        for number in range(30):
            action = "user.add" if number in {0, 25} else "client.add"
            await stores.registry.audit.write(AuditEvent(actor="system", action=action, entity_id="E1"), now=NOW)
        query = AuditQuery(entity_id="E1", actions=("user.add",))
        first = await stores.registry.audit.part(query, limit=5, examined=10)
        assert ([entry.number for entry in first.entries], first.before) == ([26], 21)
        second = await stores.registry.audit.part(replace(query, before=21), limit=5, examined=10)
        assert (second.entries, second.before) == ([], 11)
        third = await stores.registry.audit.part(replace(query, before=11), limit=5, examined=10)
        assert ([entry.number for entry in third.entries], third.before) in (([1], 0), ([1], 1))

    place.run(scenario)


def test_an_entry_of_a_wrong_clock_hides_no_other(place: Place) -> None:
    async def scenario(stores: SqlStores) -> None:
        for at in (NOW - 10, NOW - 90_000, NOW + 90_000, NOW - 5):
            await stores.registry.audit.write(AuditEvent(actor="system", action="key.keep"), now=at)
        found = await stores.registry.audit.latest(AuditQuery(since=int(NOW) - 60), limit=10)
        assert [entry.number for entry in found] == [4, 3, 1]

    place.run(scenario)


def test_every_way_to_entries_is_a_stretch_of_its_index(filled: Filled) -> None:
    """Millions of rows: nothing is read but what is asked for."""
    columns = ("actor", "object", "client_id", "entity_id", "other_entity_id", "action")

    async def look(stores: SqlStores) -> None:
        for query in QUESTIONS[1:]:
            for way in ways(query):
                steps = filled.plan(stores.database.prepare(way.page()).text)
                assert any(f"ix_audit_{column}" in step for column in columns for step in steps), (query, steps)
                if way.rest and way.in_order:
                    steps = filled.plan(stores.database.prepare(way.stretch()).text)
                    assert any(f"ix_audit_{column}" in step for column in columns for step in steps), (query, steps)
                    assert not any("TEMP B-TREE" in step for step in steps), steps

    filled.place.run(look)
