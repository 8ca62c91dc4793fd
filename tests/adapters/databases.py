"""Where the registry is kept, for tests that hold for every engine."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpid.stores.encryption_at_rest import SecretCipher
from corpid.stores.sql.open import SqlStores, open_postgresql, open_sqlite
from tests import engines
from tests.adapters.opened import KEY, NOW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """A migrated database: a SQLite file, or the address of a PostgreSQL database."""

    address: Path | str

    @asynccontextmanager
    async def opened(self, *, cipher: SecretCipher | None = None, now: float = NOW) -> AsyncIterator[SqlStores]:
        """Its stores."""
        if isinstance(self.address, str):
            stores = await open_postgresql(self.address, cipher or SecretCipher(KEY), lambda: now)
        else:
            stores = await open_sqlite(self.address, cipher or SecretCipher(KEY), lambda: now, migrate=True)
        try:
            yield stores
        finally:
            await stores.close()

    def run(self, scenario: Callable[[SqlStores], Awaitable[object]]) -> None:
        """Run a scenario on its stores."""

        async def opened() -> None:
            async with self.opened() as stores:
                await scenario(stores)

        asyncio.run(opened())

    def sql(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement beside the stores; its rows, on PostgreSQL as text."""
        if isinstance(self.address, str):
            return postgresql_rows(self.address, statement)
        connection = sqlite3.connect(self.address, isolation_level=None)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()


def postgresql_rows(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    """What psql answers, as rows of text. Raises AssertionError with what it says."""
    assert engines.POSTGRESQL is not None
    options = ("-XqAt", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-c", statement)
    command = [str(engines.POSTGRESQL / "psql"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split("\x1f")) for line in done.stdout.splitlines()]
