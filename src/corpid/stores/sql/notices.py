"""The queue of notices, and what they are made of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa

from corpid.rules.directory.invitations import SENDING_SECONDS
from corpid.rules.directory.notices import NoticeGroup, QueuedNotice
from corpid.rules.directory.records import Assignment, ThirdPartyAssignment
from corpid.stores.sql.administration_tables import notices
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.directory_tables import (
    HAS_END,
    assignments,
    entities,
    provisioning_tokens,
    third_party_assignments,
    users,
)
from corpid.stores.sql.provisioning import TOKENS
from corpid.stores.sql.statements import insert

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.stores.sql.mappers import Kinds
    from corpid.stores.sql.statements import Database

E = TypeVar("E", bound=Assignment | ThirdPartyAssignment)
_NOTICES: Final = record_codec(QueuedNotice)
_NEW: Final = ("taken_by", "taken_until", "sent_at")
_OF: Final = notices.c
_TABLES: Final[Mapping[type, sa.Table]] = {Assignment: assignments, ThirdPartyAssignment: third_party_assignments}
_SWEPT_AT_ONCE: Final = 500


def _moment(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def _text(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.Text)


_LIMIT: Final = sa.bindparam("limit", type_=sa.Integer)


def queueing() -> sa.Executable:
    """A notice's columns → a row, if person and entity exist."""
    values = [sa.bindparam(name, type_=notices.c[name].type) for name in _NOTICES.written]
    person = users.c.user_id == _text("user_id")
    chosen = sa.select(*values, sa.literal(""), sa.literal(0), sa.literal(0)).where(
        person, entities.c.entity_id == _text("entity_id")
    )
    return insert(notices).from_select([*_NOTICES.written, *_NEW], chosen).on_conflict_do_nothing()


def due() -> sa.Select[Any]:
    """`now`, `limit` → groups of the notices that are due, with repetitions."""
    waiting = _OF.sent_at == sa.literal_column("0"), _OF.due_at <= _moment("now"), _OF.taken_until <= _moment("now")
    return sa.select(_OF.user_id, _OF.kind, _OF.entity_id).where(*waiting).order_by(_OF.due_at).limit(_LIMIT)


def _group() -> tuple[sa.ColumnElement[bool], ...]:
    return _OF.user_id == _text("person"), _OF.kind == _text("sort"), _OF.entity_id == _text("entity"), _OF.sent_at == 0


def ending(kind: type) -> sa.Select[Any]:
    """`until`, `place_…`, `limit` → roles, by their last day."""
    table = _TABLES[kind]
    order = _order(table)
    beyond = sa.tuple_(*order) > sa.tuple_(*(_text(f"place_{column.name}") for column in order))
    within = table.c.end_date <= _text("until"), sa.text(HAS_END)
    found = sa.select(*columns(table, record_codec(kind))).where(*within, beyond)
    return found.order_by(*order).limit(_LIMIT)


def _order(table: sa.Table) -> list[sa.Column[Any]]:
    """The order of the index: last day, entity, rest of the key."""
    return [table.c.end_date, table.c.entity_id, *(each for each in table.primary_key if each.name != "entity_id")]


def ending_on(kind: type) -> sa.Select[Any]:
    """`entity_id`, `end_date`, `limit` → roles of one day, by person."""
    table = _TABLES[kind]
    within = table.c.end_date == _text("end_date"), table.c.entity_id == _text("entity_id"), sa.text(HAS_END)
    return sa.select(*columns(table, record_codec(kind))).where(*within).order_by(table.c.user_id).limit(_LIMIT)


def _count_ending_on(kind: type) -> sa.Select[Any]:
    table = _TABLES[kind]
    within = table.c.end_date == _text("end_date"), table.c.entity_id == _text("entity_id"), sa.text(HAS_END)
    return sa.select(sa.func.count()).select_from(table).where(*within)


def expiring() -> sa.Select[Any]:
    """`after`, `until`, `limit` → tokens, by their end."""
    ends = provisioning_tokens.c.expires_at
    found = sa.select(*columns(provisioning_tokens, TOKENS)).where(ends > _moment("after"), ends <= _moment("until"))
    return found.order_by(ends, provisioning_tokens.c.token_id).limit(_LIMIT)


