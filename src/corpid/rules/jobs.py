"""Jobs: work of minutes that a process does beside its requests (docs/decisions/0042).

| Last event | State | Then |
|---|---|---|
| `start` | running | `finish`, `fail`, `stop` by its process; `lose` by any, after LOST_SECONDS without a heartbeat |
| `finish` | finished | nothing |
| `fail`, `stop`, `lose` | failed | nothing |
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from corpid.rules.fields import KEY
from corpid.rules.limits import DAY

JobKind: TypeAlias = Literal["audit verification"]
"""the kinds of job, of which the deployment runs one each at a time; who may start one may read this kind of object"""
JobState: TypeAlias = Literal["running", "finished", "failed"]
JobEvent: TypeAlias = Literal["start", "finish", "fail", "stop", "lose"]

STATES: Final[Mapping[JobEvent, JobState]] = MappingProxyType(
    {"start": "running", "finish": "finished", "fail": "failed", "stop": "failed", "lose": "failed"}
)
"""the state after each event"""
HEARTBEAT_SECONDS: Final = 2
"""between two notes of a job's progress"""
LOST_SECONDS: Final = 30
"""without a note, after which the job's process counts as dead: more than two clocks may differ (D49)"""
KEPT_SECONDS: Final = 30 * DAY


class Job(Struct, frozen=True, kw_only=True):
    """A job, as its process last noted it."""

    job_id: Annotated[str, KEY]
    kind: JobKind
    actor: str
    """who started it, as the audit names them"""
    process_id: str
    """the process that does it"""
    started_at: int
    """epoch seconds"""
    seen_at: int
    """of the last heartbeat"""
    event: JobEvent = "start"
    """the last one"""
    ended_at: int = 0
    done: int = 0
    total: int = 0
    """parts of the work; 0: not known yet"""
    result: str = ""
    """JSON; empty unless it finished"""

    @property
    def state(self) -> JobState:
        """The state after its last event."""
        return STATES[self.event]


def judge(job: Job, *, now: float) -> Job:
    """Return a job as it is at `now`, in epoch seconds.

    Without heartbeats its process is dead: it ended with the last one.
    """
    if job.event == "start" and now - job.seen_at > LOST_SECONDS:
        return replace(job, event="lose", ended_at=job.seen_at)
    return job
