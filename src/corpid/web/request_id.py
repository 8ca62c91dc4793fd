"""The identifier of a request, by which its log line is found (D28)."""

from __future__ import annotations

import itertools
import os
from typing import Final

_MASK: Final = (1 << 64) - 1


class _RequestIds:
    """A walk through every 64-bit number, from a random place in random steps."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._start = int.from_bytes(os.urandom(8))
        self._step = int.from_bytes(os.urandom(8)) | 1
        self._numbers = itertools.count()

    def next(self) -> str:
        return f"{(self._start + next(self._numbers) * self._step) & _MASK:016x}"


_ids: Final = _RequestIds()
# Processes that share a port were one process once, and must not walk in step.
os.register_at_fork(after_in_child=_ids.begin)


def new_request_id() -> str:
    """16 hexadecimal characters that no other request of this process has; our own, never the caller's (D28)."""
    return _ids.next()
