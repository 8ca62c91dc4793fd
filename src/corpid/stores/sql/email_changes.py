"""Changes of a person's e-mail address that wait before they take effect (D61).

Each transaction locks the person first, then sessions and links, then the change (`sessions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
import sqlalchemy as sa

from corpid.rules.authentication.records import EmailChange
from corpid.rules.directory.records import User
from corpid.rules.directory.sources import sources_after
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.directory_tables import users
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import email_changes

if TYPE_CHECKING:
    from corpid.rules.audit_records import AuditEvent
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.mappers import Kinds
    from corpid.stores.sql.sessions import SignOuts
    from corpid.stores.sql.statements import CompiledStatement, Database, Row

Finished: TypeAlias = Literal["changed", "dropped", "gone"]
"""the new address is in effect; it is not, since person or address are no longer as they were; somebody else finished
or undid the change"""
_CHANGES: Final = record_codec(EmailChange)


def _with_person(key: sa.Column[str]) -> sa.Select[tuple[object, ...]]:
    people = email_changes.join(users, users.c.user_id == email_changes.c.user_id)
    found = sa.select(*columns(email_changes, _CHANGES), users.c.enabled, users.c.email).select_from(people)
    return found.where(key == sa.bindparam(key.name))


class EmailChanges:
    """Waiting changes of addresses, at most one for a person.

    One that no longer stands has no effect. It ends with a new password or second factor by a link or from an operator,
    and when the person is disabled or removed.
    """

    def __init__(self, database: Database, audit: Audit, kinds: Kinds, sign_outs: SignOuts) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._users: Final = kinds[User]
        self._sign_outs: Final = sign_outs
        self._of: Final = database.prepare(lambda: _with_person(email_changes.c.user_id))
        self._by_link: Final = database.prepare(lambda: _with_person(email_changes.c.link_hash))
        self._add: Final = database.prepare(
            lambda: insert(email_changes).values(parameters(_CHANGES.written)).on_conflict_do_nothing()
        )
        self._take: Final = database.prepare(
            lambda: sa.delete(email_changes).where(
                email_changes.c.user_id == sa.bindparam("user_id"),
                email_changes.c.link_hash == sa.bindparam("link_hash"),
            )
        )
        self._due: Final = database.prepare(
            lambda: (
                sa.select(*columns(email_changes, _CHANGES))
                .where(email_changes.c.effective_at <= sa.bindparam("now", type_=sa.BigInteger))
                .order_by(email_changes.c.effective_at, email_changes.c.user_id)
                .limit(sa.bindparam("limit", type_=sa.Integer))
            )
        )
        self._set_email: Final = database.prepare(
            lambda: (
                sa.update(users)
                .where(users.c.user_id == sa.bindparam("user"))
                .values(email=sa.bindparam("new"), source=sa.bindparam("by"), member_sources=sa.bindparam("since"))
            )
        )

    async def find(self, user_id: str) -> EmailChange | None:
        """The change of a person that stands."""
        return await self._one(self._of, {"user_id": user_id})

    async def by_link(self, link_hash: str) -> EmailChange | None:
        """The change that stands and that this link undoes."""
        return await self._one(self._by_link, {"link_hash": link_hash})

    async def _one(self, statement: CompiledStatement, key: dict[str, str]) -> EmailChange | None:
        row = await self._database.row(statement, key)
        if row is None:
            return None
        *stored, enabled, email = row
        change: EmailChange = _CHANGES.decode(stored)
        return change if change.stands(enabled=enabled, email=email) else None

    async def begin(self, change: EmailChange, event: AuditEvent, *, session_id: str) -> bool:
        """Store a change, and end the person's other sessions.

        False if the session has ended, the address is no longer the old one, or another change waits; nothing is
        written then. Of two at once, the second waits for the person's lock.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not self._stands(change, row):
                return False
            locked = await self._sign_outs.lock(change.user_id)
            if session_id not in locked.sessions or not await self._store(change):
                return False
            await self._sign_outs.end_sessions(change.user_id, but_session=session_id)
            was: User = self._users.decode(row)
            await self._audit.record_change(event, was, msgspec.structs.replace(was, email=change.new_email))
        return True

    async def _store(self, change: EmailChange) -> bool:
        """Store a change, in place of one that no longer stands."""
        if await self.find(change.user_id) is None:
            await self._sign_outs.end_email_change(change.user_id)
        return await self._database.run(self._add, _CHANGES.encode(change)) == 1

    async def undo(self, change: EmailChange, event: AuditEvent, *, but_session: str = "") -> bool:
        """Remove a waiting change, and end the person's sessions and links.

        Except one session. False if it was finished or undone before; nothing is written then.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not self._stands(change, row):
                return False
            locked = await self._sign_outs.lock(change.user_id)
            if (but_session and but_session not in locked.sessions) or not await self._taken(change):
                return False
            await self._sign_outs.end_sessions(change.user_id, but_session=but_session)
            await self._sign_outs.end_links(change.user_id)
            was: User = self._users.decode(row)
            await self._audit.record_change(event, msgspec.structs.replace(was, email=change.new_email), was)
        return True

    async def due(self, *, now: float, limit: int) -> list[EmailChange]:
        """Changes whose time has come, the earliest first."""
        rows = await self._database.rows(self._due, {"now": int(now), "limit": limit})
        return [_CHANGES.decode(row) for row in rows]

    async def finish(self, change: EmailChange, event: AuditEvent) -> Finished:
        """Remove a waiting change, and write the address if it stands.

        The event has the outcome `refused` if it does not.
        """
        async with self._database.transaction():
            row = await self._locked(change)
            if row is None or not await self._taken(change):
                return "gone"
            if not self._stands(change, row):
                await self._audit.write(msgspec.structs.replace(event, outcome="refused"))
                return "dropped"
            was: User = self._users.decode(row)
            becomes = msgspec.structs.replace(was, email=change.new_email)
            sources = self._users.encode_sources(
                sources_after(event.actor, was, becomes, self._users.decode_sources(row))
            )
            values = {
                "user": change.user_id, "new": change.new_email,
                "by": sources["source"], "since": sources["member_sources"],
            }  # fmt: skip
            await self._database.run(self._set_email, values)
            await self._audit.record_change(event, was, becomes)
        return "changed"

    async def _locked(self, change: EmailChange) -> Row | None:
        return await self._database.row(self._users.locked, {"user_id": change.user_id})

    def _stands(self, change: EmailChange, row: Row) -> bool:
        user: User = self._users.decode(row)
        return change.stands(enabled=user.enabled, email=user.email)

    async def _taken(self, change: EmailChange) -> bool:
        key = {"user_id": change.user_id, "link_hash": change.link_hash}
        return await self._database.run(self._take, key) == 1
