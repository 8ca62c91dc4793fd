"""Stores of a measured provider: SQLite and LMDB in its directory, or PostgreSQL and Redis started for it."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.provider import NotStarted
from tests.engines import POSTGRESQL, REDIS, PostgresServer, RedisServer
from tests.machine import key_file

if TYPE_CHECKING:
    from collections.abc import Iterator

SQLITE, POSTGRES = "sqlite", "postgresql"
# Spelt here: a provider whose modules cannot be imported still makes the run fail with a report.
NAMES = {SQLITE: "SQLite and LMDB", POSTGRES: "PostgreSQL and Redis"}
# What is written is written, as in earnest; nothing cleans up by itself in the midst of a measurement.
_DURABLE = ("shared_buffers = 256MB", "full_page_writes = on", "max_wal_size = 4GB", "checkpoint_timeout = 1h")
_WATCHED = ("shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track = top")


def check() -> None:
    """Raises NotStarted, naming what has to be installed."""
    missing = [name for name, path in (("PostgreSQL", POSTGRESQL), ("Redis", REDIS)) if path is None]
    if missing:
        raise NotStarted(f"{' and '.join(missing)}: not installed; `make setup-test` as root installs it")


@contextmanager
def postgresql() -> Iterator[PostgresServer]:
    """A server of its own, which counts statements in its database `postgres`; gone afterwards. Raises NotStarted."""
    check()
    with PostgresServer(*_DURABLE, *_WATCHED, on_disk=True) as server:
        server.sql("CREATE EXTENSION pg_stat_statements")
        yield server


def title(name: str, transient_url: str) -> str:
    """What is measured, for people: one of NAMES, or a database and the store at this URL."""
    return f"{NAMES[name].partition(' ')[0]} and {urlsplit(transient_url).scheme}" if transient_url else NAMES[name]


@contextmanager
def settings(server: PostgresServer, database: str, transient_url: str = "") -> Iterator[dict[str, str]]:
    """The settings of a provider on this database, with a key-encryption key of its own.

    What lives for minutes is kept at `transient_url`, else by a Redis that is started for it.
    """
    with ExitStack() as stack:
        used = transient_url or stack.enter_context(RedisServer()).url
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="corpid-bench-key-")))
        yield {
            "CORPID_DATABASE_URL": server.dsn(database),
            "CORPID_TRANSIENT_URL": used,
            "CORPID_KEY_ENCRYPTION_KEY_FILE": key_file(work / "key"),
        }


@contextmanager
def started(name: str, transient_url: str = "") -> Iterator[dict[str, str]]:
    """The settings of a provider on the engines of NAMES, or with the store at this URL. Raises NotStarted."""
    if name == SQLITE:
        yield {"CORPID_TRANSIENT_URL": transient_url} if transient_url else {}
        return
    with postgresql() as server, server.database() as database, settings(server, database, transient_url) as chosen:
        yield chosen
