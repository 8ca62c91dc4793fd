"""Jobs, on both engines: one of a kind at a time, a clear end, and its audit (docs/decisions/0042)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from corpid.flows.operations import jobs
from corpid.flows.operations.audit_seals import SealVerification, verify
from corpid.flows.operations.jobs import JobProgress, Jobs
from corpid.rules.directory.access import DeploymentOperator, Forbidden
from corpid.rules.failures import StoreUnavailable
from corpid.rules.jobs import KEPT_SECONDS, LOST_SECONDS, Job
from tests.world.clock import Clock

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEntry
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

NOW = 1_800_000_000
OPAL = DeploymentOperator(
    user_id="opal", level="operator", auth_time=NOW, now=NOW, request_id="r1", address="192.0.2.7"
)
SUPPORT = DeploymentOperator(user_id="sue", level="support", auth_time=NOW, now=NOW)
KIND: Final = "audit verification"


class Process:
    """The jobs of one serving process, and what it logs."""

    def __init__(self, stores: SqlStores, name: str, clock: Clock) -> None:
        self.logged: list[tuple[str, str]] = []
        self.made = 0
        self.name = name
        self.jobs = Jobs(
            stores.registry, name, clock=clock, new_id=self.new_id, log=lambda *line: self.logged.append(line)
        )

    def new_id(self) -> str:
        self.made += 1
        return f"{self.name}-{self.made}"


class Work:
    """Work that ends when it is let."""

    def __init__(self, result: str = "{}") -> None:
        self.may_end = asyncio.Event()
        self.has_begun = asyncio.Event()
        self.begun = 0
        self.result = result

    async def __call__(self, progress: JobProgress) -> str:
        self.begun += 1
        progress.done, progress.total = 3, 8
        self.has_begun.set()
        await self.may_end.wait()
        return self.result


async def fail(progress: JobProgress) -> str:
    raise StoreUnavailable("the disk is full")


async def seen(stores: SqlStores, job_id: str, *, now: float) -> Job:
    found = await jobs.find_job(stores.registry, job_id, actor=SUPPORT, now=now)
    assert found is not None
    return found


async def events(stores: SqlStores) -> list[AuditEntry]:
    return [each for each in await stores.registry.audit.entries(after=0, limit=50) if each.action.startswith("job.")]


async def test_of_two_starts_at_the_same_moment_in_two_processes_one_does_the_work(place: Place) -> None:
    """docs/decisions/0042."""
    async with place.opened() as here, place.opened() as there:
        clock, work = Clock(NOW), Work()
        processes = [Process(here, "one", clock), Process(there, "two", clock)]
        starts = [each.jobs.start(OPAL, KIND, work) for each in processes for _ in range(3)]
        started = await asyncio.gather(*starts)
        assert len({each.job_id for each in started}) == 1
        assert [each.action for each in await events(here)] == ["job.start"]
        work.may_end.set()
        for each in processes:
            await each.jobs.wait()
        assert work.begun == 1
        assert (await seen(there, started[0].job_id, now=NOW)).state == "finished"
        again = await processes[1].jobs.start(OPAL, KIND, work)
        assert again.job_id != started[0].job_id
        await processes[1].jobs.wait()


async def test_a_job_is_seen_running_and_then_with_its_result_and_the_audit_names_who_started_it(place: Place) -> None:
    """D57, docs/decisions/0042."""
    async with place.opened() as stores:
        clock, work = Clock(NOW), Work('{"found":2}')
        process = Process(stores, "one", clock)
        job = await process.jobs.start(OPAL, KIND, work)
        assert await seen(stores, job.job_id, now=NOW + LOST_SECONDS) == job
        clock.pass_(20)
        work.may_end.set()
        await process.jobs.wait()
        ended = await seen(stores, job.job_id, now=NOW + 1000)
        assert (ended.state, ended.result, ended.done, ended.total) == ("finished", '{"found":2}', 3, 8)
        assert (ended.started_at, ended.ended_at, ended.process_id) == (NOW, NOW + 20, "one")
        start, end = await events(stores)
        assert {each.actor for each in (start, end)} == {"operator:opal"}
        assert {each.object for each in (start, end)} == {job.job_id}
        assert (start.detail, start.request_id) == ({"kind": KIND, "address": "192.0.2.7"}, "r1")
        assert (end.action, end.detail["event"], end.at) == ("job.end", "finish", NOW + 20)


async def test_a_job_whose_process_is_dead_has_failed_for_everybody_and_another_may_start(place: Place) -> None:
    """docs/decisions/0042: its last heartbeat is the end."""
    async with place.opened() as dead, place.opened() as stores:
        clock, work = Clock(NOW), Work()
        gone, alive = Process(dead, "one", clock), Process(stores, "two", clock)
        job = await gone.jobs.start(OPAL, KIND, work)
        assert (await alive.jobs.start(OPAL, KIND, work)).job_id == job.job_id
        clock.pass_(LOST_SECONDS + 1)
        (listed,) = await jobs.list_jobs(stores.registry, actor=SUPPORT, now=clock())
        assert (listed.state, listed.event, listed.ended_at) == ("failed", "lose", NOW)
        other = await alive.jobs.start(OPAL, KIND, work)
        assert other.job_id != job.job_id
        kept = await stores.registry.jobs.get(job.job_id)
        assert kept is not None
        assert kept.event == "lose"
        work.may_end.set()
        await gone.jobs.wait()  # it was not dead, only late: nothing that it says counts any more
        await alive.jobs.wait()
        assert (await seen(stores, job.job_id, now=clock())).event == "lose"
        assert [(each.actor, each.object, each.detail.get("event")) for each in await events(stores)] == [
            ("operator:opal", job.job_id, None),
            ("system", job.job_id, "lose"),
            ("operator:opal", other.job_id, None),
            ("operator:opal", other.job_id, "finish"),
        ]


async def test_a_process_that_was_counted_as_dead_stops_its_job(place: Place) -> None:
    """docs/decisions/0042: its next heartbeat finds that the job has ended."""
    async with place.opened() as stores:
        clock, work = Clock(NOW), Work()
        process = Process(stores, "one", clock)
        job = await process.jobs.start(OPAL, KIND, work)
        clock.pass_(LOST_SECONDS + 1)
        await jobs.clean_up(stores.registry, now=clock())
        await process.jobs.wait()
        assert not work.may_end.is_set()
        assert (await seen(stores, job.job_id, now=clock())).event == "lose"


async def test_stopping_the_process_ends_its_jobs_and_says_so(place: Place) -> None:
    """docs/decisions/0042."""
    async with place.opened() as stores:
        process, work = Process(stores, "one", Clock(NOW)), Work()
        job = await process.jobs.start(OPAL, KIND, work)
        await work.has_begun.wait()
        await process.jobs.stop()
        ended = await seen(stores, job.job_id, now=NOW)
        assert (ended.state, ended.event, ended.done) == ("failed", "stop", 3)
        assert (await events(stores))[-1].detail["event"] == "stop"


async def test_a_job_that_is_stopped_before_its_first_step_says_so(place: Place) -> None:
    """docs/decisions/0042."""
    async with place.opened() as stores:
        process, work = Process(stores, "one", Clock(NOW)), Work()
        job = await process.jobs.start(OPAL, KIND, work)
        await process.jobs.stop()
        assert (work.begun, (await seen(stores, job.job_id, now=NOW)).event) == (0, "stop")


async def test_work_that_raises_fails_and_its_cause_is_logged_without_its_words(place: Place) -> None:
    """D48."""
    async with place.opened() as stores:
        process = Process(stores, "one", Clock(NOW))
        job = await process.jobs.start(OPAL, KIND, fail)
        await process.jobs.wait()
        assert (await seen(stores, job.job_id, now=NOW)).event == "fail"
        assert process.logged == [("job_failed", f"{KIND} {job.job_id}: StoreUnavailable")]


async def test_jobs_are_kept_for_thirty_days_after_they_started(place: Place) -> None:
    """docs/decisions/0042."""
    async with place.opened() as stores:
        clock, work = Clock(NOW), Work()
        work.may_end.set()
        process = Process(stores, "one", clock)
        first = await process.jobs.start(OPAL, KIND, work)
        await process.jobs.wait()
        clock.pass_(60)
        second = await process.jobs.start(OPAL, KIND, work)
        await process.jobs.wait()
        await jobs.clean_up(stores.registry, now=NOW + KEPT_SECONDS)
        listed = await jobs.list_jobs(stores.registry, actor=OPAL, now=clock())
        assert [each.job_id for each in listed] == [second.job_id, first.job_id]
        await jobs.clean_up(stores.registry, now=NOW + KEPT_SECONDS + 1)
        listed = await jobs.list_jobs(stores.registry, actor=OPAL, now=clock())
        assert [each.job_id for each in listed] == [second.job_id]


async def test_support_starts_no_job(place: Place) -> None:
    """D53."""
    async with place.opened() as stores:
        process = Process(stores, "one", Clock(NOW))
        with pytest.raises(Forbidden):
            await process.jobs.start(SUPPORT, KIND, Work())
        assert await jobs.list_jobs(stores.registry, actor=SUPPORT, now=NOW) == []
        assert await events(stores) == []


async def test_the_result_of_a_verification_is_what_verifying_says(place: Place) -> None:
    """D58: kept as JSON, and read again."""
    async with place.opened() as stores:
        found = await verify(stores.registry, OPAL, now=NOW)
        assert msgspec.json.decode(msgspec.json.encode(found), type=SealVerification) == found
