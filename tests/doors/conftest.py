"""Worlds and terminals for what comes in at every door."""

from __future__ import annotations

from tests.cli.conftest import empty_terminal, terminal
from tests.protocol.fixtures import world, worlds

__all__ = ["empty_terminal", "terminal", "world", "worlds"]
