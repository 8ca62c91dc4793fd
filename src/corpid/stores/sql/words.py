"""Words of records that the previous version wrote (D83)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.directory.records import Entity, Membership, Service, User
from corpid.rules.directory.words import words_of
from corpid.rules.oauth.records import Client
from corpid.stores.sql.mappers import KINDS
from corpid.stores.sql.statements import Part, Statement, by_shape
from corpid.stores.sql.tables import outdated_words

if TYPE_CHECKING:
    from collections.abc import Mapping


_AT_ONCE: Final = 200
_KINDS: Final[Mapping[str, type]] = {
    "user": User, "entity": Entity, "membership": Membership, "service": Service, "client": Client,
}  # fmt: skip
_KEY: Final = ("record", "user_id", "entity_id")
"""of a service or a client the last one has the identifier"""


_REMOVE: Final = Statement(
    lambda: sa.delete(outdated_words).where(*(outdated_words.c[name] == sa.bindparam(f"{name}_noted") for name in _KEY))
)


@Statement
def _noted() -> sa.Executable:
    columns = [outdated_words.c[name] for name in _KEY]
    return sa.select(*columns).order_by(*columns).limit(sa.literal_column(str(_AT_ONCE), sa.Integer))


class OutdatedWords(Part):
    """Records whose words are to be found again; triggers note them."""

    async def refresh(self) -> int:
        """Find the words of some noted records; returns their number.

        A record is locked before its note is removed: who changes it meanwhile notes it again, or is seen. Raises
        StoreUnavailable.
        """
        noted = await self._database.rows(_noted, {})
        if not noted:
            return 0
        async with self._database.transaction():
            for row in noted:
                kind, values = KINDS[_KINDS[row[0]]], dict(zip(_KEY, row, strict=True))
                named = {**dict.fromkeys(kind.keys, row[2]), **values}
                found = await self._database.row(kind.locked, named)
                if found is not None:
                    words = words_of(kind.decode(found))
                    await self._database.run(_write_words(kind.table), {**named, "found": words})
                await self._database.run(_REMOVE, {f"{name}_noted": value for name, value in values.items()})
        return len(noted)


@by_shape
def _write_words(table: sa.Table) -> sa.Update:
    this = (each == sa.bindparam(f"{each.name}") for each in table.primary_key)
    return sa.update(table).where(*this).values(words=sa.bindparam("found"))
