"""Access reviews of entities."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.directory.access_review import AccessReview, ReviewDecision
from corpid.rules.directory.changes import ChangedMeanwhile
from corpid.stores.sql.administration_tables import access_review_decisions, access_reviews
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.directory_tables import administrators, memberships, users
from corpid.stores.sql.mappers import MEMBERSHIPS, USERS
from corpid.stores.sql.statements import insert, parameters, upsert
from corpid.stores.sql.tables import audit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpid.rules.directory.notices import QueuedNotice
    from corpid.rules.directory.records import Membership, User
    from corpid.stores.sql.notices import Notices
    from corpid.stores.sql.statements import Database, Row

_REVIEWS: Final = record_codec(AccessReview)
_DECISIONS: Final = record_codec(ReviewDecision)
_MEANWHILE: Final = "the review or somebody's access was changed at the same moment: look at it again"
_AT_ONCE: Final = 100
"""people that one statement looks up"""
_READ_AT_ONCE: Final = 500
"""decisions that one statement reads"""

_OF: Final = access_reviews.c
_BY: Final = access_review_decisions.c


def _text(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.Text)


def _moment(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


_LIMIT: Final = sa.bindparam("limit", type_=sa.Integer)
_KEPT: Final = (
    _BY.entity_id == memberships.c.entity_id,
    _BY.user_id == memberships.c.user_id,
    _BY.decision == sa.literal_column("'keep'", sa.Text),
)


def undecided() -> sa.Select[Any]:
    """`entity_id`, `after`, `limit` → members that were not kept."""
    chain = memberships.join(users, users.c.user_id == memberships.c.user_id)
    kept = sa.exists(sa.select(sa.literal_column("1")).select_from(access_review_decisions).where(*_KEPT))
    within = memberships.c.entity_id == _text("entity_id"), memberships.c.membership_id > _text("after")
    found = sa.select(*columns(memberships, MEMBERSHIPS), *columns(users, USERS)).select_from(chain)
    return found.where(*within, ~kept).order_by(memberships.c.membership_id).limit(_LIMIT)


def count_kept() -> sa.Select[Any]:
    """`entity_id` → the number of members that were kept."""
    found = sa.select(sa.func.count()).select_from(access_review_decisions.join(memberships, sa.and_(*_KEPT)))
    return found.where(_BY.entity_id == _text("entity_id"))


def administered() -> sa.Select[Any]:
    """`after`, `limit` → entities with administrators, and when their review is due.

    Looked up for each: a join of both tables may read either as a whole.
    """
    entity = administrators.c.entity_id
    due_at = sa.select(_OF.due_at).where(_OF.entity_id == entity).scalar_subquery()
    return sa.select(entity, due_at).where(entity > _text("after")).group_by(entity).order_by(entity).limit(_LIMIT)


def changed_since(actions: Sequence[str]) -> sa.Select[Any]:
    """`entity_id`, `after` → an entry about the entity after a number."""
    among = (audit.c.action + sa.literal_column("''")).in_(
        [sa.literal_column(f"'{action}'", sa.Text) for action in actions]
    )
    within = audit.c.entity_id == _text("entity_id"), audit.c.entity_id != sa.literal_column("''")
    return sa.select(audit.c.number).where(*within, audit.c.number > _moment("after"), among).limit(1)


def _unchanged() -> tuple[sa.ColumnElement[bool], ...]:
    """The row as it was seen."""
    return (
        _OF.entity_id == _text("entity"),
        _OF.due_at == _moment("seen_due"),
        _OF.remind_at == _moment("seen_remind"),
        _OF.began_at == _moment("seen_began"),
        _OF.signed_off_at == _moment("seen_signed"),
    )


class AccessReviews:
    """Access reviews, and decisions about people.

    What raises ChangedMeanwhile belongs into a transaction (Directory.write), which it undoes.
    """

    def __init__(self, database: Database, queue: Notices) -> None:
        self._database: Final = database
        self._queue: Final = queue
        prepare = database.prepare
        of_entity = _BY.entity_id == _text("entity_id")
        self._of: Final = prepare(
            lambda: sa.select(*columns(access_reviews, _REVIEWS)).where(_OF.entity_id == _text("entity_id"))
        )
        listed = [_text(f"user_{number}") for number in range(_AT_ONCE)]
        decisions = sa.select(*columns(access_review_decisions, _DECISIONS)).where(of_entity)
        self._decisions: Final = prepare(lambda: decisions.where(_BY.user_id.in_(listed)))
        self._all: Final = prepare(
            lambda: decisions.where(_BY.user_id > _text("after")).order_by(_BY.user_id).limit(_LIMIT)
        )
        self._members: Final = prepare(
            lambda: (
                sa.select(sa.func.count()).select_from(memberships).where(memberships.c.entity_id == _text("entity_id"))
            )
        )
        self._kept: Final = prepare(count_kept)
        self._undecided: Final = prepare(undecided)
        self._add: Final = prepare(
            lambda: insert(access_reviews).values(parameters(_REVIEWS.written)).on_conflict_do_nothing()
        )
        rest: dict[str, Any] = {name: sa.bindparam(name) for name in _REVIEWS.written if name != "entity_id"}
        self._replace: Final = prepare(lambda: sa.update(access_reviews).where(*_unchanged()).values(rest))
        self._decide: Final = prepare(lambda: upsert(access_review_decisions, _DECISIONS.written))
        self._clear: Final = prepare(lambda: sa.delete(access_review_decisions).where(of_entity))
        self._forget: Final = prepare(
            lambda: sa.delete(access_review_decisions).where(
                of_entity, _BY.user_id == _text("user_id"), _BY.seen == _text("seen")
            )
        )
        self._administered: Final = prepare(administered)
        self._due: Final = prepare(
            lambda: (
                sa.select(*columns(access_reviews, _REVIEWS))
                .where(_OF.remind_at <= _moment("now"))
                .order_by(_OF.remind_at)
                .limit(_LIMIT)
            )
        )

    async def find(self, entity_id: str) -> AccessReview | None:
        """The reviews of an entity; None if it has none yet."""
        row = await self._database.row(self._of, {"entity_id": entity_id})
        return None if row is None else _REVIEWS.decode(row)

    async def decisions(self, entity_id: str, user_ids: Sequence[str]) -> dict[str, ReviewDecision]:
        """Decisions about these people, by person; one statement for each hundred."""
        found: list[Row] = []
        for start in range(0, len(user_ids), _AT_ONCE):
            part = list(user_ids[start : start + _AT_ONCE])
            # Always the same statement: what is repeated is found once.
            part += part[:1] * (_AT_ONCE - len(part))
            values = {f"user_{number}": user_id for number, user_id in enumerate(part)}
            found += await self._database.rows(self._decisions, {"entity_id": entity_id, **values})
        return _by_person(found)

    async def all_decisions(self, entity_id: str) -> dict[str, ReviewDecision]:
        """Every decision, by person.

        In parts, so that others have their turn.
        """
        found: dict[str, ReviewDecision] = {}
        after, more = "", True
        while more:
            values = {"entity_id": entity_id, "after": after, "limit": _READ_AT_ONCE}
            part = _by_person(await self._database.rows(self._all, values))
            found |= part
            more = len(part) == _READ_AT_ONCE
            after = next(reversed(part), "")
            await asyncio.sleep(0)
        return found

    async def counts(self, entity_id: str) -> tuple[int, int]:
        """The number of an entity's members, and of those that were kept."""
        values = {"entity_id": entity_id}
        members = await self._database.row(self._members, values) or (0,)
        kept = await self._database.row(self._kept, values) or (0,)
        return int(members[0]), int(kept[0])

    async def undecided(self, entity_id: str, *, after: str, limit: int) -> list[tuple[Membership, User]]:
        """Members that were not kept, by identifier of the membership."""
        rows = await self._database.rows(self._undecided, {"entity_id": entity_id, "after": after, "limit": limit})
        width = len(MEMBERSHIPS.columns)
        return [(MEMBERSHIPS.decode(row[:width]), USERS.decode(row[width:])) for row in rows]

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
                written = await self._database.run(self._add, _REVIEWS.encode(review))
            else:
                written = await self._replaced(seen, review)
            if not written:
                raise ChangedMeanwhile(_MEANWHILE)
            if seen is None or not seen.began_at:
                await self._database.run(self._clear, {"entity_id": review.entity_id})
            for decision in decisions:
                await self._database.run(self._decide, _DECISIONS.encode(decision))

    async def forget(self, decisions: Sequence[ReviewDecision]) -> None:
        """Remove decisions, unless another one was made about the person since."""
        async with self._database.transaction():
            for each in decisions:
                values = {"entity_id": each.entity_id, "user_id": each.user_id, "seen": each.seen}
                await self._database.run(self._forget, values)

    async def sign_off(self, seen: AccessReview, becomes: AccessReview, *, actions: Sequence[str], after: int) -> None:
        """Sign a review off.

        Raises ChangedMeanwhile if it is no longer as it was seen, or if the audit has an entry about the entity with
        one of these actions after a number. The entries are looked for while the row is locked.
        """
        async with self._database.transaction():
            changed = self._database.prepare(changed_since(actions))
            if not await self._replaced(seen, becomes) or await self._database.row(
                changed, {"entity_id": seen.entity_id, "after": after}
            ):
                raise ChangedMeanwhile(_MEANWHILE)

    async def unscheduled(self, *, after: str, limit: int) -> list[tuple[str, bool]]:
        """Entities with administrators, in order, and whether they have no reviews."""
        rows = await self._database.rows(self._administered, {"after": after, "limit": limit})
        return [(str(entity_id), due_at is None) for entity_id, due_at in rows]

    async def add(self, reviews: Sequence[AccessReview]) -> None:
        """Add the reviews of entities that have none."""
        async with self._database.transaction():
            for review in reviews:
                await self._database.run(self._add, _REVIEWS.encode(review))

    async def due(self, *, now: float, limit: int) -> list[AccessReview]:
        """Reviews whose owners get a notice now."""
        rows = await self._database.rows(self._due, {"now": int(now), "limit": limit})
        return [_REVIEWS.decode(row) for row in rows]

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
        values = {
            "entity": seen.entity_id,
            "seen_due": seen.due_at,
            "seen_remind": seen.remind_at,
            "seen_began": seen.began_at,
            "seen_signed": seen.signed_off_at,
        }
        return await self._database.run(self._replace, {**_REVIEWS.encode(becomes), **values}) == 1


def _by_person(rows: Iterable[Row]) -> dict[str, ReviewDecision]:
    found = [_DECISIONS.decode(row) for row in rows]
    return {each.user_id: each for each in found}
