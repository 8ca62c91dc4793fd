"""HTML that is rendered once with slots, and filled many times."""

from __future__ import annotations

import re
import secrets
from typing import Final, TypeAlias

_MARK: Final = f"slot{secrets.token_hex(16)}"
"""no text contains it, and it needs no escaping in HTML or a URL"""
_MARKED: Final = re.compile(f"({_MARK}[a-z]+[0-9]*_)")


class Slot(str):
    """A place in a page that each request fills."""

    __slots__ = ()

    @classmethod
    def named(cls, name: str) -> Slot:
        """`name` in lower-case letters, perhaps with a number."""
        return cls(f"{_MARK}{name}_")


Filling: TypeAlias = dict[str, str]
"""HTML by slot"""


class CompiledPage:
    """Rendered HTML with slots."""

    __slots__ = ("_parts", "_slots")

    def __init__(self, html: str) -> None:
        self._parts = _MARKED.split(html)
        self._slots = self._parts[1::2]

    def filled(self, filling: Filling) -> str:
        """The HTML with every slot filled."""
        parts = self._parts.copy()
        parts[1::2] = map(filling.__getitem__, self._slots)
        return "".join(parts)
