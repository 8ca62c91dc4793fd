"""The parser of HTTP/1.1 requests, httptools'."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httptools

if TYPE_CHECKING:
    from collections.abc import Iterable

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})


def new_parser(protocol: object) -> httptools.HttpRequestParser:
    """A parser that calls this object.

    It does not judge a version, and what comes after a request that its caller called the last is no error.
    Source: RFC 9110 §2.5, RFC 9112 §9.6
    """
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True, lenient_version=True)
    return parser


def framing_head(parser: httptools.HttpRequestParser, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of the parsed request without an offered upgrade.

    It has nothing but what tells where the body and the connection end. Source: RFC 9110 §7.8, RFC 9112 §6, §9.3
    """
    fields = [field for field in headers if field[0] in _FRAMING]
    if not parser.should_keep_alive():
        fields.append((b"connection", b"close"))
    lines = b"".join([b"%b: %b\r\n" % field for field in fields])
    return b"%b / HTTP/%b\r\n%b\r\n" % (parser.get_method(), parser.get_http_version().encode(), lines)
