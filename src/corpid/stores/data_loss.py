"""Detection of lost data, and rejection of anything issued before.

One-time things (codes, proofs, assertions, an authenticator's codes) are safe only while the store that notes what
was spent remembers it. A store that lost notes would take a spent value as new. So this is the rule for every engine:
*a process that finds that a store may have lost data refuses all that was issued before it was whole again.*

What is noticed, and how:

- `after_machine_restart`: SQLite's machine was restarted (LMDB's file is removed then, see `use_store`), so the last
  transactions before a power cut may be lost. The deployment table holds the boot id of the kernel; another one was
  found at opening.
- `after_restore`: the database was restored from a backup. `corpid restore` and `corpid maintenance after-restore`
  write the moment. Another engine that holds what lives for minutes has lost nothing, but knows what belongs to the
  time before: its entries get other names from then on (SinceRestore). A PostgreSQL database that was restored without
  the command has another identity than the note in it (stores.sql.database_identity), and is refused.
- `after_copy`: a copy that `corpid backup` made was put in place of a SQLite database by other means than `corpid
  restore`. The copy says in its deployment table that it is one.
- `Takeovers`: a PostgreSQL standby was promoted, and may lack the last commits. Its timeline is higher than the one in
  the deployment table; every new connection is looked at before it is used.
- `use_store`: `transient_url` names another store than before, or the store was emptied while no process looked on. The
  deployment table holds the store identity that was used last; a process that starts compares it. An LMDB file that was
  removed after a restart of the machine, copied or deleted has another one.
- stores.sql.deployment and stores.valkey.incarnations: a restart of Redis or Valkey that is proven to have lost
  nothing is no loss; the deployment table has the name of the one marker that proves it.
- stores.valkey.incarnations and stores.valkey.transient: Redis or Valkey lost data while processes watch: it restarted,
  was emptied, went back to a snapshot, or a slot moved. Markers in every part name the run of the engine and the
  incarnation; one that does not fit begins a new incarnation for all parts, in the same store identity. They are with
  their engine, since commands travel with a look at the marker; an engine without such markers needs only a store
  identity.

What follows, the same in each case:

- What may be incomplete ends: entries of the transient store from before are deleted, or no longer found by their
  names. So codes and pushed requests from before do not exist. After a restore or a takeover sessions end too, and the
  codes of authenticators for the present minute count as used (`forget`).
- TransientStore.loss names it, with its moment in epoch seconds; if several nodes write their own time, the
  seconds are added by which their clocks may differ. Flows compare it with `iat`: of proofs (flows.oauth.dpop), of
  assertions (flows.oauth.client_authentication) and of access tokens (flows.oauth.userinfo).
- The moment is stored with the notice of the loss: in the deployment table, or in the name of the incarnation. Of
  several processes that notice at once one writes it, in the transaction that ends what is incomplete; the others read
  it.
- A first start has lost nothing: a note made before the first keys distinguishes it from a deployment without notes.
  Source: D49, D67"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Self

import sqlalchemy as sa

from corpid.rules.authentication.totp import last_step_spent
from corpid.rules.data_loss import DataLoss, are_known
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import CLOCKS_APART_SECONDS
from corpid.stores import Clock, WrappedStore
from corpid.stores.sql import database_identity
from corpid.stores.sql.clients import begin_client_clocks
from corpid.stores.sql.deployment import STORE_IN_USE, NamedValues, SqlOrderlyStops
from corpid.stores.sql.statements import NOW, Database, Statement
from corpid.stores.sql.tables import credentials, deployment, email_changes, sessions, transient

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from corpid.rules.audit import AuditEvent
    from corpid.rules.transient import PipelinedVerb
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.transient import SqlTransientStore
    from corpid.stores.transient import TransientBatch, TransientStore

FORGOTTEN_AT: Final = "forgotten_at"
"""the name under which the moment is kept, epoch seconds"""


async def forget(database: Database, *, now: float) -> None:
    """End sessions and short-lived entries; refuse anything issued before.

    Inside a transaction. `now` is the limit. An authenticator's codes of this minute may have been spent without a
    trace, so they count as spent; a change of an e-mail address may have been undone. docs/decisions/0008
    """
    last = sa.bindparam("last", type_=sa.BigInteger)
    raised = sa.update(credentials).where(credentials.c.totp_last_step < last).values(totp_last_step=last)
    await NamedValues(database).put(FORGOTTEN_AT, repr(now))
    await SqlOrderlyStops(database).void()  # that one was used may be forgotten, too
    await begin_client_clocks(database, now=now)
    for table in (transient, sessions, email_changes):
        await database.run(Statement(sa.delete(table)), {})
    await database.run(Statement(raised), {"last": last_step_spent(now)})


# `after_machine_restart`: SQLite on a machine that lost power. Only what lives for minutes is affected by so little.

_MACHINE_START: Final = "machine_start"


async def after_machine_restart(database: Database, *, start: str, now: float) -> float:
    """Empty the short-lived table after a restart of the machine.

    Since the database was last opened, that is. Returns the epoch seconds of the last time that happened, 0.0 for
    never. Raises StoreUnavailable.
    """
    values = NamedValues(database)
    empty = Statement(sa.delete(transient))
    async with database.transaction():
        before = await values.get(_MACHINE_START)
        if before != start:
            await values.put(_MACHINE_START, start)
        if before not in (None, start):
            await database.run(empty, {})
            await values.put(FORGOTTEN_AT, repr(now))
            await SqlOrderlyStops(database).void()  # as in `forget`
            await begin_client_clocks(database, now=now)
        return float(await values.get(FORGOTTEN_AT) or 0.0)


# `after_restore`: a restored database, which lacks what was spent since the backup.

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


async def restored_at(database: Database) -> float:
    """When the database was last put back, epoch seconds.

    0.0 for never. Raises StoreUnavailable.
    """
    return float(await NamedValues(database).get(_RESTORED_AT) or 0.0)


async def after_restore(
    database: Database, transient_store: SqlTransientStore, audit: Audit, event: AuditEvent, *, now: float
) -> None:
    """End everything after pg_restore, and write the event.

    Nodes write their own time into what they issue, so the moment lies as far ahead as they may be. Numbers of
    the audit table go on after a gap: a reader who continues from a number of the previous database misses nothing.
    From then on servers accept this database. Raises RestoreRefused while servers run, and StoreUnavailable.
    docs/decisions/0008
    """
    if not database.has_clock:
        raise RestoreRefused("this is for PostgreSQL; on SQLite `corpid restore FILE` does it by itself")
    moment = max(now, await transient_store.engine_time() or 0.0) + CLOCKS_APART_SECONDS
    async with database.transaction():
        (others,) = await database.row(Statement(_OTHERS), {}) or (0,)
        if database.is_pooled:
            # The driver is loaded by those who use it.
            from corpid.stores.sql.postgresql import DIRECTLY  # noqa: PLC0415

            raise RestoreRefused(f"a pooler answers at database_url and hides which servers run: {DIRECTLY}")
        if others:
            raise RestoreRefused(
                f"servers or commands have this database open ({others} connections): stop every one of them, then run "
                "this again"
            )
        await end_everything(database, now=moment)
        await NamedValues(database).put(database_identity.NOTED_AS, await database_identity.find(database))
        await database.row(Statement(_LEAP), {"left_out": _NUMBERS_LEFT_OUT})
        await audit.write(event)


class SinceRestore(WrappedStore):
    """A TransientStore that begins at `restored_at`, epoch seconds, over another.

    docs/decisions/0008
    """

    def __init__(self, store: TransientStore, restored_at: float) -> None:
        super().__init__(store)
        self._restored_at: Final = restored_at
        self._incarnation: Final = f"{restored_at!r}:"

    @property
    def loss(self) -> DataLoss:
        """The restore, or a later loss of the other store."""
        inner = self._store.loss
        return DataLoss(
            name=f"{self._incarnation}{inner.name}",
            reject_issued_before=max(self._restored_at, inner.reject_issued_before),
            complete_from=inner.complete_from,
            spent_until=inner.spent_until if are_known(self._restored_at, lost_at=inner.spent_until or 0.0) else None,
        )

    def batch(self, now: float) -> SinceRestoreBatch:
        return SinceRestoreBatch(self._store.batch(now), self._incarnation)

    async def get(self, kind: str, key: bytes, *, now: float) -> bytes | None:
        return await self._store.get(self._incarnation + kind, key, now=now)

    async def get_each(self, places: Sequence[tuple[str, bytes]], *, now: float) -> list[bytes | None]:
        return await self._store.get_each([(self._incarnation + kind, key) for kind, key in places], now=now)


class SinceRestoreBatch:
    """A TransientBatch over another."""

    __slots__ = ("_batch", "_entered", "_incarnation")

    _batch: TransientBatch

    def __init__(self, entered: AbstractAsyncContextManager[TransientBatch], incarnation: str) -> None:
        self._entered = entered
        self._incarnation = incarnation

    async def __aenter__(self) -> Self:
        self._batch = await self._entered.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._entered.__aexit__(kind, error, trace)

    async def put(self, kind: str, key: bytes, value: bytes, ttl: float) -> None:
        await self._batch.put(self._incarnation + kind, key, value, ttl)

    async def get(self, kind: str, key: bytes) -> bytes | None:
        return await self._batch.get(self._incarnation + kind, key)

    async def take(self, kind: str, key: bytes) -> bytes | None:
        return await self._batch.take(self._incarnation + kind, key)

    async def add(self, kind: str, key: bytes, ttl: float, value: bytes = b"") -> bool:
        return await self._batch.add(self._incarnation + kind, key, ttl, value)

    async def count(self, kind: str, key: bytes, ttl: float, by: int = 1) -> int:
        return await self._batch.count(self._incarnation + kind, key, ttl, by)

    async def pipeline(self, verbs: Sequence[PipelinedVerb]) -> list[bytes | bool | None]:
        return await self._batch.pipeline([each._replace(kind=self._incarnation + each.kind) for each in verbs])

    async def count_unseen(self, kind: str, key: bytes, ttl: float, by: int) -> None:
        await self._batch.count_unseen(self._incarnation + kind, key, ttl, by)

    async def count_each(self, places: Sequence[tuple[str, bytes, float]]) -> list[int]:
        return await self._batch.count_each([(self._incarnation + kind, key, ttl) for kind, key, ttl in places])


# `after_copy`: the file of a backup, which was copied over a SQLite database.

COPY: Final = "copy"
"""the name under which a backup says that it is one"""
_END_COPY: Final = sa.delete(deployment).where(deployment.c.name == COPY)
_LEAP_OF_SQLITE: Final = sa.text("UPDATE sqlite_sequence SET seq = seq + :left_out WHERE name = 'audit'")


async def after_copy(database: Database, audit: Audit, event: AuditEvent, *, now: float) -> None:
    """End everything in the copy of a backup, and write the event.

    Of several processes one does; a database that is no copy stays as it is. Raises StoreUnavailable.
    docs/decisions/0028
    """
    if await NamedValues(database).get(COPY) is None:
        return
    async with database.transaction():
        if not await database.run(Statement(_END_COPY), {}):
            return
        await end_everything(database, now=now)
        await database.run(Statement(_LEAP_OF_SQLITE), {"left_out": _NUMBERS_LEFT_OUT})
        await audit.write(event)


# `Takeovers`: a promoted PostgreSQL standby, which may lack the last writes.

_TIMELINE: Final = "timeline"
_TAKEOVER_NAME: Final = "takeover in corpid"
"""how the server knows the connection that does it; it is none of a server's"""
_TAKEOVER_SECONDS: Final = 60
"""how long a statement may take: it ends every session"""
_MILLISECONDS: Final = 1000

