"""Poolers, such as pgbouncer, between CorpID and PostgreSQL.

A pooler assigns sessions of the server to its clients, each for as long as the client is connected or for one
transaction, and no client can find out which. So behind any pooler nothing is kept in a session: no prepared
statements, unless the address gives their number, and no time limit. Each transaction sets its own; a single statement
has that of the role. What needs a session of its own is refused.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_CACHED_STATEMENTS: Final = 512
DIRECTLY: Final = (
    "give it the address of PostgreSQL itself, for this command alone (`CORPID_DATABASE_URL=postgresql://… corpid …`)"
)
"""what to do if a session is needed"""
_TIMEOUT: Final = "statement_timeout"


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """Return whether the session is another one than was connected to.

    A pooler reports a process number of its own.
    """
    # Without parameters no statement is prepared: a pooler might run it in another session.
    answer: str = await connection.execute(f"SELECT WHERE pg_backend_pid() = {int(connection.get_server_pid())}")
    return answer == "SELECT 0"


class Connector:
    """Opens connections; the first one detects a pooler."""

    def __init__(self, *, seconds: int, cached_statements: int | None) -> None:
        self._seconds: Final = seconds
        self._cached_statements: Final = cached_statements
        self._pooled: bool | None = None
        """None before the first connection"""

    @property
    def pooled(self) -> bool:
        """True if a pooler was found."""
        return bool(self._pooled)

    @property
    def begin(self) -> str:
        """Begins a transaction whose statements have a time limit."""
        return f"{BEGIN}; SET LOCAL {_TIMEOUT} = '{self._seconds}s'" if self._pooled else BEGIN

    async def __call__(self, dsn: str, **options: Any) -> Any:  # noqa: ANN401  (the driver has no types)
        """Open a connection, with the pool's options."""
        if self._pooled is None:
            try:
                connection = await self._open(dsn, options, pooled=False)
            except asyncpg.PostgresError as error:
                if _TIMEOUT not in str(error):
                    raise
                self._pooled = True  # only a pooler refuses this setting
            else:
                self._pooled = await is_pooled(connection)
                if not self._pooled:
                    return connection
                await connection.close()
        return await self._open(dsn, options, pooled=self._pooled)

    async def _open(self, dsn: str, options: dict[str, Any], *, pooled: bool) -> Any:  # noqa: ANN401
        limits = {} if pooled else {_TIMEOUT: f"{self._seconds}s"}
        cached = self._cached_statements
        if cached is None:
            cached = 0 if pooled else _CACHED_STATEMENTS
        own = {"server_settings": options["server_settings"] | limits, "statement_cache_size": cached}
        return await asyncpg.connect(dsn, **(options | own))
