"""Text that would do something to a terminal, in every place that a store or an argument has for text."""

from __future__ import annotations

import json
import types
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from corpid.rules.characters import printable

if TYPE_CHECKING:
    from collections.abc import Callable

TRICKS: Final = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202e\u2066\u200b\ufeff\u3164\u2028\x85\r\nFORGED\t"
"""escape sequences (ESC and C1), bidirectional and zero-width characters, and what may begin a line"""
FORGED: Final = "FORGED"


def hostile(where: str) -> str:
    """A hostile text that says where it stood."""
    return f"{where}{TRICKS}"


def is_clean(output: str) -> bool:
    """Whether nothing in it was obeyed, and no line is one that a text made up."""
    lines = output.split("\n")
    return all(line == printable(line) and not line.lstrip(" │┃").startswith(FORGED) for line in lines)


def filled(kind: type[msgspec.Struct], **given: Any) -> Any:
    """A record in which every text, also within tuples and structs, is hostile, apart from what is given."""
    hints = get_type_hints(kind)
    named = [name for name in kind.__struct_fields__ if name not in given]
    return kind(**{name: _value(hints[name], f"{kind.__name__}.{name}", given) for name in named}, **given)


def _value(hint: Any, where: str, given: dict[str, Any]) -> Any:
    parts: tuple[Any, ...] = get_args(hint)
    origin = get_origin(hint)
    if hint is str:
        return hostile(where)
    if origin is Literal:
        return parts[0]
    if origin in (types.UnionType, Union):
        return _value(parts[0], where, given)
    if origin is tuple:
        return (_value(parts[0], where, given),)
    if origin is dict:
        return {hostile(f"{where}.key"): hostile(where)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return filled(hint)
    return {bool: True, int: 1, float: 1.5}[hint]


def texts_of(value: object) -> set[str]:
    """Every hostile text in a value that came out of JSON or a struct."""
    found: set[str] = set()
    _walk(msgspec.to_builtins(value), found.add)
    return found


def _walk(value: object, found: Callable[[str], None]) -> None:
    if isinstance(value, str) and TRICKS in value:
        found(value)
    elif isinstance(value, dict):
        for key, each in value.items():
            _walk(key, found)
            _walk(each, found)
    elif isinstance(value, list | tuple):
        for each in value:
            _walk(each, found)


def key_set() -> str:
    """A key set as an earlier version stored it, with a kid that is refused today."""
    return json.dumps({"keys": [{"kty": "EC", "use": "sig", "kid": hostile("kid")}]}, ensure_ascii=False)
