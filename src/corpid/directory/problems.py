"""What is wrong with a directory file, said so that a person can repair it."""

from __future__ import annotations

from typing import Final

import msgspec

SHOWN: Final = 50
"""more problems of one file than this are counted, not listed"""
QUOTED_CHARACTERS: Final = 80
"""a problem repeats so much of a value, so that its line stays one to read"""


def quoted(value: object) -> str:
    """A value of the file as a problem repeats it: its first 80 characters, escaped. Source: docs/directory.md"""
    return repr(cut(value) if isinstance(value, str) else value)


def cut(text: str) -> str:
    """The first 80 characters of a text, with … where there were more. Source: docs/directory.md"""
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"


class Problem(msgspec.Struct, frozen=True, order=True):
    """One fault of a file, at a line (counted from 1; 0 concerns the whole file)."""

    line: int
    reason: str


class DirectoryError(Exception):
    """A directory file cannot be applied; nothing was changed. Lists every problem found."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One `file:line: reason` per problem, at most 50 and a count of the rest."""
        shown = [located(self.file, problem) for problem in self.problems[:SHOWN]]
        rest = len(self.problems) - len(shown)
        return [*shown, f"{self.file}: and {rest} more problems"] if rest else shown


def located(file: str, problem: Problem) -> str:
    """A problem as `file:line: reason`. Source: docs/directory.md"""
    return f"{file}:{problem.line}: {problem.reason}" if problem.line else f"{file}: {problem.reason}"
