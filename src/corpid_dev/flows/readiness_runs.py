"""Runs of the readiness check in the background of a demo (D66)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

MOST_LINES: Final = 200
LONGEST_LINE: Final = 400
"""characters of a line, which quotes pages of others"""
CLOSING_SECONDS: Final = 5.0
"""in which a run that is stopped withdraws its orders"""


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The check that a developer wants, and its test person."""

    issuer: str
    url: str
    """where a login begins"""
    user: str
    entity: str
    signed_in: str = ""
    """text, or beginning of an address, of a page that only a signed-in person sees; empty: learned"""


class RunReport(Protocol):
    """The report of a run; its page shows the results."""

    def file(self, kind: str) -> str:
        """The report as html, json or xml."""
        ...


class ReadinessError(Exception):
    """The report cannot be made; the message gives the remedy."""


class RunInProgress(Exception):
    """A run is under way; there is one at a time."""


class Runner(Protocol):
    """Whatever carries out the check."""

    async def __call__(self, asked: RunRequest, progress: Callable[[str], None]) -> RunReport:
        """Check, with a line for each step. Raises ReadinessError."""
        ...


@dataclass(slots=True, kw_only=True)
class Run:
    """A run, and what it has shown so far."""

    asked: RunRequest
    state: RunState = RunState.RUNNING
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    report: RunReport | None = None
    problem: str = ""

    def progress(self, line: str) -> None:
        """Keep a line for those who wait."""
        self.lines.append(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}...")


class Runs:
    """The runs of a process, one at a time.

    The last one is kept.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner: Final = runner
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.latest: Run | None = None

    def start(self, asked: RunRequest) -> Run:
        """Begin a run in the background. Raises RunInProgress."""
        if self._closed or (self._task is not None and not self._task.done()):
            raise RunInProgress
        self.latest = run = Run(asked=asked)
        self._task = asyncio.get_running_loop().create_task(self._carried_out(run))
        return run

    async def stop(self) -> None:
        """End the run under way; its orders are withdrawn."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSING_SECONDS)
        if self.latest is not None and self.latest.state is RunState.RUNNING and self._task.done():
            self.latest.state = RunState.STOPPED  # it had not begun

    async def close(self) -> None:
        """Stop, and begin no other run."""
        self._closed = True
        await self.stop()

    async def _carried_out(self, run: Run) -> None:
        """Run to the end, and keep what came of it."""
        try:
            run.report = await self._runner(run.asked, run.progress)
        except ReadinessError as error:
            run.state, run.problem = RunState.FAILED, str(error)
        except asyncio.CancelledError:
            run.state = RunState.STOPPED
        except Exception as error:
            run.state, run.problem = RunState.FAILED, f"the check itself failed: {type(error).__name__}"
            raise
        else:
            run.state = RunState.DONE
