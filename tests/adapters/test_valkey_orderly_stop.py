"""Redis or Valkey that is closed and restarted: a proof that nothing was lost is believed once (D67, docs/decisions/0027)."""

from __future__ import annotations

import asyncio
import base64
import secrets
import shutil
import time
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid import engines, settings
from corpid.rules.failures import OrderlyStopRefused, StoreUnavailable
from corpid.stores import data_loss
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.deployment import NamedValues, SqlOrderlyStops
from corpid.stores.sql.open import open_sqlite
from corpid.stores.valkey import incarnations
from corpid.stores.valkey.transient import open_valkey
from tests.adapters.on_redis import PASSWORD, RULES, recovered, until
from tests.adapters.opened import KEY
from tests.clusters import redis_cluster
from tests.engines import RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from corpid.stores.transient import TransientStore

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

USER = ("--user", "corpid", "on", f">{PASSWORD}", *RULES)
SNAPSHOTS = ("--save", "3600 1", "--appendonly", "no", "--dbfilename", "dump.rdb", *USER)
SPENT, CODE = b"s" * 32, b"c" * 32
MINUTE = 60
PROCESSES = 4


@pytest.fixture
def server(program: str) -> Iterator[RedisServer]:
    with RedisServer(*SNAPSHOTS, program=program) as running:
        time.sleep(1)
        yield running


class Deployment:
    """One database and one engine; `process` is a server of it, `close` and `open_again` are the commands."""

    def __init__(self, path: Path, server: RedisServer) -> None:
        self.server = server
        self.url = server.url.replace("://", f"://corpid:{PASSWORD}@")
        """as the user that the documents describe"""
        self.options = settings.load(
            base_url="http://127.0.0.1:8000",
            data_dir=str(path / "data"),
            transient_url=self.url,
            key_encryption_key=base64.b64encode(KEY).decode(),
        )

    @asynccontextmanager
    async def process(self) -> AsyncIterator[TransientStore]:
        async with engines.open_stores(self.options, time.time) as opened:
            yield opened.transient

    async def close(self, *, seconds: int = MINUTE) -> None:
        async with engines.open_for_restart(self.options) as store:
            await store.engine.close_for_restart(store.stops, name=secrets.token_hex(16), seconds=seconds)

    async def open_again(self) -> bool:
        async with engines.open_for_restart(self.options) as store:
            return await store.engine.open_again(store.stops)

    def snapshot(self) -> Path:
        """A copy of what the engine would load now."""
        assert self.server.command("SAVE") == "+OK"
        copy = self.server.directory / f"copy-{secrets.token_hex(4)}"
        shutil.copy(self.server.directory / "dump.rdb", copy)
        return copy

    def load(self, copy: Path) -> None:
        """Start the engine with this snapshot."""
        shutil.copy(copy, self.server.directory / "dump.rdb")
        self.server.start()


@pytest.fixture
def deployment(tmp_path: Path, server: RedisServer) -> Deployment:
    return Deployment(tmp_path, server)


async def first(store: TransientStore, key: bytes = SPENT) -> bool:
    async with store.batch(time.time()) as batch:
        return await batch.add("proof", key, 300)


async def lost(store: TransientStore, before: float) -> None:
    """All that was issued before a moment is refused, as soon as the store answers."""
    await recovered(lambda: first(store, secrets.token_bytes(32)))
    assert store.loss.reject_issued_before > before


async def kept(store: TransientStore, loss: Any) -> None:
    """What was spent is known, and what was issued is there."""
    assert not await recovered(lambda: first(store))
    assert await store.get("code", CODE, now=time.time()) == b"grant"
    assert store.loss == loss


async def fill(store: TransientStore) -> Any:
    assert await first(store)
    async with store.batch(time.time()) as batch:
        await batch.put("code", CODE, b"grant", 300)
    return store.loss


async def test_an_orderly_restart_loses_nothing_for_those_that_run_and_those_that_start(deployment: Deployment) -> None:
    async with deployment.process() as one, deployment.process() as two:
        loss = await fill(one)
        await deployment.close()
        for store in (one, two):
            with pytest.raises(StoreUnavailable, match="closed for a restart"):
                await first(store, secrets.token_bytes(32))
        deployment.server.stop()
        deployment.server.start()
        await kept(one, loss)
        await kept(two, loss)
        async with deployment.process() as later:
            await kept(later, loss)


