"""Nodes of a directory document with line numbers, and problems by line.

JSON becomes nodes, too: what a member may hold is decided by the same readers as in a file, and a node's line is a
number that stands for its JSON pointer. It is parsed strictly: a repeated member, NaN, half a surrogate pair, NUL and
deep nesting are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NoReturn, TypeAlias

import msgspec

from corpid.rules.directory.names import without_marks
from corpid.rules.readers import Items, Node, Pairs, Scalar

SHOWN: Final = 50
"""more problems of one file than this are counted, not listed"""


DEPTH: Final = 10
NESTED_TOO_DEEPLY: Final = "nested too deeply"
MOST_NODES: Final = 2_000_000
"""of a document that comes from elsewhere: what is built of it stays below a gigabyte (D59)"""
TOO_MANY_NODES: Final = f"too large: more than {MOST_NODES:,} keys and values"


Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
_FIRST_SURROGATE: Final = "\ud800"
_LAST_SURROGATE: Final = "\udfff"
_SEPARATORS: Final = (b",", b"[", b"{")
"""one of them comes before each value but the first; those in texts count, too"""
_MARKS: Final = re.compile(rb"\xe2\x80[\x8e\x8f]|\xef\xbb\xbf|\\t|\\u(200[ef]|feff|0009)", re.IGNORECASE)
"""what `without_marks` replaces, as bytes or escaped"""
_WHOLE: Final = 1
"""the line of the whole document"""


class FileProblem(msgspec.Struct, frozen=True, order=True):
    """A fault of a file, at a line.

    Counted from 1; 0 concerns the whole file.
    """

    line: int
    reason: str


class DirectoryError(Exception):
    """A directory file cannot be applied.

    Nothing was changed. Lists every problem found.
    """

    def __init__(self, file: str, problems: list[FileProblem]) -> None:
        self.file = file
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One `file:line: reason` per problem, at most 50.

        And a count of the rest.
        """
        shown = [locate_problem(self.file, problem) for problem in self.problems[:SHOWN]]
        rest = len(self.problems) - len(shown)
        return [*shown, f"{self.file}: and {rest} more problems"] if rest else shown


def locate_problem(file: str, problem: FileProblem) -> str:
    """A problem as `file:line: reason`. Source: docs/directory.md"""
    return f"{file}:{problem.line}: {problem.reason}" if problem.line else f"{file}: {problem.reason}"


class JsonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON value as nodes, and the place of each node.

    Pointers are written when they are asked for: those of a long list in a member with a long name would be many times
    as large as the body.
    """

    root: Node
    places: tuple[tuple[int, str | int], ...]
    """by line: the line of what a node stands in, and its name or number there; lines 0 and 1 are the whole document"""

    def pointer(self, line: int) -> str:
        """The JSON pointer of a problem's line. Source: RFC 6901"""
        parts: list[str | int] = []
        while _WHOLE < line < len(self.places):
            line, part = self.places[line]
            parts.append(part)
        return pointer(*reversed(parts))


class _InvalidJson(ValueError):
    """JSON that is not accepted; the text says why."""


def json_value(content: bytes) -> Json:
    """A JSON value, parsed strictly.

    Its texts are `without_marks`. Raises DirectoryError with one problem about the whole for
    anything else. Source: RFC 7493 §2, D59, D74
    """
    if len(content) > MOST_NODES and sum(map(content.count, _SEPARATORS)) > MOST_NODES:
        raise _whole(TOO_MANY_NODES)
    try:
        value: Json = json.loads(content.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
        _check(value, 0)
    except UnicodeDecodeError:
        raise _whole("the body is not UTF-8 text") from None
    except RecursionError:
        raise _whole(NESTED_TOO_DEEPLY) from None
    except _InvalidJson as error:
        raise _whole(str(error)) from None
    except json.JSONDecodeError as error:
        raise _whole(f"not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise _whole("not valid JSON: a number has too many digits") from None
    return _value_without_marks(value) if _MARKS.search(content) else value


def _value_without_marks(value: Json) -> Json:
    if isinstance(value, str):
        return without_marks(value)
    if isinstance(value, list):
        return [_value_without_marks(item) for item in value]
    if isinstance(value, dict):
        return {name: _value_without_marks(item) for name, item in value.items()}
    return value


def nodes(value: Json) -> JsonDocument:
    """A JSON value as nodes of a directory file. Source: D59, docs/directory.md"""
    places: list[tuple[int, str | int]] = [(0, "")]
    root = _node(value, (0, ""), places)
    return JsonDocument(root=root, places=tuple(places))


def merge_patch(target: Json, patch: Json) -> Json:
    """The target after a JSON merge patch. Source: RFC 7396 §2"""
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Json] = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def pointer(*parts: str | int) -> str:
    """The JSON pointer of a member. Source: RFC 6901 §3"""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _whole(reason: str) -> DirectoryError:
    return DirectoryError("", [FileProblem(0, reason)])


def _unique(pairs: list[tuple[str, Json]]) -> Mapping[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _InvalidJson(f"the member {repeated[:80]!r} occurs twice in one object")
    return members


def _no_constant(name: str) -> NoReturn:
    raise _InvalidJson(f"{name} is not JSON")


def _check(value: Json, depth: int) -> None:
    if depth > DEPTH:
        raise _InvalidJson(NESTED_TOO_DEEPLY)
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise _InvalidJson("a number is out of range")
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            _check_text(name)
            _check(item, depth + 1)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise _InvalidJson("a text contains the character U+0000")
    if not text.isascii() and any(_FIRST_SURROGATE <= each <= _LAST_SURROGATE for each in text):
        raise _InvalidJson("a text contains a single surrogate")


def _node(value: Json, at: tuple[int, str | int], places: list[tuple[int, str | int]]) -> Node:
    line = len(places)
    places.append(at)
    if isinstance(value, list):
        return Items(line, tuple(_node(item, (line, number), places) for number, item in enumerate(value)))
    if isinstance(value, dict):
        return Pairs(line, tuple(_pair(name, item, line, places) for name, item in value.items()))
    if isinstance(value, str):
        return Scalar(line, value, plain=False)
    return Scalar(line, "" if value is None else json.dumps(value), plain=True)


def _pair(name: str, value: Json, around: int, places: list[tuple[int, str | int]]) -> tuple[Scalar, Node]:
    line = len(places)
    return Scalar(line, name, plain=False), _node(value, (around, name), places)
