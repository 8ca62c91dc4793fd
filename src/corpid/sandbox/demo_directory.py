"""Where a demo keeps its things, and that only one demo uses them at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK: Final = "demo.lock"
"""a directory that holds this file is a demo's own, and may be emptied"""


class DemoError(Exception):
    """The demo cannot run; the message says what to change."""


def default() -> Path:
    """`corpid/demo` in the user's data directory (XDG Base Directory: XDG_DATA_HOME, else ~/.local/share)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share"
    return root / "corpid" / "demo"


@contextmanager
def held(path: Path, *, fresh: bool) -> Iterator[Path]:
    """The directory, made where it was missing and emptied where `fresh`, for this process alone.

    Raises DemoError if another demo runs in it, or if it holds something that is not a demo's.
    """
    if path.exists() and not (path / MARK).exists() and (not path.is_dir() or any(path.iterdir())):
        raise DemoError(f"{path} is not a demo's data directory: choose an empty one with --data-dir")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = (path / MARK).open("a")
    except OSError as error:
        raise DemoError(f"{path} cannot be written: {error.strerror}; choose another --data-dir") from None
    with mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"a demo is running in {path}: stop it, or choose another --data-dir") from None
        if fresh:
            _empty(path)
        yield path


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.name == MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
