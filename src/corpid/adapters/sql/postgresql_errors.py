"""What PostgreSQL refuses, in words; its own errors and the driver's go no further than here."""

from __future__ import annotations

from typing import Final, cast

import asyncpg

from corpid.ports import Conflict, MissingReference, NameTaken, StoreUnavailable

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""what the driver raises; a timeout is an OSError"""

_CONSTRAINT_CLASS: Final = "23"
_FOREIGN_KEY: Final = "23503"
_USER_NAME: Final = "uq_users_user_name_key"

_UNAVAILABLE_CLASSES: Final = frozenset({
    "08",  # the connection is gone
    "28",  # the password is refused
    "53",  # no memory, disk or connection left
    "57",  # shutdown, start, a statement that took too long
    "58",  # the server's own system fails
    "F0",  # its configuration
    "XX",  # its data
})  # fmt: skip
_UNAVAILABLE: Final = frozenset({
    "25006",  # read-only: it was the primary before a failover
    "25P03",  # a transaction stood idle too long
    "3D000",  # the database is gone
    "40001",  # serialization
    "40P01",  # deadlock
    "42501",  # privileges were taken away
    "55P03",  # a lock was not to be had
})  # fmt: skip
_STALE: Final = frozenset({"25006", "57P01", "57P02", "57P03"})

_CLOSED: Final = ("connection is closed", "connection was closed", "pool is closing", "pool is closed", "released back")


def is_stale(error: BaseException) -> bool:
    """Whether this connection is of no more use: another may lead to a server that can do better, as after a
    failover, and one that did not answer in time must not give its late answer to somebody else."""
    return isinstance(error, OSError) or getattr(error, "sqlstate", None) in _STALE


def translated(error: Exception, database: str) -> Exception:
    """The error of this house for one of the driver: Conflict for what a constraint refused,
    StoreUnavailable for a server that is away, full, too busy or read-only; a mistake in our own
    statements stays what it is."""
    if isinstance(error, OSError):
        return StoreUnavailable(f"{database}: {_told(error)}")
    if isinstance(error, asyncpg.PostgresError):
        return _refusal(error, database)
    if isinstance(error, asyncpg.InternalClientError) or any(text in str(error) for text in _CLOSED):
        return StoreUnavailable(f"{database}: {error}")
    return error


def _refusal(error: asyncpg.PostgresError, database: str) -> Exception:
    code = error.sqlstate or ""
    if code.startswith(_CONSTRAINT_CLASS):
        return _conflict(error)
    if code in _UNAVAILABLE or code[:2] in _UNAVAILABLE_CLASSES:
        return StoreUnavailable(f"{database}: {error} ({code})")
    return cast("Exception", error)


def _told(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return error.strerror or str(error)


def _conflict(error: asyncpg.PostgresError) -> Conflict:
    if error.sqlstate == _FOREIGN_KEY:
        return MissingReference("it refers to a record that does not exist")
    if getattr(error, "constraint_name", None) == _USER_NAME:
        return NameTaken("another user has this user name")
    return Conflict(str(error))
