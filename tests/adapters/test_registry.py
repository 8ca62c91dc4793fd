"""What lasts: every part of the Registry on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.adapters.sql import lookups
from corpid.adapters.sql.restarts import forgotten_at
from corpid.directory.records import (
    Acting,
    Assignment,
    Credentials,
    Entity,
    Membership,
    Parameter,
    ParameterDefinition,
    Record,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    ThirdPartyRow,
    User,
)
from corpid.ports import (
    AuditEvent,
    Conflict,
    Delete,
    FetchedKeySet,
    MissingReference,
    NameRefused,
    NameTaken,
    SealedKey,
    Session,
    StoreUnavailable,
    Upsert,
)
from corpid.protocol.errors import InvalidGrant
from corpid.protocol.records import Client
from tests.adapters.opened import EVENT, NOW, sqlite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from corpid.adapters.sql.stores import SqlStores

TAN = User(
    user_id="u1",
    user_name="Tan.WeiMing",
    name="Tan Wei Ming",
    email="tan@example.org",
    language="zh",
    identity_number="S1234567D",
    identity_country="SG",
    account_type="foreign",
    enabled=False,
)
LIM = User(user_id="u2", user_name="lim", name="Lim")
ACME = Entity(
    entity_id="E1",
    type="NON-UEN",
    registration_number="200312345A",
    country="MY",
    name="Acme",
    status="Withdrawn",
    enabled=False,
)
BOOKS = Entity(entity_id="E2", type="UEN", registration_number="2", country="SG", name="books Pte")
TRADE = Service(
    service_id="s1",
    name="Trade",
    roles=("Preparer", "Approver"),
    parameters=(ParameterDefinition(name="limit", kind="number", mandatory=True),),
    third_parties=True,
    sub_entity="optional",
    entity_types=("UEN",),
    entity_statuses=("Registered",),
    enabled=False,
)
LEVY = Service(service_id="s2", name="Levy")
MEMBER = Membership(user_id="u1", entity_id="E1", enabled=False)
ASSIGNED = Assignment(
    user_id="u1",
    entity_id="E1",
    service_id="s1",
    role="Preparer",
    sub_entity="B1",
    ref="r",
    start_date="2026-01-01",
    end_date="2026-12-31",
    parameters=(Parameter(name="limit", value="5"), Parameter(name="limit", value="6")),
)
GRANTED = ThirdPartyGrant(
    client_entity_id="E2", entity_id="E1", service_id="s1", parameters=(Parameter(name="a", value="b"),)
)
FOR_BOOKS = ThirdPartyAssignment(user_id="u1", entity_id="E1", client_entity_id="E2", service_id="s1", role="Approver")
FACTORS = Credentials(
    user_id="u1",
    password_hash="$argon2id$old",
    password_set_by="user",
    password_source="abc",
    totp_secret="JBSWY3DP",
    totp_set_by="operator",
    totp_last_step=5,
)
CLIENT = Client(client_id="rp", name="RP", redirect_uris=("https://rp.example/cb",), jwks="{}", services=("s1",))
EVERYTHING: tuple[Record, ...] = (TAN, LIM, ACME, BOOKS, TRADE, LEVY, MEMBER, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS)
CLIENT_EVENT = AuditEvent(actor="client:rp", action="code.replay", client_id="rp", entity_id="E1", outcome="refused")


def run(path: Path, scenario: Callable[[SqlStores], Awaitable[object]]) -> None:
    async def opened() -> None:
        async with sqlite(path) as stores:
            await scenario(stores)

    asyncio.run(opened())


async def write(stores: SqlStores, *records: Record | Client) -> None:
    await stores.registry.directory.write([Upsert(record) for record in records], EVENT)


async def remove(stores: SqlStores, *records: Record | Client) -> None:
    await stores.registry.directory.write([Delete(record) for record in records], EVENT)


async def everything(stores: SqlStores) -> list[Record]:
    kinds = {type(record): None for record in EVERYTHING}
    return [record for kind in kinds for record in [found async for found in stores.registry.directory.scan(kind)]]


# --- records of any kind -----------------------------------------------------------------------


def test_every_record_comes_back_as_it_was_written_in_any_order(tmp_path: Path) -> None:
    """With every field away from its default, so that a field without its column would show."""

    async def scenario(stores: SqlStores) -> None:
        directory = stores.registry.directory
        await write(stores, *reversed(EVERYTHING))
        for record in EVERYTHING:
            assert await directory.read(type(record), [record.key, ("nobody",) * len(record.key)]) == {
                record.key: record
            }
        assert sorted(await everything(stores), key=repr) == sorted(EVERYTHING, key=repr)

    run(tmp_path, scenario)


def test_writing_a_record_again_replaces_it_and_keeps_what_refers_to_it(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores, *EVERYTHING)
        changed = msgspec.structs.replace(TAN, user_name="tan.w", name="Tan W M", enabled=True)
        await write(stores, changed, msgspec.structs.replace(ACME, enabled=True))
        assert await stores.registry.directory.user("u1") == changed
        assert await stores.registry.directory.user_by_name("tan.w") == changed
        assert await stores.registry.directory.user_by_name("Tan.WeiMing") is None
        assert await stores.registry.directory.assignments("u1", "E1", ["s1"]) == [ASSIGNED]
        assert await stores.registry.directory.credentials("u1") == FACTORS

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        (TAN, [LIM, ACME, BOOKS, TRADE, LEVY, GRANTED]),
        (ACME, [TAN, LIM, BOOKS, TRADE, LEVY, FACTORS]),
        (BOOKS, [TAN, LIM, ACME, TRADE, LEVY, MEMBER, ASSIGNED, FACTORS]),
        (TRADE, [TAN, LIM, ACME, BOOKS, LEVY, MEMBER, FACTORS]),
        (MEMBER, [TAN, LIM, ACME, BOOKS, TRADE, LEVY, GRANTED, FACTORS]),
        (GRANTED, [TAN, LIM, ACME, BOOKS, TRADE, LEVY, MEMBER, ASSIGNED, FOR_BOOKS, FACTORS]),
    ],
    ids=["user", "client entity's third party", "client entity", "service", "membership", "grant"],
)
def test_what_a_removed_record_carried_goes_with_it(tmp_path: Path, removed: Record, left: list[Record]) -> None:
    """Roles must not come back to life when a membership is made again."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, *EVERYTHING)
        await remove(stores, removed)
        assert sorted(await everything(stores), key=repr) == sorted(left, key=repr)

    run(tmp_path, scenario)