async def test_the_whole_machine_restarts_and_nothing_is_lost(deployment: Deployment) -> None:
    """Also if every process starts at the same moment: one opens the engine, the others follow."""

    async def before() -> Any:
        async with deployment.process() as store:
            loss = await fill(store)
            await deployment.close()
            return loss

    loss = await before()
    deployment.server.stop()
    deployment.server.start()
    async with AsyncExitStack() as stack:
        starting = (stack.enter_async_context(deployment.process()) for _ in range(PROCESSES))
        for store in await asyncio.gather(*starting):
            await kept(store, loss)


async def test_nothing_is_acknowledged_after_the_marker_that_a_crash_could_lose(deployment: Deployment) -> None:
    """The snapshot is made while others still write; then the engine is killed."""
    acknowledged: list[bytes] = []

    async def write(store: TransientStore) -> None:
        while True:
            key = secrets.token_bytes(32)
            try:
                assert await first(store, key)
            except StoreUnavailable:
                await asyncio.sleep(0)
            else:
                acknowledged.append(key)

    async with deployment.process() as one, deployment.process() as two:
        loss = one.loss
        writers = [asyncio.create_task(write(store)) for store in (one, two) for _ in range(10)]
        await asyncio.sleep(1)
        await deployment.close()
        assert await asyncio.to_thread(deployment.server.command, "SAVE") == "+OK"
        await asyncio.sleep(1.5)
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        deployment.server.crash()
        deployment.server.start()
        written = list(acknowledged)
        assert len(written) > 1000
        for key in written:
            assert not await recovered(partial(first, two, key))
        assert one.loss == loss


@pytest.mark.parametrize("how", ["killed", "older snapshot", "emptied", "emptied while closed", "another"])
async def test_an_engine_that_comes_back_without_its_marker_has_lost_data(
    deployment: Deployment, program: str, how: str
) -> None:
    server = deployment.server
    async with deployment.process() as store:
        old = deployment.snapshot()
        await fill(store)
        await deployment.close()
        before = time.time()
        if how == "emptied while closed":
            assert server.command("FLUSHALL") == "+OK"
        elif how == "killed":
            server.crash()
            server.start()
        else:
            server.stop()
            if how == "another":
                old.unlink()
                with RedisServer(*SNAPSHOTS, program=program) as other:
                    other.command("SET", "x", "y")
                    other.command("SAVE")
                    shutil.copy(other.directory / "dump.rdb", old)
            if how == "emptied":
                (server.directory / "dump.rdb").unlink()
                server.start()
            else:
                deployment.load(old)
        await lost(store, before)


async def test_a_marker_proves_something_once(deployment: Deployment) -> None:
    """A snapshot of the time when it was closed comes back later, for those that run and those that start."""

    async def before() -> tuple[Path, float]:
        async with deployment.process() as store:
            await fill(store)
            await deployment.close()
            closed = deployment.snapshot()
            deployment.server.stop()
            deployment.server.start()
            assert await recovered(lambda: first(store, b"l" * 32))
            deployment.server.crash()
            moment = time.time()
            deployment.load(closed)
            await lost(store, moment)
            return closed, moment

    closed, moment = await before()
    deployment.server.crash()
    deployment.load(closed)
    async with deployment.process() as store:
        await lost(store, moment)


async def test_a_marker_proves_nothing_after_another_incarnation_began(deployment: Deployment) -> None:
    """Whoever starts later does not know that incarnation; what was spent in it must not be spendable."""

    async def before() -> Path:
        async with deployment.process() as store:
            old = deployment.snapshot()
            await fill(store)
            await deployment.close()
            closed = deployment.snapshot()
            deployment.server.crash()
            moment = time.time()
            deployment.load(old)
            await lost(store, moment)
            return closed

    closed = await before()
    deployment.server.crash()
    moment = time.time()
    deployment.load(closed)
    async with deployment.process() as store:
        await lost(store, moment)


async def test_a_marker_proves_nothing_after_another_store_was_used(
    deployment: Deployment, tmp_path: Path, program: str
) -> None:
    async def look(used: Deployment, moment: float) -> None:
        async with used.process() as store:
            await lost(store, moment)

    async with deployment.process() as store:
        await fill(store)
        await deployment.close()
    moment = time.time()
    deployment.server.stop()
    with RedisServer(*SNAPSHOTS, program=program) as other:
        await look(Deployment(tmp_path, other), moment)
    moment = time.time()
    deployment.server.start()
    await look(deployment, moment)


