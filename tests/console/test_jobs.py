"""Verifying the audit in the console, as a job whose page can be left and read again (D58, docs/decisions/0042)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.flows.operations.audit_seals import Sealer, SealVerification
from corpid.rules.audit import AuditEvent
from corpid.rules.audit_seals import SealFinding
from corpid.rules.directory.access import CommandLine
from corpid.rules.jobs import LOST_SECONDS, Job
from tests.console.scene import WITHOUT_PASSKEY, demoted, go, in_console, send
from tests.sign_in.world import World, new_world

if TYPE_CHECKING:
    from corpid.rules.directory.records import OperatorLevel
    from corpid_dev.relying_party.browser import Browser

SHELL = CommandLine(by="ops@host")


async def started(made: World, browser: Browser) -> str:
    """Start a verification at its form, and open the page of its job; the page's path."""
    answer = await send(made, browser, "verify-audit")
    assert answer.status_code == 303
    path = answer.headers["location"].partition("/console/")[2]
    assert await go(made, browser, path) == 200
    return path


async def keep(made: World, **state: Any) -> None:
    """A job of another process, which runs unless `state` says otherwise."""
    now = int(made.clock())
    given = {"started_at": now, "seen_at": now, "done": 1200, "total": 48210, **state}
    job = Job(job_id="j1", kind="audit verification", actor="operator:id-mei", process_id="p2", **given)
    await made.provider.registry.jobs.add(job, AuditEvent(actor=job.actor, action="job.start", object=job.job_id))


@pytest.mark.parametrize("level", ["operator", "auditor"])
async def test_the_audit_is_verified_as_a_job_whose_result_stays_at_its_address(level: OperatorLevel) -> None:
    """D58."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await Sealer(made.provider.registry, lambda _: None).seal_all(SHELL, now=made.clock())
        browser = await in_console(made, level, "verify-audit")
        path = await started(made, browser)
        await made.provider.jobs.wait()
        for _ in range(2):
            assert await go(made, browser, path) == 200
            assert "These entries match their seals." in browser.page.text
            assert "Entries without a seal yet" in browser.page.text
            assert f"the-{level}" in browser.page.text
        await go(made, browser, "jobs")
        assert "No problems found" in browser.page.text
        await go(made, browser, "verify-audit")
        assert "No problems found" in browser.page.text
        assert [each.actor for each in await made.audit("job.start")] == [f"operator:id-the-{level}"]
        assert [each.detail["event"] for each in await made.audit("job.end")] == ["finish"]


async def test_what_is_not_as_it_was_sealed_is_named_and_marks_the_job() -> None:
    """D58."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        finding = SealFinding(object="entry", number=7, problem="changed", text="Entry 7 was changed.")
        found = SealVerification(seals=3, entries=900, found=1, findings=[finding])
        browser = await in_console(made, "auditor")
        await keep(made, event="finish", ended_at=int(made.clock()), result=msgspec.json.encode(found).decode())
        await go(made, browser, "jobs/j1")
        assert "Some entries do not match their seals." in browser.page.text
        assert finding.text in browser.page.text
        await go(made, browser, "jobs")
        assert "1 problem found" in browser.page.text


async def test_a_job_of_another_process_shows_its_progress_and_refreshes_without_a_script() -> None:
    """docs/decisions/0042: the record says how far it is, whoever asks."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        await keep(made)
        await go(made, browser, "jobs/j1")
        assert "1,200 of 48,210 seals verified" in browser.page.text
        assert browser.response is not None
        assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in browser.response.text
        assert '<progress aria-labelledby="progress-text" value="1200" max="48210">' in browser.response.text
        await go(made, browser, "verify-audit")
        assert "Running" in browser.page.text
        answer = await send(made, browser, "verify-audit")
        assert answer.headers["location"].endswith("/console/jobs/j1")
        assert len(await made.audit("job.start")) == 1


async def test_a_job_whose_process_died_is_a_clear_failure_that_says_what_to_do() -> None:
    """docs/decisions/0042."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        await keep(made)
        made.clock.pass_(LOST_SECONDS + 1)
        await go(made, browser, "jobs/j1")
        assert "its process ended. Start the job again." in browser.page.text
        assert browser.response is not None
        assert "http-equiv" not in browser.response.text
        assert "Start again" in browser.page.text
        await go(made, browser, "verify-audit")
        path = await started(made, browser)
        assert path != "jobs/j1"
        await made.provider.jobs.wait()
        assert [each.detail["event"] for each in await made.audit("job.end")] == ["lose", "finish"]


async def test_a_server_that_stops_leaves_the_sentence_that_it_was_stopped() -> None:
    """docs/decisions/0042."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await in_console(made, "operator")
        await keep(made, event="stop", ended_at=int(made.clock()))
        await go(made, browser, "jobs/j1")
        assert "The server was stopped while the job ran. Start the job again." in browser.page.text


async def test_support_sees_jobs_and_starts_none() -> None:
    """D53."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        browser = await demoted(made, "support", "verify-audit")
        assert (await send(made, browser, "verify-audit")).status_code == 403
        assert await go(made, browser, "verify-audit") == 403
        await go(made, browser, "audit")
        assert "Verify the audit" not in browser.page.text
        await keep(made, event="lose", ended_at=int(made.clock()))
        await go(made, browser, "jobs/j1")
        assert "its process ended" in browser.page.text
        assert "Start again" not in browser.page.text
        assert await go(made, browser, "jobs/j2") == 404
        assert await go(made, browser, "jobs") == 200
        assert not await made.audit("job.end")