def test_removals_come_before_what_is_written(tmp_path: Path) -> None:
    """A name that becomes free can be given away in the same change."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, LIM)
        heir = User(user_id="u3", user_name="LIM", name="Another Lim")
        await stores.registry.directory.write([Upsert(heir), Delete(LIM)], EVENT)
        assert await stores.registry.directory.user_by_name("lim") == heir

    run(tmp_path, scenario)


def test_many_changes_are_all_written_with_one_event_at_the_end(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        firms = [msgspec.structs.replace(BOOKS, entity_id=f"F{number:04}") for number in range(1201)]
        await write(stores, *firms)
        assert [firm async for firm in stores.registry.directory.scan(Entity)] == firms
        assert len(await stores.registry.audit.entries()) == 1

    run(tmp_path, scenario)


def test_others_write_between_the_parts_of_a_large_change(tmp_path: Path) -> None:
    """While `corpid apply` writes a large file, requests keep flowing."""

    async def scenario(stores: SqlStores) -> None:
        firms = [msgspec.structs.replace(BOOKS, entity_id=f"F{number:04}") for number in range(2000)]
        writing = asyncio.create_task(write(stores, *firms))
        answered = 0
        while not writing.done():
            async with stores.transient.unit(NOW) as unit:
                answered += await unit.add("jti", answered.to_bytes(32), 60)
            await asyncio.sleep(0)
        assert answered >= 5

    run(tmp_path, scenario)


def test_a_change_without_records_still_leaves_its_event(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores)
        assert len(await stores.registry.audit.entries()) == 1

    run(tmp_path, scenario)


# --- what the database refuses -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["LIM", "\uff2cim", "lim"])
def test_a_user_name_is_taken_in_every_form_that_reads_the_same(tmp_path: Path, name: str) -> None:
    """D51: unique after PRECIS mapping."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, LIM)
        with pytest.raises(NameTaken, match="User u9: another user has this user name"):
            await write(stores, User(user_id="u9", user_name=name, name="Lim"), ACME)
        assert await everything(stores) == [LIM]
        assert len(await stores.registry.audit.entries()) == 1

    run(tmp_path, scenario)


