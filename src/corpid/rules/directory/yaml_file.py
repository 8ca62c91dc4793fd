"""A YAML file: read into nodes, and written.

Nodes are built from the parser's events rather than its loader: scalars stay text (`NO` is Norway, not
false), a repeated key is an error, and aliases, tags and deep nesting, by which a small file
becomes a large one, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import yaml

from corpid.rules.characters import printable, printable_lines
from corpid.rules.directory.nodes import DEPTH, NESTED_TOO_DEEPLY, TOO_MANY_NODES, DirectoryError, FileProblem
from corpid.rules.readers import Items, Node, Pairs, Scalar, quote_value

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_nodes(content: bytes, file: str, most_nodes: int | None) -> Node:
    """The one document of a YAML file as a tree.

    `most_nodes` bounds it. Raises DirectoryError for anything else. Source: docs/directory.md
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DirectoryError(file, [FileProblem(line, "the file is not UTF-8 text")]) from None
    try:
        return _Reader(yaml.parse(text, Loader=_LOADER), most_nodes).document()
    except yaml.YAMLError as error:
        raise DirectoryError(file, [_problem(error, text)]) from None
    except _Refused as refused:
        raise DirectoryError(file, refused.problems) from None


def _problem(error: yaml.YAMLError, text: str) -> FileProblem:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        return FileProblem(line, f"the character {hex(_code_point(error.character))} is not allowed in YAML")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = getattr(error, "problem", None) or "it cannot be read"
    return FileProblem(mark.line + 1 if mark else 0, f"not valid YAML: {reason}")


def _code_point(character: object) -> int:
    return character if isinstance(character, int) else ord(str(character)[:1] or "\0")


class _Refused(Exception):
    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__(problems)
        self.problems = problems


class _Reader:
    """Walks the events of one document.

    Bounded in depth, so that recursion is safe.
    """

    def __init__(self, events: Iterator[yaml.Event], most_nodes: int | None) -> None:
        self._events = events
        self._room = most_nodes
        self._problems: list[FileProblem] = []

    def document(self) -> Node:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _Refused([FileProblem(0, "the file is empty")])
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
                raise _Refused([FileProblem(0, TOO_MANY_NODES)])
        if getattr(event, "anchor", None) is not None:
            self._refuse(
                event, "anchors (&) and aliases (*) are not allowed in directory files: write the value itself"
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            self._refuse(event, f"tags are not allowed in directory files: remove {quote_value(tag)}")
        if depth > DEPTH:
            raise _Refused([*self._problems, FileProblem(line, NESTED_TOO_DEEPLY)])
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
                self._refuse(event, f"{quote_value(key.text)} occurs twice here, first in line {seen[key.text]}")
                continue
            seen[key.text] = key.line
            yield key, node

    def _refuse(self, event: yaml.Event, reason: str) -> None:
        self._problems.append(FileProblem(_line(event), reason))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """A YAML dumper that quotes texts with escaped characters."""


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if printable(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # type: ignore[no-any-return]


_Dumper.add_representer(str, _represented)


def dump_yaml(value: object, *, flow: bool | None) -> str:
    """A value as YAML, on one line with `flow`.

    YAML itself writes bidirectional and zero-width characters as they are; here they are escaped. Source:
    docs/directory.md
    """
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100_000, default_flow_style=flow)
    return printable_lines(str(text))
