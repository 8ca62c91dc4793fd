"""The target of a request line (RFC 9112 §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import httptools

if TYPE_CHECKING:
    from typing import Any


def parts(target: bytes) -> tuple[bytes, bytes, bytes]:
    """Host, port with its colon, and path, each empty if absent. Raises HttpParserInvalidURLError (RFC 9112 §3.2.2)."""
    parsed: Any = httptools.parse_url(target)  # its stub knows nothing of absent parts
    port = b"" if parsed.port is None else b":%d" % parsed.port
    return parsed.host or b"", port, parsed.path or b""


def path(target: bytes) -> str:
    """The decoded path, as routes are compared with it. Raises HttpParserInvalidURLError or UnicodeDecodeError.

    RFC 3986 §6.2.2.2
    """
    return unquote(parts(target)[2].decode("ascii"))
