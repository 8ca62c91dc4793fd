"""Notices that wait to be sent, and access reviews, which queue some."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa

from corpid.rules.directory.access_review import AccessReview, ReviewDecision
from corpid.rules.directory.memberships import SENDING_SECONDS
from corpid.rules.directory.notices import NoticeGroup, QueuedNotice
from corpid.rules.directory.records import Assignment, ChangedMeanwhile, Membership, ThirdPartyAssignment, User
from corpid.stores.sql.columns import (
    LIMIT,
    columns,
    integer_parameter,
    record_codec,
    record_table,
    repeat_texts,
    text_parameter,
    text_parameters,
)
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.mappers import KINDS, MEMBERSHIPS, USERS
from corpid.stores.sql.members import TOKENS
from corpid.stores.sql.statements import Database, IsAmong, Part, Row, Statement, by_shape, insert, parameters, query
from corpid.stores.sql.tables import (
    HAS_END,
    NOTICE_ORDER,
    access_review_decisions,
    access_reviews,
    administrators,
    assignments,
    audit,
    entities,
    memberships,
    notices,
    provisioning_tokens,
    third_party_assignments,
    users,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken

E = TypeVar("E", bound=Assignment | ThirdPartyAssignment)
_NOTICES: Final = record_table(notices, QueuedNotice)
_NEW: Final = ("taken_by", "taken_until", "sent_at")
_NOTICE: Final = notices.c
_GROUP: Final = (
    _NOTICE.user_id == text_parameter("person"),
    _NOTICE.kind == text_parameter("sort"),
    _NOTICE.entity_id == text_parameter("entity"),
    _NOTICE.sent_at == 0,
)
_TABLES: Final[Mapping[type, sa.Table]] = {Assignment: assignments, ThirdPartyAssignment: third_party_assignments}
_SWEPT_AT_ONCE: Final = 500
_REVIEWS: Final = record_table(access_reviews, AccessReview)
_DECISIONS: Final = record_table(access_review_decisions, ReviewDecision)
_MEANWHILE: Final = "the review or somebody's access was changed at the same moment: look at it again"
_PEOPLE_AT_ONCE: Final = 100
"""people that one statement looks up"""
_READ_AT_ONCE: Final = 500
"""decisions that one statement reads"""
_REVIEW: Final = access_reviews.c
_DECISION: Final = access_review_decisions.c
_SEEN: Final = {
    "entity": _REVIEW.entity_id,
    "seen_due": _REVIEW.due_at,
    "seen_remind": _REVIEW.remind_at,
    "seen_began": _REVIEW.began_at,
    "seen_signed": _REVIEW.signed_off_at,
}
"""what names a review as it was seen: parameter → column"""
_KEPT: Final = (
    _DECISION.entity_id == memberships.c.entity_id,
    _DECISION.user_id == memberships.c.user_id,
    _DECISION.decision == sa.literal_column("'keep'", sa.Text),
)


_MINE: Final = (*_GROUP, _NOTICE.taken_by == text_parameter("by"))
_TAKE: Final = Statement(
    lambda: (
        sa.update(notices)
        .where(*_GROUP, _NOTICE.taken_until <= integer_parameter("now"))
        .values(taken_by=text_parameter("by"), taken_until=integer_parameter("until"))
    )
)
_TAKEN: Final = _NOTICES.query(lambda found: found.where(*_MINE).order_by(_NOTICE.created_at, _NOTICE.subject))
_SENT: Final = Statement(lambda: sa.update(notices).where(*_MINE).values(sent_at=integer_parameter("at")))
_PUT_OFF: Final = Statement(
    lambda: sa.update(notices).where(*_MINE).values(due_at=integer_parameter("at"), taken_by="", taken_until=0)
)
_SWEEP: Final = Statement(
    lambda: sa.delete(notices).where(
        IsAmong(
            notices,
            sa.select(notices)
            .where(_NOTICE.sent_at > sa.literal_column("0"), _NOTICE.sent_at < integer_parameter("before"))
            .limit(_SWEPT_AT_ONCE),
        )
    )
)
_TOKEN: Final = provisioning_tokens.c
_EXPIRING: Final = TOKENS.query(
    lambda found: (
        found.where(_TOKEN.expires_at > integer_parameter("after"), _TOKEN.expires_at <= integer_parameter("until"))
        .order_by(_TOKEN.expires_at, _TOKEN.token_id)
        .limit(LIMIT)
    )
)


class NoticeQueue(Part):
    """The queue of notices.

    A position says how far the notices of one kind of occasion were made; it moves in the transaction that queues them,
    so that each occasion is seen once, whatever the number of processes.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._positions: Final = NamedValues(database)

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
            await self._database.run(_queue_notice, _NOTICES.encode(notice))

    async def due(self, *, now: float, limit: int) -> list[NoticeGroup]:
        """Groups with a notice that is due, in the order of `NOTICE_ORDER`."""
        rows = await self._database.rows(_select_due_groups, {"now": int(now), "limit": limit})
        found = dict.fromkeys(tuple(row) for row in rows)
        return [NoticeGroup(user_id=user_id, kind=kind, entity_id=entity_id) for user_id, kind, entity_id in found]

    async def take(self, group: NoticeGroup, *, by: str, now: float) -> list[QueuedNotice]:
        """Take all unsent notices of a group.

        The update takes; what it took is read afterwards. Another process gets none of them until this one has been
        silent for `SENDING_SECONDS`.
        """
        values = _values(group, by)
        until = int(now) + SENDING_SECONDS
        if not await self._database.write(_TAKE, {**values, "now": int(now), "until": until}):
            return []
        return await _TAKEN.every(self._database, **values)

    async def settle(self, group: NoticeGroup, *, by: str, sent_at: int = 0, due_at: int = 0) -> None:
        """Store the outcome of an e-mail, if this process still has it.

        Either its notices were sent (or dropped), or they are due again later.
        """
        statement = _SENT if sent_at else _PUT_OFF
        await self._database.write(statement, {**_values(group, by), "at": sent_at or due_at})

    async def sweep(self, *, before: float) -> int:
        """Remove some notices that were sent before a moment; how many."""
        return await self._database.write(_SWEEP, {"before": int(before)})

    async def ending(self, kind: type[E], *, until: str, place: tuple[str, ...], limit: int) -> list[E]:
        """Roles that end after a place, up to a day, in order.

        `place` is the last day, the entity and the rest of the key of the one before.
        """
        order = [f"place_{column.name}" for column in _order(_TABLES[kind])]
        values = {**dict(zip(order, place, strict=True)), "until": until, "limit": limit}
        rows = await self._database.rows(select_ending(kind), values)
        return [KINDS[kind].codec.decode(row) for row in rows]

    async def ending_on(self, kind: type[E], entity_id: str, end_date: str, *, limit: int) -> tuple[list[E], int]:
        """Some of the roles that end on a day, and their number."""
        values = {"entity_id": entity_id, "end_date": end_date}
        rows = await self._database.rows(select_ending_on(kind), {**values, "limit": limit})
        found = [KINDS[kind].codec.decode(row) for row in rows]
        if len(found) < limit:
            return found, len(found)
        count = await self._database.row(count_ending_on(kind), values)
        return found, count[0] if count else 0

    async def expiring_tokens(self, *, after: int, until: int, limit: int) -> list[RegisteredProvisioningToken]:
        """Provisioning tokens that expire after a moment, up to another, in order."""
        return await _EXPIRING.every(self._database, after=after, until=until, limit=limit)