def test_a_text_that_is_no_user_name_is_refused_and_found_nowhere(tmp_path: Path) -> None:
    """D51."""

    async def scenario(stores: SqlStores) -> None:
        with pytest.raises(NameRefused, match=r"User u9: 'a b': .*U\+0020"):
            await write(stores, User(user_id="u9", user_name="a b", name="A"))
        assert await stores.registry.directory.user_by_name("a b") is None
        assert await stores.registry.directory.user_by_name("") is None

    run(tmp_path, scenario)


@pytest.mark.parametrize("record", [MEMBER, ASSIGNED, GRANTED, FOR_BOOKS, FACTORS], ids=lambda r: type(r).__name__)
def test_a_record_that_refers_to_nothing_is_refused_by_name(tmp_path: Path, record: Record) -> None:
    async def scenario(stores: SqlStores) -> None:
        with pytest.raises(MissingReference, match=f"{type(record).__name__} {'/'.join(record.key)}: it refers to"):
            await write(stores, record)

    run(tmp_path, scenario)


def test_a_role_needs_the_membership_it_belongs_to(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN, ACME, TRADE)
        with pytest.raises(MissingReference):
            await write(stores, ASSIGNED)

    run(tmp_path, scenario)


# --- the look-ups of a request -----------------------------------------------------------------


def test_a_person_is_found_by_any_form_of_the_user_name(tmp_path: Path) -> None:
    """D51: compared after PRECIS mapping."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN)
        for name in ("Tan.WeiMing", "tan.weiming", "\uff34\uff21\uff2e.weiming"):
            assert await stores.registry.directory.user_by_name(name) == TAN
        assert await stores.registry.directory.user_by_name("tan") is None

    run(tmp_path, scenario)


def test_acting_gives_the_whole_chain_or_nothing(tmp_path: Path) -> None:
    """D50: the state of user, entity and membership in one look."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, *EVERYTHING)
        acting = await stores.registry.directory.acting("u1", "E1")
        assert acting == Acting(user=TAN, entity=ACME, membership=MEMBER)
        assert not acting.allowed
        for user_id, entity_id in (("u2", "E1"), ("u1", "E2"), ("nobody", "E1")):
            assert await stores.registry.directory.acting(user_id, entity_id) is None

    run(tmp_path, scenario)


def test_services_are_those_asked_for_and_known(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores, TRADE, LEVY)
        directory = stores.registry.directory
        assert await directory.services(["s2", "s1", "s1", "unknown"]) == [TRADE, LEVY]
        assert await directory.services(["s2"]) == [LEVY]
        assert await directory.services([]) == []

    run(tmp_path, scenario)


def test_assignments_are_those_of_person_entity_and_services(tmp_path: Path) -> None:
    """Spec 1: a client reads the roles at its own services only."""

    async def scenario(stores: SqlStores) -> None:
        other_service = msgspec.structs.replace(ASSIGNED, service_id="s2")
        other_entity = msgspec.structs.replace(ASSIGNED, entity_id="E2")
        other_ref = msgspec.structs.replace(ASSIGNED, ref="s")
        memberships = Membership(user_id="u1", entity_id="E2"), Membership(user_id="u2", entity_id="E1")
        other_person = msgspec.structs.replace(ASSIGNED, user_id="u2")
        await write(stores, *EVERYTHING, *memberships, other_service, other_entity, other_ref, other_person)
        directory = stores.registry.directory
        assert await directory.assignments("u1", "E1", ["s1"]) == [ASSIGNED, other_ref]
        assert await directory.assignments("u1", "E1", ["s2", "s1"]) == [ASSIGNED, other_ref, other_service]
        assert await directory.assignments("u1", "E1", []) == []
        assert await directory.assignments("u1", "E1", ["unknown"]) == []

    run(tmp_path, scenario)


