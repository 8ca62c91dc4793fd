"""Remembered consents (D29)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.oauth.consent import Consent
from corpid.stores import milliseconds
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.directory_tables import memberships
from corpid.stores.sql.statements import insert
from corpid.stores.sql.tables import clients, consents

if TYPE_CHECKING:
    from corpid.rules.audit_records import AuditEvent
    from corpid.stores.sql.audit import Audit
    from corpid.stores.sql.statements import Database

_CONSENTS: Final = record_codec(Consent)
_MILLISECONDS: Final = sa.literal_column("1000", sa.BigInteger)
_SWEPT: Final = 500
"""consents that a sweep removes in one go"""


def _named(*names: str) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(consents.c[name] == sa.bindparam(name) for name in names)


def _addition() -> sa.Executable:
    """Insert or renew a consent of a membership and client that exist.

    Both stay until the transaction ends.
    """
    row = [sa.cast(sa.bindparam(name), consents.c[name].type).label(name) for name in _CONSENTS.written]
    known: sa.Select[Any] = (
        sa.select(*row)
        .select_from(memberships.join(clients, clients.c.client_id == sa.bindparam("client_id")))
        .where(
            memberships.c.user_id == sa.bindparam("user_id"),
            memberships.c.entity_id == sa.bindparam("entity_id"),
        )
        .with_for_update(read=True, key_share=True, of=(memberships, clients))
    )
    statement = insert(consents).from_select(list(_CONSENTS.written), known)
    renewed = {name: statement.excluded[name] for name in ("given_at", "expires_at")}
    return statement.on_conflict_do_update(index_elements=[each.name for each in consents.primary_key], set_=renewed)


class Consents:
    """Remembered consents. They end with their membership and client (D29)."""

    def __init__(self, database: Database, audit: Audit) -> None:
        self._database: Final = database
        self._audit: Final = audit
        now = database.now // _MILLISECONDS
        # PostgreSQL asks the clock once, not for every row, and so can use the index
        once = sa.select(now).scalar_subquery()
        expired = (
            sa.select(consents).where(consents.c.expires_at <= once).limit(_SWEPT).with_for_update(skip_locked=True)
        )
        self._remembered: Final = database.prepare(
            lambda: sa.select(*columns(consents, _CONSENTS)).where(
                *_named("user_id", "entity_id", "client_id", "issuer_id"), consents.c.expires_at > now
            )
        )
        self._of: Final = database.prepare(
            lambda: (
                sa.select(*columns(consents, _CONSENTS))
                .where(*_named("user_id"), consents.c.expires_at > now)
                .order_by(*consents.primary_key)
            )
        )
        self._give: Final = database.prepare(_addition)
        self._withdraw: Final = database.prepare(
            lambda: sa.delete(consents).where(*_named("user_id", "entity_id", "client_id"))
        )
        self._sweep: Final = database.prepare(lambda: sa.delete(consents).where(database.is_among(consents, expired)))

    async def find_remembered(
        self, user_id: str, entity_id: str, client_id: str, issuer_id: str, *, now: float
    ) -> list[Consent]:
        """The live consents for one person, entity, client and issuer.

        Live while now < expires_at, by the engine's clock if any (D49).
        """
        key = {"user_id": user_id, "entity_id": entity_id, "client_id": client_id, "issuer_id": issuer_id}
        rows = await self._database.rows(self._remembered, key | {"now": milliseconds(now)})
        return [_CONSENTS.decode(row) for row in rows]

    async def list_for_user(self, user_id: str, *, now: float) -> list[Consent]:
        """The live consents of a person, by entity and client."""
        rows = await self._database.rows(self._of, {"user_id": user_id, "now": milliseconds(now)})
        return [_CONSENTS.decode(row) for row in rows]

    async def give(self, consent: Consent, event: AuditEvent) -> bool:
        """Store a consent, or renew the one with the same scopes.

        False if the membership or the client does not exist; nothing is written then.
        """
        async with self._database.transaction():
            given = await self._database.run(self._give, _CONSENTS.encode(consent)) == 1
            if given:
                await self._audit.write(event)
        return given

    async def withdraw(self, user_id: str, entity_id: str, client_id: str, event: AuditEvent) -> bool:
        """Remove the consents for one person, entity and client.

        At every issuer. False if there was none; nothing is written then.
        """
        key = {"user_id": user_id, "entity_id": entity_id, "client_id": client_id}
        async with self._database.transaction():
            withdrawn = await self._database.run(self._withdraw, key) > 0
            if withdrawn:
                await self._audit.write(event)
        return withdrawn

    async def sweep(self, *, now: float) -> int:
        """Remove some expired ones.

        The number removed. Calling it until that is 0 removes them all. Those that another process removes are left to
        it.
        """
        return await self._database.write(self._sweep, {"now": milliseconds(now)})