class Died(Exception):
    """The process ended on this line."""


class DyingStops(SqlOrderlyStops):
    """Those of a process that dies before, or after, a step."""

    step, late = "", False

    async def begin(self, name: str, *, store_identity: str) -> None:
        await self._die("begin", super().begin(name, store_identity=store_identity))

    async def confirm(self, name: str, *, store_identity: str) -> bool:
        return bool(await self._die("confirm", super().confirm(name, store_identity=store_identity)))

    async def end(self, name: str, *, store_identity: str) -> bool:
        return bool(await self._die("end", super().end(name, store_identity=store_identity)))

    async def _die(self, step: str, work: Any) -> Any:
        if step == self.step and not self.late:
            work.close()
            raise Died
        done = await work
        if step == self.step:
            raise Died
        return done


@asynccontextmanager
async def dying(deployment: Deployment, step: str, *, late: bool = False) -> AsyncIterator[DyingStops]:
    path = deployment.options.sqlite_path
    assert path is not None
    stores = await open_sqlite(path, SecretCipher(KEY), time.time)
    try:
        stops = DyingStops(stores.database)
        stops.step, stops.late = step, late
        yield stops
    finally:
        await stores.close()


@pytest.mark.parametrize(
    ("step", "late", "is_loss"),
    [("begin", True, True), ("confirm", False, True), ("confirm", True, False)],
    ids=["before the marker", "before the confirmation", "after it"],
)
async def test_a_command_that_is_killed_proves_nothing_it_did_not_confirm(
    deployment: Deployment, step: str, late: bool, is_loss: bool
) -> None:
    async with deployment.process() as store:
        loss = await fill(store)
        async with dying(deployment, step, late=late) as stops:
            with pytest.raises(Died):
                await incarnations.close_engine(deployment.url, stops, name="a" * 32, seconds=MINUTE)
        moment = time.time()
        deployment.server.stop()
        deployment.server.start()
        await (lost(store, moment) if is_loss else kept(store, loss))


@pytest.mark.parametrize("confirmed", [True, False])
async def test_without_a_restart_it_opens_by_itself_and_what_was_not_confirmed_counts_as_a_loss(
    deployment: Deployment, confirmed: bool
) -> None:
    async with deployment.process() as one, deployment.process() as two:
        loss, moment = await fill(one), time.time()
        async with dying(deployment, "" if confirmed else "confirm") as stops:
            try:
                await incarnations.close_engine(deployment.url, stops, name="a" * 32, seconds=2)
            except Died:
                assert not confirmed
        with pytest.raises(StoreUnavailable):
            await first(one)
        for store in (one, two):
            await (kept(store, loss) if confirmed else lost(store, moment))


async def test_a_process_that_dies_while_it_opens_the_engine_leaves_a_loss(deployment: Deployment) -> None:
    """It has ended the stop, and not marked the engine; nobody else can tell what it did since."""
    async with deployment.process() as store:
        await fill(store)
        await deployment.close()
        deployment.server.stop()
        async with dying(deployment, "end", late=True) as stops:
            value = await NamedValues(stops._database).get("orderly_stop")
            _, name, store_identity = str(value).split(" ")
            with pytest.raises(Died):
                await stops.end(name, store_identity=store_identity)
        moment = time.time()
        deployment.server.start()
        await lost(store, moment)


async def test_without_its_notes_an_engine_stays_closed(deployment: Deployment) -> None:
    """It is opened as soon as the database answers."""

    class Silent(SqlOrderlyStops):
        answers = False

        async def end(self, name: str, *, store_identity: str) -> bool:
            if not self.answers:
                raise StoreUnavailable("the database does not answer")
            return await super().end(name, store_identity=store_identity)

    async with deployment.process() as store:
        await fill(store)
        await deployment.close()
    deployment.server.stop()
    deployment.server.start()
    path = deployment.options.sqlite_path
    assert path is not None
    stores = await open_sqlite(path, SecretCipher(KEY), time.time)
    stops = Silent(stores.database)
    with pytest.raises(StoreUnavailable, match="without the database"):
        await open_valkey(deployment.url, clock=time.time, stops=stops)
    stops.answers = True
    store = await open_valkey(deployment.url, clock=time.time, stops=stops)
    assert not await first(store)
    await store.close()
    await stores.close()