# The name of a file of the log begins with its timeline, and any role may ask for it. A standby has none yet.
_TIMELINE_HERE: Final = (
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
)
_NAMED_VALUE: Final = "(SELECT value FROM deployment WHERE name = '{}')"
_NOTED: Final = ", ".join(map(_NAMED_VALUE.format, (_TIMELINE, FORGOTTEN_AT, database_identity.NOTED_AS)))
_CURRENT_STATE: Final = {
    known: f"{_TIMELINE_HERE}, {database_identity.identity_expression(with_system=known)}, {_NOTED}"
    for known in (True, False)
}
_NOTE_TIMELINE: Final = (
    sa.update(deployment)
    .where(deployment.c.name == sa.bindparam("named"), deployment.c.value != sa.bindparam("here"))
    .values(value=sa.bindparam("here"))
)


class RestoreUnconfirmed(StoreUnavailable):
    """The database is not the one that was used last."""


class Takeovers:
    """A process's knowledge of the identity and the timelines of its database.

    A standby that is promoted begins a timeline of a higher number. The deployment table, which it copied, still names
    the previous one; so the first process that connects finds that they differ. A server that only restarts stays on
    its timeline. A database of another identity is refused, unless `accept_other`. docs/decisions/0028
    """

    def __init__(self, url: str, clock: Clock, *, accept_other: bool = False) -> None:
        self.reject_issued_before = 0.0
        """see TransientStore; 0.0 for never"""
        self._url: Final = url
        self._clock: Final = clock
        self._accept_other: Final = accept_other
        self._place = ""
        self._identity = ""
        self._timeline = ""
        self._settling: asyncio.Task[None] | None = None

    async def admit(self, connection: Any) -> None:  # noqa: ANN401  (the driver has no types)
        """Look at a new connection before it is used.

        Raises StoreUnavailable for a server that is no primary, or no longer, and for another database. If it has
        just taken over, returns when what it may lack is refused.
        """
        with_system = await connection.fetchval(database_identity.MAY_READ_SYSTEM)
        timeline, found, noted_timeline, reject_issued_before, noted = await connection.fetchrow(
            _CURRENT_STATE[with_system]
        )
        self._refuse(timeline, found, noted)
        if timeline == noted_timeline:
            self._timeline, self.reject_issued_before = (
                timeline,
                max(self.reject_issued_before, float(reject_issued_before or 0)),
            )
            return
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self.settle())
        await asyncio.shield(self._settling)

    async def settle(self) -> None:
        """Note the identity of the database, and the timeline of its server.

        If the timeline is another than the one that was noted, forget. Raises StoreUnavailable.
        """
        # The driver is loaded by those who use it.
        from corpid.stores.sql.postgresql import open_database  # noqa: PLC0415

        database = await open_database(self._url, name=_TAKEOVER_NAME, pool_size=1, seconds=_TAKEOVER_SECONDS)
        self._place = database.place
        try:
            async with database.transaction():
                identity, timeline, reject_issued_before = await self._settled(database)
        finally:
            await database.close()
        self.reject_issued_before = max(self.reject_issued_before, reject_issued_before)
        self._identity, self._timeline = identity, timeline

    async def _settled(self, database: Database) -> tuple[str, str, float]:
        """The identity, the timeline, and when something was last forgotten.

        Of several processes, one forgets.
        """
        values = NamedValues(database)
        here = sa.select(sa.text(_TIMELINE_HERE.removeprefix("SELECT ")), NOW)
        timeline, milliseconds = await database.row(Statement(here), {}) or (None, 0)
        identity = await database_identity.find(database)
        noted = await values.get(database_identity.NOTED_AS)
        self._refuse(timeline, identity, noted)
        # The first start of this version on a database, new or not: there is nothing to compare with.
        await values.put_first(database_identity.NOTED_AS, identity)
        if noted is not None and not self._accept_other and database_identity.says_more(identity, noted):
            await values.change(database_identity.NOTED_AS, noted, identity)
        await values.put_first(_TIMELINE, self._timeline or timeline)
        if await database.run(Statement(_NOTE_TIMELINE), {"named": _TIMELINE, "here": timeline}):
            # Nodes write their own time into what they issue.
            moment = max(self._clock(), milliseconds / _MILLISECONDS) + CLOCKS_APART_SECONDS
            await forget(database, now=moment)
        return identity, timeline, float(await values.get(FORGOTTEN_AT) or 0)

    def _refuse(self, timeline: str | None, identity: str, noted: str | None) -> None:
        if timeline is None:
            raise StoreUnavailable("the database's server is a standby, which nobody can write to")
        reason = "" if noted is None else database_identity.explain_refusal(self._place, noted, identity)
        if reason and not self._accept_other:
            raise RestoreUnconfirmed(reason)
        if database_identity.describe_differences(self._identity, identity):
            raise RestoreUnconfirmed(
                f"the address of the database {self._place} leads to another database than when this process started: "
                "restart it"
            )
        if timeline < self._timeline:
            raise StoreUnavailable(
                f"the database's server is of timeline {timeline}, and another has taken over with {self._timeline}: "
                "stop the one that was replaced"
            )