def test_third_party_rows_come_with_client_entity_and_every_grant_for_the_service(tmp_path: Path) -> None:
    """R-21: a person's rows are judged against what the client entity granted."""

    async def scenario(stores: SqlStores) -> None:
        second_grant = msgspec.structs.replace(GRANTED, role="Approver")
        other_grants = (
            msgspec.structs.replace(GRANTED, service_id="s2"),
            msgspec.structs.replace(GRANTED, client_entity_id="E1", entity_id="E2"),
        )
        ungranted = msgspec.structs.replace(FOR_BOOKS, client_entity_id="E1")
        await write(stores, *EVERYTHING, second_grant, *other_grants, ungranted)
        assert await stores.registry.directory.third_party_rows("u1", "E1", ["s1", "s2"]) == [
            ThirdPartyRow(assignment=ungranted, client_entity=ACME, grants=()),
            ThirdPartyRow(assignment=FOR_BOOKS, client_entity=BOOKS, grants=(GRANTED, second_grant)),
        ]
        assert await stores.registry.directory.third_party_rows("u1", "E1", ["s2"]) == []
        assert await stores.registry.directory.third_party_rows("u2", "E1", ["s1"]) == []

    run(tmp_path, scenario)


def test_no_look_up_of_a_request_scans_a_table(tmp_path: Path) -> None:
    """Costs stay flat from a thousand to a million users: DESIGN "Speed"."""

    async def scenario(stores: SqlStores) -> None:
        registry, transient = stores.registry, stores.transient
        directory = registry.directory
        statements = {
            "by name": directory._user_by_name,
            "acting": directory._acting,
            "usable": directory._usable,
            "choices": directory._choices(0),
            "choices that match": directory._choices(2),
            "count of choices": directory._count(0),
            "count of those that match": directory._count(2),
            "services": directory._services(3),
            "assignments": directory._assignments(3),
            "third parties": directory._third_party_rows(3),
            "totp step": directory._raise_step,
            "rehash": directory._rehash,
            "client": registry.clients._get,
            "key set": registry.clients._fetched,
            "session": registry.sessions._get,
            "sessions that expired": registry.sessions._sweep,
            "audit": registry.audit._entries,
            "look": transient.look,
            "take": transient.take,
            "sweep": transient._stretch,
            "clear": transient._clear,
        } | {kind.__name__: known.one for kind, known in directory._kinds.items()}
        plans = {name: plan(tmp_path, statement.text) for name, statement in statements.items()}
        assert {name: steps for name, steps in plans.items() if any(s.startswith("SCAN") for s in steps)} == {}
        assert all(any("SEARCH" in step for step in steps) for steps in plans.values())

    run(tmp_path, scenario)


def test_no_removal_scans_a_table_for_what_refers_to_it(tmp_path: Path) -> None:
    """Every foreign key is the start of an index, so that removing one entity does not read them all."""

    async def scenario(stores: SqlStores) -> None:
        for (table,) in query(tmp_path, "SELECT name FROM sqlite_schema WHERE type = 'table'"):
            for columns in references(tmp_path, table):
                where = " AND ".join(f"{column} = ?" for column in columns)
                assert all(step.startswith("SEARCH") for step in plan(tmp_path, f"DELETE FROM {table} WHERE {where}"))

    run(tmp_path, scenario)


def references(path: Path, table: str) -> list[list[str]]:
    columns: dict[int, list[str]] = {}
    for number, _, _, column, *_ in query(path, f"PRAGMA foreign_key_list({table})"):
        columns.setdefault(number, []).append(column)
    return list(columns.values())


