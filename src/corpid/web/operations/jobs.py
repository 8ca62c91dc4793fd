"""Jobs in the console: list, progress and result (docs/decisions/0041)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from corpid.flows.operations import audit, jobs
from corpid.flows.operations.audit_seals import SealVerification
from corpid.flows.operations.jobs import LISTED
from corpid.texts import Phrase, counted, phrase
from corpid.web.operations.page_context import (
    ConsoleContext,
    ConsolePage,
    console_path,
    frame,
    path_if_allowed,
    section_link,
)
from corpid.web.operations.views import StateLabel
from corpid.web.pages.layout import FormView, Link, PageView, ViewPart
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from corpid.rules.jobs import Job, JobEvent, JobKind
    from corpid.web.pages.views import View

JOBS: Final = "jobs"
VERIFY: Final = "verify-audit"
KINDS: Final[Mapping[JobKind, Phrase]] = {"audit verification": phrase("Verification of the audit")}
FAILURES: Final[Mapping[JobEvent, Phrase]] = {
    "fail": phrase("An error ended it. The log of the server names it: job_failed, with the identifier of this job."),
    "stop": phrase("The server was stopped while it ran. Start it again."),
    "lose": phrase("The server that ran it no longer answers: its process ended. Start it again."),
}


class JobLine(ViewPart, frozen=True, kw_only=True):
    """A job in the list, or at the head of its page."""

    url: str
    kind: Phrase
    state: StateLabel
    by: str
    started: datetime
    ended: datetime | None


class Jobs(PageView, frozen=True, kw_only=True):
    template: ClassVar[str] = "console/jobs.html"
    heading: ClassVar[Phrase] = phrase("Jobs")

    jobs: tuple[JobLine, ...]
    most: int = LISTED


class JobDetails(PageView, frozen=True, kw_only=True):
    """A job: progress while it runs, then its result or failure."""

    template: ClassVar[str] = "console/job.html"

    heading: Phrase
    job_id: str
    line: JobLine
    running: bool
    done: int
    total: int
    failure: Phrase | None
    again: str
    """the page that starts another one, after a failure; empty for those who may not"""
    found: SealVerification | None
    """of a verification that finished"""
    findings: tuple[str, ...] = ()
    sealed_at: datetime | None = None


class VerifyAudit(FormView, frozen=True, kw_only=True):
    """The start of a verification. Without fields."""

    template: ClassVar[str] = "console/verify_audit.html"
    heading: ClassVar[Phrase] = phrase("Verify the audit")

    latest: JobLine | None


async def show_jobs(at: ConsoleContext) -> View:
    """The latest jobs. Raises access.Forbidden."""
    found = await jobs.list_jobs(at.registry, actor=at.actor, now=at.context.now)
    return Jobs(
        frame=frame(at, section="maintenance", up=section_link(at, "maintenance")), jobs=await _lines(at, found)
    )


async def _lines(at: ConsoleContext, found: list[Job]) -> tuple[JobLine, ...]:
    people = {each.actor: each.actor.partition(":")[2] for each in found}
    names = await audit.name_people(at.registry, people.values())
    return tuple(
        JobLine(
            url=console_path(at.web, f"{JOBS}/{each.job_id}"),
            kind=KINDS[each.kind],
            state=_state(each),
            by=names.get(people[each.actor], people[each.actor]),
            started=at.moment(each.started_at),
            ended=at.moment(each.ended_at) if each.ended_at else None,
        )
        for each in found
    )


def _state(job: Job) -> StateLabel:
    if job.state == "running":
        return StateLabel(text=phrase("Running"))
    if job.state == "failed":
        return StateLabel(text=phrase("Failed"), tone="error")
    found = _result(job).found
    if found:
        return StateLabel(text=counted(found, "{count} problem found", "{count} problems found"), tone="error")
    return StateLabel(text=phrase("No problems found"))


def _result(job: Job) -> SealVerification:
    return msgspec.json.decode(job.result, type=SealVerification)


async def show_job(at: ConsoleContext) -> View:
    """A job. Raises NotFound, access.Forbidden."""
    job_id = at.page.partition("/")[2]
    job = await jobs.find_job(at.registry, job_id, actor=at.actor, now=at.context.now)
    if job is None:
        raise NotFound
    (line,) = await _lines(at, [job])
    found = _result(job) if job.state == "finished" else None
    return JobDetails(
        frame=frame(at, section="maintenance", up=Link(url=console_path(at.web, JOBS), text=Jobs.heading)),
        heading=line.kind,
        job_id=job.job_id,
        line=line,
        running=job.state == "running",
        done=job.done,
        total=job.total,
        failure=FAILURES.get(job.event),
        again=path_if_allowed(at, VERIFY),
        found=found,
        findings=tuple(each.text for each in found.findings) if found else (),
        sealed_at=at.moment(found.sealed_at) if found and found.sealed_at else None,
    )


async def show_start(at: ConsoleContext) -> View:
    """The form that starts a verification, and the latest one. Raises access.Forbidden."""
    latest = (await jobs.list_jobs(at.registry, actor=at.actor, now=at.context.now))[:1]
    return VerifyAudit(
        frame=frame(at, section="audit", up=section_link(at, "audit")),
        action=console_path(at.web, VERIFY),
        latest=next(iter(await _lines(at, latest)), None),
    )


async def start(at: ConsoleContext) -> FormResult:
    """Start a verification, or lead to the running one.

    Raises access.Forbidden.
    """
    job = await audit.start_verification(at.provider, at.actor)
    return FormResult("", f"{JOBS}/{job.job_id}")


SECTION: Final = Section[ConsoleContext](
    pages={
        JOBS: ConsolePage(view=show_jobs),
        VERIFY: ConsolePage(view=show_start, submit=start, fresh=True, needs=("read", "audit verification")),
    },
    named_pages={re.compile(rf"{JOBS}/[A-Za-z0-9_-]+"): ConsolePage(view=show_job)},
)
