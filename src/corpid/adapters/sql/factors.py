"""Passkeys, recovery codes, and the links that lead to setting factors (D45, D46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.adapters.sql.codecs import record_codec
from corpid.adapters.sql.kinds import columns
from corpid.adapters.sql.statements import insert, parameters, upsert
from corpid.adapters.sql.tables import links, passkeys, recovery_codes, sessions
from corpid.directory.records import Credentials
from corpid.ports import Conflict, Link, Passkey

if TYPE_CHECKING:
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.kinds import Kind, Kinds
    from corpid.adapters.sql.statements import Database, Prepared
    from corpid.ports import AuditEvent, FactorChange

_PASSKEYS: Final = record_codec(Passkey)
_LINKS: Final = record_codec(Link)


def _of_person(table: sa.Table) -> sa.ColumnElement[bool]:
    return table.c.user_id == sa.bindparam("user_id")


_THIS_PASSKEY: Final = passkeys.c.credential_id == sa.bindparam("credential_id")
_OWN_PASSKEY: Final = sa.and_(_THIS_PASSKEY, _of_person(passkeys))
_THIS_LINK: Final = links.c.link_hash == sa.bindparam("link_hash")


def _passkeys_of_a_person() -> sa.Select[Any]:
    mine = sa.select(*columns(passkeys, _PASSKEYS)).where(_of_person(passkeys))
    return mine.order_by(passkeys.c.created_at, passkeys.c.credential_id)


def _use_passkey() -> sa.Update:
    """The counter that was looked at is part of the condition: of two that use it at once one wins."""
    as_looked_at = passkeys.c.sign_count == sa.bindparam("before")
    new: dict[str, Any] = {
        "sign_count": sa.bindparam("after"),
        "used_at": sa.bindparam("at"),
        "synced": sa.bindparam("in_sync"),
    }
    return sa.update(passkeys).where(_THIS_PASSKEY, as_looked_at).values(new)


def _locked(credentials: Kind) -> sa.Select[Any]:
    return (
        sa.select(*columns(credentials.table, credentials.codec)).where(_of_person(credentials.table)).with_for_update()
    )


class _NotAsBefore(Exception):
    """Something has changed since it was looked at: the whole change is undone."""


class SqlFactors:
    """A ports.Factors."""

    def __init__(self, database: Database, audit: SqlAudit, kinds: Kinds) -> None:
        prepare = database.prepare
        self._database: Final = database
        self._audit: Final = audit
        self._credentials: Final = kinds[Credentials]
        self._locked: Final = prepare(_locked(self._credentials))
        self._passkey: Final = prepare(sa.select(*columns(passkeys, _PASSKEYS)).where(_THIS_PASSKEY))
        self._passkeys: Final = prepare(_passkeys_of_a_person())
        self._add_passkey: Final = prepare(insert(passkeys).values(parameters(_PASSKEYS.written)))
        self._remove_passkey: Final = prepare(sa.delete(passkeys).where(_OWN_PASSKEY))
        self._remove_passkeys: Final = prepare(sa.delete(passkeys).where(_of_person(passkeys)))
        self._rename_passkey: Final = prepare(
            sa.update(passkeys).where(_OWN_PASSKEY).values(name=sa.bindparam("new_name"))
        )
        self._use_passkey: Final = prepare(_use_passkey())
        self._codes_left: Final = prepare(
            sa.select(sa.func.count()).select_from(recovery_codes).where(_of_person(recovery_codes))
        )
        self._take_code: Final = prepare(
            sa.delete(recovery_codes).where(
                _of_person(recovery_codes), recovery_codes.c.code_hash == sa.bindparam("code_hash")
            )
        )
        self._drop_codes: Final = prepare(sa.delete(recovery_codes).where(_of_person(recovery_codes)))
        self._add_code: Final = prepare(insert(recovery_codes).values(parameters(("user_id", "code_hash"))))
        self._link: Final = prepare(sa.select(*columns(links, _LINKS)).where(_THIS_LINK))
        self._keep_link: Final = prepare(upsert(links, _LINKS.written))
        self._spend_link: Final = prepare(sa.delete(links).where(_THIS_LINK))
        self._drop_links: Final = prepare(
            sa.delete(links).where(
                _of_person(links),
                links.c.purpose == sa.bindparam("purpose"),
                links.c.link_hash != sa.bindparam("spared"),
            )
        )
        self._end_links: Final = prepare(sa.delete(links).where(_of_person(links)))
        self._end_sessions: Final = prepare(
            sa.delete(sessions).where(_of_person(sessions), sessions.c.session_id != sa.bindparam("kept"))
        )

    async def passkey(self, credential_id: str) -> Passkey | None:
        """See ports.Factors."""
        row = await self._database.row(self._passkey, {"credential_id": credential_id})
        return None if row is None else _PASSKEYS.decode(row)

    async def passkeys(self, user_id: str) -> list[Passkey]:
        """See ports.Factors. The oldest first."""
        return [_PASSKEYS.decode(row) for row in await self._database.rows(self._passkeys, {"user_id": user_id})]

    async def use_passkey(self, used: Passkey, before: Passkey, event: AuditEvent) -> bool:
        """See ports.Factors."""
        values = {
            "credential_id": used.credential_id, "before": before.sign_count,
            "after": used.sign_count, "at": used.used_at, "in_sync": used.synced,
        }  # fmt: skip
        async with self._database.transaction():
            written = await self._database.run(self._use_passkey, values) == 1
            if written:
                await self._audit.record(event)
        return written

    async def rename_passkey(self, passkey: Passkey, event: AuditEvent) -> bool:
        """See ports.Factors."""
        values = {"user_id": passkey.user_id, "credential_id": passkey.credential_id, "new_name": passkey.name}
        async with self._database.transaction():
            written = await self._database.run(self._rename_passkey, values) == 1
            if written:
                await self._audit.record(event)
        return written

    async def recovery_codes_left(self, user_id: str) -> int:
        """See ports.Factors."""
        row = await self._database.row(self._codes_left, {"user_id": user_id})
        return int(row[0]) if row else 0

    async def take_recovery_code(self, user_id: str, code_hash: str, event: AuditEvent) -> bool:
        """See ports.Factors."""
        async with self._database.transaction():
            taken = await self._database.run(self._take_code, {"user_id": user_id, "code_hash": code_hash}) == 1
            if taken:
                await self._audit.record(event)
        return taken

    async def change(self, change: FactorChange, event: AuditEvent) -> bool:
        """See ports.Factors."""
        try:
            async with self._database.transaction():
                await self._change(change)
                await self._audit.record(event)
        except (_NotAsBefore, Conflict):
            return False
        return True

    async def _change(self, change: FactorChange) -> None:
        user_id = change.after.user_id
        if change.spend_link:
            await self._exactly_one(self._spend_link, {"link_hash": change.spend_link})
        await self._database.run(self._end_links, {"user_id": user_id})
        row = await self._database.row(self._locked, {"user_id": user_id})
        stored = Credentials(user_id=user_id) if row is None else self._credentials.codec.decode(row)
        if stored.factors != change.before.factors:
            raise _NotAsBefore
        await self._database.run(self._credentials.upsert, self._credentials.codec.encode(change.after))
        if change.add_passkey is not None:
            await self._database.run(self._add_passkey, _PASSKEYS.encode(change.add_passkey))
        if change.remove_passkey:
            owned = {"user_id": user_id, "credential_id": change.remove_passkey}
            await self._exactly_one(self._remove_passkey, owned)
        if change.remove_passkeys:
            await self._database.run(self._remove_passkeys, {"user_id": user_id})
        if change.passkey_remains:
            await self._require_a_passkey(user_id)
        if change.recovery_codes is not None:
            await self._database.run(self._drop_codes, {"user_id": user_id})
            for code_hash in change.recovery_codes:
                await self._database.run(self._add_code, {"user_id": user_id, "code_hash": code_hash})
        if change.end_sessions_but is not None:
            await self._database.run(self._end_sessions, {"user_id": user_id, "kept": change.end_sessions_but})

    async def _require_a_passkey(self, user_id: str) -> None:
        """Of two changes that remove one each, the second sees what the first has left: both write the credentials."""
        if not await self._database.rows(self._passkeys, {"user_id": user_id}):
            raise _NotAsBefore

    async def _exactly_one(self, statement: Prepared, values: dict[str, str]) -> None:
        if await self._database.run(statement, values) != 1:
            raise _NotAsBefore

    async def keep_link(self, link: Link, event: AuditEvent, *, spared: str = "") -> None:
        """See ports.Factors. Raises MissingReference for a user who is gone."""
        async with self._database.transaction():
            earlier = {"user_id": link.user_id, "purpose": link.purpose, "spared": spared}
            await self._database.run(self._drop_links, earlier)
            await self._database.run(self._keep_link, _LINKS.encode(link))
            await self._audit.record(event)

    async def link(self, link_hash: str) -> Link | None:
        """See ports.Factors."""
        row = await self._database.row(self._link, {"link_hash": link_hash})
        return None if row is None else _LINKS.decode(row)
