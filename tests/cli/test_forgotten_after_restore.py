"""A PostgreSQL database that was restored or moved: no server starts before `corpid maintenance after-restore` (docs/decisions/0028)."""

from __future__ import annotations

import asyncio
import base64
import secrets
import shutil
import time
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from corpid import engines, settings
from corpid.cli.doctor import local_checks
from corpid.rules.failures import StoreUnavailable
from corpid.rules.signing_keys import STANDBY
from corpid.stores.data_loss import RestoreUnconfirmed
from tests.adapters.databases import postgresql_rows
from tests.adapters.opened import race
from tests.cli.test_after_restore import program
from tests.engines import PostgresServer, postgresql, postgresql_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpid.engines import Engines
    from tests.cli.conftest import Terminal

pytestmark = pytest.mark.full

STARTED = """
async def main():
    go()
    stores = await opened()
    print("started")
    await stores.close()
asyncio.run(main())
"""
NODES = 4
LEFT_OUT = 1_000_000_000
"""numbers of the audit, by a restore"""


def chosen(url: str) -> dict[str, str]:
    return {
        "base_url": "http://127.0.0.1:8000",
        "developer_mode": "true",
        "database_url": url,
        "key_encryption_key": base64.b64encode(bytes(range(32))).decode(),
        "migrate_on_start": "true",
    }


async def started(url: str) -> float:
    """A server starts; before when it refuses everything."""
    async with opened(url) as stores:
        return stores.transient.loss.reject_issued_before


def opened(url: str) -> AbstractAsyncContextManager[Engines]:
    return engines.open_stores(settings.load(**chosen(url)), time.time)


def noted(url: str, name: str = "database_identity") -> list[tuple[Any, ...]]:
    return postgresql_rows(url, f"SELECT value FROM deployment WHERE name = '{name}'")


def dump(url: str, folder: Path) -> str:
    program("pg_dump", "--format=custom", f"--file={folder / 'corpid.dump'}", url)
    return str(folder / "corpid.dump")


def put_back(url: str, file: str, *options: str) -> None:
    program("pg_restore", "--exit-on-error", "--no-owner", "--no-privileges", *options, f"--dbname={url}", file)


@contextmanager
def in_a_new_database(url: str, folder: Path) -> Iterator[str]:
    with postgresql() as other:
        put_back(other, dump(url, folder))
        yield other


@contextmanager
def on_another_server(url: str, folder: Path) -> Iterator[str]:
    with PostgresServer() as server, server.database() as name:
        put_back(server.dsn(name), dump(url, folder))
        yield server.dsn(name)


@contextmanager
def in_place(url: str, folder: Path) -> Iterator[str]:
    put_back(url, dump(url, folder), "--clean", "--if-exists")
    yield url


class Recovered(PostgresServer):
    """What a base backup and PostgreSQL's recovery make of a server: the same one, on a later timeline."""

    def __init__(self, original: PostgresServer) -> None:
        super().__init__("restore_command = 'false'")
        self._original = original

    def _make(self) -> None:
        if self._user:
            shutil.chown(self.directory, self._user, self._user)
        program = self._programs / "pg_basebackup"
        copy = (program, "-D", self._data, "-d", self._original.dsn(), "--checkpoint=fast")
        assert self._run(copy, self._user).wait() == 0, self.log()
        (self._data / "recovery.signal").touch()
        self._configure()


@pytest.mark.parametrize(
    ("restored", "difference"),
    [
        (in_a_new_database, "another database of its server"),
        pytest.param(on_another_server, "another server", marks=pytest.mark.full),
        pytest.param(in_place, "its tables were created again", marks=pytest.mark.full),
    ],
)
def test_no_server_starts_on_a_restored_database_before_the_command_was_run(
    empty_terminal: Terminal, restored: Any, difference: str
) -> None:
    """Nor any other command; `corpid migrate` and the doctor say so, the command itself works."""
    terminal = empty_terminal
    with postgresql() as url:
        assert asyncio.run(started(url)) == 0.0
        with restored(url, terminal.folder) as new, terminal.given(chosen(new)):
            before = noted(new)
            with pytest.raises(engines.StartError) as refused:
                asyncio.run(started(new))
            assert difference in str(refused.value)
            assert "`corpid maintenance after-restore`" in str(refused.value)
            assert difference in terminal.refused("user", "list")
            assert difference in terminal.run("migrate", "--plan").stderr
            assert difference in terminal.run("migrate").stderr
            found = {each.about: each for each in local_checks.check_node(settings.load())}
            assert found["restore"].verdict == "problem"
            assert (noted(new), noted(new, "restored_at")) == (before, [])

            terminal.done("maintenance", "after-restore")
            assert asyncio.run(started(new)) > 0.0
            assert "No server" not in terminal.run("migrate").stderr
            assert "restore" not in {each.about for each in local_checks.check_node(settings.load())}


