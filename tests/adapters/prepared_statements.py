"""Every statement that the adapters make ready, so that none can be forgotten when plans are looked at."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from corpid.stores.sql import statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from corpid.stores.sql.open import SqlStores
    from corpid.stores.sql.statements import Prepared

_NUMBERS = (1, 3)
"""of services or words, for which a statement is made when it is first needed"""


@contextmanager
def noted() -> Iterator[list[str]]:
    """The texts of the statements that are prepared meanwhile."""
    texts: list[str] = []
    prepare = statements.prepare

    def noting(statement: sa.Executable, dialect: sa.Dialect) -> Prepared:
        made = prepare(statement, dialect)
        texts.append(made.text)
        return made

    statements.prepare = noting
    try:
        yield texts
    finally:
        statements.prepare = prepare


def make_the_rest(stores: SqlStores) -> None:
    """Prepare also what depends on how many are asked for."""
    directory = stores.registry.directory
    directory._choices(0)
    directory._count(0)
    for made in vars(directory).values():
        if hasattr(made, "cache_info"):
            for number in _NUMBERS:
                made(number)
