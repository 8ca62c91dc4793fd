"""Named values that all processes of a deployment see, and these processes.

Among them are notes of orderly stops: which marker proves that nothing was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.directory.members import Members
from corpid.rules.jobs import Job
from corpid.rules.server_processes import ServerProcess
from corpid.stores.sql.audit import Audit, AuditedPart
from corpid.stores.sql.columns import LIMIT, integer_parameter, record_table
from corpid.stores.sql.statements import Database, Part, Statement, insert, parameters, upsert
from corpid.stores.sql.tables import deployment, jobs, server_processes

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEvent

STORE_IN_USE: Final = "store_in_use"
"""the store identity of the transient store that was used last (stores.data_loss.use_store)"""
_READY: Final = "ready"
_MAINTENANCE: Final = "maintenance"
_FOR_DEVELOPERS: Final = "for_developers"
_AUDIT_STREAM: Final = "audit_stream"
_STOP: Final = "orderly_stop"
_BEGUN: Final = "begun"
_CONFIRMED: Final = "confirmed"
_OVER: Final = "over"
_SWITCH: Final = {True: "on", False: "off"}


PROCESSES: Final = record_table(server_processes, ServerProcess)
_PROCESS = server_processes.c
JOBS: Final = record_table(jobs, Job)
_JOB = jobs.c
_NOTED: Final = ("seen_at", "done", "total")
_ENDED: Final = (*_NOTED, "event", "ended_at", "result")


_GET: Final = Statement(lambda: sa.select(deployment.c.value).where(deployment.c.name == sa.bindparam("name")))
_PUT: Final = Statement(lambda: upsert(deployment, ("name", "value")))
_PUT_FIRST: Final = Statement(lambda: insert(deployment).values(parameters(("name", "value"))).on_conflict_do_nothing())
_CHANGE: Final = Statement(
    lambda: (
        sa.update(deployment)
        .where(deployment.c.name == sa.bindparam("name"), deployment.c.value == sa.bindparam("before"))
        .values(value=sa.bindparam("value"))
    )
)


class NamedValues(Part):
    """The deployment table: text by name."""

    async def get(self, name: str) -> str | None:
        """The value, or None if it was never put."""
        row = await self._database.row(_GET, {"name": name})
        return None if row is None else str(row[0])

    async def put(self, name: str, value: str) -> None:
        """Write a value; inside a transaction."""
        await self._database.run(_PUT, {"name": name, "value": value})

    async def put_first(self, name: str, value: str) -> None:
        """Write a value unless there is one.

        Of several processes one does. Inside a transaction.
        """
        await self._database.run(_PUT_FIRST, {"name": name, "value": value})

    async def change(self, name: str, before: str, value: str) -> bool:
        """Replace a value by another if it is still the expected one.

        Of several processes one does. Inside a transaction.
        """
        return await self._database.run(_CHANGE, {"name": name, "before": before, "value": value}) > 0


class DeploymentSwitches(AuditedPart):
    """Switches that all processes see."""

    def __init__(self, database: Database, audit: Audit) -> None:
        super().__init__(database, audit)
        self._values: Final = NamedValues(database)

    async def ready(self) -> None:
        """Write something small, since a full disk can still be read.

        Raises StoreUnavailable if the store takes no writes, and after a checkpoint that failed (D49).
        """
        self._database.check()
        async with self._database.transaction():
            await self._values.put(_READY, "asked")

    async def maintenance(self) -> bool:
        return await self._values.get(_MAINTENANCE) == _SWITCH[True]

    async def set_maintenance(self, on: bool, event: AuditEvent) -> None:
        async with self._database.transaction():
            was = await self._values.get(_MAINTENANCE) == _SWITCH[True]
            await self._values.put(_MAINTENANCE, _SWITCH[on])
            await self._audit.write(event, members=Members(before={"maintenance": was}, after={"maintenance": on}))

    async def is_for_developers(self) -> bool:
        """Return whether the store is a demo's, which other servers refuse (D66)."""
        return await self._values.get(_FOR_DEVELOPERS) == _SWITCH[True]

    async def keep_for_developers(self) -> None:
        """Mark the store as a demo's, for ever (D66)."""
        async with self._database.transaction():
            await self._values.put_first(_FOR_DEVELOPERS, _SWITCH[True])

    async def audit_stream(self) -> str:
        """The position of the audit's stream; empty before the first one (docs/decisions/0030)."""
        return await self._values.get(_AUDIT_STREAM) or ""

    async def change_audit_stream(
        self, seen: str, position: str, event: AuditEvent | None = None, *, now: float | None = None
    ) -> bool:
        """Replace the position if it is still the one that was seen.

        Of several processes one does. The event is written in the same transaction.
        """
        async with self._database.transaction():
            if seen:
                changed = await self._values.change(_AUDIT_STREAM, seen, position)
            else:  # every position names its process, so that two first ones differ
                await self._values.put_first(_AUDIT_STREAM, position)
                changed = await self._values.get(_AUDIT_STREAM) == position
            if changed and event is not None:
                await self._audit.write(event, now=now)
        return changed


def sort_processes(found: sa.Select[Any]) -> sa.Select[Any]:
    """The processes in their order. Source: D49"""
    return found.order_by(_PROCESS.host, _PROCESS.started_at, _PROCESS.process_id)


_NOTE_PROCESS: Final = Statement(PROCESSES.upsert)
_REMOVE_PROCESS: Final = Statement(
    lambda: sa.delete(server_processes).where(_PROCESS.process_id == sa.bindparam("process_id"))
)
_REMOVE_OLD_PROCESSES: Final = Statement(
    lambda: sa.delete(server_processes).where(_PROCESS.seen_at < integer_parameter("before"))
)
_LIST_PROCESSES: Final = PROCESSES.query(sort_processes)


