"""Stores behind the ports: SQL databases, Redis or Valkey, memory."""

from __future__ import annotations

from typing import Final

READINESS: Final = "readiness"
"""the kind of what is written to see that something can be written"""
READINESS_SECONDS: Final = 60


def milliseconds(seconds: float) -> int:
    """A moment or a lifetime in whole milliseconds.

    Stores compare expiry in this unit. Source: D49
    """
    return round(seconds * 1000)
