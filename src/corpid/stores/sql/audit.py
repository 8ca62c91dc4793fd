"""The append-only audit table: writing, reading in both directions, and its seals (D57, D58)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from corpid.rules.audit import PERSONAL_DETAILS, AuditAction, AuditEntry, AuditEvent, AuditPart, AuditQuery, StoredEntry
from corpid.rules.audit_seals import AuditEnds, Seal, detail_digest
from corpid.rules.directory.members import Members, compare_members
from corpid.rules.directory.records import Conflict
from corpid.stores.sql.columns import (
    LIMIT,
    integer_parameter,
    number_texts,
    record_codec,
    select_columns,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.statements import (
    Database,
    Part,
    Query,
    Row,
    Statement,
    by_shape,
    insert,
    parameters,
    query_by_shape,
)
from corpid.stores.sql.tables import (
    COMPLETED_SIGN_IN,
    NO_COMPLETED_SIGN_IN,
    OF_NO_SIGN_IN,
    audit,
    audit_details,
    audit_digests,
    audit_seals,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert

    from corpid.stores import Clock


WRITING_LOCK: Final = 0x436F72704945
"""the number of the lock that a trigger (migration 0005) makes every writer share until its transaction ends"""
PAGE: Final = 500
"""entries that are read at a time when the latest are looked for"""
CLOCKS_APART_SECONDS: Final = 3600
"""how much older the entries of a whole page must be for no earlier ones to be looked at"""
NEAR: Final = 100
"""entries that are looked at in order for each completed sign-in, before the index of sign-ins is read"""
UNCHANGED: Final = Members()
AFTER_EVERY_NUMBER: Final = (1 << 63) - 1
_BEFORE_EVERY_NUMBER: Final = -(1 << 63)
_SALT_BYTES: Final = 16
_EVENTS: Final = record_codec(AuditEvent)
_WRITTEN: Final = (*_EVENTS.written, "at", "members", "digest")


_BEFORE: Final = integer_parameter("before")
_NO_SIGN_IN: Final = cast("sa.ColumnElement[bool]", sa.text(OF_NO_SIGN_IN))
_COMPLETED_SIGN_IN: Final = cast("sa.ColumnElement[bool]", sa.text(COMPLETED_SIGN_IN))
_NO_COMPLETED_SIGN_IN: Final = cast("sa.ColumnElement[bool]", sa.text(NO_COMPLETED_SIGN_IN))
_COLUMNS: Final = ("number", "at", *_EVENTS.columns, "members", "digest")
_ENTITIES: Final = ("entity_id", "other_entity_id")
"""columns of entities: a filter by entity uses both"""
_PARTS_END: Final = chr(ord("/") + 1)
"""sorts after every text that goes on with a slash"""
_SEALED: Final = tuple(column.name for column in audit.columns)
"""every column: a seal covers the whole stored entry"""
_SEAL: Final = ("number", "at", "last", "digest", "seal")
_ENDS: Final = ("entry", "details", "seal", "digests", "last_given")


class _StoredPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an event in one place: row or details."""

    before: dict[str, object] = msgspec.field(default_factory=dict)
    after: dict[str, object] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)


_RECORDED: Final = msgspec.json.Decoder(_StoredPart)
_FACTS: Final = msgspec.json.Decoder(dict[str, str])
_JSON: Final = msgspec.json.Encoder().encode
_NOTHING: Final = _StoredPart()


def _entry(row: Row) -> AuditEntry:
    *plain, facts, members, digest, private = row
    row_part = _RECORDED.decode(members) if members else _NOTHING
    more = _RECORDED.decode(private) if private is not None else _NOTHING
    known = dict(zip(_COLUMNS, plain, strict=False))
    return AuditEntry(
        **known,
        detail=_FACTS.decode(facts) | more.facts,
        before=row_part.before | more.before,
        after=row_part.after | more.after,
        erased=bool(digest) and private is None,
    )


