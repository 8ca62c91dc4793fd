"""One connection to PostgreSQL for changing or reading its schema."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from corpid.adapters.sql.postgresql_address import address
from corpid.adapters.sql.postgresql_errors import DRIVER_ERRORS
from corpid.adapters.sql.schema_errors import DatabaseForgetful, DatabaseUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK: Final = 0x436F72704944
"""the number under which migrations of one database wait for one another: "CorpID" """
_CONNECT_SECONDS: Final = 10
_FORGETFUL: Final = frozenset({"off"})


def inside(url: str, work: Callable[[sa.Connection], None], *, change: bool) -> None:
    """Do `work` on one connection, in one transaction; with `change`, others that want to change it wait.

    The driver needs an event loop, and the caller may be running in one: a thread of its own has another.
    Raises DatabaseUnreachable and DatabaseForgetful, and what `work` raises.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="corpid-schema") as thread:
        thread.submit(asyncio.run, _inside(url, work, change=change)).result()


async def _inside(url: str, work: Callable[[sa.Connection], None], *, change: bool) -> None:
    try:
        place = address(url)
    except ValueError as error:
        raise DatabaseUnreachable(f"the database's address cannot be read: {error}") from error

    async def connect() -> asyncpg.Connection:
        return await asyncpg.connect(
            place.dsn,
            timeout=_CONNECT_SECONDS,
            statement_cache_size=place.cached_statements,
            server_settings={"application_name": "corpid migrate"},
        )

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=sa.pool.NullPool)
    try:
        async with engine.begin() as connection:
            if change:
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            await connection.run_sync(_refuse_forgetful, place.shown)
            await connection.run_sync(work)
    except (*DRIVER_ERRORS, sa.exc.DBAPIError, ValueError) as error:
        raise DatabaseUnreachable(f"the database {place.shown} cannot be opened: {_reason(error)}") from error


def _refuse_forgetful(connection: sa.Connection, shown: str) -> None:
    """A code that was spent must stay spent when the server's machine loses power."""
    setting = connection.scalar(sa.text("SHOW synchronous_commit"))
    if setting in _FORGETFUL:
        raise DatabaseForgetful(
            f"the database {shown} may lose what it said was written, since its synchronous_commit is {setting!r}: "
            "set it to 'on' for this database or role"
        )


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer"
    cause = getattr(error, "orig", None) or error
    return getattr(cause, "strerror", None) or str(cause.__cause__ or cause)
