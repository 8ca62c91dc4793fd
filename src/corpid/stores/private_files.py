"""Files of their owner alone (mode 0600), which appear whole."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_STREAMS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A temporary file next to another, removed unless renamed."""
    draft = path.with_name(f".corpid-{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be written, which takes its name at the end.

    Raises FileExistsError if something has the name, and OSError; then no file has been left.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with draft_of(path) as draft:
        with draft.open("wb") as file:
            yield file
            _write_to_disk(file)
        name_also(draft, path)
    sync_folder(path.parent)


def replace(path: Path, content: bytes) -> None:
    """Write a file in place of any other, whatever its mode was.

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
    with draft_of(path) as draft:
        with draft.open("wb") as file:
            file.write(content)
            _write_to_disk(file)
        draft.replace(path)
    sync_folder(path.parent)


def name_also(file: Path, name: Path) -> None:
    """Give a file a second, unused name.

    A copy if hard links are unsupported. Raises OSError, also if the name is taken; then no file has been left there.
    """
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy_exclusively(file, name)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power.

    Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_exclusively(file: Path, name: Path) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with file.open("rb") as source, os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
            _write_to_disk(target)
    except BaseException:
        name.unlink()
        raise


def _write_to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