async def test_open_store_undoes_it_and_the_marker_proves_nothing_any_more(deployment: Deployment) -> None:
    async with deployment.process() as store:
        loss = await fill(store)
        await deployment.close()
        closed = deployment.snapshot()
        assert await deployment.open_again()
        await kept(store, loss)
        with pytest.raises(OrderlyStopRefused, match="not closed"):
            await deployment.open_again()
        deployment.server.crash()
        moment = time.time()
        deployment.load(closed)
        await lost(store, moment)


async def test_open_store_that_is_slow_never_brings_back_an_incarnation_that_was_given_up(
    deployment: Deployment,
) -> None:
    """Its database answers after the stop was over and a process had begun another incarnation."""

    class Slow(SqlOrderlyStops):
        async def end(self, name: str, *, store_identity: str) -> bool:
            ended = await super().end(name, store_identity=store_identity)
            await asyncio.sleep(3.9)
            return ended

    async with deployment.process() as store:
        await fill(store)
        moment = time.time()
        await deployment.close(seconds=1)
        async with dying(deployment, "") as stops:
            with pytest.raises(StoreUnavailable, match="in time"):
                await incarnations.open_engine_again(deployment.url, Slow(stops._database))
        await lost(store, moment)


async def test_what_a_killed_command_left_is_opened_as_after_a_loss(deployment: Deployment) -> None:
    async with deployment.process() as store:
        await fill(store)
        async with dying(deployment, "confirm") as stops:
            with pytest.raises(Died):
                await incarnations.close_engine(deployment.url, stops, name="a" * 32, seconds=MINUTE)
        moment = time.time()
        assert not await deployment.open_again()
        await lost(store, moment)


async def test_it_is_closed_once_at_a_time_and_only_while_it_has_something(deployment: Deployment) -> None:
    with pytest.raises(OrderlyStopRefused, match="no server has used it"):
        await deployment.close()
    async with deployment.process() as store:
        loss = await fill(store)
        await deployment.close()
        with pytest.raises(OrderlyStopRefused, match="closed for a restart"):
            await deployment.close()
        deployment.server.stop()
        deployment.server.start()
        await kept(store, loss)


async def test_a_cluster_is_refused_and_goes_on(tmp_path: Path, program: str) -> None:
    """Its nodes do not stop at one moment."""
    with redis_cluster(program) as url:
        options = settings.load(
            base_url="http://127.0.0.1:8000",
            data_dir=str(tmp_path / "data"),
            transient_url=url,
            key_encryption_key=base64.b64encode(KEY).decode(),
        )
        async with engines.open_stores(options, time.time) as opened, engines.open_for_restart(options) as store:
            with pytest.raises(OrderlyStopRefused, match="cluster"):
                await store.engine.close_for_restart(store.stops, name="a" * 32, seconds=MINUTE)
            assert await first(opened.transient)


async def test_no_version_takes_a_closing_marker_for_an_incarnation(deployment: Deployment) -> None:
    """One that does not know it reads what stands before the first colon as a run, finds another, and begins an incarnation."""
    async with deployment.process() as store:
        await fill(store)
        await deployment.close()
        async with incarnations._alone(deployment.url) as link:
            [mark] = await link.ask(("GET", incarnations.name_marker(incarnations.PART)))
            assert incarnations.read_incarnation(link, mark) == incarnations.NONE
            marker = incarnations.read_closing_marker(mark)
            assert marker is not None
            assert marker.mark == mark


@pytest.mark.parametrize("how", ["takeover or restore", "restart of SQLite's machine"])
async def test_a_database_that_may_have_forgotten_that_a_stop_ended_ends_it(deployment: Deployment, how: str) -> None:
    """It may bring back a note that was used."""
    async with deployment.process() as store:
        await fill(store)
        await deployment.close()
        async with dying(deployment, "") as stops:
            if how == "takeover or restore":
                async with stops._database.transaction():
                    await data_loss.forget(stops._database, now=time.time())
            else:
                await data_loss.after_machine_restart(stops._database, start="another", now=time.time())
        moment = time.time()
        deployment.server.stop()
        deployment.server.start()
        await until(lambda: store.loss.reject_issued_before > moment)
