"""Nodes of a directory document with line numbers, and problems by line."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

SHOWN: Final = 50
"""more problems of one file than this are counted, not listed"""
QUOTED_CHARACTERS: Final = 80
"""a problem repeats so much of a value, so that its line stays one to read"""


def quote_value(value: object) -> str:
    """A value of the file for a message: 80 characters, escaped.

    The first 80. Source: docs/directory.md
    """
    return repr(cut_text(value) if isinstance(value, str) else value)


def cut_text(text: str) -> str:
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
        shown = [locate_problem(self.file, problem) for problem in self.problems[:SHOWN]]
        rest = len(self.problems) - len(shown)
        return [*shown, f"{self.file}: and {rest} more problems"] if rest else shown


def locate_problem(file: str, problem: Problem) -> str:
    """A problem as `file:line: reason`. Source: docs/directory.md"""
    return f"{file}:{problem.line}: {problem.reason}" if problem.line else f"{file}: {problem.reason}"


DEPTH: Final = 10
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
