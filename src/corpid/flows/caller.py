"""Who sent a request, and when: read once at the edge and passed down."""

from __future__ import annotations

import msgspec


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """`now` is the request's one reading of the clock (D49); `request_id` is the reference in errors (D28)."""

    request_id: str
    address: str
    now: float
    device: str = ""
    """of a page's reader: browser and system, where they are known"""
