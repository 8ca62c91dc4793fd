"""Backup of a SQLite database in use, and restore.

A copy is read from one snapshot, which in WAL mode holds up neither readers nor writers, however long it
takes. A copy that takes a database's place brings back the directory, clients, keys and audit of its
moment; nothing that could be spent comes back with it (docs/reliability.md).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import sqlalchemy as sa

from corpid.rules.failures import StoreUnavailable
from corpid.stores import Clock, private_files
from corpid.stores.data_loss import COPY, end_everything
from corpid.stores.encryption_at_rest import EncryptionError, SecretCipher
from corpid.stores.sql.migration import DatabaseBusy, SchemaError, SchemaNewer
from corpid.stores.sql.open import SqlStores, open_sqlite
from corpid.stores.sql.sqlite import LOCK_NAME, is_busy, lock_for_use
from corpid.stores.sql.statements import Database, Statement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from corpid.rules.audit import AuditEvent

    Opening = Callable[[], Awaitable[SqlStores]]

_PAGES: Final = 256  # 1 MiB
_PAUSE_SECONDS: Final = 0.002
"""after each step, in which the disk is the server's"""
_PARTS: Final = ("-wal", "-shm", "-journal")


class BackupRefused(Exception):
    """Nothing was changed.

    The message is one sentence that says why, and what to do.
    """


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    kept: Path | None
    """the path of the replaced database; None if there was none"""


def back_up(path: Path, file: Path) -> int:
    """Copy a database in use to a new file (mode 0600).

    The copy is of one moment. Returns its bytes. The file appears whole and checked, or not at all. Raises
    BackupRefused. Source: docs/decisions/0008
    """
    if not path.exists():
        raise BackupRefused(f"there is no database {path}: check data_dir and database_url")
    with _explain_refusals(f"{file} cannot be written"):
        if file.exists():
            raise BackupRefused(f"{file} exists already, and a backup never replaces a file: name another one")
        with _open_draft(file) as draft:
            _copy(path, draft, "rw")
            # Write into a backup that it is one. Who copies it over the database does without `corpid restore`, so
            # the next start does its work.
            with closing(_connect(draft, "rw")) as connection:
                if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'deployment'").fetchone():
                    connection.execute("INSERT OR REPLACE INTO deployment (name, value) VALUES (?, '')", (COPY,))
            _check_whole(draft, path)
            private_files.link_or_copy(draft, file)
        private_files.sync_folder(file.parent)
        return file.stat().st_size


async def restore(path: Path, file: Path, cipher: SecretCipher, clock: Clock, event: AuditEvent) -> RestoreResult:
    """Replace a database by a backup.

    The old one keeps a dated name.

    Of the backup, sessions and everything short-lived end; what was issued before now is refused. The event is written
    to the restored audit table, as of `command`. Raises BackupRefused, and StoreUnavailable. Source:
    docs/decisions/0008
    """
    busy = f"a server or a command has the database {path} open: stop every one of them, then restore"
    with (
        _explain_refusals(f"{path} cannot be replaced"),
        lock_for_use(path, fcntl.LOCK_EX, busy),
        _open_draft(path) as draft,
    ):
        _fold(path, busy)
        _copy_back(file, draft)
        opening = partial(open_sqlite, draft, cipher, clock, migrate=True)
        await _make_ready(draft, file, opening, clock, event, after=_read_last_number(path))
        _fold(draft, busy)
        _fold(path, busy)
        _give_owner(path, draft)
        kept = _set_aside(path, clock())
        draft.replace(path)
        private_files.sync_folder(path.parent)
    return RestoreResult(kept=kept)


@contextmanager
def _explain_refusals(failure: str) -> Iterator[None]:
    """Turn full disks, unwritable folders and busy databases into sentences."""
    try:
        yield
    except DatabaseBusy as error:
        raise BackupRefused(str(error)) from None
    except (OSError, sqlite3.Error) as error:
        raise BackupRefused(f"{failure}: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def _open_draft(file: Path) -> Iterator[Path]:
    """A temporary database next to a file, removed unless renamed."""
    with private_files.temporary_file(file) as draft:
        try:
            yield draft
        finally:
            for part in _PARTS:
                draft.with_name(draft.name + part).unlink(missing_ok=True)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=1)


def _copy(source: Path, target: Path, mode: str) -> None:
    """Copy the database inside one transaction, so from one snapshot.

    Without it every write of others would start the copy again.
    """
    with closing(_connect(source, mode)) as reading, closing(_connect(target, "rw")) as writing:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        reading.backup(writing, pages=_PAGES, progress=lambda *_: time.sleep(_PAUSE_SECONDS))
        writing.execute("PRAGMA journal_mode = DELETE").fetchone()


