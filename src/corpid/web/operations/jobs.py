"""Jobs in the console: list, progress and result (docs/decisions/0042)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.operations import audit, jobs
from corpid.flows.operations.audit_seals import SealVerification
from corpid.texts import Phrase, counted, phrase
from corpid.web.operations.page_context import ONLY_FIRST, ConsoleContext, ConsolePage
from corpid.web.pages.components import (
    Actions,
    Cell,
    Facts,
    Form,
    Items,
    Label,
    Link,
    Paragraph,
    Part,
    Progress,
    View,
    table,
)
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.jobs import Job, JobEvent, JobKind

JOBS: Final = "jobs"
VERIFY: Final = "verify-audit"
TITLE: Final = phrase("Jobs")
KINDS: Final[Mapping[JobKind, Phrase]] = {"audit verification": phrase("Verification of the audit")}
FAILURES: Final[Mapping[JobEvent, Phrase]] = {
    "fail": phrase(
        "The job ended with an error. Find job_failed with the identifier of this job in the log of the server."
    ),
    "stop": phrase("The server was stopped while the job ran. Start the job again."),
    "lose": phrase("The server that ran the job no longer responds: its process ended. Start the job again."),
}


async def show_jobs(at: ConsoleContext) -> View:
    """The latest jobs. Raises access.Forbidden."""
    found = await jobs.list_jobs(at.registry, actor=at.actor, now=at.context.now)
    names = await _name_starters(at, found)
    rows = (
        (
            Link(url=_path(at, each), text=KINDS[each.kind], about=f"{at.moment(each.started_at):%Y-%m-%d %H:%M:%S}"),
            _state(each),
            Cell(values=(at.moment(each.started_at),), notes=(names[each.actor],)),
            at.moment(each.ended_at) if each.ended_at else None,
        )
        for each in found
    )
    return at.build_page(
        TITLE,
        table(
            phrase("The latest first"),
            (phrase("Job"), phrase("State"), phrase("Started"), phrase("Ended at")),
            rows,
            empty=phrase("No job was started in the last 30 days."),
            more=ONLY_FIRST if len(found) == jobs.LISTED else None,
        ),
    )


def _path(at: ConsoleContext, job: Job) -> str:
    return at.path(f"{JOBS}/{job.job_id}")


async def _name_starters(at: ConsoleContext, found: list[Job]) -> dict[str, str]:
    """The user names of those who started jobs, by actor."""
    people = {each.actor: each.actor.partition(":")[2] for each in found}
    names = await audit.name_people(at.registry, people.values(), actor=at.actor)
    return {actor: names.get(person, person) for actor, person in people.items()}


def _state(job: Job) -> Label:
    if job.state == "running":
        return Label(phrase("Running"))
    if job.state == "failed":
        return Label(phrase("Failed"), "error")
    found = _result(job).found
    if found:
        return Label(counted(found, "{count} problem found", "{count} problems found"), "error")
    return Label(phrase("No problems found"))


def _result(job: Job) -> SealVerification:
    return msgspec.json.decode(job.result, type=SealVerification)


async def show_job(at: ConsoleContext) -> View:
    """A job: its progress while it runs, then its result or failure.

    Raises NotFound, access.Forbidden.
    """
    job = await jobs.find_job(at.registry, at.page.partition("/")[2], actor=at.actor, now=at.context.now)
    if job is None:
        raise NotFound
    names = await _name_starters(at, [job])
    facts = Facts(
        (
            (phrase("State"), _state(job)),
            (phrase("Started by"), names[job.actor]),
            (phrase("Started"), at.moment(job.started_at)),
            *([(phrase("Ended at"), at.moment(job.ended_at))] if job.ended_at else ()),
            (phrase("Identifier"), job.job_id),
        )
    )
    return at.build_page(
        KINDS[job.kind],
        *_outcome(at, job),
        facts,
        up=at.link(JOBS, TITLE),
    )


def _outcome(at: ConsoleContext, job: Job) -> tuple[Part, ...]:
    """The progress, failure or result of a job."""
    if job.state == "running":
        at_work = phrase("{done} of {total} seals verified", done=job.done, total=job.total)
        progress = at_work if job.total else phrase("Starting")
        return (Progress(text=progress, done=job.done, total=job.total, page=_path(at, job)),)
    if job.state == "failed":
        again = at.allowed_link(VERIFY, phrase("Start again"))
        return (
            Paragraph(FAILURES[job.event], look="warning"),
            Actions((again,), main=True) if again else None,
        )
    found = _result(job)
    if found.found:
        findings = tuple(each.text for each in found.findings)
        verdict: tuple[Part, ...] = (
            Paragraph(phrase("Some entries do not match their seals."), look="warning"),
            Items(findings, language="en"),
            Paragraph(ONLY_FIRST, look="hint") if found.found > len(found.findings) else None,
        )
    elif found.seals:
        verdict = (Paragraph(phrase("These entries match their seals."), look="summary"),)
    else:
        verdict = (Paragraph(phrase("There is no seal yet, so nothing is protected."), look="summary"),)
    return (
        *verdict,
        Facts(
            (
                (phrase("Seals verified"), found.seals),
                (phrase("Entries verified"), found.entries),
                (phrase("Entries without a seal yet"), found.unsealed),
                *([(phrase("Sealed until"), at.moment(found.sealed_at))] if found.sealed_at else ()),
            )
        ),
        Paragraph(
            phrase("To find entries cut off at the end, give a digest kept elsewhere: corpid audit verify --expect."),
            look="hint",
        ),
    )


async def show_start(at: ConsoleContext) -> View:
    """The form that starts a verification, and the latest one. Raises access.Forbidden."""
    latest = next(iter(await jobs.list_jobs(at.registry, actor=at.actor, now=at.context.now)), None)
    return at.build_page(
        phrase("Verify the audit"),
        phrase("Every entry is verified with its seal. This can take minutes, and continues if you leave the page."),
        Facts(
            (
                (
                    phrase("Last verification"),
                    Cell(
                        values=(
                            Link(url=_path(at, latest), text=phrase("Started {at}", at=at.moment(latest.started_at))),
                            _state(latest),
                        )
                    ),
                ),
            )
        )
        if latest
        else None,
        Form(button=phrase("Verify now")),
        action=at.path(VERIFY),
    )


async def start(at: ConsoleContext) -> FormResult:
    """Start a verification, or lead to the running one.

    Raises access.Forbidden.
    """
    job = await audit.start_verification(at.provider, at.actor)
    return FormResult("", f"{JOBS}/{job.job_id}")


SECTION: Final = Section[ConsoleContext](
    name="maintenance",
    pages={JOBS: ConsolePage(view=show_jobs)},
    named_pages={re.compile(rf"{JOBS}/[A-Za-z0-9_-]+"): ConsolePage(view=show_job)},
)
VERIFICATION: Final = Section[ConsoleContext](
    name="audit",
    pages={VERIFY: ConsolePage(view=show_start, submit=start, fresh=True, needs=("read", "audit verification"))},
)
