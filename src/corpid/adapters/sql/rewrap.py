"""Which rows are sealed, that the configured key opens them, and sealing them anew with a new key (D43)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.adapters.sql.deployment import NamedValues
from corpid.adapters.sql.tables import credentials, deployment, keys

if TYPE_CHECKING:
    from corpid.adapters.sealing import Sealer
    from corpid.adapters.sql.audit import SqlAudit
    from corpid.adapters.sql.statements import Database
    from corpid.ports import AuditEvent

_CHECK: Final = "sealing_check"
_CHECK_TEXT: Final = "corpid"

SEALED: Final = (
    (keys.c.kid, keys.c.secret, keys.c.secret.is_not(None)),
    (credentials.c.user_id, credentials.c.totp_secret, credentials.c.totp_secret.is_not(None)),
    (deployment.c.name, deployment.c.value, deployment.c.name == _CHECK),
)
"""row, sealed column, which rows"""


async def check_sealer(database: Database, sealer: Sealer) -> None:
    """Raise SealingError unless this database was sealed with a key that the sealer has.

    The first time, it writes the text by which later starts tell.
    """
    values = NamedValues(database)
    async with database.transaction():
        if await values.get(_CHECK) is None:
            await values.put_first(_CHECK, sealer.seal("deployment", _CHECK, "value", _CHECK_TEXT))
        sealed = await values.get(_CHECK)
    sealer.open("deployment", _CHECK, "value", sealed or "")


async def rewrap(database: Database, sealer: Sealer, audit: SqlAudit, event: AuditEvent) -> int:
    """Seal everything with the sealer's current key that an older one sealed; how many rows that were.

    One transaction, with the event. Afterwards the older keys are no longer needed. Raises SealingError
    for a row that none of the keys opens; then nothing is changed. D43.
    """
    async with database.transaction():
        changed = [await _rewrap(database, sealer, *column) for column in SEALED]
        await audit.record(event)
    return sum(changed)


async def _rewrap(
    database: Database, sealer: Sealer, row: sa.Column[Any], column: sa.Column[Any], which: sa.ColumnElement[bool]
) -> int:
    select = database.prepare(sa.select(row, column).where(which))
    update = database.prepare(
        sa.update(row.table).where(row == sa.bindparam("row")).values({column.name: sa.bindparam("sealed")})
    )
    table = str(row.table)
    older = [(name, sealed) for name, sealed in await database.rows(select, {}) if not sealer.is_current(sealed)]
    for name, sealed in older:
        secret = sealer.open(table, name, column.name, sealed)
        await database.run(update, {"row": name, "sealed": sealer.seal(table, name, column.name, secret)})
    return len(older)
