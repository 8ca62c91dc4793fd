"""Hourly counters of sign-ins and refusals."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.hourly_counts import UNKNOWN_CLIENT, CountOfReason, HourlyCount, Point
from corpid.stores.sql.columns import record_codec
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import clients, hourly_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.stores.sql.statements import CompiledStatement, Database

_COUNTS: Final = record_codec(HourlyCount)
_KEYS: Final = tuple(column.name for column in hourly_counts.primary_key)
_OF = hourly_counts.c
_RANGE: Final = (
    _OF.hour >= sa.bindparam("since", type_=sa.BigInteger),
    _OF.hour < sa.bindparam("until", type_=sa.BigInteger),
)
_IS_REFUSAL: Final[sa.ColumnElement[bool]] = sa.literal_column("reason <> ''")


class HourlyCounts:
    """Hourly counters, to which several processes add."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._known: Final = database.prepare(
            lambda: sa.select(clients.c.client_id).where(clients.c.client_id == sa.bindparam("client_id"))
        )
        self._add: Final = database.prepare(_addition)
        self._totals: Final = {
            (of_client, of_reason): self._prepared_totals(of_client=of_client, of_reason=of_reason)
            for of_client, of_reason in product((False, True), repeat=2)
        }
        self._sums: Final = database.prepare(
            lambda: (
                sa.select(_OF.client_id, _OF.reason, sa.func.sum(_OF["count"]))
                .where(*_RANGE)
                .group_by(_OF.client_id, _OF.reason)
                .order_by(_OF.client_id, _OF.reason)
            )
        )
        self._remove_oldest: Final = database.prepare(_removal)

    def _prepared_totals(self, *, of_client: bool, of_reason: bool) -> CompiledStatement:
        conditions = [*_RANGE]
        conditions += [_OF.client_id == sa.bindparam("client_id")] if of_client else []
        conditions += [_OF.reason == sa.bindparam("reason")] if of_reason else []
        return self._database.prepare(lambda: _totals(conditions))

    async def add(self, counts: Sequence[HourlyCount]) -> None:
        """Add to the counters, in one short transaction.

        Counts of clients that are not registered are added to those of UNKNOWN_CLIENT. The rows are written in the
        order of their keys, so that processes never deadlock.
        """
        known = {UNKNOWN_CLIENT: UNKNOWN_CLIENT}
        sums: dict[tuple[int, str, str], int] = {}
        for one in counts:
            if one.client_id not in known:
                row = await self._database.row(self._known, {"client_id": one.client_id})
                known[one.client_id] = UNKNOWN_CLIENT if row is None else one.client_id
            key = (one.hour, known[one.client_id], one.reason)
            sums[key] = sums.get(key, 0) + one.count
        async with self._database.transaction():
            for (hour, client_id, reason), count in sorted(sums.items()):
                written = HourlyCount(hour=hour, client_id=client_id, reason=reason, count=count)
                await self._database.run(self._add, _COUNTS.encode(written))

    async def totals(
        self, *, since: int, until: int, client_id: str | None = None, reason: str | None = None
    ) -> list[Point]:
        """The hours that have counts, in order: from `since`, before `until`.

        Of all clients and reasons, or of one. One range of the primary key.
        """
        chosen = self._totals[client_id is not None, reason is not None]
        values = {"since": since, "until": until, "client_id": client_id, "reason": reason}
        rows = await self._database.rows(chosen, values)
        return [Point(begins_at=int(row[0]), sign_ins=int(row[1]) - int(row[2]), refusals=int(row[2])) for row in rows]

    async def by_client_and_reason(self, *, since: int, until: int) -> list[CountOfReason]:
        """The sums of each client and reason: from `since`, before `until`.

        One range of the primary key.
        """
        rows = await self._database.rows(self._sums, {"since": since, "until": until})
        return [CountOfReason(client_id=row[0], reason=row[1], count=int(row[2])) for row in rows]

    async def remove_oldest(self, *, before: int) -> int:
        """Remove the oldest hour's counts if it began before this moment.

        Returns the number of rows: those of one hour, so that the transaction is short. Called again and again, it
        removes all older ones.
        """
        return await self._database.write(self._remove_oldest, {"before": before})


def _addition() -> sa.Executable:
    """Insertion of a row, or addition to it."""
    statement = insert(hourly_counts).values(parameters(_COUNTS.written))
    return statement.on_conflict_do_update(
        index_elements=_KEYS, set_={"count": _OF["count"] + statement.excluded["count"]}
    )


def _totals(conditions: Sequence[sa.ColumnElement[bool]]) -> sa.Executable:
    """Hour, every count of it, and those of refusals."""
    refused = sa.func.sum(sa.case((_IS_REFUSAL, _OF["count"]), else_=sa.literal_column("0")))
    return (
        sa.select(_OF.hour, sa.func.sum(_OF["count"]), refused).where(*conditions).group_by(_OF.hour).order_by(_OF.hour)
    )


def _removal() -> sa.Executable:
    oldest = sa.select(sa.func.min(_OF.hour)).scalar_subquery()
    return sa.delete(hourly_counts).where(_OF.hour == oldest, _OF.hour < sa.bindparam("before", type_=sa.BigInteger))