def _selected() -> sa.Select[Any]:
    rows = audit.outerjoin(audit_details, audit_details.c.number == audit.c.number)
    return sa.select(*(audit.c[name] for name in _COLUMNS), audit_details.c.detail).select_from(rows)


def _select_range(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """`after`, `last`, `limit` → entries between two numbers, in order."""
    within = audit.c.number > sa.bindparam("after"), audit.c.number <= sa.bindparam("last")
    return _selected().where(*within, *conditions).order_by(audit.c.number).limit(LIMIT)


_INSERT: Final = Statement(lambda: _row().inline())
_INSERT_WITH_DETAILS: Final = Statement(lambda: _detailed(_row()))
_HIGHEST: Final = Statement(lambda: sa.select(sa.func.max(audit.c.number)))
_ENTRIES: Final = Query(_select_range, _entry)
_OF_REQUEST: Final = Query(lambda: _select_range(audit.c.request_id == text_parameter("request_id")), _entry)
_SIGN_INS: Final = Query(
    lambda: (
        _selected()
        .where(audit.c.actor == sa.bindparam("actor"), _COMPLETED_SIGN_IN)
        .order_by(audit.c.number.desc())
        .limit(LIMIT)
    ),
    _entry,
)


class Audit(Part):
    """The append-only audit table. `write` joins the transaction of the recorded change.

    Source: D57
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database)
        self._clock: Final = clock

    async def write(self, event: AuditEvent, *, now: float | None = None, members: Members = UNCHANGED) -> None:
        """Write an event, its details in a row of their own.

        Both in one statement, if the engine can. `now` in epoch seconds; None: by the clock.
        """
        values = self.values(event, now=now, members=members)
        if not values["private"]:
            await self._database.write(_INSERT, values)
        elif self._database.writes_in_queries:
            await self._database.write(_INSERT_WITH_DETAILS, values)
        else:
            await self._database.write_all((_INSERT, _details_of_last_row), values)

    def values(
        self, event: AuditEvent, *, now: float | None = None, members: Members = UNCHANGED
    ) -> dict[str, str | int]:
        """The parameters that write an event.

        `private` is the text of its details, empty without any.
        """
        facts = dict(event.detail)
        private: dict[str, str] = {}
        for name in PERSONAL_DETAILS:
            if name in facts:
                private[name] = facts.pop(name)
        open_members, details = "", ""
        if members is not UNCHANGED:
            facts |= {"members": " ".join(members.names)} if members.names else {}
            open_members = _text(_part(members, {}, personal=False))
            details = _text(_part(members, private, personal=True))
        elif private:
            details = _JSON(_StoredPart(facts=private)).decode()
        salt = secrets.token_hex(_SALT_BYTES) if details else ""
        return {
            **msgspec.structs.asdict(event),
            "action": str(event.action),
            "detail": _JSON(facts).decode(),
            "members": open_members,
            "at": int(self._clock() if now is None else now),
            "digest": detail_digest(salt, details) if details else "",
            "salt": salt,
            "private": details,
        }

    async def record_change(
        self, event: AuditEvent, was: msgspec.Struct | None, becomes: msgspec.Struct | None
    ) -> None:
        """As `write`, with the members in which a record changes. Source: D57"""
        await self.write(event, members=compare_members(was, becomes))

    async def entries(self, *, after: int = 0, limit: int = 100) -> list[AuditEntry]:
        """Entries after a number, without gaps.

        Numbers are taken before the end of a transaction. So an open transaction with a lower number than the last
        visible one is waited for, and a reader who continues from a number misses nothing.
        """
        row = await self._database.row(_HIGHEST, {})
        if row is None or row[0] is None:
            return []
        await self._database.outlive_writers(WRITING_LOCK)
        return await _ENTRIES.every(self._database, after=after, last=row[0], limit=limit)

    async def between(self, *, after: int, last: int | None = None, limit: int) -> list[AuditEntry]:
        """Visible entries after a number, up to another, in order.

        None: up to the last one. Without gaps if `last` is settled (`AuditSeals.settled_number`).
        """
        return await _ENTRIES.every(
            self._database, after=after, last=AFTER_EVERY_NUMBER if last is None else last, limit=limit
        )

    async def list_by_action(self, actions: Sequence[str], *, after: int, last: int, limit: int) -> list[AuditEntry]:
        """Entries with one of these actions, in order.

        They come after a number, up to another. Read by the key: the range of numbers is short.
        """
        named = number_texts("action", actions)
        found = _select_by_action(len(named))
        return await found.every(self._database, **named, after=after, last=last, limit=limit)

    async def list_by_request(self, request_id: str, *, after: int, last: int, limit: int) -> list[AuditEntry]:
        """Entries of one request, in order.

        They come after a number, up to another. Read by the key: the range of numbers is short.
        """
        return await _OF_REQUEST.every(self._database, request_id=request_id, after=after, last=last, limit=limit)

    async def sign_ins_of(self, user_id: str, *, limit: int) -> list[AuditEntry]:
        """The last completed sign-ins of a person, the latest first."""
        return await _SIGN_INS.every(self._database, actor=f"user:{user_id}", limit=limit)

    async def latest(self, query: AuditQuery, *, limit: int) -> list[AuditEntry]:
        """The last entries that fit, the latest first.

        Read by a range of one index for each way.
        """
        found: dict[int, AuditEntry] = {}
        for way in ways(query):
            least, is_all = _BEFORE_EVERY_NUMBER, True
            if way.further:
                least, is_all = await self._end(way, query, NEAR * limit)
            entries = await self._on(way, query, limit, least=least)
            if way.further and not is_all and len(entries) < limit:
                entries += await self._on(way.further, replace(query, before=least), limit - len(entries))
            found |= {entry.number: entry for entry in entries}
        return [found[number] for number in sorted(found, reverse=True)[:limit]]

    async def latest_of(self, objects: Sequence[str], actions: Sequence[str]) -> list[AuditEntry]:
        """The last entry of each object with one of these actions."""
        if not objects:
            return []
        found = _select_latest_of(len(objects), len(actions))
        return await found.every(self._database, **number_texts("object", objects), **number_texts("action", actions))

    async def part(self, query: AuditQuery, *, limit: int, examined: int) -> AuditPart:
        """The same, from so many entries of each way.

        Down to the end of the shortest index range.
        """
        found: dict[int, AuditEntry] = {}
        least = _BEFORE_EVERY_NUMBER
        for way in ways(query):
            end, is_all = await self._end(way, query, examined)
            least = least if is_all else max(least, end)
            found |= {entry.number: entry for entry in await self._on(way, query, limit + 1, least=end)}
        numbers = [number for number in sorted(found, reverse=True) if number >= least]
        entries = [found[number] for number in numbers[:limit]]
        if len(numbers) > limit:
            return AuditPart(entries=entries, before=entries[-1].number)
        return AuditPart(entries=entries, before=0 if least == _BEFORE_EVERY_NUMBER else least)

    async def _end(self, way: IndexScan, query: AuditQuery, examined: int) -> tuple[int, bool]:
        """The lowest number of an index range.

        And whether no entry before it can fit.
        """
        if not way.rest or not way.in_order:
            return _BEFORE_EVERY_NUMBER, True
        values = values_of(query) | {"before": query.before or AFTER_EVERY_NUMBER, "limit": examined}
        number, latest, count = await self._database.row(way.index_range(), values) or (None, 0, 0)
        if number is None or count < examined:
            return _BEFORE_EVERY_NUMBER, True
        return int(number), latest < query.since - CLOCKS_APART_SECONDS

    async def _on(
        self, way: IndexScan, query: AuditQuery, limit: int, *, least: int = _BEFORE_EVERY_NUMBER
    ) -> list[AuditEntry]:
        page, since, values = way.page(), query.since, values_of(query)
        found: list[AuditEntry] = []
        before = query.before or AFTER_EVERY_NUMBER
        while len(found) < limit:
            left = limit - len(found)
            size = (PAGE if since else min(PAGE, left)) if way.in_order else max(PAGE, left)
            rows = await self._database.rows(page, values | {"before": before, "least": least, "limit": size})
            entries = [_entry(row) for row in rows]
            found += [entry for entry in entries if entry.at >= since]
            if len(rows) < size or max(entry.at for entry in entries) < since - CLOCKS_APART_SECONDS:
                break
            before = entries[-1].number
        return found[:limit]


class _Moment(NamedTuple):
    """The last visible number of a moment, and who was writing then."""

    number: int
    writers: frozenset[str]


_AFTER: Final = integer_parameter("after")
_LAST: Final = integer_parameter("last")
_ROWS: Final = Statement(
    lambda: (
        sa.select(*audit.columns, audit_details.c.salt, audit_details.c.detail)
        .select_from(audit.outerjoin(audit_details, audit_details.c.number == audit.c.number))
        .where(audit.c.number > _AFTER, audit.c.number <= _LAST)
        .order_by(audit.c.number)
        .limit(LIMIT)
    )
)
_UNSEALED: Final = Statement(
    lambda: sa.select(sa.func.count(), sa.func.min(audit.c.number), sa.func.max(audit.c.number)).where(
        audit.c.number > _AFTER
    )
)
_LAST_SEAL: Final = Statement(
    lambda: (
        select_columns(audit_seals, _SEAL)
        .where(audit_seals.c.number > sa.literal_column("0"))  # so that SQLite goes by the key
        .order_by(audit_seals.c.number.desc())
        .limit(1)
    )
)
_SEALS: Final = Statement(
    lambda: (
        select_columns(audit_seals, _SEAL)
        .where(audit_seals.c.number > _AFTER)
        .order_by(audit_seals.c.number)
        .limit(LIMIT)
    )
)
_DIGESTS: Final = Statement(
    lambda: select_columns(audit_digests, ("seal", "retention", "digests", "latest")).where(
        audit_digests.c.seal > _AFTER, audit_digests.c.seal <= _LAST
    )
)
_INSERT_SEAL: Final = Statement(lambda: insert(audit_seals).values(parameters(_SEAL)))
_INSERT_DIGESTS: Final = Statement(
    lambda: insert(audit_digests).values(parameters(("seal", "retention", "latest", "digests")))
)


class AuditSeals(Part):
    """The seals of the audit table, and their entries (D58)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._settled = 0
        self._moments: list[_Moment] = []

    async def settled_number(self) -> int:
        """A number up to which no entry can appear any more.

        Whoever has a lower number than a visible one was writing when that became visible. So the numbers of a moment
        are settled when all who were writing at it have ended. Those of an earlier moment are remembered: one long
        transaction holds up what comes after its begin only.
        """
        row = await self._database.row(_HIGHEST, {})
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
        width = len(_SEALED)
        found = await self._database.rows(_ROWS, {"after": after, "last": last, "limit": limit})
        return [
            StoredEntry(row=dict(zip(_SEALED, row[:width], strict=True)), salt=row[width], detail=row[width + 1])
            for row in found
        ]

    async def unsealed(self, *, after: int) -> tuple[int, int, int]:
        """The number of later entries, the first and the last.

        0 if there is none.
        """
        row = await self._database.row(_UNSEALED, {"after": after})
        count, first, last = row or (0, 0, 0)
        return int(count), int(first or 0), int(last or 0)

    async def last(self) -> Seal | None:
        """The last seal, without its digests."""
        row = await self._database.row(_LAST_SEAL, {})
        return None if row is None else Seal(**dict(zip(_SEAL, row, strict=True)))

    async def ends(self) -> AuditEnds:
        """The highest number in each table of the audit."""
        row = await self._database.row(_select_ends(self._database.writes_in_queries), {})
        return AuditEnds(**dict(zip(_ENDS, (int(each or 0) for each in row or ()), strict=True)))

    async def page(self, *, after: int, limit: int) -> list[Seal]:
        """The seals after a number, in order."""
        rows = await self._database.rows(_SEALS, {"after": after, "limit": limit})
        if not rows:
            return []
        lists: dict[int, dict[str, str]] = {}
        moments: dict[int, dict[str, int]] = {}
        of_these = {"after": after, "last": rows[-1][0]}
        for seal, name, digests, latest in await self._database.rows(_DIGESTS, of_these):
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
                await self._database.run(_INSERT_SEAL, values)
                for name, digests in seal.digests.items():
                    of_list = {"seal": seal.number, "retention": name, "latest": latest[name], "digests": digests}
                    await self._database.run(_INSERT_DIGESTS, of_list)
        except Conflict:
            return False
        return True


class AuditedPart(Part):
    """A part that writes the events of its changes."""

    def __init__(self, database: Database, audit: Audit) -> None:
        super().__init__(database)
        self._audit: Final = audit


class RecordedChange:
    """A change of one row, with its event.

    Its parameters have other names than the columns of the audit. Nothing is written if there is no such row. Both are
    in one statement, if the engine can.
    """

    def __init__(self, build: Callable[[], sa.Update | sa.Delete]) -> None:
        self._change: Final = Statement(build)
        self._with_event: Final = Statement(lambda: _recorded(build()).inline())
        self._with_details: Final = Statement(lambda: _detailed(_recorded(build())))

    async def run(self, database: Database, log: Audit, values: Mapping[str, Any], event: AuditEvent) -> bool:
        """Return whether a row changed. Raises StoreUnavailable."""
        if database.writes_in_queries:
            written = log.values(event)
            statement = self._with_details if written["private"] else self._with_event
            return await database.write(statement, {**written, **values}) == 1
        async with database.transaction():
            changed_row = await database.run(self._change, values) == 1
            if changed_row:
                await log.write(event)
        return changed_row


def _recorded(change: sa.Update | sa.Delete) -> Insert:
    """The row of the audit, if a row is changed."""
    changed_row = change.returning(sa.literal_column("1")).cte("changed")
    values = sa.select(*(sa.cast(sa.bindparam(name), audit.c[name].type) for name in _WRITTEN))
    return insert(audit).from_select(_WRITTEN, values.select_from(changed_row))


def _row() -> Insert:
    return insert(audit).values(parameters(_WRITTEN))


@Statement
def _details_of_last_row() -> Insert:
    """The details of the row that this connection has just inserted."""
    values = {"number": sa.func.last_insert_rowid(), "salt": sa.bindparam("salt"), "detail": sa.bindparam("private")}
    return insert(audit_details).values(values).inline()


def _detailed(row: Insert) -> Insert:
    """A row of the audit, written with its details."""
    entry = row.returning(audit.c.number).cte("entry")
    salted = sa.select(entry.c.number, text_parameter("salt"), text_parameter("private"))
    return insert(audit_details).from_select(["number", "salt", "detail"], salted)


class IndexScan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Conditions on the start of an index.

    The other conditions of a query are written so that they lead neither engine to another index.
    """

    leading: Sequence[sa.ColumnElement[bool]]
    rest: Sequence[sa.ColumnElement[bool]] = ()
    in_order: bool = True
    """whether the index has its entries in the order of their numbers"""
    further: IndexScan | None = None
    """another way to the same entries; it costs less if few of those that this one leads to fit"""

    @property
    def conditions(self) -> Sequence[sa.ColumnElement[bool]]:
        return (*self.leading, *self.rest)

    @property
    def number(self) -> sa.ColumnElement[int]:
        """The order of its entries."""
        return audit.c.number if self.in_order else audit.c.number + 0

    @by_shape
    def page(self) -> sa.Select[Any]:
        """`before`, `least`, `limit` and the values → entries, the latest first."""
        within = self.number < _BEFORE, self.number >= integer_parameter("least")
        if self.in_order:
            return _selected().where(*self.conditions, *within).order_by(self.number.desc()).limit(LIMIT)
        # Numbers are sorted, and the rows of the few that remain are read.
        found = sa.select(audit.c.number).where(*self.conditions, *within).order_by(self.number.desc()).limit(LIMIT)
        return _selected().where(audit.c.number.in_(found)).order_by(audit.c.number.desc())

    @by_shape
    def index_range(self) -> sa.Select[Any, Any, int]:
        """`before`, `limit` and the values → least number, latest moment, count.

        Of the entries that the index leads to.
        """
        found = sa.select(audit.c.number, audit.c.at).where(*self.leading, audit.c.number < _BEFORE)
        rows = found.order_by(audit.c.number.desc()).limit(LIMIT).subquery()
        return sa.select(sa.func.min(rows.c.number), sa.func.max(rows.c.at), sa.func.count())


def ways(query: AuditQuery) -> tuple[IndexScan, ...]:
    """The ways to the entries that fit; several together have every one.

    Their values are `values_of` the query.
    """
    names = ("object", "actor", "entity_id", "client_id")
    given = tuple(name for name in names if getattr(query, name))
    return _find_ways(given, tuple(each == AuditAction.SIGN_IN_COMPLETE for each in query.actions), bool(query.user_id))


def values_of(query: AuditQuery) -> dict[str, Any]:
    """Values of the parameters of the ways to a query's entries."""
    user_id = query.user_id
    return {
        "object": query.object, "actor": query.actor, "entity_id": query.entity_id, "client_id": query.client_id,
        "by_user": f"user:{user_id}", "of_user": user_id, "from_user": f"{user_id}/", "to_user": user_id + _PARTS_END,
        **number_texts("action", query.actions),
    }  # fmt: skip


@cache
def _find_ways(given: tuple[str, ...], of_sign_ins: tuple[bool, ...], of_person: bool) -> tuple[IndexScan, ...]:
    """The ways to entries that are found by these columns and actions.

    The condition that fits fewest entries leads. `of_sign_ins` tells of each action whether it is that of completed
    sign-ins. Each combination is found once per process, so that its statements are compiled once.
    """
    leading = "" if of_person else next(iter(given), "")
    rest = [_beside(name) for name in given if name != leading]
    if of_sign_ins and (of_person or leading):
        rest.append(_among(len(of_sign_ins)))
    if of_person:
        return tuple(_of_person(of_sign_ins, rest))
    if leading == "actor":
        return tuple(_of_actor(_is(leading, leading), of_sign_ins, rest))
    if leading == "entity_id":
        return tuple(IndexScan(leading=_starts(column, leading), rest=rest) for column in _ENTITIES)
    if leading:
        return (IndexScan(leading=_starts(leading, leading), rest=rest),)
    if of_sign_ins:
        return tuple(
            _of_completed_sign_ins(f"action_{number}") if is_sign_in else _of_action(f"action_{number}")
            for number, is_sign_in in enumerate(of_sign_ins)
        )
    return (IndexScan(leading=[]),)


def _of_action(name: str) -> IndexScan:
    return IndexScan(leading=[_is("action", name), _NO_COMPLETED_SIGN_IN])


def _of_completed_sign_ins(name: str) -> IndexScan:
    """The way to every completed sign-in, back through all entries.

    Most entries are such, and an index of them would make each of them dearer. A deployment in which they are rare has
    the index of each person's sign-ins: all of it is read, and no other entry.
    """
    further = IndexScan(leading=[_COMPLETED_SIGN_IN], in_order=False)
    return IndexScan(leading=[], rest=[_unindexed("action") == text_parameter(name)], further=further)


def _of_actor(
    is_actor: sa.ColumnElement[bool], of_sign_ins: tuple[bool, ...], rest: list[sa.ColumnElement[bool]]
) -> Iterator[IndexScan]:
    """The ways to an actor's entries.

    Completed sign-ins have an index of their own.
    """
    if not all(of_sign_ins) or not of_sign_ins:
        yield IndexScan(leading=[is_actor, _NO_COMPLETED_SIGN_IN], rest=rest)
    if any(of_sign_ins) or not of_sign_ins:
        yield IndexScan(leading=[is_actor, _COMPLETED_SIGN_IN], rest=rest)


def _of_person(of_sign_ins: tuple[bool, ...], rest: list[sa.ColumnElement[bool]]) -> Iterator[IndexScan]:
    """The ways to a person's entries, and to those of their records."""
    yield from _of_actor(_is("actor", "by_user"), of_sign_ins, rest)
    yield IndexScan(leading=[_is("object", "of_user"), _NO_SIGN_IN], rest=rest)
    within = (
        audit.c.object > text_parameter("from_user"),
        audit.c.object < text_parameter("to_user"),
    )
    yield IndexScan(leading=[*within, _NO_SIGN_IN], rest=rest, in_order=False)


@query_by_shape(_entry)
def _select_by_action(count: int) -> sa.Select[Any]:
    return _select_range(_among(count))


@query_by_shape(_entry)
def _select_latest_of(objects: int, actions: int) -> sa.Select[Any]:
    named = text_parameters("object", objects)
    last = (
        sa.select(sa.func.max(audit.c.number))
        .where(audit.c.object.in_(named), _NO_SIGN_IN, _among(actions))
        .group_by(audit.c.object)
    )
    return _selected().where(audit.c.number.in_(last))


def _is(column: str, name: str) -> sa.ColumnElement[bool]:
    return audit.c[column] == text_parameter(name)


def _beside(name: str) -> sa.ColumnElement[bool]:
    """The same, without leading either engine to the column's index."""
    columns = _ENTITIES if name == "entity_id" else (name,)
    given = text_parameter(name)
    return sa.or_(*(_unindexed(column) == given for column in columns))


def _among(count: int) -> sa.ColumnElement[bool]:
    """One of several actions, without leading either engine to their index."""
    named = text_parameters("action", count)
    return _unindexed("action").in_(named)


def _unindexed(column: str) -> sa.ColumnElement[str]:
    return audit.c[column] + sa.literal_column("''")


def _starts(column: str, name: str) -> list[sa.ColumnElement[bool]]:
    """Conditions on the start of a column's index."""
    if column == "object":
        return [_is(column, name), _NO_SIGN_IN]
    partial = [audit.c[column] != sa.literal_column("''")] if column in {*_ENTITIES, "client_id"} else []
    return [_is(column, name), *partial]


def _part(members: Members, facts: dict[str, str], *, personal: bool) -> _StoredPart:
    def chosen(values: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in values.items() if (name in members.personal) == personal}

    return _StoredPart(before=chosen(members.before), after=chosen(members.after), facts=facts)


def _text(part: _StoredPart) -> str:
    return "" if part == _NOTHING else _JSON(part).decode()


@by_shape
def _select_ends(counts_rolled_back: bool) -> sa.Select[Any]:
    """The values of an AuditEnds, in one statement.

    SQLite takes back its count when a transaction is rolled back; PostgreSQL does not.
    """
    numbers = (audit.c.number, audit_details.c.number, audit_seals.c.number, audit_digests.c.seal)
    given: sa.ColumnElement[int] = sa.literal_column(
        "0" if counts_rolled_back else "(SELECT seq FROM sqlite_sequence WHERE name = 'audit')"
    )
    return sa.select(*(sa.select(sa.func.max(number)).scalar_subquery() for number in numbers), given)
