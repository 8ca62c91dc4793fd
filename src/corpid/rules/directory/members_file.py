"""A table of members (CSV) that an entity invites."""

from __future__ import annotations

from typing import Final

from corpid.rules.directory.member_details import InvalidDetails, MemberDetails, check_details
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.table import read_table
from corpid.rules.directory.values import unrounded

COLUMNS: Final = MemberDetails.__struct_fields__
NEEDED: Final = ("user_name", "name")


def parse_members(content: bytes, file: str) -> list[tuple[int, MemberDetails]]:
    """Return the details of each row of a table, with its line.

    `file` names it in errors. Raises DirectoryError with every problem found. Source: RFC 4180, D60, D61
    """
    problems: list[Problem] = []
    found: list[tuple[int, MemberDetails]] = []
    for line, cells in read_table(content, file, problems, known=COLUMNS, needed=NEEDED):
        try:
            unrounded(cells.get("external_id", ""))
            found.append((line, check_details(MemberDetails(**cells))))
        except ValueError as error:
            problems.append(Problem(line, f"external_id: {error}"))
        except InvalidDetails as error:
            problems += [Problem(line, f"{member}: {sentence}") for member, sentence in error.faults]
    for member in ("user_name", "external_id"):
        lines: dict[str, int] = {}
        for line, details in found:
            value = getattr(details, member)
            key = fold_text(value) if member == "user_name" else value
            if key and lines.setdefault(key, line) != line:
                problems.append(Problem(line, f"{member}: the same as in line {lines[key]}"))
    if problems:
        raise DirectoryError(file, problems)
    return found
