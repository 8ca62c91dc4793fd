"""Jobs: work of minutes in the background of a serving process (docs/decisions/0042)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.write import audit_event
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import SYSTEM, Actor, Object, authorise
from corpid.rules.failures import StoreUnavailable
from corpid.rules.jobs import HEARTBEAT_SECONDS, KEPT_SECONDS, Job, JobKind, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from corpid.stores.sql.registry import Registry

    Work = Callable[["JobProgress"], Coroutine[None, None, str]]
    """the work of a job, which returns its result as JSON"""

LISTED: Final = 50
"""jobs of the list"""


class JobProgress:
    """The progress of a job, which its work notes.

    `total` is 0 while it is not known.
    """

    def __init__(self, seen_at: int) -> None:
        self.done = 0
        self.total = 0
        self.seen_at = seen_at
        """of the last heartbeat"""


class Jobs:
    """The jobs that this process does, as tasks of its event loop.

    `log` writes an event and its detail to the log.
    """

    def __init__(
        self,
        registry: Registry,
        process_id: str,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        log: Callable[[str, str], None],
    ) -> None:
        self._registry: Final = registry
        self._process_id: Final = process_id
        self._clock: Final = clock
        self._new_id: Final = new_id
        self._log: Final = log
        self._tasks: Final[dict[asyncio.Task[None], asyncio.Task[str]]] = {}
        """with the work of each"""

    async def start(self, actor: Actor, kind: JobKind, work: Work) -> Job:
        """Start a job, and return it.

        If one of its kind is running, return that one. Raises access.Forbidden, StoreUnavailable.
        """
        authorise(actor, "read", Object(kind=kind))
        now = int(self._clock())
        job = Job(
            job_id=self._new_id(),
            kind=kind,
            actor=actor.name,
            process_id=self._process_id,
            started_at=now,
            seen_at=now,
        )
        event = audit_event(actor, AuditAction.JOB_START, job.job_id, kind=kind)
        while not await self._registry.jobs.add(job, event):
            running = await self._registry.jobs.find_running(kind)
            if running is not None and not await _end_lost(self._registry, running, now=now):
                return running
        # The context of the request would put what is done here into its log lines and its trace.
        progress = JobProgress(now)
        doing = asyncio.create_task(work(progress), context=Context())
        task = asyncio.create_task(self._watch(job, actor, progress, doing), context=Context())
        self._tasks[task] = doing
        task.add_done_callback(self._tasks.pop)
        return job

    async def wait(self) -> None:
        """Return once none of them runs."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Stop all of them, which their records then say."""
        for doing in self._tasks.values():
            doing.cancel()
        await self.wait()

    async def _watch(self, job: Job, actor: Actor, progress: JobProgress, doing: asyncio.Task[str]) -> None:
        """Note how a job goes on, and how it ended."""
        beating = asyncio.create_task(self._beat(job, progress, doing))
        result, how = "", "fail"
        try:
            result, how = await doing, "finish"
        except asyncio.CancelledError:
            how = "stop"
        except Exception as error:  # noqa: BLE001 - it has no caller, and what it says may name somebody (D48)
            self._log("job_failed", f"{job.kind} {job.job_id}: {type(error).__name__}")
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        ended = replace(self._note(job, progress), event=how, ended_at=int(self._clock()), result=result)
        try:
            await _end(self._registry, ended, actor=actor, now=self._clock())
        except StoreUnavailable as error:  # others will find that it has no heartbeat
            self._log("job_failed", f"{job.kind} {job.job_id}: {error}")

    async def _beat(self, job: Job, progress: JobProgress, doing: asyncio.Task[str]) -> None:
        """Write heartbeats; cancel what is counted as lost."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            with suppress(StoreUnavailable):
                if not await self._registry.jobs.note(self._note(job, progress)):
                    doing.cancel()

    def _note(self, job: Job, progress: JobProgress) -> Job:
        progress.seen_at = max(progress.seen_at, int(self._clock()))
        return replace(job, seen_at=progress.seen_at, done=progress.done, total=progress.total)


async def _end(registry: Registry, job: Job, *, actor: Actor | None, now: float) -> None:
    """Write how a job ended, with its event.

    `actor` is None if CorpID itself noticed.
    """
    facts: dict[str, str] = {"kind": job.kind, "event": job.event}
    if actor is None:
        event = AuditEvent(actor=SYSTEM, action=AuditAction.JOB_END, object=job.job_id, detail=facts)
    else:
        event = audit_event(actor, AuditAction.JOB_END, job.job_id, **facts)
    await registry.jobs.end(job, event, now=now)


async def _end_lost(registry: Registry, job: Job, *, now: float) -> bool:
    """Record the end of a job if its process is dead.

    Returns whether it is.
    """
    judged = judge(job, now=now)
    if judged.event == "lose":
        await _end(registry, judged, actor=None, now=now)
    return judged.event == "lose"


async def clean_up(registry: Registry, *, now: float) -> None:
    """Record the end of jobs whose process is dead, remove old ones.

    Those that started more than 30 days ago. Raises StoreUnavailable.
    """
    for each in await registry.jobs.list_running():
        await _end_lost(registry, each, now=now)
    await registry.jobs.remove_old(before=int(now) - KEPT_SECONDS)


async def list_jobs(registry: Registry, *, actor: Actor, now: float) -> list[Job]:
    """Return the latest jobs as they are now.

    LISTED at most, the latest first. Raises access.Forbidden, StoreUnavailable.
    """
    authorise(actor, "read", Object(kind="deployment"))
    return [judge(each, now=now) for each in await registry.jobs.list_latest(limit=LISTED)]


async def find_job(registry: Registry, job_id: str, *, actor: Actor, now: float) -> Job | None:
    """Return a job as it is now, with its result.

    None if there is none. Raises access.Forbidden, StoreUnavailable.
    """
    authorise(actor, "read", Object(kind="deployment"))
    found = await registry.jobs.get(job_id)
    return None if found is None else judge(found, now=now)
