"""What a start costs: CPU to the first answer, memory at rest, and the modules of a serving process."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.provider import NotStarted, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.stage import Cpus

HERE = Path(__file__).parents[1]
STARTS = 7
REST_SECONDS = 2.0
"""after the first answer, until memory is read"""
STARTING_SECONDS = 60.0
COUNTED = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: os.write(2, b"modules %d\\n" % len(sys.modules)))
sys.argv[:] = ["corpid", "serve"]
from corpid.__main__ import main
main()
"""
"""`corpid serve`, which says at SIGUSR1 how many modules it has"""


@dataclass(frozen=True, slots=True)
class Start:
    """One start."""

    cpu_ms: float
    """of the whole process, from its beginning to its first answer"""
    wall_ms: float
    memory_mib: float
    """resident, at rest"""


def measure(starts: int, other: Path | None, cpus: Cpus, say: Callable[[str], None]) -> dict[str, Any]:
    """Starts on a store that is there already: of this checkout, and of another one in turn. Raises NotStarted."""
    sides = {"this": HERE, **({} if other is None else {"other": other})}
    with tempfile.TemporaryDirectory(prefix="corpid-start-") as folder:
        stores = {side: Path(folder) / side for side in sides}
        for side, checkout in sides.items():
            stores[side].mkdir()
            _start(checkout, stores[side], cpus)  # makes the store, and compiles modules and templates
        found: dict[str, list[Start]] = {side: [] for side in sides}
        for number in range(starts):
            for side, checkout in sides.items():
                found[side].append(_start(checkout, stores[side], cpus))
            say(f"start {number + 1} of {starts}")
        modules = {side: _modules(checkout, stores[side], cpus) for side, checkout in sides.items()}
    return {
        "valid": True,
        "problems": {},
        "starts": starts,
        "sides": {side: {"modules": modules[side], **_figures(found[side])} for side in sides},
        "ratio": None if other is None else round(_ratio(found["this"], found["other"]), 3),
    }


def table(result: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        f"Medians of {result['starts']} starts on an existing store, least and most in brackets.",
        "",
        "| | CPU ms to the first answer | wall ms | resident MiB at rest | modules |",
        "|---|---|---|---|---|",
    ]
    for side, figures in result["sides"].items():
        cpu, wall, memory = (figures[name] for name in ("cpu_ms", "wall_ms", "memory_mib"))
        lines.append(f"| {side} | {_shown(cpu)} | {_shown(wall)} | {_shown(memory)} | {figures['modules']} |")
    if result["ratio"] is not None:
        lines += ["", f"CPU of this checkout by the other's, median over the pairs: **{result['ratio']}**."]
    return "\n".join(lines)


def _figures(starts: Sequence[Start]) -> dict[str, list[float]]:
    figures = {name: [getattr(each, name) for each in starts] for name in Start.__dataclass_fields__}
    return {
        name: [round(figure, 1) for figure in (statistics.median(values), min(values), max(values))]
        for name, values in figures.items()
    }


def _shown(figures: Sequence[float]) -> str:
    median, least, most = figures
    return f"{median:.0f} ({least:.0f} to {most:.0f})"


def _ratio(these: Sequence[Start], others: Sequence[Start]) -> float:
    return statistics.median(this.cpu_ms / other.cpu_ms for this, other in zip(these, others, strict=True))


def _start(checkout: Path, store: Path, cpus: Cpus) -> Start:
    begin = time.perf_counter()
    with _serving(["-m", "corpid", "serve"], checkout, store, cpus) as process:
        wall = time.perf_counter() - begin
        cpu = time.clock_gettime((~process.pid << 3) | 2)  # another process's CPU clock, as in provider.py
        time.sleep(REST_SECONDS)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        resident = re.search(r"VmRSS:\s+([0-9]+)", status)
        assert resident is not None
        return Start(cpu_ms=1000 * cpu, wall_ms=1000 * wall, memory_mib=int(resident[1]) / 1024)


def _modules(checkout: Path, store: Path, cpus: Cpus) -> int:
    with _serving(["-c", COUNTED], checkout, store, cpus) as process:
        time.sleep(REST_SECONDS)
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        return int(process.stderr.readline().split()[1])


@contextmanager
def _serving(arguments: Sequence[str], checkout: Path, store: Path, cpus: Cpus) -> Iterator[subprocess.Popen[str]]:
    """A server from its beginning, once it has answered. Raises NotStarted."""
    port = free_port()
    left_out = ("CORPID_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment |= {
        "CORPID_DATA_DIR": str(store),
        "CORPID_PORT": str(port),
        "CORPID_BASE_URL": f"http://127.0.0.1:{port}",
    }
    python = sys.executable if checkout == HERE else str(checkout / ".venv" / "bin" / "python")
    with subprocess.Popen(
        [python, *arguments], cwd=store, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            os.sched_setaffinity(process.pid, cpus.serving(1))
            _await_answer(f"http://127.0.0.1:{port}/.well-known/openid-configuration", process)
            yield process
        finally:
            process.terminate()
            process.wait()


def _await_answer(url: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + STARTING_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=STARTING_SECONDS):
                return
        except OSError:
            time.sleep(0.005)
    raise NotStarted(f"the provider did not start:\n{process.stderr.read() if process.stderr else ''}")
