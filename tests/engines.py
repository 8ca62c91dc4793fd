"""Real engines for tests: PostgreSQL, Redis and Valkey from Debian's packages, on ports and in directories of their own.

`postgresql()` and `redis()` give the address of an empty one; both run once per test process, start when
first asked for and stop with it. A test that stops an engine, or crashes it, starts one for itself:
`with PostgresServer() as server: …`.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pytest

from tests.machine import free_port, memory
from tests.tiers import first_or_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    T = TypeVar("T")

IN_CI: Final = os.environ.get("CI") == "true"
_START_SECONDS: Final = 60
_VERSIONS: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
POSTGRESQL: Final = _VERSIONS[-1].parent if _VERSIONS else None
REDIS: Final = shutil.which("redis-server")
PGBOUNCER: Final = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
_PROGRAMS: Final = {"redis": REDIS, "valkey": shutil.which("valkey-server")}
PROGRAMS: Final = ("redis", pytest.param("valkey", marks=pytest.mark.full))
"""what speaks as Redis does, for tests that hold on each; Valkey's are among the long ones"""

_INITDB: Final = (
    *("--username=corpid", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"),
    # an order that is not that of bytes, so that a forgotten COLLATE shows
    *("--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"),
)


_LEFT_OUT: Final = "tests on {name} were left out: it is missing (`make setup-test` says more)"


def missing() -> list[str]:
    """A sentence for each engine that is not installed, and so for the tests that are left out."""
    needed = {
        "PostgreSQL": POSTGRESQL,
        "pgbouncer": PGBOUNCER,
        **{name.title(): path for name, path in _PROGRAMS.items()},
    }
    return [_LEFT_OUT.format(name=name) for name, path in needed.items() if not path]


def _required(path: str | Path | None, name: str) -> Path:
    if path is not None:
        return Path(path)
    if IN_CI:
        pytest.fail(f"{name} is missing, and in CI its tests must run")
    pytest.skip(_LEFT_OUT.format(name=name))


class _Server:
    """A process with a port and a directory; `stop`, `crash` and `start` it as often as needed."""

    def __init__(self, place: Path | None = None) -> None:
        self.directory: Final = Path(tempfile.mkdtemp(prefix="corpid-engine-", dir=place))
        self.port: Final = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start it on its port and wait until it answers."""
        self.process = self._launch()
        deadline = time.monotonic() + _START_SECONDS
        # Another server may answer at the port: an answer counts only while this process lives.
        while self.process.poll() is not None or not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self._end(signal.SIGKILL)
                raise RuntimeError(f"{type(self).__name__} did not start:\n{self.log()}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop it in order."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it as a power cut ends a program: nothing is said, nothing is written."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it hang: connections stay, nobody answers. `resume` ends that."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        """What it wrote so far."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.wait(timeout=_START_SECONDS)
        self.process = None

    def _run(self, command: Sequence[str | Path], user: str | None = None) -> subprocess.Popen[bytes]:
        owner: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.directory, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **owner
            )

    def _launch(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError


# What changes when a test changes the schema or gathers statistics, which are for tests of their own.
_SCHEMA: Final = "SELECT concat_ws(' ', {})".format(
    ", ".join(
        f"(SELECT count(*) || '/' || max(xmin::text::bigint) FROM {catalog})"
        for catalog in (
            *("pg_class", "pg_attribute", "pg_index", "pg_constraint", "pg_trigger", "pg_proc", "pg_statistic"),
            *("pg_namespace", "pg_db_role_setting"),
        )
    )
)

# The rows that migrations write.
_ROWS_AS_INSERTS: Final = """
SELECT string_agg(statement, E';\n') FROM (
    SELECT format('INSERT INTO deployment SELECT (%L::deployment).*', row) AS statement FROM deployment AS row
    UNION ALL
    SELECT format('INSERT INTO alembic_version SELECT (%L::alembic_version).*', row) FROM alembic_version AS row
) AS statements
"""

# Dead rows are not cleaned up here, and a large table would lead the planner astray.
_EMPTY: Final = """
SET session_replication_role = replica;
DO $$
DECLARE
    own oid := (SELECT oid FROM pg_database WHERE datname = current_database());
    relation record;
    filled boolean;
BEGIN
    FOR waited IN 1..10 LOOP
        EXIT WHEN pg_stat_get_db_numbackends(own) = 1;
        PERFORM pg_sleep(0.01);
        PERFORM pg_stat_clear_snapshot();
    END LOOP;
    ASSERT pg_stat_get_db_numbackends(own) = 1, 'somebody is connected, and may come back';
    ASSERT ({schema}) = '{schema_was}', 'another schema';
    FOR relation IN SELECT oid::regclass AS name, relkind, oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S')
    LOOP
        IF relation.relkind = 'S' THEN
            PERFORM setval(relation.name, seqstart, false) FROM pg_sequence WHERE seqrelid = relation.oid;
        ELSE
            ASSERT pg_relation_size(relation.oid) < 262144, 'a large table';
            EXECUTE format('SELECT EXISTS (SELECT FROM %s)', relation.name) INTO filled;
            IF filled THEN
                EXECUTE format('DELETE FROM %s', relation.name);
            END IF;
        END IF;
    END LOOP;
END $$;
{rows}
"""


@dataclass(frozen=True, slots=True)
class _Template:
    """A database with the current schema to which nobody connects, and what makes a used one the same again."""

    name: str
    empty: str


class PostgresServer(_Server):
    """PostgreSQL on a disk, or in memory, where it is quick. `settings` are lines of postgresql.conf."""

    def __init__(self, *settings: str, on_disk: bool = False) -> None:
        self._programs: Final = _required(POSTGRESQL, "PostgreSQL")
        super().__init__(None if on_disk else memory())
        self._emptied: Final[list[str]] = []
        self._user: Final = "postgres" if os.geteuid() == 0 else None
        self._data: Final = self.directory / "data"
        self._settings: Final = (
            *("listen_addresses = '127.0.0.1'", f"port = {self.port}", f"unix_socket_directories = '{self.directory}'"),
            *("full_page_writes = off", "max_connections = 200"),
            *("shared_buffers = 64MB", "autovacuum = off", "max_wal_size = 256MB", "log_min_messages = warning"),
            *settings,
        )

    def dsn(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://corpid@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Execute statements as its owner; what they answer, a row per line."""
        done = self._psql(statement, database)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _psql(self, statement: str, database: str) -> subprocess.CompletedProcess[str]:
        program = self._programs / "psql"
        command = (program, "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.dsn(database), "-c", statement)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_START_SECONDS)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a new database, dropped afterwards with whoever is still connected."""
        name = self._new("template1")
        try:
            yield name
        finally:
            self._drop(name)

    def _new(self, template: str) -> str:
        name = f"corpid_{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # on memory the quicker one
        return name

    def _drop(self, name: str) -> None:
        self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """The name of a database with the current schema; the next test gets it again, emptied, which is quicker than a new one."""
        name = self._emptied.pop() if self._emptied else self._new(self._template.name)
        try:
            yield name
        finally:
            if self._psql(self._template.empty, name).returncode == 0:
                self._emptied.append(name)
            else:
                self._drop(name)

    @functools.cached_property
    def _template(self) -> _Template:
        from corpid.stores.sql import schema

        name = self._new("template1")
        schema.migrate(self.dsn(name))
        rows = self.sql(_ROWS_AS_INSERTS, name)
        return _Template(name, _EMPTY.format(schema=_SCHEMA, schema_was=self.sql(_SCHEMA, name), rows=rows))

    def _launch(self) -> subprocess.Popen[bytes]:
        if not self._data.exists():
            self._make()
        return self._run([self._programs / "postgres", "-D", self._data], self._user)

    def _make(self) -> None:
        if self._user:
            shutil.chown(self.directory, self._user, self._user)
        done = self._run([self._programs / "initdb", *_INITDB, "-D", self._data], self._user).wait()
        assert done == 0, self.log()
        self._configure()

    def _configure(self) -> None:
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{setting}\n" for setting in self._settings)

    def _answers(self) -> bool:
        state = self._data / "postmaster.pid"
        lines = state.read_text(encoding="utf-8").splitlines() if state.exists() else []
        assert self.process is not None
        return lines[:1] == [str(self.process.pid)] and lines[-1].strip() == "ready"


class PgBouncer(_Server):
    """A pooler before a PostgreSQL server, as its package configures it, except for `pool_mode` and `settings`."""

    def __init__(self, server: PostgresServer, pool_mode: str, *settings: str) -> None:
        self._program: Final = _required(PGBOUNCER, "pgbouncer")
        self.pool_mode: Final = pool_mode
        super().__init__()
        self._lines: Final = (
            *("[databases]", f"* = host=127.0.0.1 port={server.port}", "[pgbouncer]", f"pool_mode = {pool_mode}"),
            *("listen_addr = 127.0.0.1", f"listen_port = {self.port}", "unix_socket_dir =", "auth_type = trust"),
            *(f"auth_file = {self.directory / 'users'}", *settings),
        )

    def dsn(self, database: str) -> str:
        """The address of a database behind it."""
        return f"postgresql://corpid@127.0.0.1:{self.port}/{database}"

    def _launch(self) -> subprocess.Popen[bytes]:
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text("\n".join(self._lines), encoding="utf-8")
        (self.directory / "users").write_text('"corpid" ""\n', encoding="utf-8")
        user = "postgres" if os.geteuid() == 0 else None
        if user:
            for path in (self.directory, *self.directory.iterdir()):
                shutil.chown(path, user, user)
        return self._run([self._program, configuration], user)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True


class RedisServer(_Server):
    """Redis, or Valkey where `program` says so, without persistence, unless `options` say otherwise (`"--save", "60 1"`)."""

    def __init__(self, *options: str, program: str = "redis") -> None:
        self.name: Final = program.title()
        self._scheme: Final = program
        self._program: Final = _required(_PROGRAMS[program], self.name)
        super().__init__()
        self._options: Final = options or ("--save", "", "--appendonly", "no")

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._scheme}://127.0.0.1:{self.port}/0"

    def command(self, *words: str) -> str:
        """One command by itself (`server.command("FLUSHALL")`); the first line of the answer."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(text.encode())
            return connection.makefile(encoding="utf-8").readline().strip()

    def _launch(self) -> subprocess.Popen[bytes]:
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory))
        return self._run([self._program, *place, *self._options])

    def _answers(self) -> bool:
        try:
            return self.command("PING") == "+PONG"
        except OSError:
            return False


_running: Final = ExitStack()


@functools.cache
def _migrated_file() -> Path:
    # Benchmarks use this module where those of the package may not even be importable.
    from corpid.stores.sql import schema

    directory = _running.enter_context(tempfile.TemporaryDirectory(prefix="corpid-engine-", dir=memory()))
    path = Path(directory) / "corpid.sqlite"
    schema.migrate(path)
    return path


def sqlite(path: Path) -> Path:
    """A database file with the current schema and nothing in it, unless there is one already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy(_migrated_file(), path)
    return path


@functools.cache
def postgresql_server() -> PostgresServer:
    """The PostgreSQL of this test process; to be left running."""
    return left_running(PostgresServer())


@functools.cache
def redis_server(program: str) -> RedisServer:
    """The Redis or Valkey of this test process; to be left running."""
    return left_running(RedisServer(program=program))


@contextmanager
def postgresql(*, migrated: bool = False) -> Iterator[str]:
    """The address of a database of its own: empty, or with the current schema."""
    server = postgresql_server()
    with server.migrated() if migrated else server.database() as name:
        yield server.dsn(name)


@contextmanager
def redis(program: str = "redis") -> Iterator[str]:
    """The address of an empty Redis or Valkey. One of each at a time."""
    server = redis_server(program)
    assert server.command("FLUSHALL") == "+OK"
    yield server.url


def left_running(server: AbstractContextManager[T]) -> T:
    """Start it; `stop` ends it."""
    return _running.enter_context(server)


def stop() -> None:
    """End what runs; tests/conftest.py calls it at the end of the session."""
    _running.close()


STORES: Final = pytest.mark.parametrize("memory", first_or_full([None, redis]), ids=["sqlite", "redis"])
"""where short-lived data is, for a test that asks for `memory`"""
