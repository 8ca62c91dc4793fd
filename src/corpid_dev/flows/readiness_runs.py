"""Runs of the readiness check in the background of a demo (D66)."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_LINES: Final = 200
LONGEST_LINE: Final = 400
"""characters of a line, and of what was seen in a case: pages of others are quoted there"""
CLOSING_SECONDS: Final = 5.0
"""in which a run that is stopped withdraws its orders"""


class State(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The check that a developer wants, and its test person."""

    issuer: str
    url: str
    """where a login begins"""
    user: str
    entity: str
    signed_in: str = ""
    """text, or beginning of an address, of a page that only a signed-in person sees; empty: learned"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case in the table of results."""

    verdict: str
    case: str
    title: str
    seen: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of a run. `files` are the report by its format."""

    sentence: str
    rows: tuple[CaseRow, ...]
    files: Mapping[str, str]


class NotMade(Exception):
    """The report cannot be made; the message gives the remedy."""


class Busy(Exception):
    """A run is under way; there is one at a time."""


class Runner(Protocol):
    """Whatever carries out the check."""

    async def __call__(self, asked: Asked, progress: Callable[[str], None]) -> Outcome:
        """Check, with a line for each step. Raises NotMade."""
        ...


@dataclass(slots=True, kw_only=True)
class Run:
    """A run, and what it has shown so far."""

    asked: Asked
    state: State = State.RUNNING
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    outcome: Outcome | None = None
    problem: str = ""

    def progress(self, line: str) -> None:
        """Keep a line for those who wait."""
        self.lines.append(clipped(line))


def clipped(text: str) -> str:
    """A text of at most LONGEST_LINE characters. Source: D66"""
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."


class Runs:
    """The runs of a process, one at a time.

    The last one is kept.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner: Final = runner
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.latest: Run | None = None

    def start(self, asked: Asked) -> Run:
        """Begin a run in the background. Raises Busy."""
        if self._closed or (self._task is not None and not self._task.done()):
            raise Busy
        self.latest = run = Run(asked=asked)
        self._task = asyncio.get_running_loop().create_task(self._carried_out(run))
        return run

    async def stop(self) -> None:
        """End the run under way; its orders are withdrawn."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSING_SECONDS)
        if self.latest is not None and self.latest.state is State.RUNNING and self._task.done():
            self.latest.state = State.STOPPED  # it had not begun

    async def close(self) -> None:
        """Stop, and begin no other run."""
        self._closed = True
        await self.stop()

    async def _carried_out(self, run: Run) -> None:
        """Run to the end, and keep what came of it."""
        try:
            run.outcome = await self._runner(run.asked, run.progress)
        except NotMade as error:
            run.state, run.problem = State.FAILED, str(error)
        except asyncio.CancelledError:
            run.state = State.STOPPED
        except Exception as error:
            run.state, run.problem = State.FAILED, f"the check itself failed: {type(error).__name__}"
            raise
        else:
            run.state = State.DONE
