"""The serving processes of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from corpid.rules.server_processes import ServerProcess
from corpid.stores.sql.columns import columns, record_codec
from corpid.stores.sql.statements import insert, parameters
from corpid.stores.sql.tables import server_processes

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database

PROCESSES: Final = record_codec(ServerProcess)
_OF = server_processes.c


class ServerProcesses:
    """Rows in which processes say that they serve."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
        self._note: Final = database.prepare(_noted)
        self._remove: Final = database.prepare(
            lambda: sa.delete(server_processes).where(_OF.process_id == sa.bindparam("process_id"))
        )
        self._remove_old: Final = database.prepare(
            lambda: sa.delete(server_processes).where(_OF.seen_at < sa.bindparam("before", type_=sa.BigInteger))
        )
        self._all: Final = database.prepare(select_processes)

    async def note(self, process: ServerProcess) -> None:
        """Add the row of a process, or replace it."""
        await self._database.write(self._note, PROCESSES.encode(process))

    async def remove(self, process_id: str) -> None:
        """Remove the row of a process that stops, if it is there."""
        await self._database.write(self._remove, {"process_id": process_id})

    async def remove_old(self, *, before: int) -> int:
        """Remove those last seen before this moment; how many that were."""
        return await self._database.write(self._remove_old, {"before": before})

    async def list_all(self) -> list[ServerProcess]:
        """Every process, in the order of host, start and identifier."""
        return [PROCESSES.decode(row) for row in await self._database.rows(self._all, {})]


def select_processes() -> sa.Select[tuple[object, ...]]:
    """Every process. Source: D49"""
    return sa.select(*columns(server_processes, PROCESSES)).order_by(_OF.host, _OF.started_at, _OF.process_id)


def _noted() -> sa.Executable:
    statement = insert(server_processes).values(parameters(PROCESSES.written))
    replaced = {name: statement.excluded[name] for name in PROCESSES.written if name != "process_id"}
    return statement.on_conflict_do_update(index_elements=["process_id"], set_=replaced)
