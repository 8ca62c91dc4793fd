"""Questions to the audit find what fits, the latest first, each by an index (D57)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.audit import AuditEntry, AuditEvent, AuditQuery
from corpid.stores.sql import audit
from corpid.stores.sql.audit import ways
from corpid.stores.sql.clients import select_latest_uses
from corpid.stores.sql.members import select_last_sign_ins
from tests.adapters.opened import NOW
from tests.adapters.statements import QUESTIONS
from tests.adapters.test_plans import Filled, filled

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

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
    AuditQuery(actor="user:u1"),
    AuditQuery(actor="user:u1", actions=("sign_in.complete",)),
    AuditQuery(actor="user:u2", actions=("client.add",)),
    AuditQuery(actor="user:u2", actions=("client.add", "sign_in.complete"), client_id="rp"),
    AuditQuery(actions=("sign_in.complete", "user.remove")),
    AuditQuery(actions=("sign_in.complete",), since=int(NOW) - 100),
)


def any_query(chosen: random.Random) -> AuditQuery:
    """Each filter half the time; more often one that fits something."""

    def perhaps(values: tuple[str, ...]) -> str:
        return chosen.choice(("", chosen.choice(values)))

    user_id = perhaps(("u1", "u2", "u10", "u3"))
    return AuditQuery(
        actor=perhaps((*ACTORS, "user:u3")),
        user_id=user_id,
        entity_id=perhaps(("E1", "E2", "E3")),
        client_id=perhaps(("rp", "other")),
        object="" if user_id else chosen.choice(("", "", perhaps(OBJECTS))),  # with a person also that of a sign-in
        actions=tuple(chosen.sample((*ACTIONS, "sign_in.password"), chosen.choice((0, 0, 1, 1, 2, 6)))),
        since=chosen.choice((0, 0, int(NOW) - chosen.randrange(300))),
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


async def fill(stores: SqlStores, count: int, chosen: random.Random | None = None) -> None:
    chosen = chosen or random.Random(7)
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


@pytest.mark.parametrize(("page", "near"), [(3, 1), (500, 100)])
async def test_a_question_finds_the_last_that_fit(
    place: Place, monkeypatch: pytest.MonkeyPatch, page: int, near: int
) -> None:
    """Whatever the size of the pages in which they are read, and however rare sign-ins are."""
    monkeypatch.setattr(audit, "PAGE", page)
    monkeypatch.setattr(audit, "NEAR", near)

    async with place.opened() as stores:
        await fill(stores, 400)
        every = await stores.registry.audit.entries(limit=1000)
        for query in ASKED:
            expected = [entry for entry in reversed(every) if fits(entry, query)]
            assert await stores.registry.audit.latest(query, limit=1000) == expected, query
            assert await stores.registry.audit.latest(query, limit=4) == expected[:4], query
        assert any(fits(entry, ASKED[2]) for entry in every)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))])
async def test_any_question_finds_what_fits_at_once_and_in_parts(
    place: Place, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """D57, D59: any filters together, over any entries, in pages and parts of any size."""
    chosen = random.Random(seed)
    monkeypatch.setattr(audit, "PAGE", chosen.choice((2, 20, 500)))
    monkeypatch.setattr(audit, "NEAR", chosen.choice((1, 3, 100)))

    async with place.opened() as stores:
        log = stores.registry.audit
        await fill(stores, 300, chosen)
        every = await log.entries(limit=1000)
        for _ in range(120):
            query, limit, examined = any_query(chosen), chosen.randrange(1, 60), chosen.randrange(1, 60)
            expected = [entry for entry in reversed(every) if fits(entry, query)]
            assert await log.latest(query, limit=limit) == expected[:limit], query
            assert await parts(stores, query, limit=limit, examined=examined) == expected, query


async def parts(stores: SqlStores, query: AuditQuery, *, limit: int, examined: int) -> list[AuditEntry]:
    """The entries of all parts of an answer."""
    found: list[AuditEntry] = []
    before, is_first = 0, True
    while before or is_first:
        part = await stores.registry.audit.part(replace(query, before=before), limit=limit, examined=examined)
        assert len(part.entries) <= limit
        assert is_first or not part.before or part.before < before
        found, before, is_first = found + part.entries, part.before, False
    return found


@pytest.mark.parametrize(("limit", "examined"), [pytest.param(3, 7, marks=pytest.mark.full), (50, 30), (1000, 1000)])
async def test_the_parts_of_an_answer_are_the_whole(place: Place, limit: int, examined: int) -> None:
    """D59: each looks at some entries only, and the next one goes on."""
    async with place.opened() as stores:
        await fill(stores, 200)
        every = await stores.registry.audit.entries(limit=1000)
        for query in ASKED:
            found = await parts(stores, query, limit=limit, examined=examined)
            assert found == [entry for entry in reversed(every) if fits(entry, query)], query


async def test_a_part_looks_no_further_than_it_may(place: Place) -> None:
    """D59: of a rare action of a busy entity."""
    async with place.opened() as stores:
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


async def test_a_part_of_the_completed_sign_ins_looks_no_further_than_it_may(place: Place) -> None:
    """D59: rare beside other events, as in a deployment that few people use; also if earlier ones are too old."""
    async with place.opened() as stores:
        log = stores.registry.audit
        for number in range(30):
            action = "sign_in.complete" if number in {0, 25} else "client.add"
            await log.write(AuditEvent(actor="user:u1", action=action), now=NOW)
        query = AuditQuery(actions=("sign_in.complete",))
        first = await log.part(query, limit=5, examined=10)
        assert ([entry.number for entry in first.entries], first.before) == ([26], 21)
        later = await log.part(replace(query, since=int(NOW) + 90_000), limit=5, examined=10)
        assert (later.entries, later.before) == ([], 0)


async def test_an_entry_of_a_wrong_clock_hides_no_other(place: Place) -> None:
    async with place.opened() as stores:
        for at in (NOW - 10, NOW - 90_000, NOW + 90_000, NOW - 5):
            await stores.registry.audit.write(AuditEvent(actor="system", action="key.keep"), now=at)
        found = await stores.registry.audit.latest(AuditQuery(since=int(NOW) - 60), limit=10)
        assert [entry.number for entry in found] == [4, 3, 1]


@pytest.mark.full
def test_every_way_to_entries_is_a_stretch_of_its_index(filled: Filled) -> None:
    """Millions of rows: nothing is read but what is asked for."""
    for query in (*QUESTIONS[1:], AuditQuery(actor="operator", client_id="rp")):
        for way in ways(query):
            steps = filled.plan(filled.text(way.page()))
            assert any("ix_audit_" in step for step in steps), (query, steps)
            if way.rest and way.in_order:
                steps = filled.plan(filled.text(way.index_range()))
                assert any("ix_audit_" in step for step in steps), (query, steps)
                assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.full
def test_what_an_actor_did_is_read_by_two_indexes(filled: Filled) -> None:
    """Completed sign-ins are in one index by actor, every other event in the other."""
    for query in (AuditQuery(actor="operator"), AuditQuery(user_id="u1")):
        plans = ["\n".join(filled.plan(filled.text(way.page()))) for way in ways(query)][:2]
        assert "ix_audit_actor_others" in plans[0], plans
        assert "ix_audit_sign_ins" in plans[1], plans


@pytest.mark.full
def test_completed_sign_ins_are_read_in_the_order_of_all_entries_or_by_their_own_index(filled: Filled) -> None:
    """Dense beside other events they are found at once, rare ones without reading any other event."""
    [way] = ways(AuditQuery(actions=("sign_in.complete",)))
    assert way.further is not None
    further = way.further

    for statement in (way.page(), way.index_range()):
        steps = "\n".join(filled.plan(filled.text(statement)))
        assert ("INTEGER PRIMARY KEY (rowid" if filled.is_sqlite else "Scan Backward using pk_audit ") in steps, steps
        assert not any(word in steps for word in ("TEMP B-TREE", "Sort", "ix_audit_")), steps
    steps = "\n".join(filled.plan(filled.text(further.page())))
    assert "ix_audit_sign_ins" in steps, steps
    assert "Seq Scan" not in steps, steps


@pytest.mark.full
def test_the_last_sign_in_of_each_person_is_the_end_of_a_stretch_of_an_index(filled: Filled) -> None:
    """D84: one statement for a page of people, whatever number of times each has signed in, and for whom."""
    steps = "\n".join(filled.plan(filled.text(select_last_sign_ins)))
    assert "ix_audit_sign_ins_for" in steps, steps
    assert not any(word in steps for word in ("TEMP B-TREE", "Sort", "SCAN audit", "Seq Scan on audit")), steps


@pytest.mark.full
def test_the_health_of_a_page_of_clients_is_one_statement_of_look_ups(filled: Filled) -> None:
    """D53, D83: neither the audit nor the counters of other clients are read."""
    steps = "\n".join(filled.plan(filled.text(select_latest_uses)))
    # PostgreSQL prefers the index of sign-ins alone while there are as few as here.
    assert "ix_audit_client_id" in steps or (not filled.is_sqlite and "ix_audit_sign_ins_for" in steps), steps
    assert not any(f"{verb} {table}" in steps for verb in ("SCAN", "Seq Scan on") for table in GROWING), steps
    if filled.is_sqlite:
        assert "SEARCH hourly_counts USING PRIMARY KEY (hour=? AND client_id=? AND reason=?)" in steps, steps
        assert "SEARCH hourly_counts USING PRIMARY KEY (hour=? AND client_id=? AND reason>?)" in steps, steps


GROWING = ("audit", "hourly_counts", "generation_use", "clients", "fetched_key_sets")
