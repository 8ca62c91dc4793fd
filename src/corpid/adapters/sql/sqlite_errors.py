"""What SQLite refuses, in words; its own errors go no further than here."""

from __future__ import annotations

import sqlite3
from typing import Final

from corpid.ports import Conflict, MissingReference, NameTaken, StoreUnavailable

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PRIMARY_CODE: Final = 0xFF
"""the lower byte of an extended result code"""


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the database, so that a later try may succeed."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _BUSY


def translated(error: sqlite3.Error, database: str) -> Exception:
    """The error of this house for one of sqlite3: Conflict for what a constraint refused,
    StoreUnavailable for a file that is busy, full, unreadable or broken; a mistake in our own
    statements stays what it is."""
    if isinstance(error, sqlite3.IntegrityError):
        return _conflict(error)
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.NotSupportedError)):
        return error
    return StoreUnavailable(f"{database}: {error} ({getattr(error, 'sqlite_errorname', 'no code')})")


def _conflict(error: sqlite3.IntegrityError) -> Conflict:
    if error.sqlite_errorname == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return MissingReference("it refers to a record that does not exist")
    if "users.user_name_key" in str(error):
        return NameTaken("another user has this user name")
    return Conflict(str(error))
