"""A table of people (CSV) as a document of the directory.

Each row is read as the entry of a user in a directory file would be, by the same rules, and keeps its line.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.document import from_nodes
from corpid.rules.directory.nodes import DirectoryError, Items, Node, Pairs, Problem, Scalar, quoted
from corpid.rules.directory.sections import OWN_FACTORS, SECTIONS, TEST
from corpid.rules.directory.values import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from corpid.rules.directory.document import Document

USER_NAME: Final = "user_name"
_OTHERWISE: Final = OWN_FACTORS | {"id", "enabled", "memberships", TEST}
COLUMNS: Final = (USER_NAME, *(name for name in SECTIONS["users"].keys if name not in _OTHERWISE))
"""the columns about a person"""
NEEDED: Final = (USER_NAME, *(name for name, key in SECTIONS["users"].keys.items() if key.needed))


def parse_people(content: bytes, file: str, *, entity_id: str) -> Document:
    """Read a table of people who act for an entity.

    Its first line names the columns, of which `user_name` and `name` are needed; commas or semicolons separate, and an
    empty cell says nothing. `file` names it in errors. Raises DirectoryError with every problem found. Source: RFC
    4180, docs/directory.md
    """
    problems: list[Problem] = []
    entries: list[tuple[Scalar, Node]] = []
    for line, cells in read_table(content, file, problems, known=COLUMNS, needed=NEEDED):
        entries.append(_entry(line, cells, entity_id))
    users = Pairs(1, tuple(entries))
    return from_nodes(Pairs(1, ((Scalar(1, "users", plain=True), users),)), file, problems)


def read_table(
    content: bytes, file: str, problems: list[Problem], *, known: Sequence[str], needed: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a table (CSV) with its line numbers and cells by column.

    The columns are among `known`. Problems are added to `problems`, also of the first line, after which there are no
    rows. Raises DirectoryError for what is no text. Source: RFC 4180
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DirectoryError(file, [Problem(line, "the file is not UTF-8 text: save it as CSV UTF-8")]) from None
    rows = _rows(text, problems)
    _, header = next(rows, (0, []))
    columns = [name.strip() for name in header]
    problems += _header_problems(columns, known, needed)
    for line, cells in rows if not problems else ():
        if len(cells) == len(columns):
            yield line, {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
        elif cells:
            problems.append(
                Problem(line, f"this line has {len(cells)} cells, the first line has {len(columns)} columns")
            )


def _rows(text: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    """The rows of the table with the line in which each begins."""
    first = text.partition("\n")[0]
    delimiter = "\t" if "\t" in first else ";" if ";" in first and "," not in first else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        problems.append(Problem(line, f"not valid CSV: {error}"))


def _header_problems(columns: Sequence[str], every: Sequence[str], needed: Sequence[str]) -> list[Problem]:
    unknown = [f"{quoted(name)} is not a column{suggestion(name, every)}" for name in columns if name not in every]
    twice = [f"the column {name} occurs twice" for name in dict.fromkeys(columns) if columns.count(name) > 1]
    lacking = [name for name in needed if name not in columns]
    known = f"the possible columns are {', '.join(every)}"
    missing = [f"the first line lacks {', '.join(lacking)}: {known}"] if lacking else []
    return [Problem(1, reason) for reason in (*unknown, *twice, *missing)]


def _entry(line: int, cells: dict[str, str], entity_id: str) -> tuple[Scalar, Node]:
    stated = {name: cell.strip() for name, cell in cells.items() if name != USER_NAME and cell.strip()}
    members: list[tuple[Scalar, Node]] = [
        (Scalar(line, name, plain=True), Scalar(line, cell, plain=False)) for name, cell in stated.items()
    ]
    acts_for = Items(line, (Scalar(line, entity_id, plain=True),))
    members.append((Scalar(line, "memberships", plain=True), acts_for))
    return Scalar(line, cells[USER_NAME].strip(), plain=False), Pairs(line, tuple(members))
