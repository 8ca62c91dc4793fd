"""Parsing of forms and query strings, each known name at most once.

Source: D14, D81
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

from corpid.rules.limits import FORM_PAIRS
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason

_BROKEN_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_ESCAPE_CHARACTERS: Final = 3
"""that a character of ASCII takes at most"""
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9\-._~]*")
_BOUNDARY: Final = re.compile(
    rb"""multipart/form-data *; *boundary="?([\w'()+,./:=?-]{1,70})"?""", re.ASCII | re.IGNORECASE
)
_PART: Final = re.compile(
    rb"""\r\n(?:[^\r\n]+\r\n)*?content-disposition: *form-data; *name="([^"\r\n]*)"[;\r]""", re.IGNORECASE
)


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(Reason.PARAMETERS_NOT_UTF_8, "the request is not encoded in UTF-8") from None


def _pairs(raw: bytes) -> list[str]:
    """The pairs as they were sent.

    Raises InvalidRequest beyond FORM_PAIRS, before anything is decoded (D47).
    """
    if raw.count(b"&") >= FORM_PAIRS:
        raise InvalidRequest(
            Reason.PARAMETERS_TOO_MANY, f"the request has more than {FORM_PAIRS} parameters: send fewer"
        )
    return _text(raw).split("&")


def _decode(encoded: str) -> str:
    if "+" in encoded:
        encoded = encoded.replace("+", " ")
    # What URLs and URNs are full of, at little cost. A percent sign begins an escape, so the order is of no matter.
    encoded = encoded.replace("%3A", ":").replace("%2F", "/")
    if "%" not in encoded:
        return encoded
    if _BROKEN_PERCENT.search(encoded):
        raise InvalidRequest(Reason.PARAMETERS_BADLY_ENCODED, "the request has a broken percent-encoding")
    return _text(unquote_to_bytes(encoded))


def parse(raw: bytes, known: Collection[str]) -> dict[str, str]:
    """Parse `application/x-www-form-urlencoded` bytes; names outside `known` are ignored.

    A parameter without a value counts as absent. Raises InvalidRequest on a repeated known parameter, on what
    cannot be decoded, and on more than FORM_PAIRS pairs. Source: RFC 6749 §3.1, D14, D47
    """
    parameters: dict[str, str] = {}
    for pair in _pairs(raw):
        name, _, value = pair.partition("=")
        if name not in known:
            name = _decode(name)
            if name not in known:
                continue
        if name in parameters:
            raise InvalidRequest(Reason.PARAMETER_REPEATED, f"parameter {name} is repeated")
        parameters[name] = _decode(value) if "%" in value or "+" in value else value
    return {name: value for name, value in parameters.items() if value}


def find_boundary(content_type: bytes) -> bytes:
    """The boundary of `multipart/form-data`; empty for another type. Source: RFC 7578 §4.1, RFC 2046 §5.1.1"""
    found = _BOUNDARY.fullmatch(content_type)
    return found[1] if found else b""


def parse_parts(body: bytes, boundary: bytes, known: Collection[str], file: str) -> tuple[dict[str, str], bytes]:
    """Parse `multipart/form-data` into parameters and the file.

    `file` names the part of the file, which is empty without one. Other names outside `known` are ignored, and so are
    the name and the type of the file. Of a body that has not come whole, the last part is what has come of it. Raises
    InvalidRequest as `parse`. Source: RFC 7578 §4, D14, D47, D81
    """
    delimiter = b"\r\n--" + boundary
    if body.count(delimiter) > FORM_PAIRS:
        raise InvalidRequest(Reason.PARAMETERS_TOO_MANY, f"the form has more than {FORM_PAIRS} parts: send fewer")
    parameters, uploaded = dict[str, str](), b""
    for part in (b"\r\n" + body).split(delimiter)[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = _PART.match(head + b"\r")
        name = named[1].decode("latin-1") if named else ""
        if name == file:
            uploaded = uploaded or content
        elif name in known:
            if name in parameters:
                raise InvalidRequest(Reason.PARAMETER_REPEATED, f"parameter {name} is repeated")
            parameters[name] = _text(content)
    return {name: value for name, value in parameters.items() if value}, uploaded


def lone(raw: bytes, name: str, *, longest: int) -> str | None:
    """The value of a parameter that was sent exactly once.

    Printable ASCII of at most `longest` characters. For echoing `state` with an error, whatever else is wrong with the
    request. Source: D4
    """
    try:
        pairs = (pair.partition("=") for pair in _pairs(raw))
        values = [value for encoded_name, _, value in pairs if _decode(encoded_name) == name]
        if len(values) != 1 or len(values[0]) > _ESCAPE_CHARACTERS * longest:
            return None
        return short(_decode(values[0]), longest=longest)
    except InvalidRequest:
        return None


def short(value: str, *, longest: int) -> str | None:
    """The value, if not empty, printable and short.

    At most `longest` characters of ASCII. None otherwise (D4).
    """
    return value if 0 < len(value) <= longest and _PRINTABLE.fullmatch(value) else None


def require_parameter(parameters: dict[str, str], name: str) -> str:
    """The value of a parameter that must be there.

    Raises InvalidRequest (RFC 6749 §5.2).
    """
    value = parameters.get(name)
    if value is None:
        raise InvalidRequest(Reason.PARAMETER_MISSING, f"parameter {name} is missing")
    return value


def requote_known(raw: bytes, known: Collection[str]) -> str:
    """The known parameters of a form as a query string.

    Also those that are repeated. Raises InvalidRequest. Source: D40
    """
    pairs = (pair.partition("=") for pair in _pairs(raw))
    decoded = ((_decode(name), _decode(value)) for name, _, value in pairs)
    return "&".join(f"{name}={quote_value(value)}" for name, value in decoded if name in known)


def encode_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Encode as `application/x-www-form-urlencoded`.

    The names need no escapes. Source: RFC 6749 §4.1.2
    """
    return "&".join([f"{name}={value if _UNRESERVED.fullmatch(value) else quote_plus(value)}" for name, value in pairs])


def quote_value(value: str) -> str:
    """A value for a query string (RFC 3986 §2.1)."""
    return value if _UNRESERVED.fullmatch(value) else quote(value, safe="")