_OF_ENTITY: Final = _DECISION.entity_id == text_parameter("entity_id")
_REVIEWS_OF_ENTITY: Final = _REVIEWS.query(lambda found: found.where(_REVIEW.entity_id == text_parameter("entity_id")))
_DECISIONS_ABOUT: Final = _DECISIONS.query(
    lambda found: found.where(_OF_ENTITY, _DECISION.user_id.in_(text_parameters("user", _PEOPLE_AT_ONCE)))
)
ALL_DECISIONS: Final = _DECISIONS.query(
    lambda found: (
        found.where(_OF_ENTITY, _DECISION.user_id > text_parameter("after")).order_by(_DECISION.user_id).limit(LIMIT)
    )
)
DUE_REVIEWS: Final = _REVIEWS.query(
    lambda found: found.where(_REVIEW.remind_at <= integer_parameter("now")).order_by(_REVIEW.remind_at).limit(LIMIT)
)
_MEMBERS: Final = Statement(
    lambda: (
        sa.select(sa.func.count())
        .select_from(memberships)
        .where(memberships.c.entity_id == text_parameter("entity_id"))
    )
)
_ADD: Final = Statement(lambda: _REVIEWS.insert().on_conflict_do_nothing())
_DECIDE: Final = Statement(_DECISIONS.upsert)
_CLEAR: Final = Statement(lambda: sa.delete(access_review_decisions).where(_OF_ENTITY))
_FORGET: Final = Statement(
    lambda: sa.delete(access_review_decisions).where(
        _OF_ENTITY, _DECISION.user_id == text_parameter("user_id"), _DECISION.seen == text_parameter("seen")
    )
)


