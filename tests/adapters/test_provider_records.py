"""Clients, keys, sessions, the deployment, the audit table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Session
from corpid.rules.directory.records import Change, Conflict, MissingReference
from corpid.rules.oauth.records import FetchedKeySet
from corpid.rules.signing_keys import ProviderKey
from tests.adapters.opened import EVENT, NOW
from tests.adapters.stored_records import CLIENT, CLIENT_EVENT, LIM, TAN, remove, write

if TYPE_CHECKING:
    from tests.adapters.databases import Place


async def test_clients_are_written_replaced_listed_and_removed_as_records(place: Place) -> None:
    async with place.opened() as stores:
        clients = stores.registry.clients
        other = msgspec.structs.replace(CLIENT, client_id="another", enabled=False)
        await write(stores, CLIENT, other)
        assert await clients.get("rp") == CLIENT
        assert await clients.list_all() == [other, CLIENT]
        await write(stores, msgspec.structs.replace(CLIENT, enabled=False))
        assert await clients.get("rp") == msgspec.structs.replace(CLIENT, enabled=False)
        await remove(stores, CLIENT)
        assert await clients.get("rp") is None


async def test_a_fetched_key_set_is_kept_until_it_is_replaced_dropped_or_its_client_removed(place: Place) -> None:
    """D27: kept across restarts; an operator can drop it."""
    fetched = FetchedKeySet(jwks_uri="https://rp.example/jwks", jwks='{"keys":[]}', fetched_at=5)

    async with place.opened() as stores:
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


async def test_keys_are_added_once_listed_oldest_first_and_changed(place: Place) -> None:
    """D42."""
    new = ProviderKey(kid="a", use="sig", secret='{"d":"2"}', created_at=2, active_from=7202)
    old = ProviderKey(kid="b", use="mac", secret="bWFj", created_at=1, active_from=1)

    async with place.opened() as stores:
        keys = stores.registry.keys
        assert await keys.add_first([old])
        assert not await keys.add_first([new])
        await keys.add(new, EVENT)
        with pytest.raises(Conflict, match="there is a key 'a' already"):
            await keys.add(new, EVENT)
        retired = msgspec.structs.replace(old, retired_at=7202, revoked_at=8000, certificate_chain="PEM")
        await keys.update(retired, EVENT)
        assert await keys.list_all() == [retired, new]
        with pytest.raises(MissingReference, match="there is no key 'c'"):
            await keys.update(msgspec.structs.replace(new, kid="c"), EVENT)
        assert len(await stores.registry.audit.entries()) == 2


async def test_keys_that_exist_are_never_joined_by_first_ones(place: Place) -> None:
    async with place.opened() as stores:
        key = ProviderKey(kid="a", use="sig", secret="{}", created_at=1, active_from=1)
        await stores.registry.keys.add(key, EVENT)
        assert not await stores.registry.keys.add_first([msgspec.structs.replace(key, kid="b")])
        assert await stores.registry.keys.list_all() == [key]


async def test_a_session_lives_until_its_absolute_end_or_until_it_is_ended(place: Place) -> None:
    """D30, D49: where the engine has a clock, a node whose own is wrong neither ends a session nor keeps one."""
    async with place.opened() as stores:
        sessions = stores.registry.sessions
        told = await stores.transient.engine_time()
        now = int(NOW if told is None else told)
        session = Session(
            session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=("pwd", "otp"), level=2, expires_at=now + 60
        )
        await write(stores, TAN, LIM)
        await sessions.put(session)
        assert await sessions.get("s", now=now + 59.9) == session
        assert (await sessions.get("s", now=now + 60) == session) is (told is not None)
        await sessions.put(msgspec.structs.replace(session, expires_at=now))
        assert await sessions.get("s", now=now if told is None else 0) is None
        chosen = msgspec.structs.replace(session, entity_id="E1")
        await sessions.put(chosen)
        assert await sessions.get("s", now=now) == chosen
        await sessions.end("s", EVENT)
        assert await sessions.get("s", now=now) is None
        await sessions.put(session)
        await remove(stores, TAN)
        assert await sessions.get("s", now=now) is None


async def test_every_session_of_a_person_ends_and_nobody_elses(place: Place) -> None:
    """D30: after a reset nobody is signed in with what was reset."""
    session = Session(
        session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=("pwd", "otp"), level=2, expires_at=int(NOW) + 60
    )

    async with place.opened() as stores:
        await stores.registry.directory.write([Change(None, TAN), Change(None, LIM)], EVENT)
        sessions = stores.registry.sessions
        for name, user in (("s", TAN), ("t", TAN), ("x", LIM)):
            await sessions.put(msgspec.structs.replace(session, session_id=name, user_id=user.user_id))
        await sessions.end_all(TAN.user_id, AuditEvent(actor="operator", action="session.end_all"))
        assert [await sessions.get(name, now=NOW) is None for name in ("s", "t", "x")] == [True, True, False]
        assert (await stores.registry.audit.entries())[-1].action == "session.end_all"


async def test_a_sweep_removes_sessions_that_expired_and_no_other(place: Place) -> None:
    async with place.opened() as stores:
        await write(stores, TAN)
        now = int(await stores.transient.engine_time() or NOW)
        session = Session(session_id="s", user_id="u1", browser_id="b", auth_time=1, amr=(), level=2, expires_at=now)
        await stores.registry.sessions.put(session)
        await stores.registry.sessions.put(msgspec.structs.replace(session, session_id="t", expires_at=now + 60))
        assert await stores.registry.sessions.sweep(now=NOW) == 1
        assert place.sql("SELECT session_id FROM sessions") == [("t",)]


async def test_maintenance_is_off_until_somebody_turns_it_on(place: Place) -> None:
    async with place.opened() as stores:
        deployment = stores.registry.deployment
        await deployment.ready()
        for on in (True, True, False):
            await deployment.set_maintenance(on, EVENT)
            assert await deployment.maintenance() is on
        assert len(await stores.registry.audit.entries()) == 3


async def test_audit_entries_are_numbered_and_read_in_pages(place: Place) -> None:
    async with place.opened() as stores:
        audit = stores.registry.audit
        for moment in range(3):
            await audit.write(CLIENT_EVENT, now=NOW + moment)
        entries = await audit.entries(limit=2)
        assert [(entry.number, entry.at) for entry in entries] == [(1, int(NOW)), (2, int(NOW) + 1)]
        assert [entry.number for entry in await audit.entries(after=2)] == [3]
        assert (entries[0].outcome, entries[0].detail, entries[0].entity_id) == ("refused", {}, "E1")
