"""The folder in which the workers of one `corpid serve` count together."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
_PREFIX: Final = "corpid-metrics-"
_LOCK: Final = "lock"
_NEW_SECONDS: Final = 60.0


@contextmanager
def shared() -> Iterator[Callable[[int], None]]:
    """A folder for as long as this is entered, named by VARIABLE; what comes back forgets a worker that has ended.

    Folders that others left behind when they were killed are removed.
    """
    _clean(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        # Held by every worker, too: as long as one of them lives, the folder is in use.
        held = os.open(Path(folder) / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(held, fcntl.LOCK_SH)
        os.environ[VARIABLE] = folder

        def forget(process: int) -> None:
            from corpid.web.metrics import worker_ended  # noqa: PLC0415 - reads the folder's name when it is loaded

            worker_ended(process, folder)

        yield forget


def _clean(where: Path) -> None:
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or gone meanwhile
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    found = folder.lstat()
    if found.st_uid != os.getuid() or time.time() - found.st_mtime < _NEW_SECONDS:
        return False  # a new one is not locked yet
    held = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True