class Notices:
    """The queue of notices.

    A position says how far the notices of one kind of occasion were made; it moves in the transaction that queues them,
    so that each occasion is seen once, whatever the number of processes.
    """

    def __init__(self, database: Database, kinds: Kinds) -> None:
        self._database: Final = database
        self._kinds: Final = kinds
        self._positions: Final = NamedValues(database)
        prepare = database.prepare
        self._queue: Final = prepare(queueing)
        self._due: Final = prepare(due)
        self._take: Final = prepare(
            lambda: (
                sa.update(notices)
                .where(*_group(), _OF.taken_until <= _moment("now"))
                .values(taken_by=_text("by"), taken_until=_moment("until"))
            )
        )
        self._taken: Final = prepare(
            lambda: (
                sa.select(*columns(notices, _NOTICES))
                .where(*_group(), _OF.taken_by == _text("by"))
                .order_by(_OF.created_at, _OF.subject)
            )
        )
        mine = (*_group(), _OF.taken_by == _text("by"))
        self._sent: Final = prepare(lambda: sa.update(notices).where(*mine).values(sent_at=_moment("at")))
        self._put_off: Final = prepare(
            lambda: sa.update(notices).where(*mine).values(due_at=_moment("at"), taken_by="", taken_until=0)
        )
        self._sweep: Final = prepare(
            lambda: sa.delete(notices).where(
                database.is_among(
                    notices,
                    sa.select(notices)
                    .where(_OF.sent_at > sa.literal_column("0"), _OF.sent_at < _moment("before"))
                    .limit(_SWEPT_AT_ONCE),
                )
            )
        )
        self._expiring: Final = prepare(expiring)
        self._ending: Final = {kind: prepare(partial(ending, kind)) for kind in _TABLES}
        self._ending_on: Final = {kind: prepare(partial(ending_on, kind)) for kind in _TABLES}
        self._count: Final = {kind: prepare(partial(_count_ending_on, kind)) for kind in _TABLES}

    async def position(self, name: str, *, first: str) -> str:
        """A position; `first` is where it begins."""
        found = await self._positions.get(name)
        if found is not None:
            return found
        async with self._database.transaction():
            await self._positions.put_first(name, first)
        return await self._positions.get(name) or first

    async def queue(self, found: Sequence[QueuedNotice], *, position: str, seen: str, becomes: str) -> bool:
        """Queue notices and move a position, in one transaction.

        False, and nothing is written, if the position is no longer the one that was seen. A notice about the same
        occasion, or to a person who is gone, is left out.
        """
        async with self._database.transaction():
            if not await self._positions.change(position, seen, becomes):
                return False
            await self.add(found)
        return True

    async def add(self, found: Sequence[QueuedNotice]) -> None:
        """Queue notices; inside a transaction."""
        for notice in found:
            await self._database.run(self._queue, _NOTICES.encode(notice))

    async def due(self, *, now: float, limit: int) -> list[NoticeGroup]:
        """Groups with a notice that is due, the longest waiting first."""
        rows = await self._database.rows(self._due, {"now": int(now), "limit": limit})
        found = dict.fromkeys(tuple(row) for row in rows)
        return [NoticeGroup(user_id=user_id, kind=kind, entity_id=entity_id) for user_id, kind, entity_id in found]

    async def take(self, group: NoticeGroup, *, by: str, now: float) -> list[QueuedNotice]:
        """Take all unsent notices of a group.

        The update takes; what it took is read afterwards. Another process gets none of them until this one has been
        silent for `SENDING_SECONDS`.
        """
        values = _values(group, by)
        until = int(now) + SENDING_SECONDS
        if not await self._database.write(self._take, {**values, "now": int(now), "until": until}):
            return []
        return [_NOTICES.decode(row) for row in await self._database.rows(self._taken, values)]

    async def settle(self, group: NoticeGroup, *, by: str, sent_at: int = 0, due_at: int = 0) -> None:
        """Store the outcome of an e-mail, if this process still has it.

        Either its notices were sent (or dropped), or they are due again later.
        """
        statement = self._sent if sent_at else self._put_off
        await self._database.write(statement, {**_values(group, by), "at": sent_at or due_at})

    async def sweep(self, *, before: float) -> int:
        """Remove some notices that were sent before a moment; how many."""
        return await self._database.write(self._sweep, {"before": int(before)})

    async def ending(self, kind: type[E], *, until: str, place: tuple[str, ...], limit: int) -> list[E]:
        """Roles that end after a place, up to a day, in order.

        `place` is the last day, the entity and the rest of the key of the one before.
        """
        order = [f"place_{column.name}" for column in _order(_TABLES[kind])]
        values = {**dict(zip(order, place, strict=True)), "until": until, "limit": limit}
        rows = await self._database.rows(self._ending[kind], values)
        return [self._kinds[kind].codec.decode(row) for row in rows]

    async def ending_on(self, kind: type[E], entity_id: str, end_date: str, *, limit: int) -> tuple[list[E], int]:
        """Some of the roles that end on a day, and their number."""
        values = {"entity_id": entity_id, "end_date": end_date}
        rows = await self._database.rows(self._ending_on[kind], {**values, "limit": limit})
        found = [self._kinds[kind].codec.decode(row) for row in rows]
        if len(found) < limit:
            return found, len(found)
        count = await self._database.row(self._count[kind], values)
        return found, count[0] if count else 0

    async def expiring_tokens(self, *, after: int, until: int, limit: int) -> list[Any]:
        """Provisioning tokens that expire after a moment, up to another, in order."""
        rows = await self._database.rows(self._expiring, {"after": after, "until": until, "limit": limit})
        return [TOKENS.decode(row) for row in rows]


def _values(group: NoticeGroup, by: str) -> dict[str, object]:
    return {"person": group.user_id, "sort": group.kind, "entity": group.entity_id, "by": by}
