"""Seals of the audit table (D58)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from corpid.rules.audit_records import StoredEntry
from corpid.rules.audit_seals import AuditEnds, Seal
from corpid.rules.directory.changes import Conflict
from corpid.stores.sql.audit import WRITING_LOCK
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import audit, audit_details, audit_digests, audit_seals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.stores.sql.statements import Database

_COLUMNS: Final = tuple(column.name for column in audit.columns)
"""every column: a seal covers the whole stored entry"""
_SEAL: Final = ("number", "at", "last", "digest", "seal")
_ENDS: Final = ("entry", "details", "seal", "digests", "last_given")


def _ends(*, counts_rolled_back: bool) -> sa.Select[Any]:
    """The values of an AuditEnds, in one statement.

    SQLite takes back its count when a transaction is rolled back; PostgreSQL does not.
    """
    numbers = (audit.c.number, audit_details.c.number, audit_seals.c.number, audit_digests.c.seal)
    given: sa.ColumnElement[int] = sa.literal_column(
        "0" if counts_rolled_back else "(SELECT seq FROM sqlite_sequence WHERE name = 'audit')"
    )
    return sa.select(*(sa.select(sa.func.max(number)).scalar_subquery() for number in numbers), given)


class _Moment(NamedTuple):
    """The last visible number of a moment, and who was writing then."""

    number: int
    writers: frozenset[str]


class AuditSeals:
    """The seals of the audit table, and their entries (D58)."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._settled = 0
        self._moments: list[_Moment] = []
        after, last = (sa.bindparam(name, type_=sa.BigInteger) for name in ("after", "last"))
        limit = sa.bindparam("limit", type_=sa.Integer)
        seals = sa.select(*(audit_seals.c[name] for name in _SEAL))
        details = audit.outerjoin(audit_details, audit_details.c.number == audit.c.number)
        self._highest: Final = database.prepare(lambda: sa.select(sa.func.max(audit.c.number)))
        self._rows: Final = database.prepare(
            lambda: (
                sa.select(*audit.columns, audit_details.c.salt, audit_details.c.detail)
                .select_from(details)
                .where(audit.c.number > after, audit.c.number <= last)
                .order_by(audit.c.number)
                .limit(limit)
            )
        )
        self._unsealed: Final = database.prepare(
            lambda: sa.select(sa.func.count(), sa.func.min(audit.c.number), sa.func.max(audit.c.number)).where(
                audit.c.number > after
            )
        )
        any_number = audit_seals.c.number > sa.literal_column("0")  # so that SQLite goes by the key
        self._last: Final = database.prepare(
            lambda: seals.where(any_number).order_by(audit_seals.c.number.desc()).limit(1)
        )
        self._ends: Final = database.prepare(lambda: _ends(counts_rolled_back=database.writes_in_queries))
        self._page: Final = database.prepare(
            lambda: seals.where(audit_seals.c.number > after).order_by(audit_seals.c.number).limit(limit)
        )
        self._digests: Final = database.prepare(
            lambda: sa.select(*(audit_digests.c[name] for name in ("seal", "retention", "digests", "latest"))).where(
                audit_digests.c.seal > after, audit_digests.c.seal <= last
            )
        )
        self._insert: Final = database.prepare(lambda: insert(audit_seals).values(parameters(_SEAL)))
        self._insert_digests: Final = database.prepare(
            lambda: insert(audit_digests).values(parameters(("seal", "retention", "latest", "digests")))
        )

    async def settled_number(self) -> int:
        """A number up to which no entry can appear any more.

        Whoever has a lower number than a visible one was writing when that became visible. So the numbers of a moment
        are settled when all who were writing at it have ended. Those of an earlier moment are remembered: one long
        transaction holds up what comes after its begin only.
        """
        row = await self._database.row(self._highest, {})
        highest = int(row[0] or 0) if row else 0
        writers = await self._database.writers(WRITING_LOCK)
        moments = [*((each.number, each.writers & writers) for each in self._moments), (highest, writers)]
        self._settled = max((number for number, left in moments if not left), default=self._settled)
        # Of two moments that wait for the same transactions the later one is enough.
        waiting = {left: number for number, left in moments if left}
        self._moments = [_Moment(number, left) for left, number in waiting.items()]
        return self._settled

    async def rows(self, *, after: int, last: int, limit: int) -> list[StoredEntry]:
        """Entries after a number, up to another, in order."""
        width = len(_COLUMNS)
        found = await self._database.rows(self._rows, {"after": after, "last": last, "limit": limit})
        return [
            StoredEntry(row=dict(zip(_COLUMNS, row[:width], strict=True)), salt=row[width], detail=row[width + 1])
            for row in found
        ]

    async def unsealed(self, *, after: int) -> tuple[int, int, int]:
        """The number of later entries, the first and the last.

        0 if there is none.
        """
        row = await self._database.row(self._unsealed, {"after": after})
        count, first, last = row or (0, 0, 0)
        return int(count), int(first or 0), int(last or 0)

    async def last(self) -> Seal | None:
        """The last seal, without its digests."""
        row = await self._database.row(self._last, {})
        return None if row is None else Seal(**dict(zip(_SEAL, row, strict=True)))

    async def ends(self) -> AuditEnds:
        """The highest number in each table of the audit."""
        row = await self._database.row(self._ends, {})
        return AuditEnds(**dict(zip(_ENDS, (int(each or 0) for each in row or ()), strict=True)))

    async def page(self, *, after: int, limit: int) -> list[Seal]:
        """The seals after a number, in order."""
        rows = await self._database.rows(self._page, {"after": after, "limit": limit})
        if not rows:
            return []
        lists: dict[int, dict[str, str]] = {}
        moments: dict[int, dict[str, int]] = {}
        of_these = {"after": after, "last": rows[-1][0]}
        for seal, name, digests, latest in await self._database.rows(self._digests, of_these):
            lists.setdefault(seal, {})[name] = digests
            moments.setdefault(seal, {})[name] = latest
        return [
            Seal(
                **dict(zip(_SEAL, row, strict=True)),
                digests=lists.get(row[0], {}),
                latest=moments.get(row[0], {}),
            )
            for row in rows
        ]

    async def add(self, seal: Seal, latest: Mapping[str, int]) -> bool:
        """Store the next seal.

        `latest` are the moments of its lists. False if another process has stored one meanwhile.
        """
        values = {name: getattr(seal, name) for name in _SEAL}
        try:
            async with self._database.transaction():
                await self._database.run(self._insert, values)
                for name, digests in seal.digests.items():
                    of_list = {"seal": seal.number, "retention": name, "latest": latest[name], "digests": digests}
                    await self._database.run(self._insert_digests, of_list)
        except Conflict:
            return False
        return True
