"""The real provider on a database of its own, at a moment that the test sets."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from corpid import app, settings
from corpid.rules.audit import AuditEvent
from tests import engines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from corpid.flows.request_context import Provider

NOW: Final = 1_800_000_000.0
EVENT: Final = AuditEvent(actor="operator", action="test.change")
T = TypeVar("T")


@dataclass(slots=True)
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def provider_at(path: Path) -> AsyncIterator[Provider]:
    """A new provider, whose keys were made at NOW."""
    engines.sqlite(path / "corpid.sqlite")
    async with app.create(settings.load(data_dir=path), clock=Clock()) as application:
        yield application.provider
