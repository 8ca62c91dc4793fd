"""Honest values with something else in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Values: TypeAlias = Mapping[str, str | Sequence[str] | None]
"""form fields or headers: None leaves one out, a sequence repeats it"""


def changed(members: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The members with the overrides in place; what is None is left out."""
    return {name: value for name, value in {**members, **overrides}.items() if value is not None}


def pairs(values: Values) -> list[tuple[str, str]]:
    """Values as name and value pairs; None is left out, a sequence repeated."""
    flat: list[tuple[str, str]] = []
    for name, value in values.items():
        repeated = [value] if isinstance(value, str) else (value or [])
        flat += [(name, one) for one in repeated]
    return flat
