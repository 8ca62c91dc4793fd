"""Stores for the tests of this folder, and programs that use one database at once."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from corpid.rules.audit import AuditEvent
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.lmdb import LmdbEngine, LmdbTransientStore
from corpid.stores.sql.open import SqlStores, open_postgresql, open_sqlite
from corpid.stores.valkey.incarnations import NoOrderlyStops
from tests import engines, quick_start
from tests.memory_store import MemoryTransientStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from corpid.stores.transient import TransientStore

RACING = Path(__file__).with_name("racing.py")
NOW = 1_800_000_000.0
KEY = bytes(range(32))
EVENT = AuditEvent(actor="operator", action="test.change", request_id="r1", detail={"why": "a test"})

PROGRAM = """
import asyncio, sys, time
from pathlib import Path
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.open import open_postgresql, open_sqlite
from corpid.rules.audit import *
from corpid.rules.authentication.records import *
from corpid.rules.failures import *
from corpid.rules.directory.records import *
from corpid.rules.directory.records import *

NOW = 1_800_000_000.0
EVENT = AuditEvent(actor="operator", action="test.change")

async def opened():
    is_file = sys.argv[1].startswith("/")
    opener, address = (open_sqlite, Path(sys.argv[1])) if is_file else (open_postgresql, sys.argv[1])
    return await opener(address, SecretCipher(bytes(range(32))), lambda: NOW, migrate=True)

def go():
    print("ready", flush=True)
    sys.stdin.readline()
"""


@asynccontextmanager
async def sqlite(path: Path, *, cipher: SecretCipher | None = None, now: float = NOW) -> AsyncIterator[SqlStores]:
    """A migrated database file."""
    stores = await open_sqlite(
        engines.sqlite(path / "corpid.db"), cipher or SecretCipher(KEY), lambda: now, migrate=True
    )
    try:
        yield stores
    finally:
        await stores.close()


@asynccontextmanager
async def sqlite_transient(path: Path) -> AsyncIterator[TransientStore]:
    async with sqlite(path) as stores:
        yield stores.transient


@asynccontextmanager
async def lmdb_transient(path: Path) -> AsyncIterator[LmdbTransientStore]:
    """A store in a directory of this path."""
    store = await LmdbEngine(lmdb_url(path)).open(clock=lambda: NOW, stops=NoOrderlyStops())
    assert isinstance(store, LmdbTransientStore)
    try:
        yield store
    finally:
        await store.close()


def lmdb_url(path: Path) -> str:
    """The address of that store."""
    return f"lmdb://{path}/short-lived"


@asynccontextmanager
async def postgresql_transient(path: Path) -> AsyncIterator[TransientStore]:
    with engines.postgresql(migrated=True) as dsn:
        stores = await open_postgresql(dsn, SecretCipher(KEY), lambda: NOW)
        try:
            yield stores.transient
        finally:
            await stores.close()


@asynccontextmanager
async def memory_transient(path: Path) -> AsyncIterator[TransientStore]:
    yield MemoryTransientStore()


TRANSIENT_STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[TransientStore]]] = {
    "memory": memory_transient,
    "sqlite": sqlite_transient,
}


def program(address: Path | str, body: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that has PROGRAM and `body`, with the database's file or address as its first argument."""
    command = [sys.executable, "-c", PROGRAM + body, str(address), *arguments]
    return quick_start.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def race(address: Path | str, body: str, *, processes: int) -> list[str]:
    """What each of several processes prints after all of them were ready and told to go.

    When one of them does not start, or fails, the others are ended before the assertion leaves.
    """
    imports = "\n".join(line for line in body.splitlines() if line.startswith(("import ", "from ")))
    command = [sys.executable, str(RACING), PROGRAM + imports, body, str(address), str(processes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=90, check=False)
    assert done.returncode == 0
    answers: list[str] = json.loads(done.stdout)
    return answers


SPENDER = """
async def main():
    stores = await opened()
    go()
    won = 0
    for number in range(200):
        async with stores.transient.batch(NOW) as batch:
            won += await batch.add("jti", number.to_bytes(32), 60)
            await batch.count("requests", bytes(32), 600)
    print(won)
    await stores.close()
asyncio.run(main())
"""
"""A program for `race`: how many of two hundred single-use values it was the first to add, counting each try."""
