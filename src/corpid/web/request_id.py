"""The identifier of a request, by which its log line is found (D28)."""

from __future__ import annotations

import os


def new_request_id() -> str:
    """16 random hexadecimal characters; always our own, never the caller's (D28)."""
    return os.urandom(8).hex()
