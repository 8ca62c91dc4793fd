"""The provider's encrypted keys, and re-encryption of every secret (D42, D43)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from corpid.rules.directory.records import Conflict, MissingReference
from corpid.rules.signing_keys import ProviderKey
from corpid.stores.sql.audit import Audit, AuditedPart
from corpid.stores.sql.columns import encrypted_codec, record_codec, select_columns
from corpid.stores.sql.deployment import NamedValues
from corpid.stores.sql.statements import Database, Statement, insert, parameters
from corpid.stores.sql.tables import credentials, deployment, keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corpid.rules.audit import AuditEvent
    from corpid.stores.encryption_at_rest import SecretCipher

_KEYS: Final = record_codec(ProviderKey)
_CHANGED: Final = tuple(name for name in _KEYS.written if name != "kid")
_FIRST: Final = {"name": "first_keys", "value": "made"}
_CALENDAR: Final = "signing_key_calendar"
_FIRST_AUDIT: Final = {"name": "first_audit_key", "value": "made"}


@Statement
def _select_all() -> sa.Select[Any]:
    return select_columns(keys, _KEYS.columns).order_by(keys.c.created_at, keys.c.kid)


@Statement
def _lock_one() -> sa.Select[Any]:
    return select_columns(keys, _KEYS.columns).where(keys.c.kid == sa.bindparam("kid")).with_for_update()


@Statement
def _insert() -> sa.Executable:
    return insert(keys).values(parameters(_KEYS.written))


_ANY: Final = Statement(lambda: sa.select(keys.c.kid).limit(1))
_UPDATE: Final = Statement(
    lambda: sa.update(keys).where(keys.c.kid == sa.bindparam("this_kid")).values(parameters(_CHANGED))
)
_CLAIM: Final = Statement(
    lambda: insert(deployment).values(parameters(tuple(_FIRST))).on_conflict_do_nothing().returning(deployment.c.name)
)


class Keys(AuditedPart):
    """The provider's own keys, encrypted at rest (D42, D43).

    Reading raises EncryptionError when the key-encryption key is another one.
    """

    def __init__(self, database: Database, cipher: SecretCipher, audit: Audit) -> None:
        super().__init__(database, audit)
        self._cipher: Final = cipher
        self._values: Final = NamedValues(database)
        self._codec: Final = encrypted_codec(_KEYS, cipher, "keys", "kid", "secret")
        self._decoded: dict[tuple[object, ...], ProviderKey] = {}
        """the rows as they were read last: they are read every second, and seldom change"""

    async def list_all(self) -> list[ProviderKey]:
        """Oldest first."""
        found = {}
        for row in await self._database.rows(_select_all, {}):
            stored = tuple(row)
            found[stored] = self._decoded.get(stored) or self._codec.decode(row)
        self._decoded = found
        return list(found.values())

    async def add(self, key: ProviderKey, event: AuditEvent) -> None:
        """Raises Conflict for a kid that exists."""
        async with self._database.transaction():
            await self._add(key)
            await self._audit.record_change(event, None, key)

    async def add_first(self, keys: Sequence[ProviderKey]) -> bool:
        """Store the first keys once, even if several processes start together.

        False if there are keys already.
        """
        async with self._database.transaction():
            if await self._database.row(_CLAIM, _FIRST) is None or await self._database.rows(_ANY, {}):
                return False
            for key in keys:
                await self._add(key)
        return True

    async def add_first_audit_key(self, key: ProviderKey) -> bool:
        """Store the first key that seals the audit.

        False if there was one.
        """
        async with self._database.transaction():
            if await self._database.row(_CLAIM, _FIRST_AUDIT) is None:
                return False
            await self._add(key)
        return True

    async def had_audit_key(self) -> bool:
        """Return whether a first audit key was ever stored."""
        return await self._values.get(_FIRST_AUDIT["name"]) is not None

    async def change(self, decide: Callable[[list[ProviderKey]], Iterable[tuple[ProviderKey, AuditEvent]]]) -> None:
        """Write what is decided on the present keys, in one transaction.

        `decide` gets every key, oldest first, and returns those to be added or replaced. The row written first is
        locked until the end, so that one change follows another; what it raises leaves everything as it was.
        """
        async with self._database.transaction():
            await self._values.put(_CALENDAR, "changed")
            stored = await self.list_all()
            found = {key.kid: key for key in stored}
            for key, event in decide(stored):
                before = found.get(key.kid)
                if before is None:
                    await self._add(key)
                else:
                    await self._database.run(_UPDATE, self._codec.encode(key) | {"this_kid": key.kid})
                found[key.kid] = key
                await self._audit.record_change(event, before, key)

    async def update(self, key: ProviderKey, event: AuditEvent) -> None:
        """Raises MissingReference for a kid that does not exist."""
        async with self._database.transaction():
            row = await self._database.row(_lock_one, {"kid": key.kid})
            if not await self._database.run(_UPDATE, self._codec.encode(key) | {"this_kid": key.kid}):
                raise MissingReference(f"there is no key {key.kid!r}")
            await self._audit.record_change(event, None if row is None else self._codec.decode(row), key)

    async def rewrap(self, event: AuditEvent) -> int:
        """Encrypt with the current key all secrets under older keys.

        Returns the rows changed.

        One transaction, with the event. Afterwards the older keys are no longer needed. Raises EncryptionError
        for a row that none of the keys opens; then nothing is changed. D43.
        """
        async with self._database.transaction():
            changed = [await self._rewrap(*column) for column in SEALED]
            await self._audit.write(event)
        return sum(changed)

    async def _rewrap(self, row: sa.Column[Any], column: sa.Column[Any], which: sa.ColumnElement[bool]) -> int:
        table, cipher = str(row.table), self._cipher
        select = Statement(sa.select(row, column).where(which))
        value: dict[str, Any] = {column.name: sa.bindparam("sealed")}
        update = Statement(sa.update(row.table).where(row == sa.bindparam("row")).values(value))
        stored = await self._database.rows(select, {})
        older = [(name, sealed) for name, sealed in stored if not cipher.is_current(sealed)]
        for name, sealed in older:
            secret = cipher.open(table, name, column.name, sealed)
            await self._database.run(update, {"row": name, "sealed": cipher.seal(table, name, column.name, secret)})
        return len(older)

    async def _add(self, key: ProviderKey) -> None:
        try:
            await self._database.run(_insert, self._codec.encode(key))
        except Conflict as conflict:
            raise Conflict(f"there is a key {key.kid!r} already") from conflict


_CHECK: Final = "sealing_check"
_CHECK_TEXT: Final = "corpid"

SEALED: Final = (
    (keys.c.kid, keys.c.secret, keys.c.secret.is_not(None)),
    (credentials.c.user_id, credentials.c.totp_secret, credentials.c.totp_secret.is_not(None)),
    (deployment.c.name, deployment.c.value, deployment.c.name == _CHECK),
)
"""row key, encrypted column, condition of rows that have it"""


async def check_cipher(database: Database, cipher: SecretCipher) -> None:
    """Raise EncryptionError unless the cipher has the key of this database's secrets.

    The first time, it writes the text by which later starts verify the key.
    """
    values = NamedValues(database)
    async with database.transaction():
        if await values.get(_CHECK) is None:
            await values.put_first(_CHECK, cipher.seal("deployment", _CHECK, "value", _CHECK_TEXT))
        sealed = await values.get(_CHECK)
    cipher.open("deployment", _CHECK, "value", sealed or "")
