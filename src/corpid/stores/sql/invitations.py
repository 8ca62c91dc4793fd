"""Invitations of entities, and the sending of their e-mails (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.directory.invitations import SENDING_SECONDS, OpenInvitation, being_sent
from corpid.stores.sql.columns import columns
from corpid.stores.sql.directory_tables import DUE, entities, memberships, users
from corpid.stores.sql.mappers import ENTITIES, MEMBERSHIPS, USERS

if TYPE_CHECKING:
    from corpid.rules.directory.records import Membership
    from corpid.stores.sql.statements import Database, Row, Transaction

_USER_END: Final = len(USERS.columns)
_MEMBERSHIP_END: Final = _USER_END + len(MEMBERSHIPS.columns)
_row = memberships.c


def _invited() -> sa.Select[Any]:
    """Select placeholders with their invitations and entities."""
    rows = memberships.join(users, users.c.user_id == memberships.c.user_id).join(
        entities, entities.c.entity_id == memberships.c.entity_id
    )
    return (
        sa.select(*columns(users, USERS), *columns(memberships, MEMBERSHIPS), *columns(entities, ENTITIES))
        .select_from(rows)
        .where(memberships.c.invited, users.c.placeholder)
    )


def due() -> sa.Select[Any]:
    """`since`, `most` → new invitations, then those of dead senders."""
    return (
        _invited()
        .where(sa.text(DUE), _row.invitation_sent_at >= sa.bindparam("since", type_=sa.BigInteger))
        .where(_row.enabled, entities.c.enabled)
        .order_by(_row.invitation_sent_at.desc(), _row.membership_id.desc())
        .limit(sa.bindparam("most", type_=sa.Integer))
    )


def select_waiting() -> sa.Select[Any]:
    """The number of waiting e-mails, and the moment of the oldest."""
    return sa.select(sa.func.count(), sa.func.coalesce(sa.func.min(_row.changed_at), sa.literal_column("0"))).where(
        sa.text(DUE), _row.enabled, _row.invitation_sent_at <= sa.literal_column("0")
    )


def invitation_of() -> sa.Select[Any]:
    """`user_id` → the invitation of a placeholder."""
    return _invited().where(memberships.c.user_id == sa.bindparam("user_id"))


def open_of() -> sa.Select[Any]:
    """`entity_id`, `after`, `limit` → invited memberships, by an index of them."""
    entity = _row.entity_id == sa.bindparam("entity_id", type_=sa.Text)
    rest = _row.membership_id > sa.bindparam("after", type_=sa.Text)
    found = sa.select(*columns(memberships, MEMBERSHIPS)).where(sa.text("memberships.invited"), entity, rest)
    return found.order_by(_row.membership_id).limit(sa.bindparam("limit", type_=sa.Integer))


def _mark() -> sa.Update:
    """A conditional update: of two processes, one gets the e-mail."""
    this = _row.user_id == sa.bindparam("waiting"), _row.entity_id == sa.bindparam("entity")
    seen = _row.invitation_sent_at == sa.bindparam("seen", type_=sa.BigInteger)
    same = _row.invited, _row.email == sa.bindparam("address", type_=sa.Text)
    marked = sa.bindparam("becomes", type_=sa.BigInteger)
    return sa.update(memberships).where(*this, seen, *same).values(invitation_sent_at=marked)


class Invitations:
    """Invitations, and the sending of their e-mails."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._of: Final = database.prepare(invitation_of)
        self._due: Final = database.prepare(due)
        self._waiting: Final = database.prepare(select_waiting)
        self._open: Final = database.prepare(open_of)
        self._mark: Final = database.prepare(_mark)

    async def find(self, user_id: str) -> OpenInvitation | None:
        """Return the invitation of a placeholder, in one statement."""
        row = await self._database.row(self._of, {"user_id": user_id})
        return None if row is None else _found(row)

    async def of_entity(self, entity_id: str, *, after: str, limit: int) -> list[Membership]:
        """Return open invitations of an entity, by identifier."""
        rows = await self._database.rows(self._open, {"entity_id": entity_id, "after": after, "limit": limit})
        return [MEMBERSHIPS.decode(row) for row in rows]

    async def due(self, *, now: float, limit: int) -> list[OpenInvitation]:
        """Return invitations with an e-mail to send, untried ones first."""
        values = {"since": being_sent(now - SENDING_SECONDS), "most": limit}
        return [_found(row) for row in await self._database.rows(self._due, values)]

    async def count_waiting(self) -> tuple[int, int]:
        """The number of members whose e-mail waits, and the oldest's moment.

        Epoch seconds; 0 if there is none.
        """
        row = await self._database.row(self._waiting, {})
        return (int(row[0]), int(row[1])) if row else (0, 0)

    async def take(self, invited: OpenInvitation, *, now: float) -> bool:
        """Take an invitation for sending, in one statement.

        Another process gets False, until this one has been silent for `SENDING_SECONDS`; so it does if the invitation
        has changed since it was read.
        """
        seen = invited.membership.invitation_sent_at
        return await self._database.write(self._mark, self._values(invited, seen, being_sent(now))) == 1

    async def settle(self, invited: OpenInvitation, *, taken: float, becomes: int) -> bool:
        """Store the outcome of an e-mail, if this process still has it.

        `becomes` is a moment in epoch seconds, or a mark of `rules.directory.invitations`.
        """
        return await self._database.write(self._mark, self._values(invited, being_sent(taken), becomes)) == 1

    def transaction(self) -> Transaction:
        """Changes of this task that become true together, or not at all.

        Raises StoreUnavailable.
        """
        return self._database.transaction()

    @staticmethod
    def _values(invited: OpenInvitation, seen: int, becomes: int) -> dict[str, object]:
        member = invited.membership
        this = {"waiting": member.user_id, "entity": member.entity_id, "address": member.email}
        return {**this, "seen": seen, "becomes": becomes}


def _found(row: Row) -> OpenInvitation:
    return OpenInvitation(
        user=USERS.decode(row[:_USER_END]),
        membership=MEMBERSHIPS.decode(row[_USER_END:_MEMBERSHIP_END]),
        entity=ENTITIES.decode(row[_MEMBERSHIP_END:]),
    )
