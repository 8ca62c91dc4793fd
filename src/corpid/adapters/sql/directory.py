"""The directory as a request reads it: each question is one statement on an index (`lookups`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.adapters.sql import lookups
from corpid.adapters.sql.codecs import ENTITIES, USERS, user_name_key
from corpid.adapters.sql.lookups import ASSIGNMENTS, GRANTS, MEMBERSHIPS, SERVICES, THIRD_PARTY_ASSIGNMENTS
from corpid.adapters.sql.records import SqlRecords
from corpid.adapters.sql.tables import users
from corpid.directory.records import Acting, ThirdPartyRow, User
from corpid.ports import NameRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.kinds import Kinds
    from corpid.adapters.sql.sign_outs import SignOuts
    from corpid.adapters.sql.statements import Database, Prepared, Row
    from corpid.directory.choice import Form
    from corpid.directory.records import Assignment, Entity, Membership, Service
    from corpid.ports import AuditEvent

_ENTITY_WIDTH: Final = len(ENTITIES.columns)
_USER_END: Final = len(USERS.columns)
_ACTING_ENTITY_END: Final = _USER_END + _ENTITY_WIDTH
_THIRD_PARTY_END: Final = len(THIRD_PARTY_ASSIGNMENTS.columns)
_CLIENT_ENTITY_END: Final = _THIRD_PARTY_END + _ENTITY_WIDTH


class SqlDirectory(SqlRecords):
    """A ports.Directory."""

    def __init__(self, database: Database, audit: SqlAudit, kinds: Kinds, sign_outs: SignOuts) -> None:
        super().__init__(database, audit, kinds, sign_outs)
        self._one_user: Final = kinds[User].one
        self._user_by_name: Final = database.prepare(lookups.user_by_name())
        self._acting: Final = database.prepare(lookups.acting())
        self._usable: Final = database.prepare(lookups.usable())
        self._choices: Final = lookups.by_count(database, lookups.choices)
        self._count: Final = lookups.by_count(database, lookups.count_of_choices)
        self._services: Final = lookups.by_count(database, lookups.services_of)
        self._assignments: Final = lookups.by_count(database, lookups.assignments_of)
        self._third_party_rows: Final = lookups.by_count(database, lookups.third_party_rows_of)
        self._set_language: Final = database.prepare(
            sa.update(users).where(users.c.user_id == sa.bindparam("user")).values(language=sa.bindparam("new"))
        )

    async def acting(self, user_id: str, entity_id: str) -> Acting | None:
        """See ports.Directory."""
        row = await self._database.row(self._acting, {"user_id": user_id, "entity_id": entity_id})
        if row is None:
            return None
        return Acting(
            user=USERS.decode(row[:_USER_END]),
            entity=ENTITIES.decode(row[_USER_END:_ACTING_ENTITY_END]),
            membership=MEMBERSHIPS.decode(row[_ACTING_ENTITY_END:]),
        )

    async def user(self, user_id: str) -> User | None:
        """See ports.Directory."""
        row = await self._database.row(self._one_user, {"user_id": user_id})
        return None if row is None else USERS.decode(row)

    async def user_by_name(self, user_name: str) -> User | None:
        """See ports.Directory. A text that cannot be a user name is nobody's."""
        try:
            name = user_name_key(user_name)
        except NameRefused:
            return None
        row = await self._database.row(self._user_by_name, {"name": name})
        return None if row is None else USERS.decode(row)

    async def set_language(self, user_id: str, language: str, event: AuditEvent) -> None:
        """See ports.Directory."""
        async with self._database.transaction():
            await self._database.run(self._set_language, {"user": user_id, "new": language})
            await self._audit.record(event)

    async def usable(self, user_id: str, accepted: AbstractSet[Form]) -> list[str]:
        """See ports.Directory. The search stops at the second one."""
        rows = await self._database.rows(self._usable, {"user_id": user_id, **lookups.form_values(accepted)})
        return [entity_id for (entity_id,) in rows]

    async def choices(
        self, user_id: str, accepted: AbstractSet[Form], *, words: Sequence[str], first: str, limit: int
    ) -> tuple[list[tuple[Entity, Membership]], int]:
        """See ports.Directory. Capital and small letters sort alike. A list that is cut is counted by a second look."""
        patterns = [lookups.containing(word) for word in sorted(set(words))]
        values = {"user_id": user_id, **lookups.listed(patterns)}
        page = values | {"first": first, "limit": limit} | lookups.form_values(accepted)
        rows = await self._database.rows(self._choices(len(patterns)), page)
        found = [lookups.choice(user_id, row) for row in rows]
        if len(found) < limit:
            return found, len(found)
        count = await self._database.row(self._count(len(patterns)), values)
        return found, count[0] if count else 0

    async def services(self, service_ids: Sequence[str]) -> list[Service]:
        """See ports.Directory. By identifier."""
        return [SERVICES.decode(row) for row in await self._of_services(self._services, service_ids)]

    async def assignments(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[Assignment]:
        """See ports.Directory. By key."""
        rows = await self._of_services(self._assignments, service_ids, user_id=user_id, entity_id=entity_id)
        return [ASSIGNMENTS.decode(row) for row in rows]

    async def third_party_rows(self, user_id: str, entity_id: str, service_ids: Sequence[str]) -> list[ThirdPartyRow]:
        """See ports.Directory. By the assignment's key."""
        rows = await self._of_services(self._third_party_rows, service_ids, user_id=user_id, entity_id=entity_id)
        grants: dict[Row, list[Row]] = {}
        for row in rows:
            grants.setdefault(row[:_CLIENT_ENTITY_END], []).append(row[_CLIENT_ENTITY_END:])
        return [_third_party_row(row, granted) for row, granted in grants.items()]

    async def _of_services(
        self, statement: Callable[[int], Prepared], service_ids: Sequence[str], **values: str
    ) -> list[Row]:
        wanted = sorted(set(service_ids))
        if not wanted:
            return []
        return await self._database.rows(statement(len(wanted)), values | lookups.listed(wanted))


def _third_party_row(row: Row, granted: list[Row]) -> ThirdPartyRow:
    """An outer join shows an assignment without a grant once, with nulls in the grant's place."""
    return ThirdPartyRow(
        assignment=THIRD_PARTY_ASSIGNMENTS.decode(row[:_THIRD_PARTY_END]),
        client_entity=ENTITIES.decode(row[_THIRD_PARTY_END:]),
        grants=tuple(GRANTS.decode(grant) for grant in granted if grant[0] is not None),
    )
