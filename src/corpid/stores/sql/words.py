"""Words of records that the previous version wrote (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.directory.records import Entity, Membership, Service, User
from corpid.rules.directory.words import words_of
from corpid.rules.oauth.records import Client
from corpid.stores.sql.tables import outdated_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.stores.sql.mappers import Kinds, RecordType
    from corpid.stores.sql.statements import Database

_AT_ONCE: Final = 200
_KINDS: Final[Mapping[str, type]] = {
    "user": User, "entity": Entity, "membership": Membership, "service": Service, "client": Client,
}  # fmt: skip
_KEY: Final = ("record", "user_id", "entity_id")
"""of a service or a client the last one has the identifier"""


class OutdatedWords:
    """Records whose words are to be found again; triggers note them."""

    def __init__(self, database: Database, kinds: Kinds) -> None:
        self._database: Final = database
        self._kinds: Final = {name: kinds[kind] for name, kind in _KINDS.items()}
        columns = [outdated_words.c[name] for name in _KEY]
        limit = sa.literal_column(str(_AT_ONCE), sa.Integer)
        self._noted: Final = database.prepare(lambda: sa.select(*columns).order_by(*columns).limit(limit))
        this = [outdated_words.c[name] == sa.bindparam(f"{name}_noted") for name in _KEY]
        self._remove: Final = database.prepare(lambda: sa.delete(outdated_words).where(*this))
        self._write: Final = {name: database.prepare(_write_words(kind)) for name, kind in self._kinds.items()}

    async def refresh(self) -> int:
        """Find the words of some noted records; returns their number.

        A record is locked before its note is removed: who changes it meanwhile notes it again, or is seen. Raises
        StoreUnavailable.
        """
        noted = await self._database.rows(self._noted, {})
        if not noted:
            return 0
        async with self._database.transaction():
            for row in noted:
                kind, values = self._kinds[row[0]], dict(zip(_KEY, row, strict=True))
                named = {**dict.fromkeys(kind.keys, row[2]), **values}
                found = await self._database.row(kind.locked, named)
                if found is not None:
                    words = words_of(kind.decode(found))
                    await self._database.run(self._write[row[0]], {**named, "found": words})
                await self._database.run(self._remove, {f"{name}_noted": value for name, value in values.items()})
        return len(noted)


def _write_words(kind: RecordType) -> sa.Update:
    this = (each == sa.bindparam(f"{each.name}") for each in kind.table.primary_key)
    return sa.update(kind.table).where(*this).values(words=sa.bindparam("found"))
