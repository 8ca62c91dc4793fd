"""A job's page moves with the job, with a script and without (docs/decisions/0042)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Operator
from corpid.rules.jobs import Job
from tests.browser.stage import Stage, Visitor, shows, staged, with_and_without_script

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full

ENDED = AuditEvent(actor="operator:id-alice", action="job.end")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged(operators_need_passkey=False) as stage:
        yield stage


@with_and_without_script
def test_the_page_of_a_job_shows_its_progress_and_then_its_end_by_itself(visitor: Visitor, stage: Stage) -> None:
    """docs/decisions/0042: of a job that another process does."""
    stage.wait_for(stage.world.write(Operator(user_id="id-alice", level="operator")))
    jobs, now = stage.world.provider.registry.jobs, int(stage.world.clock())
    job = Job(
        job_id=f"job-{now}", kind="audit verification", actor="operator:id-alice", process_id="another",
        started_at=now, seen_at=now + 3600, done=120, total=480,
    )  # fmt: skip
    stage.wait_for(jobs.add(job, AuditEvent(actor=job.actor, action="job.start", object=job.job_id)))
    page = visitor.tab()
    page.goto(f"{stage.world.base}/console/jobs/{job.job_id}")
    visitor.password(page)
    visitor.code(page)
    shows(page, "Verification of the audit")
    expect(page.get_by_text("120 of 480 seals verified")).to_be_visible()
    stage.wait_for(jobs.note(replace(job, done=300)))
    expect(page.get_by_role("progressbar", name="300 of 480 seals verified")).to_be_visible()
    stage.wait_for(jobs.end(replace(job, event="stop", ended_at=now), ENDED, now=now))
    expect(page.get_by_text("The server was stopped while the job ran.")).to_be_visible()
    assert page.url.endswith(f"/console/jobs/{job.job_id}")
    assert not visitor.complaints
