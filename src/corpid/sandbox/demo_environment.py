"""The environment of a demo: folder, free ports, caught mail."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpid.web.http.server import ListenError, bind
from corpid.web.pages.translations import ENGLISH, LANGUAGES, lookup, translator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.ports import Letter

FIRST_PORT: Final = 8400
TRIED: Final = 100


def next_free(host: str, first: int = FIRST_PORT) -> tuple[int, list[socket.socket]]:
    """The first free port, and the sockets that listen on it.

    From `first` on. With 0 any free port.

    Raises DemoError if a hundred in a row are taken.
    """
    for port in range(first, first + TRIED) if first else (_any_free() for _ in range(TRIED)):
        try:
            return port, _listening(host, port)
        except (ListenError, OSError):
            continue
    raise DemoError(f"no free port on {host} among {TRIED} from {first}; stop what uses them")


def _listening(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for a port.

    Two demos that start at once may both be bound to it. Only one gets to listen.
    """
    sockets = bind(host, port)
    try:
        for one in sockets:
            one.listen()
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def _any_free() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


MARK: Final = "demo.lock"
"""a directory that holds this file is a demo's own, and may be emptied"""


class DemoError(Exception):
    """The demo cannot run; the message gives the remedy."""


def default() -> Path:
    """`corpid/demo` in the user's data directory (XDG Base Directory: XDG_DATA_HOME, else ~/.local/share)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "share"
    return root / "corpid" / "demo"


@contextmanager
def locked(path: Path, *, fresh: bool) -> Iterator[Path]:
    """The locked directory, made if missing and emptied if `fresh`.

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


KEPT: Final = 50
"""letters"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtLetter:
    """A letter as its reader gets it, in their language.

    `language` is its tag (BCP 47).
    """

    to: str
    subject: str
    text: str
    language: str


@dataclass(slots=True)
class CaughtMail:
    """A ports.Mail that stores letters until the demo stops, newest first."""

    letters: deque[CaughtLetter] = field(default_factory=lambda: deque(maxlen=KEPT))
    works: bool = True

    def post(self, letter: Letter) -> None:
        reads = translator(lookup((letter.language,), LANGUAGES) or ENGLISH)
        self.letters.appendleft(
            CaughtLetter(
                to=letter.to,
                subject=reads.say(letter.subject),
                text=reads.say(letter.text),
                language=reads.language.tag,
            )
        )
