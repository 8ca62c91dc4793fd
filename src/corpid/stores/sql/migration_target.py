"""The interface that migrations need of an engine, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import sqlalchemy as sa


class SchemaError(Exception):
    """The database cannot be used, at least by this version.

    The message is one sentence for operators.
    """


class SchemaNewer(SchemaError):
    """A newer CorpID has migrated the database."""


class SchemaOlder(SchemaError):
    """The database waits for `corpid migrate`."""


class ContractFirst(SchemaError):
    """Contracting is refused while servers of the previous version run."""


class MigrationStopped(SchemaError):
    """The migration was stopped on request; finished steps stay."""


class DatabaseBusy(SchemaError):
    """Others hold locks that a migration needs; it gave up waiting."""


class DatabaseUnreachable(SchemaError):
    """The database cannot be opened."""


class DatabaseForgetful(SchemaError):
    """The database is configured to lose confirmed writes."""


class EncodingRefused(SchemaError):
    """The database cannot hold every name."""


class PoolerRefused(SchemaError):
    """A pooler answers, and a session of the database is needed."""


T = TypeVar("T")


class MigrationTarget(Protocol):
    """A database whose schema is read or changed.

    Every method raises SchemaError.
    """

    @property
    def display_name(self) -> str:
        """Its name, without secrets."""
        ...

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in one transaction that changes nothing."""
        ...

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` in one transaction, all of it or nothing.

        Where others hold what it needs it gives way and tries again, and raises DatabaseBusy in the end.
        """
        ...

    def run_outside_transaction(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` outside a transaction, if the engine supports it."""
        ...

    def hold_lock(self, report: Callable[[str], None], stop: threading.Event) -> AbstractContextManager[None]:
        """Others that want to change the schema wait.

        Raises MigrationStopped while waiting itself.
        """
        ...

    def refuse_pooler(self) -> None:
        """Raise PoolerRefused unless each connection is a session of the engine."""
        ...

    def refuse_served(self, before: Sequence[str]) -> None:
        """Raise DatabaseBusy while servers run that a change would break.

        Those whose version is one of `before`, or unknown.
        """
        ...
