"""A table (CSV) of an entity's people and their roles."""

from __future__ import annotations

from typing import Final

import msgspec

from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.table import read_table
from corpid.texts import phrase

PARAMETER: Final = "parameter:"
"""begins the column of a parameter"""
COLUMNS: Final = ("user_name", "name", "email", "service", "role", "sub_entity", "start_date", "end_date")
NEEDED: Final = ("user_name",)
MOST_LINES: Final = 100


class AccessLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table; an empty cell says nothing."""

    line: int
    cells: dict[str, str]
    """column → text, of COLUMNS"""
    parameters: dict[str, str]
    """name → value"""


def parse_access(text: str) -> list[AccessLine]:
    """Return the lines of a table.

    Raises DirectoryError with every problem. Source: RFC 4180, D55
    """
    problems: list[Problem] = []
    found = [
        AccessLine(
            line=line,
            cells={name: cell for name, cell in cells.items() if name in COLUMNS},
            parameters={name.removeprefix(PARAMETER): cell for name, cell in cells.items() if name not in COLUMNS},
        )
        for line, cells in read_table(text.encode(), "", problems, known=COLUMNS, needed=NEEDED, prefix=PARAMETER)
    ]
    problems += [
        Problem(each.line, phrase("Enter the user name of the person."))
        for each in found
        if not each.cells["user_name"]
    ]
    if len(found) > MOST_LINES:
        problems.append(
            Problem(
                found[MOST_LINES].line, phrase("At most {most} lines at once: send the rest later.", most=MOST_LINES)
            )
        )
    if not found and not problems:
        problems.append(Problem(1, phrase("There is no line below the first one.")))
    if problems:
        raise DirectoryError("", problems)
    return found
