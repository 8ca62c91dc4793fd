"""Reading and writing of directory records of any kind (`mappers`)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from corpid.ports import Conflict, Delete, SignOut, Upsert
from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.records import User
from corpid.stores.sql.mappers import PAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from corpid.ports import AuditEvent, Change, R
    from corpid.stores.sql.audit import SqlAudit
    from corpid.stores.sql.mappers import Kinds
    from corpid.stores.sql.sessions import SignOuts
    from corpid.stores.sql.statements import Database

CHANGES_AT_ONCE: Final = 200
"""changes of one transaction: a few milliseconds"""
_READS_AT_ONCE: Final = 200


class SqlRecords:
    """The part of ports.Directory common to every kind of record."""

    def __init__(self, database: Database, audit: SqlAudit, kinds: Kinds, sign_outs: SignOuts) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._kinds: Final = kinds
        self._sign_outs: Final = sign_outs

    async def read(self, kind: type[R], keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], R]:
        """Lets others run now and then."""
        known = self._kinds[kind]
        found: dict[tuple[str, ...], R] = {}
        for number, key in enumerate(keys, start=1):
            row = await self._database.row(known.one, dict(zip(known.keys, key, strict=True)))
            if row is not None:
                found[key] = known.codec.decode(row)
            if number % _READS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    async def scan(self, kind: type[R]) -> AsyncIterator[R]:
        """Page by page; concurrent writes may or may not be seen."""
        known = self._kinds[kind]
        width = len(known.codec.columns)
        rows = await self._database.rows(known.first_page, {"limit": PAGE})
        while rows:
            for row in rows:
                yield known.codec.decode(row[:width])
            after = dict(zip(known.keys, rows[-1][width:], strict=True))
            rows = await self._database.rows(known.next_page, after | {"limit": PAGE}) if len(rows) == PAGE else []

    async def write(self, changes: Sequence[Change], event: AuditEvent | None = None) -> None:
        """Write removals first, then records in the order of their references.

        The order of `changes` does not matter. Anything that a removed record carried (an entity's memberships, a
        membership's roles) is removed with it.

        Raises Conflict (NameTaken, NameRefused, MissingReference), naming the record. Up to 200 changes are then all
        undone; of more, the changes of earlier transactions stay.
        """
        parts = self._parts(changes)
        for part in parts[:-1]:
            started = time.monotonic()
            async with self._database.transaction():
                await self._write(part)
            # SQLite has no queue for writers: others need a gap between two writes.
            await asyncio.sleep(time.monotonic() - started)
        async with self._database.transaction():
            await self._write(parts[-1])
            if event is not None:
                await self._audit.record(event)

    def _parts(self, changes: Sequence[Change]) -> list[list[Change]]:
        """Return the changes of each transaction, at least one transaction.

        A sign-out goes with the last change of its person.
        """
        of_records = [change for change in changes if not isinstance(change, SignOut)]
        of_records.sort(key=self._order)
        starts = range(0, max(1, len(of_records)), CHANGES_AT_ONCE)
        parts: list[list[Change]] = [[*of_records[start : start + CHANGES_AT_ONCE]] for start in starts]
        last = {
            change.record.user_id: number // CHANGES_AT_ONCE
            for number, change in enumerate(of_records)
            if isinstance(change.record, User | Credentials)
        }
        for change in changes:
            if isinstance(change, SignOut):
                parts[last.get(change.user_id, -1)].append(change)
        return parts

    def _order(self, change: Upsert | Delete) -> tuple[int, int]:
        rank = self._kinds[type(change.record)].rank
        return (0, -rank) if isinstance(change, Delete) else (1, rank)

    async def _write(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, SignOut):
                await self._sign_out(change.user_id)
                continue
            try:
                await self._apply(change)
            except Conflict as conflict:
                key = self._kinds[type(change.record)].key(change.record)
                raise type(conflict)(f"{type(change.record).__name__} {'/'.join(key.values())}: {conflict}") from None
            if change.event is not None:
                await self._audit.record(change.event)

    async def _sign_out(self, user_id: str) -> None:
        await self._sign_outs.lock(user_id)
        await self._sign_outs.end_sessions(user_id)
        await self._sign_outs.end_links(user_id)

    async def _apply(self, change: Upsert | Delete) -> None:
        kind = self._kinds[type(change.record)]
        if isinstance(change, Upsert):
            await self._database.run(kind.upsert, kind.codec.encode(change.record))
        else:
            await self._database.run(kind.delete, kind.key(change.record))
