"""The base of the registry's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corpid.stores.sql.statements import Database


class Part:
    """Methods on a database; their statements stand in the module."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database
