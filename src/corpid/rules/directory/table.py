"""A table (CSV) as spreadsheets save and copy it.

Commas, semicolons or tabs separate, or what a first line `sep=;` says. Lines may end as on Windows, Unix or old Macs.
Source: RFC 4180, D74, D81
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Final

from corpid.rules.directory.names import without_marks
from corpid.rules.directory.nodes import DirectoryError, Problem, quote_value
from corpid.rules.directory.values import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SEPARATOR: Final = re.compile(r'"?sep=([,;\t|])"?')
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def read_table(
    content: bytes, file: str, problems: list[Problem], *, known: Sequence[str], needed: Sequence[str], prefix: str = ""
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a table with its line numbers and cells by column.

    The first line names the columns, in capital or small letters: each is one of `known`, or begins with `prefix`.
    Empty rows, and columns with neither name nor cell, are skipped. Problems are added to `problems`, also of the first
    line, after which there are no rows. Raises DirectoryError if the content is not UTF-8. Source: RFC 4180, D74
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DirectoryError(file, [Problem(line, "the file is not UTF-8 text: save it as CSV UTF-8")]) from None
    rows = _rows(text, problems)
    first, header = next(rows, (1, []))
    columns = [_column(name, known, prefix) for name in header]
    problems += [Problem(first, reason) for reason in _header_problems(columns, known, needed, prefix)]
    for line, cells in rows if not problems else ():
        named, rest = cells[: len(columns)], cells[len(columns) :]
        if len(named) < len(columns) or any(rest):
            problems.append(
                Problem(line, f"this line has {len(cells)} cells, the first line has {len(columns)} columns")
            )
        elif any(cell for cell, name in zip(named, columns, strict=True) if not name):
            problems.append(Problem(line, "this line has a cell in a column without a name"))
        else:
            yield line, {name: cell for name, cell in zip(columns, named, strict=True) if name}


def _rows(text: str, problems: list[Problem]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with its line number."""
    first = _LINE_END.split(text.lstrip("\r\n "), maxsplit=1)[0]
    separator = _SEPARATOR.fullmatch(first.strip(" "))
    delimiter = (
        separator[1] if separator else "\t" if "\t" in first else ";" if ";" in first and "," not in first else ","
    )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for number, cells in enumerate(reader):
            stated = [without_marks(cell).strip() for cell in cells]
            if any(stated) and not (separator and number == 0):
                yield line, stated
            line = reader.line_num + 1
    except csv.Error as error:
        problems.append(Problem(line, f"not valid CSV: {error}"))


def _column(name: str, known: Sequence[str], prefix: str) -> str:
    """The name of a known column; another one as written."""
    if prefix and name.lower().startswith(prefix):
        return prefix + name[len(prefix) :].strip()
    return name.lower() if name.lower() in known else name


def _header_problems(columns: Sequence[str], every: Sequence[str], needed: Sequence[str], prefix: str) -> list[str]:
    unknown = [
        f"{quote_value(name)} is not a column{suggestion(name, every)}"
        for name in columns
        if name and name not in every and not (prefix and name.startswith(prefix))
    ]
    twice = [f"the column {name} occurs twice" for name in dict.fromkeys(columns) if name and columns.count(name) > 1]
    lacking = [name for name in needed if name not in columns]
    known = f"the possible columns are {', '.join(every)}"
    missing = [f"the first line lacks {', '.join(lacking)}: {known}"] if lacking else []
    return [*unknown, *twice, *missing]