@Statement
def _replace() -> sa.Executable:
    rest = parameters(tuple(name for name in _REVIEWS.written if name != "entity_id"))
    unchanged = [column == sa.bindparam(name, type_=column.type) for name, column in _SEEN.items()]
    return sa.update(access_reviews).where(*unchanged).values(rest)


class AccessReviews(Part):
    """Access reviews, and decisions about people.

    What raises ChangedMeanwhile belongs into a transaction (Directory.write), which it undoes.
    """

    def __init__(self, database: Database, queue: NoticeQueue) -> None:
        super().__init__(database)
        self._queue: Final = queue

    async def find(self, entity_id: str) -> AccessReview | None:
        """The reviews of an entity; None if it has none yet."""
        return await _REVIEWS_OF_ENTITY.one(self._database, entity_id=entity_id)

    async def decisions(self, entity_id: str, user_ids: Sequence[str]) -> dict[str, ReviewDecision]:
        """Decisions about these people, by person; one statement for each hundred."""
        found: dict[str, ReviewDecision] = {}
        for start in range(0, len(user_ids), _PEOPLE_AT_ONCE):
            part = user_ids[start : start + _PEOPLE_AT_ONCE]
            values = repeat_texts("user", part, _PEOPLE_AT_ONCE)
            found |= {
                each.user_id: each
                for each in await _DECISIONS_ABOUT.every(self._database, entity_id=entity_id, **values)
            }
        return found

    async def all_decisions(self, entity_id: str) -> dict[str, ReviewDecision]:
        """Every decision, by person.

        In parts, so that others have their turn.
        """
        found: dict[str, ReviewDecision] = {}
        after, more = "", True
        while more:
            part = await ALL_DECISIONS.every(self._database, entity_id=entity_id, after=after, limit=_READ_AT_ONCE)
            found |= {each.user_id: each for each in part}
            more = len(part) == _READ_AT_ONCE
            after = part[-1].user_id if part else ""
            await asyncio.sleep(0)
        return found

    async def counts(self, entity_id: str) -> tuple[int, int]:
        """The number of an entity's members, and of those that were kept."""
        values = {"entity_id": entity_id}
        members = await self._database.row(_MEMBERS, values) or (0,)
        kept = await self._database.row(count_kept, values) or (0,)
        return int(members[0]), int(kept[0])

    async def undecided(self, entity_id: str, *, after: str, limit: int) -> list[tuple[Membership, User]]:
        """Members that were not kept, by identifier of the membership."""
        return await select_undecided.every(self._database, entity_id=entity_id, after=after, limit=limit)

    async def decide(
        self, seen: AccessReview | None, review: AccessReview, decisions: Sequence[ReviewDecision]
    ) -> None:
        """Store decisions, each in place of an earlier one.

        If no review was open, `review` is one that is, and decisions of the one before go. The update also locks: a
        signing-off of the same moment waits, and then finds another review. Raises ChangedMeanwhile if the review is no
        longer the one that was seen.
        """
        async with self._database.transaction():
            if seen is None:
                written = await self._database.run(_ADD, _REVIEWS.encode(review))
            else:
                written = await self._replaced(seen, review)
            if not written:
                raise ChangedMeanwhile(_MEANWHILE)
            if seen is None or not seen.began_at:
                await self._database.run(_CLEAR, {"entity_id": review.entity_id})
            for decision in decisions:
                await self._database.run(_DECIDE, _DECISIONS.encode(decision))

    async def forget(self, decisions: Sequence[ReviewDecision]) -> None:
        """Remove decisions, unless another one was made about the person since."""
        async with self._database.transaction():
            for each in decisions:
                values = {"entity_id": each.entity_id, "user_id": each.user_id, "seen": each.seen}
                await self._database.run(_FORGET, values)

    async def sign_off(self, seen: AccessReview, becomes: AccessReview, *, actions: Sequence[str], after: int) -> None:
        """Sign a review off.

        Raises ChangedMeanwhile if it is no longer as it was seen, or if the audit has an entry about the entity with
        one of these actions after a number. The entries are looked for while the row is locked.
        """
        async with self._database.transaction():
            if not await self._replaced(seen, becomes) or await self._database.row(
                _select_changed_since(tuple(actions)), {"entity_id": seen.entity_id, "after": after}
            ):
                raise ChangedMeanwhile(_MEANWHILE)

    async def unscheduled(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Entities with administrators, in order, and whether they have no reviews."""
        rows = await self._database.rows(select_administered, {"after": after, "limit": limit})
        return [(str(entity_id), due_at is None) for entity_id, due_at in rows]

    async def add(self, reviews: Sequence[AccessReview]) -> None:
        """Add the reviews of entities that have none."""
        async with self._database.transaction():
            for review in reviews:
                await self._database.run(_ADD, _REVIEWS.encode(review))

    async def due(self, *, now: float, limit: int) -> list[AccessReview]:
        """Reviews whose owners get a notice now."""
        return await DUE_REVIEWS.every(self._database, now=int(now), limit=limit)

    async def remind(self, seen: AccessReview, becomes: AccessReview, notices: Sequence[QueuedNotice]) -> bool:
        """Queue the notices of a review, in one transaction.

        False if it is no longer as it was seen.
        """
        async with self._database.transaction():
            if not await self._replaced(seen, becomes):
                return False
            await self._queue.add(notices)
        return True

    async def _replaced(self, seen: AccessReview, becomes: AccessReview) -> bool:
        values = {name: getattr(seen, column.name) for name, column in _SEEN.items()}
        return await self._database.run(_replace, {**_REVIEWS.encode(becomes), **values}) == 1


@Statement
def _queue_notice() -> sa.Executable:
    """A notice's columns → a row, if person and entity exist."""
    values = [sa.bindparam(name, type_=notices.c[name].type) for name in _NOTICES.written]
    person = users.c.user_id == text_parameter("user_id")
    chosen = sa.select(*values, sa.literal(""), sa.literal(0), sa.literal(0)).where(
        person, entities.c.entity_id == text_parameter("entity_id")
    )
    return insert(notices).from_select([*_NOTICES.written, *_NEW], chosen).on_conflict_do_nothing()


@Statement
def _select_due_groups() -> sa.Select[Any]:
    """`now`, `limit` → groups of the notices that are due, with repetitions."""
    waiting = (
        _NOTICE.sent_at == sa.literal_column("0"),
        _NOTICE.due_at <= integer_parameter("now"),
        _NOTICE.taken_until <= integer_parameter("now"),
    )
    return (
        sa.select(_NOTICE.user_id, _NOTICE.kind, _NOTICE.entity_id)
        .where(*waiting)
        .order_by(sa.text(NOTICE_ORDER))
        .limit(LIMIT)
    )


@by_shape
def select_ending(kind: type) -> sa.Select[Any]:
    """`until`, `place_…`, `limit` → roles, by their last day."""
    table = _TABLES[kind]
    order = _order(table)
    beyond = sa.tuple_(*order) > sa.tuple_(*(text_parameter(f"place_{column.name}") for column in order))
    within = table.c.end_date <= text_parameter("until"), sa.text(HAS_END)
    found = sa.select(*columns(table, record_codec(kind))).where(*within, beyond)
    return found.order_by(*order).limit(LIMIT)


def _order(table: sa.Table) -> list[sa.Column[Any]]:
    """The order of the index: last day, entity, rest of the key."""
    return [table.c.end_date, table.c.entity_id, *(each for each in table.primary_key if each.name != "entity_id")]


@by_shape
def select_ending_on(kind: type) -> sa.Select[Any]:
    """`entity_id`, `end_date`, `limit` → roles of one day, by person."""
    table = _TABLES[kind]
    found = sa.select(*columns(table, record_codec(kind)))
    return _narrow_to_day(found, table).order_by(table.c.user_id).limit(LIMIT)


@by_shape
def count_ending_on(kind: type) -> sa.Select[Any]:
    table = _TABLES[kind]
    return _narrow_to_day(sa.select(sa.func.count()).select_from(table), table)


def _narrow_to_day(found: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
    return found.where(
        table.c.end_date == text_parameter("end_date"),
        table.c.entity_id == text_parameter("entity_id"),
        sa.text(HAS_END),
    )


def _values(group: NoticeGroup, by: str) -> dict[str, object]:
    return {"person": group.user_id, "sort": group.kind, "entity": group.entity_id, "by": by}


def _decode_member(row: Row) -> tuple[Membership, User]:
    width = len(MEMBERSHIPS.columns)
    return MEMBERSHIPS.decode(row[:width]), USERS.decode(row[width:])


@query(_decode_member)
def select_undecided() -> sa.Select[Any]:
    """`entity_id`, `after`, `limit` → members that were not kept."""
    chain = memberships.join(users, users.c.user_id == memberships.c.user_id)
    kept = sa.exists(sa.select(sa.literal_column("1")).select_from(access_review_decisions).where(*_KEPT))
    within = (
        memberships.c.entity_id == text_parameter("entity_id"),
        memberships.c.membership_id > text_parameter("after"),
    )
    found = sa.select(*columns(memberships, MEMBERSHIPS), *columns(users, USERS)).select_from(chain)
    return found.where(*within, ~kept).order_by(memberships.c.membership_id).limit(LIMIT)


@Statement
def count_kept() -> sa.Select[Any]:
    """`entity_id` → the number of members that were kept."""
    found = sa.select(sa.func.count()).select_from(access_review_decisions.join(memberships, sa.and_(*_KEPT)))
    return found.where(_DECISION.entity_id == text_parameter("entity_id"))


@Statement
def select_administered() -> sa.Select[Any]:
    """`after`, `limit` → entities with administrators, and when their review is due.

    Looked up for each: a join of both tables may read either as a whole.
    """
    entity = administrators.c.entity_id
    due_at = sa.select(_REVIEW.due_at).where(_REVIEW.entity_id == entity).scalar_subquery()
    return (
        sa.select(entity, due_at).where(entity > text_parameter("after")).group_by(entity).order_by(entity).limit(LIMIT)
    )


@by_shape
def _select_changed_since(actions: tuple[str, ...]) -> sa.Select[Any]:
    """`entity_id`, `after` → an entry about the entity after a number."""
    among = (audit.c.action + sa.literal_column("''")).in_(
        [sa.literal_column(f"'{action}'", sa.Text) for action in actions]
    )
    within = audit.c.entity_id == text_parameter("entity_id"), audit.c.entity_id != sa.literal_column("''")
    return sa.select(audit.c.number).where(*within, audit.c.number > integer_parameter("after"), among).limit(1)
