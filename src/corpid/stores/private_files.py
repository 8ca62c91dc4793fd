"""Files that only their owner can read (mode 0600), written atomically."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_STREAMS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """A temporary file next to `path`, removed unless renamed."""
    draft = path.with_name(f".corpid-{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, which gets its name once it is complete.

    Raises FileExistsError if something has the name, and OSError; then no file is left.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with temporary_file(path) as draft:
        with draft.open("wb") as file:
            yield file
            _write_to_disk(file)
        link_or_copy(draft, path)
    sync_folder(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write a file, replacing an existing one and its mode.

    A link's target is replaced. A device, a pipe, and standard output by name are written themselves. Raises OSError.
    """
    if str(path) in _STREAMS:  # even if it leads to a file, which the shell may want to continue
        with os.fdopen(os.dup(_STREAMS[str(path)]), "wb") as stream:
            stream.write(content)
        return
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):  # before links are followed: a pipe's ends nowhere
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    with temporary_file(path) as draft:
        with draft.open("wb") as file:
            file.write(content)
            _write_to_disk(file)
        draft.replace(path)
    sync_folder(path.parent)


def link_or_copy(file: Path, name: Path) -> None:
    """Give a file a second, unused name.

    It is copied if hard links are unsupported. Raises OSError, also if the name is taken; then nothing is left there.
    """
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with file.open("rb") as source, os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target)
                _write_to_disk(target)
        except BaseException:
            name.unlink()
            raise


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