def plan(path: Path, statement: str) -> list[str]:
    return [row[3] for row in query(path, f"EXPLAIN QUERY PLAN {statement}", (None,) * statement.count("?"))]


def query(path: Path, statement: str, values: tuple[None, ...] = ()) -> list[Any]:
    connection = sqlite3.connect(path / "corpid.db")
    rows = connection.execute(statement, values).fetchall()
    connection.close()
    return rows


def test_a_statement_by_number_of_services_is_prepared_once(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        prepared = lookups.by_count(stores.database, lookups.services_of)
        assert prepared(2) is prepared(2)
        assert prepared(2).text != prepared(3).text

    run(tmp_path, scenario)


# --- factors -----------------------------------------------------------------------------------


def test_of_many_uses_of_one_totp_step_one_is_accepted(tmp_path: Path) -> None:
    """D45: a step works once."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN, FACTORS)
        raised = await asyncio.gather(*(stores.registry.directory.raise_totp_step("u1", 6, EVENT) for _ in range(20)))
        assert raised.count(True) == 1
        assert not await stores.registry.directory.raise_totp_step("u1", 5, EVENT)
        assert await stores.registry.directory.raise_totp_step("u1", 7, EVENT)
        assert not await stores.registry.directory.raise_totp_step("nobody", 7, EVENT)
        assert len(await stores.registry.audit.entries()) == 3

    run(tmp_path, scenario)


def test_writing_a_persons_factors_never_makes_a_spent_code_good(tmp_path: Path) -> None:
    """D45: what `corpid apply` read before a sign-in must not lower the step that the sign-in raised."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN, FACTORS)
        await stores.registry.directory.raise_totp_step("u1", 9, EVENT)
        await write(stores, FACTORS)
        assert not await stores.registry.directory.raise_totp_step("u1", 9, EVENT)

    run(tmp_path, scenario)


def test_a_rehash_replaces_only_the_hash_it_was_made_from(tmp_path: Path) -> None:
    """D44: a password that was changed meanwhile stays changed."""

    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN, FACTORS)
        directory = stores.registry.directory
        await directory.rehash("u1", "$argon2id$other", "$argon2id$wrong")
        assert await directory.credentials("u1") == FACTORS
        await directory.rehash("u1", "$argon2id$old", "$argon2id$new")
        assert await directory.credentials("u1") == msgspec.structs.replace(FACTORS, password_hash="$argon2id$new")

    run(tmp_path, scenario)


def test_a_person_may_have_no_factor_yet(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores, LIM)
        assert await stores.registry.directory.credentials("u2") is None
        await write(stores, Credentials(user_id="u2"))
        assert await stores.registry.directory.credentials("u2") == Credentials(user_id="u2")

    run(tmp_path, scenario)


# --- clients, keys, sessions, deployment -------------------------------------------------------


