"""Ending a person's sessions, and the links that let them set their factors (D30, D44, D46).

A transaction that touches several of a person's rows takes them in one order, so that no two wait for each other: the
person, the credentials, then the sessions, then the links, and of these two each by its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.adapters.sql.tables import credentials, links, sessions, users

if TYPE_CHECKING:
    from corpid.adapters.sql.statements import Database, Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a person has, and nobody else can end before this transaction does."""

    sessions: frozenset[str]
    """identifiers; some may have expired"""
    links: frozenset[str]
    """hashes"""


class SignOuts:
    """One piece for all who sign a person out, each in a transaction of theirs."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._unchanged: Final = database.prepare(
            sa.select(users.c.user_id)
            .join_from(users, credentials, credentials.c.user_id == users.c.user_id)
            .where(_of_person(users))
            .with_for_update(read=True, of=(users, credentials))
        )
        self._sessions: Final = database.prepare(_locked(sessions.c.session_id))
        self._links: Final = database.prepare(_locked(links.c.link_hash))
        self._end_sessions: Final = database.prepare(
            sa.delete(sessions).where(
                _of_person(sessions),
                sessions.c.session_id != sa.bindparam("but_session"),
                sessions.c.browser_id != sa.bindparam("but_browser"),
            )
        )
        self._end_links: Final = database.prepare(sa.delete(links).where(_of_person(links)))

    async def hold_off(self, user_id: str) -> None:
        """Let nobody change the factors of a person, or disable them, before this transaction ends.

        Whoever does so afterwards sees, and ends, the session that is written here; what was done before is read after it.
        """
        await self._database.rows(self._unchanged, {"user_id": user_id})

    async def hold(self, user_id: str) -> Held:
        """Lock the sessions and links of a person, after the credentials where these are touched, too."""
        return Held(
            sessions=await self._keys(self._sessions, user_id),
            links=await self._keys(self._links, user_id),
        )

    async def end_sessions(self, user_id: str, *, but_session: str = "", but_browser: str = "") -> None:
        """End the sessions of a person, which are held; but for this one, and those of this browser."""
        values = {"user_id": user_id, "but_session": but_session, "but_browser": but_browser}
        await self._database.run(self._end_sessions, values)

    async def end_links(self, user_id: str) -> None:
        """End the links of a person, which are held."""
        await self._database.run(self._end_links, {"user_id": user_id})

    async def _keys(self, locked: Prepared, user_id: str) -> frozenset[str]:
        return frozenset(key for (key,) in await self._database.rows(locked, {"user_id": user_id}))


def _locked(key: sa.Column[str]) -> sa.Select[Any]:
    return sa.select(key).where(_of_person(key.table)).order_by(key).with_for_update()


def _of_person(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return table.c.user_id == sa.bindparam("user_id")
