"""Counts of code guesses, which survive a restart of every engine (D45)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.authentication.code_guesses import CodeGuesses
from corpid.stores.sql.mappers import columns, record_codec
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import code_guesses

if TYPE_CHECKING:
    from corpid.ports import AuditEvent
    from corpid.stores.sql.audit import SqlAudit
    from corpid.stores.sql.statements import Database

_GUESSES: Final = record_codec(CodeGuesses)
_KEYS: Final = tuple(column.name for column in code_guesses.primary_key)
_COMPARED: Final = ("factors", "guesses", "paused_until")
_OF_PERSON: Final = code_guesses.c.user_id == sa.bindparam("user_id")
_THIS: Final = sa.and_(_OF_PERSON, code_guesses.c.browser == sa.bindparam("browser"))


class SqlCodeGuesses:
    """A ports.CodeGuessCounts."""

    def __init__(self, database: Database, audit: SqlAudit) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._one: Final = database.prepare(sa.select(*columns(code_guesses, _GUESSES)).where(_THIS))
        self._replace: Final = database.prepare(_replacement())
        self._forget: Final = database.prepare(sa.delete(code_guesses).where(_THIS))
        self._forget_all: Final = database.prepare(sa.delete(code_guesses).where(_OF_PERSON))

    async def get(self, user_id: str, browser: str) -> CodeGuesses:
        row = await self._database.row(self._one, {"user_id": user_id, "browser": browser})
        return CodeGuesses(user_id=user_id, browser=browser) if row is None else _GUESSES.decode(row)

    async def replace(self, seen: CodeGuesses, after: CodeGuesses) -> bool:
        """Raises MissingReference for a removed person."""
        compared = {f"seen_{name}": getattr(seen, name) for name in _COMPARED}
        return await self._database.write(self._replace, _GUESSES.encode(after) | compared) == 1

    async def forget(self, user_id: str, browser: str) -> None:
        await self._database.write(self._forget, {"user_id": user_id, "browser": browser})

    async def forget_all(self, user_id: str, event: AuditEvent | None = None) -> None:
        async with self._database.transaction():
            await self._database.run(self._forget_all, {"user_id": user_id})
            if event is not None:
                await self._audit.record(event)


def _replacement() -> sa.Executable:
    """A conditional update: of two guesses at once, one must retry.

    The count read before is part of the condition.
    """
    statement = insert(code_guesses).values(parameters(_GUESSES.written))
    changed = {name: statement.excluded[name] for name in _GUESSES.written if name not in _KEYS}
    as_seen = (
        code_guesses.c[name] == sa.bindparam(f"seen_{name}", type_=code_guesses.c[name].type) for name in _COMPARED
    )
    return statement.on_conflict_do_update(index_elements=_KEYS, set_=changed, where=sa.and_(*as_seen))
