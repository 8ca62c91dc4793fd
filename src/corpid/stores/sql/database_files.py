"""Naming, ownership and replacement of database files."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from typing import TYPE_CHECKING, Final

from corpid.stores.sql.sqlite_schema import LOCK_NAME

if TYPE_CHECKING:
    from pathlib import Path

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


def name_also(file: Path, name: Path) -> None:
    """Give a file a second, unused name.

    A copy if hard links are unsupported.

    Raises OSError, also if the name is taken; then no file has been left there.
    """
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(file, name)


def _copy(file: Path, name: Path) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with file.open("rb") as source, os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
    except BaseException:
        name.unlink()
        raise


def replace_file(path: Path, draft: Path) -> None:
    """Give a replacement and its lock files the database's owner.

    Or that of its folder. The draft also gets the database's mode. A restore by root is for the service. Raises
    OSError.
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


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power.

    Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