def test_a_database_of_the_version_before_starts_without_a_word(empty_terminal: Terminal) -> None:
    with postgresql() as url, empty_terminal.given(chosen(url)):
        asyncio.run(started(url))
        first = noted(url)
        postgresql_rows(url, "DELETE FROM deployment WHERE name = 'database_identity'")
        assert "No server" not in empty_terminal.run("migrate").stderr
        assert asyncio.run(started(url)) == 0.0
        assert noted(url) == first


def test_the_command_on_a_dump_of_the_version_before_writes_its_entry_after_the_gap(empty_terminal: Terminal) -> None:
    """Also the standby key, which such a database lacks, is published later."""
    with postgresql() as url, empty_terminal.given(chosen(url)):
        asyncio.run(started(url))
        postgresql_rows(url, "UPDATE deployment SET value = '1 2 3' WHERE name = 'database_identity'")
        postgresql_rows(url, f"DELETE FROM keys WHERE active_from = {STANDBY}")
        empty_terminal.done("maintenance", "after-restore")
        asyncio.run(started(url))
        entries = postgresql_rows(url, "SELECT action, number FROM audit ORDER BY number DESC LIMIT 2")
        assert [action for action, _ in entries] == ["key.publish", "deployment.restore"]
        assert int(entries[-1][1]) > LEFT_OUT


def test_of_nodes_that_start_at_once_each_starts_or_each_refuses(tmp_path: Path) -> None:
    with postgresql(migrated=True) as url:
        assert race(url, STARTED, processes=NODES) == ["started"] * NODES
        postgresql_rows(url, "UPDATE deployment SET value = '1 2 3' WHERE name = 'database_identity'")
        for _ in range(NODES):
            with pytest.raises(engines.StartError):
                asyncio.run(started(url))


def test_another_timeline_alone_ends_what_may_be_missing_and_refuses_no_start(empty_terminal: Terminal) -> None:
    """A standby took over, or the server went back to a moment in its log. Of several nodes one does it."""
    with postgresql() as url, empty_terminal.given(chosen(url)):
        asyncio.run(started(url))
        postgresql_rows(url, "UPDATE deployment SET value = '00000000' WHERE name = 'timeline'")
        moment = asyncio.run(started(url))
        assert moment > time.time()
        assert asyncio.run(started(url)) == moment


def test_a_server_that_was_recovered_to_an_earlier_moment_starts_and_refuses_what_was_issued(
    empty_terminal: Terminal,
) -> None:
    with PostgresServer() as server:
        with empty_terminal.given(chosen(server.dsn())):
            assert asyncio.run(started(server.dsn())) == 0.0
        with Recovered(server) as recovered, empty_terminal.given(chosen(recovered.dsn())):
            assert noted(recovered.dsn()) == noted(server.dsn())
            assert asyncio.run(started(recovered.dsn())) > time.time()
            assert noted(recovered.dsn(), "timeline") > noted(server.dsn(), "timeline")


def test_a_role_that_may_not_read_the_system_identifier_still_notices_another_database(
    empty_terminal: Terminal,
) -> None:
    """And notes the identifier once it may."""
    with PostgresServer() as server, server.database() as name:
        server.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", name)
        server.sql("CREATE ROLE node LOGIN")
        server.sql(f"ALTER DATABASE {name} OWNER TO node")
        url = server.dsn(name).replace("corpid@", "node@")
        with empty_terminal.given(chosen(url)):
            asyncio.run(started(url))
            assert noted(url)[0][0].startswith("- ")
            server.sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC", name)
            assert asyncio.run(started(url)) == 0.0
            assert not noted(url)[0][0].startswith("- ")
            server.sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", name)
            assert asyncio.run(started(url)) == 0.0
            with in_place(url, empty_terminal.folder), pytest.raises(engines.StartError, match="created again"):
                asyncio.run(started(url))


async def test_a_running_server_does_not_use_a_database_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    """Also not one that was restored as it should be: what this process knows belongs to the other."""
    server = postgresql_server()
    own, other = (f"corpid_{word}_{secrets.token_hex(4)}" for word in ("own", "other"))

    def exchange() -> None:
        ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('{own}', '{other}')"
        for statement in (
            ended,
            f"ALTER DATABASE {own} RENAME TO {own}_before",
            f"ALTER DATABASE {other} RENAME TO {own}",
        ):
            server.sql(statement)

    for name in (own, other):
        server.sql(f"CREATE DATABASE {name}")
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(tmp_path)
            await started(server.dsn(other))
            async with opened(server.dsn(own)) as stores:
                assert await stores.registry.clients.get("nobody") is None
                await asyncio.to_thread(exchange)
                with suppress(StoreUnavailable):  # its connections were ended
                    await stores.registry.clients.get("nobody")
                with pytest.raises(RestoreUnconfirmed, match="restart it"):
                    await stores.registry.clients.get("nobody")
    finally:
        for name in (own, other, f"{own}_before"):
            server.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
