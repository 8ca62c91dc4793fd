"""The provider under measurement: started from serve.py in a process of its own, and its CPU clock."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

STARTING_SECONDS = 300.0
STOPPING_SECONDS = 15.0
SERVE = Path(__file__).with_name("serve.py")


class NotStarted(Exception):
    """The provider does not answer; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Readings of a provider's clocks, or what lies between two of them; seconds."""

    loop: float
    """CPU of the threads that run the event loop: everything except the hashing of passwords, and writing back"""
    cpu: float
    """CPU of all threads"""
    wall: float

    def __sub__(self, before: Clocks) -> Clocks:
        return Clocks(self.loop - before.loop, self.cpu - before.cpu, self.wall - before.wall)

    def __add__(self, other: Clocks) -> Clocks:
        return Clocks(self.loop + other.loop, self.cpu + other.cpu, self.wall + other.wall)

    def milliseconds(self, count: int) -> dict[str, float]:
        """Of each of so many."""
        return {f"{name}_ms": 1000 * getattr(self, name) / count for name in ("loop", "cpu", "wall")}


class Provider:
    """A provider that runs."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def alive(self) -> bool:
        """Whether its process still runs."""
        return self._child.poll() is None

    def cpu_seconds(self) -> float:
        """User and system time of all threads of it and its workers so far, in nanosecond steps.

        This is the CPU clock of another process, whose number Linux makes of the process id.
        """
        return sum(time.clock_gettime((~process << 3) | 2) for process in self._processes())

    def loop_seconds(self) -> float:
        """The same without the threads that check passwords: of the first thread of each, which runs the loop."""
        files = (Path(f"/proc/{process}/task/{process}/schedstat") for process in self._processes())
        return sum(int(file.read_text(encoding="ascii").split()[0]) for file in files) / 1e9

    def clocks(self) -> Clocks:
        """All three now."""
        return Clocks(self.loop_seconds(), self.cpu_seconds(), time.perf_counter())

    def peak_memory_mib(self) -> float:
        """The most memory that each process held at once, together; pages that they share count for each."""
        return sum(map(_peak_memory_mib, self._processes()))

    def _processes(self) -> list[int]:
        main = self._child.pid
        workers = Path(f"/proc/{main}/task/{main}/children").read_text(encoding="ascii").split()
        return [main, *map(int, workers)]


def _peak_memory_mib(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@contextmanager
def running(
    work: Path,
    port: int,
    client_file: Path,
    *,
    cpus: Iterable[int],
    many: tuple[int, ...],
    settings: Mapping[str, str],
    python: str = sys.executable,
) -> Iterator[Provider]:
    """Start it on these CPUs, with these settings of the environment; stop it at the end. Raises NotStarted.

    `python` is the interpreter in whose environment CorpID is installed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    environment |= {
        "PORT": str(port),
        "BENCH_CLIENT_FILE": str(client_file),
        "BENCH_WORKDIR": str(work),
        "BENCH_MANY_ENTITIES": ",".join(map(str, many)),
        **settings,
    }
    log = work / "provider.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [python, str(SERVE)], env=environment, cwd=work, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        os.sched_setaffinity(child.pid, cpus)
        _wait(child, port, log)
        yield Provider(child)
    finally:
        _stop(child)


def _wait(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + STARTING_SECONDS
    while not _listening(port):
        if child.poll() is not None or time.monotonic() > end:
            raise NotStarted(f"the provider did not start:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.05)


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOPPING_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
