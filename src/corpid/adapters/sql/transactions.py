"""Statements that become true together, on either engine."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from corpid.ports import StoreUnavailable
from corpid.protocol.errors import OAuthError

if TYPE_CHECKING:
    from types import TracebackType


class Transacting(Protocol):
    """A database whose transactions belong to the task that began them."""

    async def begin(self) -> bool:
        """Begin a transaction for this task; False if it has one open, which is joined. Raises StoreUnavailable."""
        ...

    async def end(self, *, commit: bool) -> None:
        """End this task's transaction. Raises StoreUnavailable when it could not be."""
        ...


class Transaction:
    """Ends as Database.transaction says; what was spent stays spent when a flow refuses."""

    __slots__ = ("_database", "_outermost")

    def __init__(self, database: Transacting) -> None:
        self._database = database
        self._outermost = False

    async def __aenter__(self) -> None:
        self._outermost = await self._database.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._outermost:
            return
        if error is None or isinstance(error, OAuthError):
            await self._database.end(commit=True)
        else:
            with suppress(StoreUnavailable):
                await self._database.end(commit=False)
