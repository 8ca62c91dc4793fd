"""Idempotency keys of the admin API and their first responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import sqlalchemy as sa

from corpid.rules.oauth.api_client import StoredResponse
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import api_answers

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database, Transaction

_SWEPT: Final = 100
"""expired keys that a new one removes"""
_RESPONSES: Final = msgspec.json.Decoder(StoredResponse)


class IdempotencyKeys:
    """First responses by client and key, stored as long as repeatable."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        row = api_answers.c
        this = sa.and_(row.client_id == sa.bindparam("client"), row.key == sa.bindparam("named"))
        expired = sa.select(api_answers).where(row.expires_at <= sa.bindparam("now")).limit(_SWEPT)
        self._get: Final = database.prepare(
            lambda: sa.select(row.answer).where(this, row.expires_at > sa.bindparam("now"))
        )
        self._sweep: Final = database.prepare(
            lambda: sa.delete(api_answers).where(database.is_among(api_answers, expired))
        )
        self._end: Final = database.prepare(
            lambda: sa.delete(api_answers).where(this, row.expires_at <= sa.bindparam("now"))
        )
        columns = ("client_id", "key", "answer", "expires_at")
        self._claim: Final = database.prepare(
            lambda: insert(api_answers).values(parameters(columns)).on_conflict_do_nothing()
        )
        self._put: Final = database.prepare(
            lambda: sa.update(api_answers).where(this).values(answer=sa.bindparam("given"))
        )

    async def get(self, client_id: str, key: str, *, now: float) -> StoredResponse | None:
        row = await self._database.row(self._get, {"client": client_id, "named": key, "now": int(now)})
        return None if row is None else _RESPONSES.decode(row[0])

    def transaction(self) -> Transaction:
        """A transaction of this task. Raises StoreUnavailable."""
        return self._database.transaction()

    async def claim(self, client_id: str, key: str, *, now: float, seconds: int) -> bool:
        """Claim a key inside a transaction; True for the first only.

        Waits for another transaction with this key. `now` in epoch seconds, `seconds` until the key may be used again.
        Also removes some expired keys.
        """
        await self._database.run(self._sweep, {"now": int(now)})
        await self._database.run(self._end, {"client": client_id, "named": key, "now": int(now)})
        values = {"client_id": client_id, "key": key, "answer": "", "expires_at": int(now) + seconds}
        return await self._database.run(self._claim, values) == 1

    async def put(self, client_id: str, key: str, response: StoredResponse) -> None:
        """Store the response of a claimed key, in the same transaction."""
        text = msgspec.json.encode(response).decode()
        await self._database.run(self._put, {"client": client_id, "named": key, "given": text})
