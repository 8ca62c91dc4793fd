"""base64url and JSON in their only accepted forms (D33).

Errors of tokens and keys derive from JoseError, and their texts may be shown to the sender.
"""

from __future__ import annotations

import binascii
import json
import math
from typing import Final, NoReturn

import msgspec


class JoseError(Exception):
    """The input is malformed or refused.

    The text is public (D28).
    """


class MalformedToken(JoseError):
    """Not a compact JWS of the closed form (D33)."""


_decode: Final = binascii.a2b_base64
_encode: Final = binascii.b2a_base64
_TO_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")
"""maps characters of base64 alone to one outside both alphabets"""
_TO_URL = bytes.maketrans(b"+/", b"-_")
_PADDING = (b"", b"", b"==", b"=")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_LAST: Final[tuple[frozenset[int], ...]] = (
    frozenset(),
    frozenset(),
    frozenset(_ALPHABET[::16]),
    frozenset(_ALPHABET[::4]),
)
"""length modulo 4 → last characters whose unused bits are zero"""


def base64url(value: bytes) -> str:
    """Encode without padding (RFC 7515 §2)."""
    return _encode(value, newline=False).translate(_TO_URL).rstrip(b"=").decode("ascii")


def base64url_bytes(value: bytes) -> bytes:
    """As `base64url`, for a text that is put together of several (RFC 7515 §2)."""
    return _encode(value, newline=False).translate(_TO_URL).rstrip(b"=")


def tuple_bytes(*parts: str) -> bytes:
    """Texts as unambiguous bytes, for hashes and MACs.

    Each has its length before it (MessagePack). Source: docs/architecture.md, "One-time use"
    """
    return msgspec.msgpack.encode(parts)


def from_base64url(text: str | bytes) -> bytes:
    """Decode canonical, unpadded base64url.

    Raises MalformedToken for anything else (RFC 7515 §2, D33).
    """
    try:
        raw = text.encode("ascii") if isinstance(text, str) else text
        over = len(raw) % 4
        value = _decode(raw.translate(_TO_STANDARD) + _PADDING[over], strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        raise MalformedToken("not base64url") from None
    if over and raw[-1] not in _LAST[over]:
        raise MalformedToken("not canonical base64url")
    return value


def without_null(members: dict[str, object]) -> dict[str, object]:
    """The members that have a value.

    Source: D85
    """
    if None in members.values():
        return {name: value for name, value in members.items() if value is not None}
    return members


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedToken("a JSON member is repeated")
    return members


def _no_constant(name: str) -> NoReturn:
    raise MalformedToken(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MalformedToken("a JSON number is out of range")
    return value


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _as_we_write(raw: bytes) -> dict[str, object] | None:
    """The object, if these bytes are its compact JSON form.

    Then no member can have been lost in reading. Most tokens are so. The others are parsed more slowly.
    """
    try:
        value = msgspec.json.decode(raw)
        if isinstance(value, dict) and msgspec.json.encode(value) == raw:
            return value
    except (ValueError, RecursionError):
        pass
    return None


def json_object(raw: bytes | str) -> dict[str, object]:
    """Parse one JSON object.

    Raises MalformedToken on anything else, on a repeated member, NaN or Infinity, and on text that cannot be written in
    UTF-8 (half a surrogate pair).

    Source: RFC 7519 §4, RFC 7493 §2.1, D33
    """
    if isinstance(raw, bytes):
        members = _as_we_write(raw)
        if members is not None:
            return members
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value = _decoder.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # an escape can hold half a surrogate pair
    except (ValueError, RecursionError):
        raise MalformedToken("not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise MalformedToken("not a JSON object")
    return value
