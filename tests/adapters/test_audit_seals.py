"""Seals of the audit: what is sealed when, and what a verification finds behind its back (D58, docs/decisions/0016)."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.flows.directory.write import Refused
from corpid.flows.operations import audit_seals
from corpid.flows.operations.audit_seals import (
    LOOK_SECONDS,
    Sealer,
    SealVerification,
    audit_keys,
    rotate_audit_key,
    verify,
)
from corpid.flows.operations.signing_keys import open_key
from corpid.rules.audit import AuditEvent, AuditQuery
from corpid.rules.audit_seals import ENTRIES, SECONDS, covering
from corpid.rules.directory.access import CommandLine, Forbidden, Person
from corpid.stores.sql.audit_retention import RetentionPeriods
from corpid.stores.sql.statements import Statement
from tests.adapters.opened import EVENT, NOW, race
from tests.adapters.test_audit_order import holding

if TYPE_CHECKING:
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

DAY = 86_400
ACTOR = CommandLine(by="ops@node1")
LATER = NOW + 2000 * DAY
PRUNED = AuditEvent(actor="command:ops@node1", action="audit.prune")


async def written(stores: SqlStores, count: int, *, action: str = "test.change", now: float = NOW) -> None:
    async with stores.database.transaction():
        for number in range(count):
            event = msgspec.structs.replace(EVENT, action=action, object=f"{action}-{number}")
            await stores.registry.audit.write(event, now=now)


def filled(place: Place, count: int) -> None:
    """Many entries in one statement."""
    names = "at, actor, action, object, client_id, entity_id, outcome, request_id, detail"
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    values = f"{int(NOW)}, 'system', 'test.change', 'o', '', '', 'ok', '', '{{}}'"
    place.sql(f"INSERT INTO audit ({names}) {numbers} SELECT {values} FROM n")


async def sealed(stores: SqlStores, now: float = NOW) -> int:
    return await Sealer(stores.registry, lambda _: None).seal_all(ACTOR, now=now)


async def verified(stores: SqlStores, expect: str = "") -> SealVerification:
    return await verify(stores.registry, ACTOR, now=LATER, expect=expect)


async def three_seals(stores: SqlStores) -> None:
    """Entries 1 to 15, five to a seal; the even ones with details, of a person who was removed."""
    for _ in range(3):
        for number in range(5):
            detail = {"address": "203.0.113.9"} if number % 2 else {}
            event = msgspec.structs.replace(EVENT, actor="user:u1", object=f"o{number}", detail=detail)
            await stores.registry.audit.write(event, now=NOW)
        assert await sealed(stores) == 1


async def undone(stores: SqlStores) -> None:
    async with stores.database.transaction():
        await stores.registry.audit.write(EVENT, now=NOW)
        raise RuntimeError


def unguarded(place: Place) -> None:
    """As somebody who has the database would begin: without the triggers."""
    tables = ("audit", "audit_details", "audit_seals", "audit_digests")
    if isinstance(place.address, str):
        place.sql("; ".join(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables))
        return
    for table in tables:
        for verb in ("UPDATE", "DELETE"):
            place.sql(f"DROP TRIGGER {table}_refuses_{verb}")


async def found(stores: SqlStores) -> list[tuple[str, int, str]]:
    """What a verification finds."""
    result = await verified(stores)
    assert result.found == len(result.findings)
    return [(each.object, each.number, each.problem) for each in result.findings]


def shown(place: Place) -> list[tuple[str, int, str]]:
    """The same, by a process of its own."""
    told: list[tuple[str, int, str]] = []

    async def look(stores: SqlStores) -> None:
        told.extend(await found(stores))

    place.run(look)
    return told


DETAILED = (2, 4, 7, 9, 12, 14)
"""the entries of `three_seals` with details"""
TAMPERING = {
    "a change": (["UPDATE audit SET actor = 'user:u2' WHERE number = 7"], [("entry", 7, "changed")]),
    "a change of time": (["UPDATE audit SET at = at - 1 WHERE number = 1"], [("entry", 1, "changed")]),
    "a removal": (["DELETE FROM audit WHERE number = 8"], [("entry", 8, "removed")]),
    "a removal said to be of an old sign-in": (
        ["UPDATE audit SET action = 'sign_in.complete', at = 1 WHERE number = 8"],
        [("entry", 8, "changed")],
    ),
    "the removal of the last of a range": (["DELETE FROM audit WHERE number = 10"], [("entry", 10, "removed")]),
    "two exchanged": (
        [
            "UPDATE audit SET number = 90 WHERE number = 6",
            "UPDATE audit SET number = 6 WHERE number = 8",
            "UPDATE audit SET number = 8 WHERE number = 90",
        ],
        [("entry", 6, "moved"), ("entry", 8, "moved")],
    ),
    "one moved up": (
        ["DELETE FROM audit WHERE number = 9", "UPDATE audit SET number = 9 WHERE number = 8"],
        [("entry", 9, "moved"), ("entry", 8, "removed")],
    ),
    "other details": (
        ["UPDATE audit_details SET detail = replace(detail, '203', '198') WHERE number = 7"],
        [("entry", 7, "details")],
    ),
    "other digests": (
        ["UPDATE audit_digests SET digests = replace(digests, '[8,', '[88,') WHERE seal = 2"],
        [("seal", 2, "changed")],
    ),
    "digests that a removal by age would take": (
        ["UPDATE audit_digests SET latest = 1 WHERE seal = 2"],
        [("seal", 2, "changed")],
    ),
    "digests removed": (
        ["DELETE FROM audit_digests WHERE seal = 2"],
        [("seal", 2, "removed")],
    ),
    "every seal and its digests removed": (
        ["DELETE FROM audit_seals", "DELETE FROM audit_digests"],
        [("seal", 1, "removed")],
    ),
    "every seal, its digests and every audit key removed": (
        ["DELETE FROM audit_seals", "DELETE FROM audit_digests", "DELETE FROM keys WHERE use = 'audit'"],
        [("seal", 1, "removed")],
    ),
    "the last seal removed, its digests left": (
        ["DELETE FROM audit_seals WHERE number = 3"],
        [("seal", 3, "removed")],
    ),
    "all details removed": (
        ["DELETE FROM audit_details"],
        [("entry", number, "details") for number in DETAILED],
    ),
    "details of a seal's range removed": (
        ["DELETE FROM audit_details WHERE number BETWEEN 6 AND 10"],
        [("entry", number, "details") for number in DETAILED if 6 <= number <= 10],
    ),
    "a removed seal": (["DELETE FROM audit_seals WHERE number = 2"], [("seal", 2, "removed")]),
    "the first seal removed": (["DELETE FROM audit_seals WHERE number = 1"], [("seal", 1, "removed")]),
    "a changed seal": (
        ["UPDATE audit_seals SET digest = 'x' || substr(digest, 2) WHERE number = 2"],
        [("seal", 2, "changed")],
    ),
    "a range that ends elsewhere": (["UPDATE audit_seals SET last = 9 WHERE number = 2"], [("seal", 2, "changed")]),
    "a seal of another place": (
        [
            "UPDATE audit_seals SET seal = (SELECT s.seal FROM audit_seals s WHERE s.number = 1) WHERE number = 2",
        ],
        [("seal", 2, "changed")],
    ),
    "keys removed": (
        ["DELETE FROM keys WHERE use = 'audit'"],
        [("seal", number, "changed") for number in (1, 2, 3)],
    ),
}


TABLES = ("audit", "audit_details", "audit_seals", "audit_digests", "keys")
KEEPING = [f"CREATE TABLE kept_{table} AS SELECT * FROM {table}" for table in TABLES]
RESTORING = [
    part for table in TABLES for part in (f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM kept_{table}")
]


def executed(place: Place, statements: list[str]) -> None:
    """Several statements; on PostgreSQL by one program, whose start takes longer than they do."""
    for statement in ["; ".join(statements)] if isinstance(place.address, str) else statements:
        place.sql(statement)


async def test_whatever_is_changed_behind_its_back_is_found_and_named(place: Place) -> None:
    """D58: each is done by itself, to a copy of the same tables."""
    async with place.opened() as stores:
        await three_seals(stores)
        unguarded(place)
        assert await found(stores) == []
        executed(place, KEEPING)
        for name, (statements, expected) in TAMPERING.items():
            executed(place, statements)
            assert await found(stores) == expected, name
            executed(place, RESTORING)
        assert await found(stores) == []


async def test_an_end_that_is_cut_off_is_found_by_what_was_forgotten(place: Place) -> None:
    """D58: a count of numbers (SQLite; PostgreSQL's also has those rolled back), or details that were left."""
    async with place.opened() as stores:
        await three_seals(stores)
        counts = not stores.database.writes_in_queries
        unguarded(place)
        cut = ("audit_seals WHERE number > 2", "audit_digests WHERE seal > 2", "audit WHERE number > 14")
        executed(place, [f"DELETE FROM {each}" for each in cut])
        assert await found(stores) == ([("entry", 15, "removed")] if counts else [])
        executed(place, ["DELETE FROM audit WHERE number > 10"])
        assert await found(stores) == [("entry", 15 if counts else 14, "removed")]


async def test_seals_that_a_server_makes_again_do_not_pass_for_the_first(place: Place) -> None:
    """D58: the first audit key is made with the first seal, and is much older."""
    warned: list[str] = []
    async with place.opened() as stores:
        await three_seals(stores)
        unguarded(place)
        executed(place, ["DELETE FROM audit_seals", "DELETE FROM audit_digests"])
        again = Sealer(stores.registry, lambda _: None, warned.append)
        assert await again.seal_all(ACTOR, now=NOW + 2 * DAY) == 1
        assert await found(stores) == [("seal", 1, "removed")]
        assert warned == ["every earlier seal was removed: an audit key has been there for more than a day"]


async def test_only_an_erasure_of_their_person_explains_missing_details(place: Place) -> None:
    """D57, D58: and only if it came after the entry."""
    async with place.opened() as stores:
        erasure = AuditEvent(actor="command:ops@node1", action="audit.erase", object="u1")
        await stores.registry.audit.write(erasure, now=NOW)
        for _ in range(2):
            await stores.registry.audit.write(
                msgspec.structs.replace(EVENT, actor="user:u1", detail={"address": "203.0.113.9"}), now=NOW
            )
        await stores.registry.audit.write(msgspec.structs.replace(erasure, object="u2"), now=NOW)
        await sealed(stores)
        unguarded(place)
        executed(place, ["DELETE FROM audit_details"])
        assert await found(stores) == [("entry", 2, "details"), ("entry", 3, "details")]
        await stores.registry.audit.write(erasure, now=NOW)
        assert await found(stores) == []


async def test_details_that_leave_by_age_are_explained(place: Place) -> None:
    """D57, D58: those that are younger than the setting are not."""
    async with place.opened() as stores:
        for days in (400, 1):
            event = msgspec.structs.replace(EVENT, action="sign_in.complete", detail={"address": "203.0.113.9"})
            await stores.registry.audit.write(event, now=NOW - days * DAY)
        await sealed(stores)
        kept = RetentionPeriods(audit_detail_days=90)
        assert (await stores.registry.retention.prune(PRUNED, now=NOW, kept=kept)).erased == 1
        result = await verified(stores)
        assert (result.erased, result.findings) == (1, [])
        unguarded(place)
        executed(place, ["DELETE FROM audit_details"])
        assert await found(stores) == [("entry", 2, "details")]


async def test_there_is_no_audit_key_before_there_is_a_seal(place: Place) -> None:
    """D58: so a key without a seal contradicts the audit."""
    async with place.opened() as stores:
        await written(stores, 1)
        with pytest.raises(Refused, match="no audit key yet"):
            await rotate_audit_key(stores.registry, ACTOR, now=NOW)
        assert await found(stores) == []


async def test_sealing_stops_when_every_audit_key_was_removed_and_goes_on_with_a_new_one(place: Place) -> None:
    """D58: what the removed keys sealed is not verified by another."""
    async with place.opened() as stores:
        await three_seals(stores)
        unguarded(place)
        executed(place, ["DELETE FROM keys WHERE use = 'audit'"])
        await written(stores, 1)
        with pytest.raises(Refused, match="every audit key was removed"):
            await sealed(stores)
        await rotate_audit_key(stores.registry, ACTOR, now=NOW)
        assert await sealed(stores) == 1
        assert await found(stores) == [("seal", number, "changed") for number in (1, 2, 3)]


async def an_inserted_entry_is_found_where_a_number_was_never_used(stores: SqlStores) -> None:
    await written(stores, 2)
    with pytest.raises(RuntimeError):
        await undone(stores)
    if not stores.database.writes_in_queries:  # SQLite gives a number back
        await stores.database.run(Statement(_text("UPDATE sqlite_sequence SET seq = 3")), {})
    await written(stores, 2)
    assert await sealed(stores) == 1


def test_an_inserted_entry_is_found_where_a_number_was_never_used(place: Place) -> None:
    """A transaction that is rolled back leaves a gap, which belongs to the seal."""
    place.run(an_inserted_entry_is_found_where_a_number_was_never_used)
    assert shown(place) == []
    names = "actor, action, object, client_id, entity_id, outcome, request_id, detail"
    place.sql(f"INSERT INTO audit (number, at, {names}) VALUES (3, 7, 'user:u2', 'user.add', '', '', '', 'ok', '', '')")
    assert shown(place) == [("entry", 3, "inserted")]
    place.sql(f"INSERT INTO audit (number, at, {names}) VALUES (0, 7, 'user:u2', 'user.add', '', '', '', 'ok', '', '')")
    assert shown(place) == [("entry", 0, "inserted"), ("entry", 3, "inserted")]


async def test_a_cut_tail_is_found_by_the_digest_that_the_log_has(place: Place) -> None:
    lines: list[str] = []

    async with place.opened() as stores:
        await three_seals(stores)
        await written(stores, 1)
        assert await Sealer(stores.registry, lines.append).seal_all(ACTOR, now=NOW) == 1
    assert lines[0].startswith("seal 4: 1 entries up to 16, digest ")
    async with place.opened() as stores:
        assert (await verified(stores, lines[0].rpartition(" ")[2])).expected is True
    unguarded(place)
    for statement in ("audit WHERE number > 15", "audit_seals WHERE number > 3", "audit_digests WHERE seal > 3"):
        place.sql(f"DELETE FROM {statement}")
    if not isinstance(place.address, str):  # SQLite's count of numbers would show it
        place.sql("UPDATE sqlite_sequence SET seq = 15 WHERE name = 'audit'")
    async with place.opened() as stores:
        result = await verified(stores, lines[0].rpartition(" ")[2])
        assert (result.expected, result.findings, result.unsealed) == (False, [], 0)
        assert (await verified(stores)).expected is None


async def test_entries_that_are_not_sealed_yet_are_counted_and_named(place: Place) -> None:
    async with place.opened() as stores:
        nothing = await verified(stores)
        assert (nothing.seals, nothing.digest, nothing.unsealed) == (0, "", 0)
        await three_seals(stores)
        await written(stores, 3)
        result = await verified(stores)
        assert (result.entries, result.sealed_to) == (15, 15)
        assert (result.unsealed, result.first_unsealed, result.last_unsealed) == (3, 16, 18)


async def test_a_seal_is_due_after_a_thousand_entries_or_before_an_hour(place: Place) -> None:
    """D58: at least hourly and every 1,000 rows."""
    assert SECONDS + LOOK_SECONDS < 3600
    assert ENTRIES == 1000

    async with place.opened() as stores:
        sealer, looks = Sealer(stores.registry, lambda _: None), count(NOW, LOOK_SECONDS)
        await written(stores, 1)
        assert await sealer.round(now=next(looks)) == 0, "a process that starts has other work"
        assert await sealer.round(now=next(looks)) == 1
        filled(place, 999)
        assert await sealer.round(now=next(looks)) == 0
        filled(place, 1001)
        assert await sealer.round(now=NOW + 2 * LOOK_SECONDS + 1) == 0, "it looks every ten seconds"
        assert await sealer.round(now=(sealed_at := next(looks))) == 2
        await written(stores, 1)
        assert await sealer.round(now=sealed_at + SECONDS - 1) == 0
        assert await sealer.round(now=sealed_at + SECONDS + LOOK_SECONDS) == 1
        sizes = [each.last for each in await stores.registry.seals.page(after=0, limit=9)]
        assert sizes == [1, 1001, 2001, 2002]
        assert (await verified(stores)).entries == 2002


async def test_an_end_that_is_cut_off_and_sealed_again_is_told_by_a_process_that_had_seen_it(place: Place) -> None:
    """Nothing in the database tells of it afterwards."""
    warned: list[str] = []

    async with place.opened() as stores:
        sealer, looks = Sealer(stores.registry, lambda _: None, warned.append), count(NOW, LOOK_SECONDS)
        await sealer.round(now=next(looks))
        await three_seals(stores)
        assert await sealer.round(now=next(looks)) == 0
        await written(stores, 1)
        await sealed(stores)
        assert await sealer.round(now=next(looks)) == 0
        assert warned == []
        unguarded(place)
        place.sql("DELETE FROM audit_seals WHERE number > 2")
        place.sql("DELETE FROM audit_digests WHERE seal > 2")
        place.sql("UPDATE audit SET actor = 'user:u2' WHERE number = 12")
        await sealer.round(now=next(looks))
        await sealed(stores)
        assert (await verified(stores)).findings == []
        await sealer.round(now=next(looks))
        [line] = warned
        assert line.startswith("seal 4 was removed or exchanged, and had the digest ")


async def test_only_who_may_read_the_audit_verifies_and_exports_it(place: Place) -> None:
    async with place.opened() as stores:
        for work in (
            verify(stores.registry, Person("u1"), now=NOW),
            anext(audit_seals.export(stores.registry, Person("u1"), now=NOW)),
        ):
            with pytest.raises(Forbidden):
                await work
        with pytest.raises(Forbidden):
            await Sealer(stores.registry, lambda _: None).seal_all(Person("u1"), now=NOW)
        with pytest.raises(Forbidden):
            await rotate_audit_key(stores.registry, Person("u1"), now=NOW)


async def test_a_backlog_is_sealed_in_rounds_without_a_pause(place: Place) -> None:
    async with place.opened() as stores:
        sealer = Sealer(stores.registry, lambda _: None)
        filled(place, 5 * ENTRIES)
        assert await sealer.round(now=NOW) == 0
        assert await sealer.round(now=NOW + LOOK_SECONDS) == 4
        assert await sealer.round(now=NOW + LOOK_SECONDS + 1) == 1


@pytest.mark.full
async def test_a_transaction_that_is_still_open_holds_up_what_came_after_its_begin(postgresql: Place) -> None:
    """D58: a seal ends below the oldest transaction still running."""
    async with postgresql.opened() as stores:
        sealer, started, end = Sealer(stores.registry, lambda _: None), asyncio.Event(), asyncio.Event()
        await written(stores, 2)
        assert await stores.registry.seals.settled_number() == 2
        slow = asyncio.create_task(holding(stores, started, end))
        await started.wait()
        await written(stores, 2)
        assert await stores.registry.seals.settled_number() == 2
        assert await sealer.round(now=NOW) + await sealer.round(now=NOW + LOOK_SECONDS) == 1
        assert [each.last for each in await stores.registry.seals.page(after=0, limit=9)] == [2]
        later = asyncio.create_task(holding(stores, asyncio.Event(), other := asyncio.Event()))
        await asyncio.sleep(0.1)
        assert await stores.registry.seals.settled_number() == 2
        end.set()
        await slow
        assert await stores.registry.seals.settled_number() == 5, "the later one has a later number"
        other.set()
        await later
        assert await sealed(stores) == 1
        result = await verified(stores)
        assert (result.sealed_to, result.entries, result.findings) == (6, 6, [])


RACE = """
from corpid.flows.operations.audit_seals import Sealer
from corpid.rules.directory.access import CommandLine
async def main():
    stores = await opened()
    sealer, made = Sealer(stores.registry, lambda _: None), 0
    go()
    for number in range(10):
        async with stores.database.transaction():
            for _ in range(20):
                await stores.registry.audit.write(EVENT, now=NOW)
        made += await sealer.seal_all(CommandLine(by="race"), now=NOW)
    print(made)
    await stores.close()
asyncio.run(main())
"""


@pytest.mark.full
async def test_of_several_processes_that_seal_at_once_one_chain_comes(place: Place) -> None:
    """Each writes and seals; no lock is held between statements, and no seal is made twice."""
    made = [int(each) for each in race(place.address, RACE, processes=3)]

    async with place.opened() as stores:
        await sealed(stores)
        result = await verified(stores)
        assert result.seals in {sum(made), sum(made) + 1}
        assert (result.entries, result.unsealed, result.findings) == (3 * 10 * 20, 0, [])
        assert len((await audit_keys(stores.registry))["keys"]) == 1


async def test_the_one_who_comes_second_writes_nothing(place: Place) -> None:
    async with place.opened() as stores:
        await three_seals(stores)
        [*_, last] = await stores.registry.seals.page(after=0, limit=9)
        assert not await stores.registry.seals.add(last, {"other": int(NOW)})
        assert (await verified(stores)).findings == []


async def test_a_process_that_dies_before_it_has_written_a_seal_leaves_none_of_it(place: Place) -> None:
    """It computed the seal and waits for a lock; then it ends."""
    async with place.opened() as stores:
        await written(stores, 3)
        async with place.opened() as other, other.database.transaction():
            if other.database.writes_in_queries:
                lock = Statement(_text("LOCK TABLE audit_seals IN EXCLUSIVE MODE"))
                await other.database.row(lock, {})
            sealing = asyncio.create_task(sealed(stores))
            await asyncio.wait([sealing], timeout=0.3)
            assert not sealing.done()
            sealing.cancel()
            await asyncio.wait([sealing])
        result = await verified(stores)
        assert (result.seals, result.unsealed) == (0, 3)
        assert await sealed(stores) == 1
        assert (await verified(stores)).entries == 3


async def test_a_new_key_seals_on_and_the_old_one_verifies(place: Place) -> None:
    async with place.opened() as stores:
        await three_seals(stores)
        [first] = (await audit_keys(stores.registry))["keys"]
        made = await rotate_audit_key(stores.registry, ACTOR, now=NOW)
        await sealed(stores)
        keys = (await audit_keys(stores.registry))["keys"]
        assert {each["kid"] for each in keys} == {first["kid"], made.kid}
        result = await verified(stores)
        assert (result.seals, result.findings) == (4, [])
        (*_, rotated, retired) = await stores.registry.audit.entries()
        assert (rotated.action, rotated.detail["use"], retired.action) == ("key.rotate", "audit", "key.retire")
        [*_, last] = await stores.registry.seals.page(after=0, limit=9)
        assert last.seal.startswith(audit_seals._signed(open_key(made), *_nothing()).seal.split(".")[0])


def _nothing() -> tuple[Any, dict[str, str]]:
    return covering({}, None, last=1, now=NOW)


async def test_erased_details_leave_every_seal_as_it_is(place: Place) -> None:
    """D57: details may be erased, and verification still holds."""
    async with place.opened() as stores:
        await three_seals(stores)
        event = AuditEvent(actor="command:ops@node1", action="audit.erase", object="u1")
        assert await stores.registry.retention.erase(event, AuditQuery(user_id="u1"), now=NOW) == 6
        result = await verified(stores)
        assert (result.erased, result.findings) == (6, [])


async def entries_that_leave_by_age_leave_what_remains_verified(stores: SqlStores) -> None:
    for days in (400, 200, 1):
        await written(stores, 3, action="sign_in.complete", now=NOW - days * DAY)
        await written(stores, 2, action="key.rotate", now=NOW - days * DAY)
        await sealed(stores)
    kept = RetentionPeriods(audit_days=365, sign_in_days=90)
    assert (await stores.registry.retention.prune(PRUNED, now=NOW, kept=kept)).removed == 8
    result = await verified(stores)
    assert (result.seals, result.entries, result.pruned, result.findings) == (3, 7, 8, [])
    left = [sorted(each.digests) for each in await stores.registry.seals.page(after=0, limit=9)]
    assert left == [[], ["other"], ["other", "sign_in"]], "digests of entries that are all gone go with them"
    await sealed(stores)
    kept = RetentionPeriods(audit_days=100, sign_in_days=90)
    later = NOW + 1000 * DAY
    assert (await stores.registry.retention.prune(PRUNED, now=later, kept=kept)).removed == 7
    result = await verified(stores)
    assert (result.entries, result.pruned, result.findings) == (1, 15, []), "what tells of a removal stays"


def test_entries_that_leave_by_age_leave_what_remains_verified(place: Place) -> None:
    """D58: pruning keeps seals. A range pruned in part, one pruned whole, and one that is younger."""
    place.run(entries_that_leave_by_age_leave_what_remains_verified)
    unguarded(place)
    place.sql("DELETE FROM audit WHERE action = 'audit.prune'")
    told = shown(place)
    assert ("entry", 16, "removed") in told
    assert ("seal", 1, "removed") in told


async def a_removal_that_no_prune_explains_is_found_in_a_range_that_was_pruned(stores: SqlStores) -> None:
    await written(stores, 3, action="sign_in.complete", now=NOW - 400 * DAY)
    await written(stores, 2, action="key.rotate", now=NOW - 400 * DAY)
    await sealed(stores)
    await stores.registry.retention.prune(PRUNED, now=NOW, kept=RetentionPeriods(sign_in_days=90))


def test_a_removal_that_no_prune_explains_is_found_in_a_range_that_was_pruned(place: Place) -> None:
    place.run(a_removal_that_no_prune_explains_is_found_in_a_range_that_was_pruned)
    unguarded(place)
    place.sql("DELETE FROM audit WHERE number = 5")
    assert shown(place) == [("entry", 5, "removed")]


async def test_a_prune_explains_neither_later_numbers_nor_anything_if_it_is_of_the_future(place: Place) -> None:
    """D58: whoever writes behind the audit's back may insert what is not sealed yet."""
    async with place.opened() as stores:
        days = {"audit_days": "1", "sign_in_days": "1"}
        early = msgspec.structs.replace(PRUNED, detail=days)
        await stores.registry.audit.write(early, now=NOW)
        await written(stores, 3, action="key.rotate", now=NOW - 30 * DAY)
        await written(stores, 1, action="key.rotate", now=NOW)
        await sealed(stores)
        await stores.registry.audit.write(early, now=NOW + 100 * DAY)
    unguarded(place)
    place.sql("DELETE FROM audit WHERE number IN (2, 5)")

    async with place.opened() as stores:
        result = await verify(stores.registry, ACTOR, now=NOW)
        found = [(each.object, each.number, each.problem) for each in result.findings]
        assert found == [("entry", 6, "future"), ("entry", 2, "removed"), ("entry", 5, "removed")]
        later = await verify(stores.registry, ACTOR, now=NOW + 101 * DAY)
        assert later.findings == []
        parts = [await verify(stores.registry, ACTOR, now=NOW, most=1)]
        assert [each.problem for each in parts[0].findings] == ["future", "removed", "removed"]


async def test_what_is_pruned_before_it_was_sealed_is_a_gap(place: Place) -> None:
    async with place.opened() as stores:
        await written(stores, 3, now=NOW - 400 * DAY)
        await stores.registry.retention.prune(PRUNED, now=NOW, kept=RetentionPeriods(audit_days=90))
        await sealed(stores)
        result = await verified(stores)
        assert (result.entries, result.pruned, result.findings) == (1, 0, [])


async def test_an_export_has_every_entry_before_its_seal(place: Place) -> None:
    async with place.opened() as stores:
        await three_seals(stores)
        await written(stores, 1)
        lines = [line async for line in audit_seals.export(stores.registry, ACTOR, now=NOW)]
        shape = ["keys", *(["entry"] * 5 + ["seal"]) * 3, "entry", "end"]
        assert [next(name for name in ("keys", "entry", "seal", "end") if name in line) for line in lines] == shape
        assert set(lines[1]["entry"]) == {column.name for column in _audit().columns}
        assert json.loads(lines[2]["details"]["detail"]) == {"facts": {"address": "203.0.113.9"}}
        assert "d" not in lines[0]["keys"][0]


def _audit() -> Any:
    from corpid.stores.sql.tables import audit

    return audit


def _text(statement: str) -> Any:
    import sqlalchemy as sa

    return sa.text(statement)
