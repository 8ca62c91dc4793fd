"""The provider's own keys, sealed at rest (D42, D43)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import record_codec, sealed_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import insert, parameters
from corpid.adapters.sql.tables import deployment, keys
from corpid.ports import Conflict, MissingReference, SealedKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.adapters.sealing import Sealer
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.statements import Database
    from corpid.ports import AuditEvent

_KEYS: Final = record_codec(SealedKey)
_CHANGED: Final = tuple(name for name in _KEYS.written if name != "kid")
_FIRST: Final = {"name": "first_keys", "value": "made"}


class SqlKeys:
    """A ports.Keys. Reading raises SealingError when the key-encryption key is another one."""

    def __init__(self, database: Database, sealer: Sealer, audit: SqlAudit) -> None:
        self._database: Final = database
        self._audit: Final = audit
        self._codec: Final = sealed_codec(_KEYS, sealer, "keys", "kid", "secret")
        self._all: Final = database.prepare(
            sa.select(*columns(keys, self._codec)).order_by(keys.c.created_at, keys.c.kid)
        )
        self._any: Final = database.prepare(sa.select(keys.c.kid).limit(1))
        self._insert: Final = database.prepare(insert(keys).values(parameters(self._codec.written)))
        self._update: Final = database.prepare(
            sa.update(keys).where(keys.c.kid == sa.bindparam("this_kid")).values(parameters(_CHANGED))
        )
        self._claim: Final = database.prepare(
            insert(deployment).values(parameters(tuple(_FIRST))).on_conflict_do_nothing().returning(deployment.c.name)
        )

    async def all(self) -> list[SealedKey]:
        """See ports.Keys. Oldest first."""
        return [self._codec.decode(row) for row in await self._database.rows(self._all, {})]

    async def add(self, key: SealedKey, event: AuditEvent) -> None:
        """See ports.Keys. Raises Conflict for a kid that exists."""
        async with self._database.transaction():
            await self._add(key)
            await self._audit.record(event)

    async def add_first(self, keys: Sequence[SealedKey]) -> bool:
        """See ports.Keys. Of several processes that start at once, one stores its keys."""
        async with self._database.transaction():
            if await self._database.row(self._claim, _FIRST) is None or await self._database.rows(self._any, {}):
                return False
            for key in keys:
                await self._add(key)
        return True

    async def update(self, key: SealedKey, event: AuditEvent) -> None:
        """See ports.Keys. Raises MissingReference for a kid that does not exist."""
        async with self._database.transaction():
            if not await self._database.run(self._update, self._codec.encode(key) | {"this_kid": key.kid}):
                raise MissingReference(f"there is no key {key.kid!r}")
            await self._audit.record(event)

    async def _add(self, key: SealedKey) -> None:
        try:
            await self._database.run(self._insert, self._codec.encode(key))
        except Conflict as conflict:
            raise Conflict(f"there is a key {key.kid!r} already") from conflict
