"""A table of people (CSV) as a document of the directory.

Each row is read as the entry of a user in a directory file would be, by the same rules, and keeps its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.directory.document import from_nodes
from corpid.rules.directory.nodes import Items, Node, Pairs, Problem, Scalar
from corpid.rules.directory.sections import OWN_FACTORS, SECTIONS, TEST
from corpid.rules.directory.table import read_table

if TYPE_CHECKING:
    from corpid.rules.directory.document import Document

USER_NAME: Final = "user_name"
_OTHERWISE: Final = OWN_FACTORS | {"id", "enabled", "memberships", TEST}
COLUMNS: Final = (USER_NAME, *(name for name in SECTIONS["users"].keys if name not in _OTHERWISE))
"""the columns about a person"""
NEEDED: Final = (USER_NAME, *(name for name, key in SECTIONS["users"].keys.items() if key.needed))


def parse_people(content: bytes, file: str, *, entity_id: str) -> Document:
    """Read a table of people who act for an entity.

    The columns `user_name` and `name` are needed; an empty cell says nothing. `file` names it in errors. Raises
    DirectoryError with every problem found. Source: RFC 4180, docs/directory.md
    """
    problems: list[Problem] = []
    entries: list[tuple[Scalar, Node]] = []
    for line, cells in read_table(content, file, problems, known=COLUMNS, needed=NEEDED):
        entries.append(_entry(line, cells, entity_id))
    users = Pairs(1, tuple(entries))
    return from_nodes(Pairs(1, ((Scalar(1, "users", plain=True), users),)), file, problems)


def _entry(line: int, cells: dict[str, str], entity_id: str) -> tuple[Scalar, Node]:
    stated = {name: cell for name, cell in cells.items() if name != USER_NAME and cell}
    members: list[tuple[Scalar, Node]] = [
        (Scalar(line, name, plain=True), Scalar(line, cell, plain=False)) for name, cell in stated.items()
    ]
    acts_for = Items(line, (Scalar(line, entity_id, plain=True),))
    members.append((Scalar(line, "memberships", plain=True), acts_for))
    return Scalar(line, cells[USER_NAME], plain=False), Pairs(line, tuple(members))