def test_clients_are_written_replaced_listed_and_removed_as_records(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        clients = stores.registry.clients
        other = msgspec.structs.replace(CLIENT, client_id="another", enabled=False)
        await write(stores, CLIENT, other)
        assert await clients.get("rp") == CLIENT
        assert await clients.all() == [other, CLIENT]
        await write(stores, msgspec.structs.replace(CLIENT, enabled=False))
        assert await clients.get("rp") == msgspec.structs.replace(CLIENT, enabled=False)
        await remove(stores, CLIENT)
        assert await clients.get("rp") is None

    run(tmp_path, scenario)


def test_a_fetched_key_set_is_kept_until_it_is_replaced_dropped_or_its_client_removed(tmp_path: Path) -> None:
    """D27: kept across restarts; an operator can drop it."""
    fetched = FetchedKeySet(jwks_uri="https://rp.example/jwks", jwks='{"keys":[]}', fetched_at=5)

    async def scenario(stores: SqlStores) -> None:
        clients = stores.registry.clients
        await write(stores, CLIENT)
        assert await clients.fetched_key_set("rp") is None
        for kept in (fetched, msgspec.structs.replace(fetched, fetched_at=6)):
            await clients.keep_fetched_key_set("rp", kept)
            assert await clients.fetched_key_set("rp") == kept
        await clients.drop_fetched_key_set("rp", EVENT)
        assert await clients.fetched_key_set("rp") is None
        await clients.keep_fetched_key_set("rp", fetched)
        await remove(stores, CLIENT)
        assert await clients.fetched_key_set("rp") is None
        with pytest.raises(MissingReference):
            await clients.keep_fetched_key_set("rp", fetched)

    run(tmp_path, scenario)


def test_keys_are_added_once_listed_oldest_first_and_changed(tmp_path: Path) -> None:
    """D42."""
    new = SealedKey(kid="a", use="sig", secret='{"d":"2"}', created_at=2, active_from=7202)
    old = SealedKey(kid="b", use="mac", secret="bWFj", created_at=1, active_from=1)

    async def scenario(stores: SqlStores) -> None:
        keys = stores.registry.keys
        assert await keys.add_first([old])
        assert not await keys.add_first([new])
        await keys.add(new, EVENT)
        with pytest.raises(Conflict, match="there is a key 'a' already"):
            await keys.add(new, EVENT)
        retired = msgspec.structs.replace(old, retired_at=7202, revoked_at=8000, certificate_chain="PEM")
        await keys.update(retired, EVENT)
        assert await keys.all() == [retired, new]
        with pytest.raises(MissingReference, match="there is no key 'c'"):
            await keys.update(msgspec.structs.replace(new, kid="c"), EVENT)
        assert len(await stores.registry.audit.entries()) == 2

    run(tmp_path, scenario)


def test_keys_that_exist_are_never_joined_by_first_ones(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        key = SealedKey(kid="a", use="sig", secret="{}", created_at=1, active_from=1)
        await stores.registry.keys.add(key, EVENT)
        assert not await stores.registry.keys.add_first([msgspec.structs.replace(key, kid="b")])
        assert await stores.registry.keys.all() == [key]

    run(tmp_path, scenario)


def test_a_session_lives_until_its_absolute_end_or_until_it_is_ended(tmp_path: Path) -> None:
    """D30."""
    session = Session(
        session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=("pwd", "otp"), level=2, expires_at=int(NOW) + 60
    )

    async def scenario(stores: SqlStores) -> None:
        sessions = stores.registry.sessions
        await write(stores, TAN, LIM)
        await sessions.put(session)
        assert await sessions.get("s", now=NOW + 59.9) == session
        assert await sessions.get("s", now=NOW + 60) is None
        chosen = msgspec.structs.replace(session, entity_id="E1")
        await sessions.put(chosen)
        assert await sessions.get("s", now=NOW) == chosen
        await sessions.end("s", EVENT)
        assert await sessions.get("s", now=NOW) is None
        await sessions.put(session)
        await remove(stores, TAN)
        assert await sessions.get("s", now=NOW) is None

    run(tmp_path, scenario)


def test_every_session_of_a_person_ends_and_nobody_elses(tmp_path: Path) -> None:
    """D30: after a reset nobody is signed in with what was reset."""
    session = Session(
        session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=("pwd", "otp"), level=2, expires_at=int(NOW) + 60
    )

    async def scenario(stores: SqlStores) -> None:
        await stores.registry.directory.write([Upsert(TAN), Upsert(LIM)], EVENT)
        sessions = stores.registry.sessions
        for name, user in (("s", TAN), ("t", TAN), ("x", LIM)):
            await sessions.put(msgspec.structs.replace(session, session_id=name, user_id=user.user_id))
        await sessions.end_all(TAN.user_id, AuditEvent(actor="operator", action="session.end_all"))
        assert [await sessions.get(name, now=NOW) is None for name in ("s", "t", "x")] == [True, True, False]
        assert (await stores.registry.audit.entries())[-1].action == "session.end_all"

    run(tmp_path, scenario)


def test_a_new_session_removes_those_that_expired(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        await write(stores, TAN)
        session = Session(
            session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=(), level=2, expires_at=int(NOW)
        )
        await stores.registry.sessions.put(session)
        await stores.registry.sessions.put(msgspec.structs.replace(session, session_id="t", expires_at=int(NOW) + 1))
        assert query(tmp_path, "SELECT session_id FROM sessions") == [("t",)]

    run(tmp_path, scenario)


def test_maintenance_is_off_until_somebody_turns_it_on(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        deployment = stores.registry.deployment
        await deployment.ready()
        for on in (True, True, False):
            await deployment.set_maintenance(on, EVENT)
            assert await deployment.maintenance() is on
        assert len(await stores.registry.audit.entries()) == 3

    run(tmp_path, scenario)


def test_a_database_that_was_broken_is_not_ready(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        connection = sqlite3.connect(tmp_path / "corpid.db")
        connection.execute("DROP TABLE deployment")
        connection.close()
        with pytest.raises(StoreUnavailable, match="no such table: deployment"):
            await stores.registry.deployment.ready()

    run(tmp_path, scenario)


def test_audit_entries_are_numbered_and_read_in_pages(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        audit = stores.registry.audit
        for moment in range(3):
            await audit.write(CLIENT_EVENT, now=NOW + moment)
        entries = await audit.entries(limit=2)
        assert [(entry.number, entry.at) for entry in entries] == [(1, int(NOW)), (2, int(NOW) + 1)]
        assert [entry.number for entry in await audit.entries(after=2)] == [3]
        assert (entries[0].outcome, entries[0].detail, entries[0].entity_id) == ("refused", {}, "E1")

    run(tmp_path, scenario)


# --- one transaction ---------------------------------------------------------------------------


def test_a_registry_write_inside_a_unit_ends_with_the_unit(tmp_path: Path) -> None:
    """DESIGN: the audit event is written in the transaction of the change."""

    async def scenario(stores: SqlStores) -> None:
        async def spend(number: int, failure: Exception | None) -> None:
            async with stores.transient.unit(NOW) as unit:
                await unit.add("jti", number.to_bytes(32), 60)
                await stores.registry.audit.write(CLIENT_EVENT, now=NOW)
                if failure:
                    raise failure

        outcomes = await asyncio.gather(
            spend(1, None), spend(2, InvalidGrant("Spent.")), spend(3, RuntimeError("a fault")), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), InvalidGrant, RuntimeError]
        assert len(await stores.registry.audit.entries()) == 2
        async with stores.transient.unit(NOW) as unit:
            assert [await unit.add("jti", number.to_bytes(32), 60) for number in (1, 2, 3)] == [False, False, True]

    run(tmp_path, scenario)


def test_a_registry_write_of_another_task_waits_for_the_unit_and_is_its_own(tmp_path: Path) -> None:
    async def scenario(stores: SqlStores) -> None:
        async with stores.transient.unit(NOW):
            writing = asyncio.create_task(stores.registry.audit.write(EVENT, now=NOW))
            await asyncio.sleep(0)
            assert not writing.done()
        await writing
        assert len(await stores.registry.audit.entries()) == 1

    run(tmp_path, scenario)


# --- after a power loss ------------------------------------------------------------------------


def test_after_the_machine_went_down_the_short_lived_table_is_empty_and_the_moment_is_kept(tmp_path: Path) -> None:
    """DESIGN "What each engine promises": SQLite after a power loss fails closed."""

    async def scenario(stores: SqlStores) -> None:
        assert stores.transient.forgotten_at == 0.0
        async with stores.transient.unit(NOW) as unit:
            await unit.put("code", b"k", b"grant", 60)
        same = await forgotten_at(stores.database, start="first", now=NOW + 1)
        assert same == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) is None
        async with stores.transient.unit(NOW) as unit:
            await unit.put("code", b"k", b"grant", 60)
        assert await forgotten_at(stores.database, start="first", now=NOW + 2) == NOW + 1
        assert await stores.transient.get("code", b"k", now=NOW) == b"grant"

    run(tmp_path, scenario)