# `use_store`: a transient store that was replaced, or emptied while no process watched (docs/decisions/0011).

_NO_STORE: Final = "none"
_UNKNOWN_STORE: Final = "unknown"


async def no_store_yet(database: Database) -> None:
    """Note that a new deployment has not used any store.

    Written before its first keys, so of many processes that start at once none finds keys without a note. Raises
    StoreUnavailable.
    """
    async with database.transaction():
        await NamedValues(database).put_first(STORE_IN_USE, _encoded_use(_NO_STORE, 0.0))


async def use_store(database: Database, store_identity: str, *, moment: float) -> float:
    """Note that the store of this identity is used from now on.

    Raises StoreUnavailable, and ValueError for a store identity with spaces, which would be another one at each start.

    Returns before when everything is to be refused, epoch seconds: 0.0 if no other store was ever used, what was
    noted if it is this one already, else `moment`.
    """
    if not store_identity or " " in store_identity:
        msg = f"a store identity is a name without spaces, not {store_identity!r}"
        raise ValueError(msg)
    values = NamedValues(database)
    while True:
        before = await values.get(STORE_IN_USE) or await _store_before_notes(database)
        used, _, since = before.partition(" ")
        if used == store_identity:
            return float(since)
        refused_before = 0.0 if used == _NO_STORE else moment
        async with database.transaction():
            if await values.change(STORE_IN_USE, before, _encoded_use(store_identity, refused_before)):
                await database.run(Statement(sa.delete(transient)), {})  # of a store that is not used any more
                return refused_before


async def _store_before_notes(database: Database) -> str:
    """For a deployment that is older than this note."""
    values = NamedValues(database)
    async with database.transaction():
        await values.put_first(STORE_IN_USE, _encoded_use(_UNKNOWN_STORE, 0.0))
    return str(await values.get(STORE_IN_USE))


def _encoded_use(store_identity: str, since: float) -> str:
    return f"{store_identity} {since!r}"
