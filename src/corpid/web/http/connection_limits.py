"""Limits of a connection, and the answers beyond them (D47)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from corpid.rules import limits as law

if TYPE_CHECKING:
    from collections.abc import Iterable

CROWDED: Final = "crowded"
"""in a request's `scope["state"]`: too many are being answered, so this one is to be refused at once"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a connection; sizes in bytes, times in seconds (D47)."""

    head_bytes: int = law.HEAD_BYTES
    """request line and headers"""
    body_bytes: int = law.BODY_BYTES
    head_seconds: float = law.HEAD_SECONDS
    """from a request's first byte to the end of its headers, and from a connection's beginning to that first byte"""
    body_seconds: float = law.BODY_SECONDS
    """from a request's first byte to the end of its body"""
    idle_seconds: float = 75.0
    """between an answer and the next request"""
    unread_seconds: float = 30.0
    """for the caller to make room when it does not read its answer"""
    linger_seconds: float = 2.0
    """after a refusal, so that the caller reads it before the connection is reset"""
    linger_bytes: int = 1 << 20
    """thrown away after a refusal"""
    header_fields: int = 128
    pipelined: int = 16
    """requests that may wait while an earlier one is answered"""
    connections: int = 4000
    """held at the same time by one process, also those that have not shaken hands"""
    concurrent_requests: int = 1000
    """answered at the same time by one process, over all its connections; what begins beyond them is CROWDED"""

    @property
    def wire_bytes(self) -> int:
        """The most bytes of one request on the wire.

        Chunk sizes, extensions and trailers count here only.
        """
        return 8 * (self.head_bytes + self.body_bytes)


@dataclass(slots=True)
class RequestCount:
    """A count of the requests in progress.

    Without those refused as too many.
    """

    taken: int = 0


def refusal(status: int, description: str, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A whole response: a small JSON error that ends the connection.

    Source: D32, D47
    """
    body = msgspec.json.encode({"error": "invalid_request", "error_description": description})
    headers = [
        *default_headers,
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    ]
    lines = [name + b": " + value + b"\r\n" for name, value in headers]
    return b"".join([STATUS_LINE[status], *lines, b"\r\n", body])
