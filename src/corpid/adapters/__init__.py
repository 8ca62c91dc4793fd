"""The world behind the ports: databases, RP key sets, passwords."""

from __future__ import annotations


def milliseconds(seconds: float) -> int:
    """A moment or a lifetime in whole milliseconds, the unit in which stores compare expiry (D49)."""
    return round(seconds * 1000)