class ServerProcesses(Part):
    """Rows in which processes say that they serve."""

    async def note(self, process: ServerProcess) -> None:
        """Add the row of a process, or replace it."""
        await self._database.write(_NOTE_PROCESS, PROCESSES.encode(process))

    async def remove(self, process_id: str) -> None:
        """Remove the row of a process that stops, if it is there."""
        await self._database.write(_REMOVE_PROCESS, {"process_id": process_id})

    async def remove_old(self, *, before: int) -> int:
        """Remove those last seen before this moment; how many that were."""
        return await self._database.write(_REMOVE_OLD_PROCESSES, {"before": before})

    async def list_all(self) -> list[ServerProcess]:
        """Every process, in the order of host, start and identifier."""
        return await _LIST_PROCESSES.every(self._database)


_ADD_JOB: Final = Statement(lambda: JOBS.insert().on_conflict_do_nothing())
_NOTE_JOB: Final = Statement(lambda: _update_running(_NOTED))
_END_JOB: Final = Statement(lambda: _update_running(_ENDED))
_REMOVE_OLD_JOBS: Final = Statement(
    lambda: sa.delete(jobs).where(_JOB.started_at < integer_parameter("before"), _JOB.event != "start")
)
_ONE_JOB: Final = JOBS.query(lambda found: found.where(_JOB.job_id == sa.bindparam("job_id")))
_RUNNING_JOBS: Final = JOBS.query(lambda found: found.where(_JOB.event == "start"))
_RUNNING_JOB_OF_KIND: Final = JOBS.query(
    lambda found: found.where(_JOB.event == "start", _JOB.kind == sa.bindparam("kind"))
)
_LATEST_JOBS: Final = JOBS.query(lambda found: found.order_by(_JOB.started_at.desc(), _JOB.job_id).limit(LIMIT))


class Jobs(AuditedPart):
    """Jobs, of which one of a kind runs at a time (docs/decisions/0042)."""

    async def add(self, job: Job, event: AuditEvent) -> bool:
        """Add a job that starts, with its event.

        False if one of its kind is running.
        """
        async with self._database.transaction():
            added = await self._database.run(_ADD_JOB, JOBS.encode(job)) > 0
            if added:
                await self._audit.write(event, now=job.started_at)
        return added

    async def note(self, job: Job) -> bool:
        """Note heartbeat and progress; False if it has ended."""
        return await self._database.write(_NOTE_JOB, _values(job)) > 0

    async def end(self, job: Job, event: AuditEvent, *, now: float) -> bool:
        """Note how a job ended, with its event.

        False if it had ended before, or had a heartbeat after `seen_at`.
        """
        async with self._database.transaction():
            ended = await self._database.run(_END_JOB, _values(job)) > 0
            if ended:
                await self._audit.write(event, now=now)
        return ended

    async def get(self, job_id: str) -> Job | None:
        return await _ONE_JOB.one(self._database, job_id=job_id)

    async def find_running(self, kind: str) -> Job | None:
        return await _RUNNING_JOB_OF_KIND.one(self._database, kind=kind)

    async def list_running(self) -> list[Job]:
        """Those that have not ended, one of a kind at most."""
        return await _RUNNING_JOBS.every(self._database)

    async def list_latest(self, *, limit: int) -> list[Job]:
        """The jobs that started last, the latest first."""
        return await _LATEST_JOBS.every(self._database, limit=limit)

    async def remove_old(self, *, before: int) -> int:
        """Remove those that have ended, and started before this moment.

        Returns how many that were.
        """
        return await self._database.write(_REMOVE_OLD_JOBS, {"before": before})


def _update_running(written: tuple[str, ...]) -> sa.Executable:
    """An update of a job that runs, unless it was noted later."""
    return (
        sa.update(jobs)
        .where(
            _JOB.job_id == sa.bindparam("id"),
            _JOB.event == "start",
            _JOB.seen_at <= integer_parameter("seen"),
        )
        .values(parameters(written))
    )


def _values(job: Job) -> dict[str, object]:
    return {**JOBS.encode(job), "id": job.job_id, "seen": job.seen_at}


class SqlOrderlyStops:
    """An OrderlyStops in the deployment table (docs/decisions/0027).

    There is one value, so each stop ends the one before.
    """

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._values: Final = NamedValues(database)

    async def begin(self, name: str, *, store_identity: str) -> None:
        async with self._database.transaction():
            await self._values.put(_STOP, _encode_stop(_BEGUN, name, store_identity))

    async def confirm(self, name: str, *, store_identity: str) -> bool:
        before, confirmed = _encode_stop(_BEGUN, name, store_identity), _encode_stop(_CONFIRMED, name, store_identity)
        async with self._database.transaction():
            return await self._values.change(_STOP, before, confirmed)

    async def end(self, name: str, *, store_identity: str) -> bool:
        """False also if another store was used meanwhile."""
        async with self._database.transaction():
            used, _, _ = (await self._values.get(STORE_IN_USE) or "").partition(" ")
            return used == store_identity and await self._values.change(
                _STOP, _encode_stop(_CONFIRMED, name, store_identity), _OVER
            )

    async def void(self) -> None:
        """Reads alone if there is none."""
        while (stop := await self._values.get(_STOP)) not in (None, _OVER):
            async with self._database.transaction():
                await self._values.change(_STOP, str(stop), _OVER)


def _encode_stop(state: str, name: str, store_identity: str) -> str:
    return f"{state} {name} {store_identity}"
