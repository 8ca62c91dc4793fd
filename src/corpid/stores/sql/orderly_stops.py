"""Notes of orderly stops: which marker proves that nothing was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.stores.sql.deployment import STORE_IN_USE, NamedValues

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database

_STOP: Final = "orderly_stop"
_BEGUN: Final = "begun"
_CONFIRMED: Final = "confirmed"
_OVER: Final = "over"


class SqlOrderlyStops:
    """A OrderlyStops in the deployment table (docs/decisions/0027).

    There is one value, so each stop ends the one before.
    """

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._values: Final = NamedValues(database)

    async def begin(self, name: str, *, store_identity: str) -> None:
        async with self._database.transaction():
            await self._values.put(_STOP, _encoded(_BEGUN, name, store_identity))

    async def confirm(self, name: str, *, store_identity: str) -> bool:
        before, confirmed = _encoded(_BEGUN, name, store_identity), _encoded(_CONFIRMED, name, store_identity)
        async with self._database.transaction():
            return await self._values.change(_STOP, before, confirmed)

    async def end(self, name: str, *, store_identity: str) -> bool:
        """False also if another store was used meanwhile."""
        async with self._database.transaction():
            used, _, _ = (await self._values.get(STORE_IN_USE) or "").partition(" ")
            return used == store_identity and await self._values.change(
                _STOP, _encoded(_CONFIRMED, name, store_identity), _OVER
            )

    async def void(self) -> None:
        """Reads alone if there is none."""
        while (stop := await self._values.get(_STOP)) not in (None, _OVER):
            async with self._database.transaction():
                await self._values.change(_STOP, str(stop), _OVER)


def _encoded(state: str, name: str, store_identity: str) -> str:
    return f"{state} {name} {store_identity}"
