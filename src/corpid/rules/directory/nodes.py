"""YAML nodes with line numbers, and problems by line.

Built from the parser's events rather than its loader: scalars stay text (`NO` is Norway, not
false), a repeated key is an error, and aliases, tags and deep nesting, by which a small file
becomes a large one, are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN: Final = 50
"""more problems of one file than this are counted, not listed"""
QUOTED_CHARACTERS: Final = 80
"""a problem repeats so much of a value, so that its line stays one to read"""


def quoted(value: object) -> str:
    """A value of the file for a message: 80 characters, escaped.

    The first 80. Source: docs/directory.md
    """
    return repr(cut(value) if isinstance(value, str) else value)


def cut(text: str) -> str:
    """The first 80 characters of a text, with … if cut.

    Source: docs/directory.md
    """
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"


class Problem(msgspec.Struct, frozen=True, order=True):
    """A fault of a file, at a line.

    Counted from 1; 0 concerns the whole file.
    """

    line: int
    reason: str


class DirectoryError(Exception):
    """A directory file cannot be applied.

    Nothing was changed. Lists every problem found.
    """

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One `file:line: reason` per problem, at most 50.

        And a count of the rest.
        """
        shown = [located(self.file, problem) for problem in self.problems[:SHOWN]]
        rest = len(self.problems) - len(shown)
        return [*shown, f"{self.file}: and {rest} more problems"] if rest else shown


def located(file: str, problem: Problem) -> str:
    """A problem as `file:line: reason`. Source: docs/directory.md"""
    return f"{file}:{problem.line}: {problem.reason}" if problem.line else f"{file}: {problem.reason}"


DEPTH: Final = 10
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NESTED_TOO_DEEPLY: Final = "nested too deeply"
MOST_NODES: Final = 2_000_000
"""of a document that comes from elsewhere: what is built of it stays below a gigabyte (D59)"""
TOO_MANY_NODES: Final = f"too large: more than {MOST_NODES:,} keys and values"


class Scalar(msgspec.Struct, frozen=True):
    """A text, as it was written; `plain` when without quotes."""

    line: int
    text: str
    plain: bool


class Items(msgspec.Struct, frozen=True):
    """A sequence."""

    line: int
    nodes: tuple[Node, ...]


class Pairs(msgspec.Struct, frozen=True):
    """A mapping, in the order of the file; keys are unique."""

    line: int
    entries: tuple[tuple[Scalar, Node], ...]


Node: TypeAlias = Scalar | Items | Pairs


def read_nodes(content: bytes, file: str, most_nodes: int | None = None) -> Node:
    """The one document of a YAML file as a tree.

    `most_nodes` bounds it. Raises DirectoryError for anything else. Source: docs/directory.md
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DirectoryError(file, [Problem(line, "the file is not UTF-8 text")]) from None
    try:
        return _Reader(yaml.parse(text, Loader=LOADER), most_nodes).document()
    except yaml.YAMLError as error:
        raise DirectoryError(file, [_problem(error, text)]) from None
    except _Refused as refused:
        raise DirectoryError(file, refused.problems) from None


def _problem(error: yaml.YAMLError, text: str) -> Problem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        return Problem(line, f"the character {hex(_code_point(error.character))} is not allowed in YAML")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = getattr(error, "problem", None) or "it cannot be read"
    return Problem(mark.line + 1 if mark else 0, f"not valid YAML: {reason}")


def _code_point(character: object) -> int:
    return character if isinstance(character, int) else ord(str(character)[:1] or "\0")


class _Refused(Exception):
    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


class _Reader:
    """Walks the events of one document.

    Bounded in depth, so that recursion is safe.
    """

    def __init__(self, events: Iterator[yaml.Event], most_nodes: int | None) -> None:
        self._events = events
        self._room = most_nodes
        self._problems: list[Problem] = []

    def document(self) -> Node:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _Refused([Problem(0, "the file is empty")])
        node = self._node(next(self._events), 0)
        next(self._events)  # the document's end
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            self._refuse(following, "a second document starts here: a file can have only one document")
        if self._problems:
            raise _Refused(self._problems)
        return node

    def _node(self, event: yaml.Event, depth: int) -> Node:
        line = _line(event)
        if self._room is not None:
            self._room -= 1
            if self._room < 0:
                raise _Refused([Problem(0, TOO_MANY_NODES)])
        if getattr(event, "anchor", None) is not None:
            self._refuse(
                event, "anchors (&) and aliases (*) are not allowed in directory files: write the value itself"
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._refuse(event, f"tags are not allowed in directory files: remove {quoted(tag)}")
        if depth > DEPTH:
            raise _Refused([*self._problems, Problem(line, NESTED_TOO_DEEPLY)])
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(line, event.value, not event.style)
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(line, tuple(self._items(depth)))
        if isinstance(event, yaml.MappingStartEvent):
            return Pairs(line, tuple(self._pairs(depth)))
        return Scalar(line, "", plain=False)

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _pairs(self, depth: int) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            node = self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar):
                self._refuse(event, "a key must be a text")
                continue
            if key.text in seen:
                self._refuse(event, f"{quoted(key.text)} occurs twice here, first in line {seen[key.text]}")
                continue
            seen[key.text] = key.line
            yield key, node

    def _refuse(self, event: yaml.Event, reason: str) -> None:
        self._problems.append(Problem(_line(event), reason))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0
