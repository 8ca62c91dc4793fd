"""What has expired is removed in the background, in small pieces, and by no request."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import sqlalchemy as sa

from corpid import periodic_tasks
from corpid.flows.operations.audit_seals import verify
from corpid.rules.authentication.records import Session
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.records import Change
from corpid.stores.sql.statements import Statement
from corpid.stores.sql.tables import sessions, transient
from tests import engines
from tests.logs import capture_logs
from tests.protocol.deployment import registered
from tests.protocol.directory import ALICE
from tests.protocol.provider import World
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.rules.audit_seals import Seal

pytestmark = pytest.mark.full

ROWS = 1200
SESSIONS = 40
PATIENCE = 20.0


@contextmanager
def on_sqlite() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        yield deployed(f"sqlite:///{engines.sqlite(Path(directory) / 'everything.sqlite')}")


@contextmanager
def on_postgresql() -> Iterator[dict[str, Any]]:
    with engines.postgresql(migrated=True) as url:
        yield deployed(url)


def deployed(url: str) -> dict[str, Any]:
    """With short-lived data in the database."""
    return {"database_url": url, "key_encryption_key": base64.b64encode(bytes(range(32))).decode()}


@pytest.fixture(params=[on_sqlite, on_postgresql])
def kept(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with request.param() as options:
        yield options


async def expired(world: World) -> None:
    """Rows that ended before anybody asked, by the engine's clock or by ours."""
    async with world.provider.transient.batch(world.clock.now - 3600) as batch:
        for number in range(ROWS):
            await batch.add("expired", number.to_bytes(32, "big"), 0.001)

    ended = Session(session_id="", user_id=ALICE.user_id, browser_id="b", auth_time=1, amr=(), level=2, expires_at=2)
    for number in range(SESSIONS):
        await world.provider.registry.sessions.put(msgspec.structs.replace(ended, session_id=f"expired-{number}"))


def database(world: World) -> Any:
    return world.provider.transient.database  # type: ignore[attr-defined]


async def left(world: World) -> int:
    expired = (transient.c.kind == "expired", sessions.c.session_id.like("expired-%"))
    counted = [sa.select(sa.func.count()).where(each) for each in expired]
    prepared = [Statement(each) for each in counted]
    return sum([int((await database(world).row(each, {}))[0]) for each in prepared])


async def gone(world: World) -> None:
    async with asyncio.timeout(PATIENCE):
        while await left(world):  # noqa: ASYNC110 - another task removes it
            await asyncio.sleep(0.1)


def filled(world: World) -> None:
    world.run(world.provider.registry.directory.write([Change(None, registered()), Change(None, ALICE)], EVENT))
    world.run(expired(world))


def test_it_goes_away_though_nobody_asks(kept: dict[str, Any]) -> None:
    with World(**kept) as world:
        filled(world)
        world.run(gone(world))


async def renamed(world: World, name: str, to: str) -> None:
    await database(world).row(Statement(sa.text(f"ALTER TABLE {name} RENAME TO {to}")), {})


async def a_sweep_that_fails_is_told_to_the_log_and_the_next_one_comes(lines: Any, world: World) -> None:
    async with asyncio.timeout(PATIENCE):
        while not failures(lines):  # noqa: ASYNC110 - another task writes them
            await asyncio.sleep(0.1)


def test_a_sweep_that_fails_is_told_to_the_log_and_the_next_one_comes(
    kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the engine says what nobody foresaw: here a table is away for a moment."""
    monkeypatch.setattr(periodic_tasks, "_SWEEP_SECONDS", 0.1)

    with World(**kept) as world, capture_logs() as lines:
        filled(world)
        world.run(renamed(world, "transient", "elsewhere"))
        world.run(a_sweep_that_fails_is_told_to_the_log_and_the_next_one_comes(lines, world))
        world.provider.usage.note("rp-1", "legacy", ["a habit"], world.clock.now)
        world.run(counted(world))
        world.run(renamed(world, "elsewhere", "transient"))
        world.run(gone(world))
    (told_of,) = failures(lines)
    assert told_of.startswith("short-lived state: ")


def failures(lines: list[Any]) -> list[str]:
    return [line["detail"] for line in lines if line["event"] == "sweep_failed"]


async def sealed(world: World) -> Seal:
    async with asyncio.timeout(PATIENCE):
        while (seal := await world.provider.registry.seals.last()) is None:
            world.clock.now += 1
            await asyncio.sleep(0.05)
    return seal


def test_the_audit_is_sealed_and_each_digest_is_in_the_log(
    kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """D58."""
    monkeypatch.setattr(periodic_tasks, "_SWEEP_SECONDS", 0.1)

    with World(**kept) as world, capture_logs() as lines:
        filled(world)
        seal = world.run(sealed(world))
        result = world.run(
            verify(world.provider.registry, CommandLine(by="ops@node1"), now=world.clock.now, expect=seal.digest)
        )
        assert (result.expected, result.seals, result.unsealed, result.findings) == (True, 1, 0, [])
    [told] = [line["detail"] for line in lines if line["event"] == "audit_sealed"]
    assert told == f"seal 1: {result.entries} entries up to {seal.last}, digest {seal.digest}"


async def counted(world: World) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await world.provider.registry.usage.list_all():  # noqa: ASYNC110 - another task writes it
            await asyncio.sleep(0.1)


def test_no_request_pays_for_it(kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the background work held up, whatever requests do leaves all of it where it is."""
    monkeypatch.setattr(periodic_tasks, "_SWEEP_SECONDS", 3600)
    with World(**kept) as world:
        filled(world)
        for _ in range(20):
            assert world.push().status_code == 201
            assert world.redeem("c" + "A" * 43).status_code == 400
            assert world.get(world.asked(), world.new_browser()).status_code == 303
        assert world.run(left(world)) == ROWS + SESSIONS
