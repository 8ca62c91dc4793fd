"""A disk that fills up under load, on SQLite: told to retry, nothing twice, nothing lost, and it goes on when there is room."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.engines import IN_CI
from tests.faults.attempts import Attempt, Failed, attempt, nothing_twice, told_to_retry
from tests.faults.serving import Deployment, Outside, deployment, outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx


pytestmark = pytest.mark.full

WORKERS = 4
FLOWS = 20
DISK_BYTES: Final = 192 << 20
"""more than the log grows to before it starts again (64 MiB), so that nothing but the filler fills the disk"""
LONG = 25.0
"""seconds for a state to be reached; a process stays unready for ten after a write that failed"""


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    """A small disk of its own at `path`, in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", path], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


class FullDisk:
    """A disk of its own, filled by a file to its last byte."""

    def __init__(self, made: Deployment) -> None:
        self._filler = made.data_dir / "filler"

    def fill(self) -> None:
        with self._filler.open("wb", buffering=0) as filler:
            size = 1 << 16
            while size:
                size = _written(filler.fileno(), size)

    def make_room(self) -> None:
        self._filler.unlink()


def _written(file: int, size: int) -> int:
    """Write a piece; how long the next one may be."""
    try:
        os.write(file, bytes(size))
    except OSError:
        return size // 2
    return size


class SizeLimit:
    """No file of the server's may grow: for it the disk is full, whoever runs the test."""

    def __init__(self, made: Deployment) -> None:
        (process,) = made.processes.values()
        self._process = process.pid
        self._usual = resource.prlimit(self._process, resource.RLIMIT_FSIZE)
        self._log = made.data_dir / "corpid.sqlite-wal"

    def fill(self) -> None:
        limit = self._log.stat().st_size + 1
        resource.prlimit(self._process, resource.RLIMIT_FSIZE, (limit, self._usual[1]))

    def make_room(self) -> None:
        resource.prlimit(self._process, resource.RLIMIT_FSIZE, self._usual)


WAYS: Final[dict[str, Any]] = {"limit": SizeLimit, "disk": FullDisk}


@pytest.fixture(params=WAYS)
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Deployment, Any]]:
    """A deployment, and the way to fill its disk: a disk of its own where this user may mount one."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with ExitStack() as stack:
        if request.param == "disk":
            _mount(stack, data)
        made = stack.enter_context(deployment(data, processes=1))
        yield made, WAYS[request.param](made)


def _mount(stack: ExitStack, path: Path) -> None:
    try:
        stack.enter_context(mounted(path))
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"").decode().strip() or str(error)
        if IN_CI and os.geteuid() == 0:
            pytest.fail(f"no disk can be mounted, and in CI this test must run: {reason}")
        pytest.skip(f"a disk that is really full was left out, since none can be mounted here: {reason}")


async def work(person: Outside, attempts: list[Attempt], failures: list[httpx.Response], done: asyncio.Event) -> None:
    while not done.is_set():
        try:
            await attempt(person.party(), person.browser.http, attempts)
        except Failed as failure:
            failures.append(failure.answer)
            await asyncio.sleep(0.02)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not holds():  # noqa: ASYNC110 - what others do
            await asyncio.sleep(0.02)


async def says(person: Outside, status: int, **content: str) -> None:
    async with asyncio.timeout(LONG):
        while (answer := await person.http.get("/readyz")).status_code != status:  # noqa: ASYNC110 - it has to be asked
            await asyncio.sleep(0.1)
    assert content.items() <= answer.json().items()


async def test_while_the_disk_is_full_everybody_is_told_to_retry_and_then_it_goes_on(
    full: tuple[Deployment, Any],
) -> None:
    """503 temporarily_unavailable; /readyz says database; what was confirmed stays, and nothing happens twice."""
    made, disk = full
    attempts: list[Attempt] = []
    failures: list[httpx.Response] = []

    def tokens() -> int:
        return sum(bool(one.token) for one in attempts)

    async def story(person: Outside) -> None:
        done = asyncio.Event()
        load = [asyncio.create_task(work(person, attempts, failures, done)) for _ in range(WORKERS)]
        await until(lambda: tokens() >= FLOWS)
        before = len(attempts)
        disk.fill()
        await until(lambda: len(failures) >= FLOWS)
        await says(person, 503, part="database")
        disk.make_room()
        had = tokens()
        await until(lambda: tokens() >= had + FLOWS)
        await says(person, 200)
        done.set()
        await asyncio.gather(*load)
        for answer in failures:
            told_to_retry(answer)
        around = attempts[before - FLOWS : before + 4 * FLOWS]
        ends = [await nothing_twice(person.http, person.browser.http, one) for one in around]
        assert ends.count("refused") >= FLOWS - WORKERS

    async with outside(made) as person:
        await story(person)
    with closing(sqlite3.connect(made.data_dir / "corpid.sqlite")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        written = database.execute("SELECT count(*) FROM audit WHERE action = 'sign_in.complete'").fetchone()[0]
    assert written >= sum(bool(one.code) for one in attempts)