def _copy_back(file: Path, draft: Path) -> None:
    try:
        file.stat()
    except OSError as error:
        raise BackupRefused(f"there is no file {file} that can be read: {error.strerror}") from error
    try:
        _copy(file, draft, "ro")
        _check_whole(draft, file)
        with closing(_connect(draft, "rw")) as connection:
            versions = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            # What follows a copy is done here, with the event of the command.
            connection.execute("DELETE FROM deployment WHERE name = ?", (COPY,))
    except sqlite3.Error as error:
        raise BackupRefused(f"{file} is no backup of a CorpID database, or it is damaged: {error}") from error
    if len(versions) != 1:
        raise BackupRefused(f"{file} is damaged (it names {len(versions)} versions of its schema): take another backup")


def _check_whole(database: Path, source: Path) -> None:
    with closing(_connect(database, "ro")) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise BackupRefused(f"{source} is damaged ({verdict}): take another backup")


def _fold(path: Path, busy: str) -> None:
    """Fold a database into one file.

    SQLite does that only without other connections. A database too broken for it stays as it is, since it is what a
    restore is for.
    """
    if not path.exists():
        return
    try:
        with closing(_connect(path, "rw")) as connection:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.Error as error:
        if is_busy(error):
            raise BackupRefused(busy) from error


def _read_last_number(path: Path) -> int:
    """The last number of the replaced audit table, for readers to continue."""
    try:
        with closing(_connect(path, "ro")) as connection:
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'audit'").fetchone()
    except sqlite3.Error:
        return 0
    return int(row[0]) if row else 0


async def _make_ready(
    draft: Path, file: Path, opening: Opening, clock: Clock, event: AuditEvent, *, after: int
) -> None:
    try:
        await _open_and_forget(draft, file, opening, clock, event, after=after)
    except (BackupRefused, StoreUnavailable):
        raise
    except Exception as error:  # a file of anybody's: what is wrong in it may break anything
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise BackupRefused(f"{file} is damaged, or no whole CorpID database ({what}): take another backup") from error


async def _open_and_forget(
    draft: Path, file: Path, opening: Opening, clock: Clock, event: AuditEvent, *, after: int
) -> None:
    try:
        stores = await opening()
    except SchemaNewer as error:
        raise BackupRefused(f"{file} was written by a newer CorpID: restore it with that version") from error
    except SchemaError as error:
        reason = str(error).replace(str(draft), str(file))
        raise BackupRefused(f"{file} cannot be brought to this version of CorpID: {reason}") from error
    except EncryptionError as error:
        raise BackupRefused(f"the key-encryption key of the settings is not the one of {file}: {error}") from error
    try:
        await stores.registry.keys.list_all()
        await _forget(stores, clock(), event, after)
    except EncryptionError as error:
        raise BackupRefused(f"the key-encryption key of the settings does not open {file}: {error}") from error
    finally:
        await stores.close()


async def _forget(stores: SqlStores, now: float, event: AuditEvent, after: int) -> None:
    async with stores.database.transaction():
        await end_everything(stores.database, now=now)
        await _number_after(stores.database, after)
        await stores.registry.audit.write(event)


async def _number_after(database: Database, after: int) -> None:
    """Let the next number of the audit table be a higher one.

    The engine keeps its count in a table of its own.
    """
    raised = sa.text("UPDATE sqlite_sequence SET seq = max(seq, :after) WHERE name = 'audit'")
    first = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('audit', :after)")
    if not await database.run(Statement(raised), {"after": after}):
        await database.run(Statement(first), {"after": after})


def _set_aside(path: Path, now: float) -> Path | None:
    """Give the old database a second name.

    The first is then replaced in one step, so there always is one.
    """
    if not path.exists():
        return None
    kept = path.with_name(f"{path.stem}.before-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}{path.suffix}")
    for part in _PARTS:
        left = path.with_name(path.name + part)
        if left.exists():
            left.rename(kept.with_name(kept.name + part))
    private_files.link_or_copy(path, kept)
    return kept


def _give_owner(path: Path, draft: Path) -> None:
    """Give a replacement and its lock files the database's owner.

    Or that of its folder. The draft also gets the database's mode. A restore by root is for the service.
    """
    old = path.stat() if path.exists() else None
    owner = old or path.parent.stat()
    if old is not None:
        draft.chmod(stat.S_IMODE(old.st_mode))
    for file in (draft, path.with_name(f"{path.name}.lock"), path.with_name(LOCK_NAME)):
        if file.exists():
            _give(file, owner.st_uid, owner.st_gid)


def _give(file: Path, user: int, group: int) -> None:
    """Change a file's owner, unless it has another name.

    It must be this process's own: the folder's owner may have put a link to another file there.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        own = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
        if own and (found.st_uid, found.st_gid) != (user, group):
            os.fchown(descriptor, user, group)
    finally:
        os.close(descriptor)
