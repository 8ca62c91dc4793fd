"""The interface that migrations need of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import sqlalchemy as sa

T = TypeVar("T")


class MigrationTarget(Protocol):
    """A database whose schema is read or changed.

    Every method raises schema_errors.SchemaError.
    """

    @property
    def shown(self) -> str:
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

    def outside(self, work: Callable[[sa.Connection], T]) -> T:
        """Do `work` outside a transaction, if the engine supports it."""
        ...

    def alone(self, report: Callable[[str], None], stop: threading.Event) -> AbstractContextManager[None]:
        """Others that want to change the schema wait.

        Raises MigrationStopped while waiting itself.
        """
        ...

    def refuse_served(self, before: Sequence[str]) -> None:
        """Raise DatabaseBusy while servers run that a change would break.

        Those whose version is one of `before`, or unknown.
        """
        ...
