"""A restored database, which lacks what was spent since the backup.

All that could be spent ends: sessions and short-lived entries, even if the latter are in another engine. What was
issued before is refused (DESIGN "What each engine promises").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import sqlalchemy as sa

from corpid.rules.authentication.totp import STEP_SECONDS, STEPS_ASIDE
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.tables import credentials, sessions, transient

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from corpid.ports import AuditEvent, TransientStore, TransientUnit
    from corpid.stores.sql.audit import SqlAudit
    from corpid.stores.sql.statements import Database
    from corpid.stores.sql.transient import SqlTransientStore

FORGOTTEN_AT: Final = "forgotten_at"
"""the name under which the moment is kept, epoch seconds"""
_RESTORED_AT: Final = "restored_at"
_NUMBERS_LEFT_OUT: Final = 1_000_000_000
"""more audit numbers than any deployment uses between a backup and its restore"""
_OTHERS: Final = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND application_name LIKE 'corpid%' AND application_name <> 'corpid migrate'"
)
_LEAP: Final = sa.text(
    "SELECT setval(pg_get_serial_sequence('audit', 'number'), COALESCE(max(number), 0) + CAST(:left_out AS bigint)) FROM audit"
)


class RestoreRefused(Exception):
    """Nothing was changed.

    The message is one sentence that says why, and what to do.
    """


async def end_everything(database: Database, *, now: float) -> None:
    """As `forget`, also for the entries in another engine.

    Inside a transaction. docs/decisions/0008
    """
    await NamedValues(database).put(_RESTORED_AT, repr(now))
    await forget(database, now=now)


async def forget(database: Database, *, now: float) -> None:
    """End sessions and short-lived entries, and refuse what was issued before.

    Inside a transaction. `now` is the limit. An authenticator's codes of this minute may have been spent without a
    trace, so they count as spent. docs/decisions/0008
    """
    last = sa.bindparam("last", type_=sa.BigInteger)
    raised = sa.update(credentials).where(credentials.c.totp_last_step < last).values(totp_last_step=last)
    await NamedValues(database).put(FORGOTTEN_AT, repr(now))
    for table in (transient, sessions):
        await database.run(database.prepare(sa.delete(table)), {})
    await database.run(database.prepare(raised), {"last": int(now // STEP_SECONDS) + STEPS_ASIDE})


async def restored_at(database: Database) -> float:
    """When the database was last put back, epoch seconds.

    0.0 for never. Raises StoreUnavailable.
    """
    return float(await NamedValues(database).get(_RESTORED_AT) or 0.0)


async def after_restore(
    database: Database, transient_store: SqlTransientStore, audit: SqlAudit, event: AuditEvent, *, now: float
) -> None:
    """End everything after pg_restore, and write the event.

    Nodes write their own time into what they issue, so the moment lies as far ahead as they may be. Numbers of
    the audit table go on after a gap: a reader who continues from a number of the previous database misses nothing.
    Raises RestoreRefused while servers run, and StoreUnavailable. docs/decisions/0008
    """
    if not database.has_clock:
        raise RestoreRefused("this is for PostgreSQL; on SQLite `corpid restore FILE` does it by itself")
    moment = max(now, await transient_store.engine_time() or 0.0) + CLOCKS_APART_SECONDS
    async with database.transaction():
        (others,) = await database.row(database.prepare(_OTHERS), {}) or (0,)
        if others:
            raise RestoreRefused(
                f"servers or commands have this database open ({others} connections): stop every one of them, then run "
                "this again"
            )
        await end_everything(database, now=moment)
        await database.row(database.prepare(_LEAP), {"left_out": _NUMBERS_LEFT_OUT})
        await audit.record(event)


class SinceRestore:
    """A ports.TransientStore that begins at `restored_at`, epoch seconds, over another.

    docs/decisions/0008
    """

    def __init__(self, store: TransientStore, restored_at: float) -> None:
        self._store: Final = store
        self._restored_at: Final = restored_at
        self._epoch: Final = f"{restored_at!r}:"

    @property
    def reject_issued_before(self) -> float:
        return max(self._restored_at, self._store.reject_issued_before)

    def unit(self, now: float) -> SinceRestoreUnit:
        return SinceRestoreUnit(self._store.unit(now), self._epoch)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        return await self._store.get(self._epoch + kind, key, now=now)

    async def engine_time(self) -> float | None:
        return await self._store.engine_time()

    async def ready(self, *, now: float) -> None:
        await self._store.ready(now=now)

    async def sweep(self, *, now: float) -> int:
        return await self._store.sweep(now=now)


class SinceRestoreUnit:
    """A ports.TransientUnit over another."""

    __slots__ = ("_entered", "_epoch", "_unit")

    _unit: TransientUnit

    def __init__(self, entered: AbstractAsyncContextManager[TransientUnit], epoch: str) -> None:
        self._entered = entered
        self._epoch = epoch

    async def __aenter__(self) -> Self:
        self._unit = await self._entered.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._entered.__aexit__(kind, error, trace)

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        await self._unit.put(self._epoch + kind, key, value, ttl)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        return await self._unit.get(self._epoch + kind, key)

    async def take(self, kind: str, key: bytes) -> bytes | None:
        return await self._unit.take(self._epoch + kind, key)

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        return await self._unit.add(self._epoch + kind, key, ttl, value)

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        return await self._unit.count(self._epoch + kind, key, ttl, by)
