"""base64url and JSON in their only accepted forms (D33)."""

from __future__ import annotations

import binascii
import json
import math
from typing import NoReturn

from corpid.jose.errors import MalformedToken

_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_PADDING = (b"", b"", b"==", b"=")


def base64url(value: bytes) -> str:
    """Encode without padding (RFC 7515 §2)."""
    return binascii.b2a_base64(value, newline=False).translate(_TO_URL).rstrip(b"=").decode("ascii")


def from_base64url(text: str | bytes) -> bytes:
    """Decode canonical, unpadded base64url; raises MalformedToken for anything else (RFC 7515 §2, D33)."""
    try:
        raw = text.encode("ascii") if isinstance(text, str) else text
        padded = raw.translate(_TO_STANDARD, b"") + _PADDING[len(raw) % 4]
        value = binascii.a2b_base64(padded, strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        raise MalformedToken("not base64url") from None
    if binascii.b2a_base64(value, newline=False).translate(_TO_URL).rstrip(b"=") != raw:
        raise MalformedToken("not canonical base64url")
    return value


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


def json_object(raw: bytes | str) -> dict[str, object]:
    """Parse one JSON object; raises MalformedToken on anything else, on a repeated member, NaN or Infinity,
    and on text that cannot be written in UTF-8 (half a surrogate pair).

    Source: RFC 7519 §4, RFC 7493 §2.1, D33
    """
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
