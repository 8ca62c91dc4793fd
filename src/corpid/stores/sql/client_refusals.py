"""The latest refusals of each client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.oauth.refusals import ClientRefusal
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.statements import insert
from corpid.stores.sql.tables import client_refusals, clients

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.stores.sql.statements import Database

_REFUSALS: Final = record_codec(ClientRefusal)
_OF = client_refusals.c
_CLIENT: Final = _OF.client_id == sa.bindparam("client_id")


class ClientRefusals:
    """The latest refusals of each client."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._known: Final = database.prepare(
            lambda: sa.select(clients.c.client_id).where(clients.c.client_id == sa.bindparam("client_id"))
        )
        self._add: Final = database.prepare(_addition)
        self._trim: Final = database.prepare(_surplus)
        self._of: Final = database.prepare(
            lambda: (
                sa.select(*columns(client_refusals, _REFUSALS))
                .where(_CLIENT)
                .order_by(_OF.at.desc(), _OF.request_id.desc())
            )
        )

    async def add(self, refusals: Sequence[ClientRefusal], *, kept: int) -> None:
        """Add refusals of one client, all claimed or none.

        One short transaction. Only the `kept` latest of them stay. Those of a client that does not exist are dropped, which costs one read:
        strangers name many.
        """
        if not refusals:
            return
        one = refusals[0]
        if await self._database.row(self._known, {"client_id": one.client_id}) is None:
            return
        async with self._database.transaction():
            for each in refusals:
                await self._database.run(self._add, _REFUSALS.encode(each))
            of = {"client_id": one.client_id, "claimed": one.claimed, "kept": kept}
            await self._database.run(self._trim, of)

    async def list_for_client(self, client_id: str) -> list[ClientRefusal]:
        """Every refusal kept of a client, the latest first.

        Claimed ones stand among the others.
        """
        return [_REFUSALS.decode(row) for row in await self._database.rows(self._of, {"client_id": client_id})]


def _addition() -> sa.Executable:
    """Insertion of a new row of a client that exists."""
    values = [sa.bindparam(name, type_=client_refusals.c[name].type) for name in _REFUSALS.written]
    known = sa.select(*values).where(clients.c.client_id == sa.bindparam("client_id"))
    return insert(client_refusals).from_select(_REFUSALS.written, known).on_conflict_do_nothing()


def _surplus() -> sa.Executable:
    """`client_id`, `claimed`, `kept` → removal of all but the latest ones."""
    ring = sa.and_(_CLIENT, _OF.claimed == sa.bindparam("claimed", type_=sa.Boolean))
    place = (_OF.at, _OF.request_id)
    oldest_kept = (
        sa.select(*place)
        .where(ring)
        .order_by(_OF.at.desc(), _OF.request_id.desc())
        .limit(1)
        .offset(sa.bindparam("kept", type_=sa.Integer) - 1)
    )
    return sa.delete(client_refusals).where(ring, sa.tuple_(*place) < oldest_kept.scalar_subquery())
