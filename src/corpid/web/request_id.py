"""The identifier of a request, by which its log line is found (D28)."""

from __future__ import annotations

import itertools
import os
from typing import Final

_START: Final = int.from_bytes(os.urandom(8))
_STEP: Final = int.from_bytes(os.urandom(8)) | 1
_MASK: Final = (1 << 64) - 1
_numbers: Final = itertools.count()


def new_request_id() -> str:
    """16 hexadecimal characters that no other request of this process has; our own, never the caller's (D28)."""
    return f"{(_START + next(_numbers) * _STEP) & _MASK:016x}"
