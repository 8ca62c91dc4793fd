"""Tables as spreadsheets save and copy them: one dialect for commands and pages (RFC 4180, D74, D81)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.tables import AccessLine, parse_access, parse_members, parse_people

PLAIN = "user_name,name,email\nrina,Rina,rina@x.example\nlim,Lim,\n"
TABLES = {
    "plain": (PLAIN, [2, 3]),
    "Windows": (PLAIN.replace("\n", "\r\n"), [2, 3]),
    "old Mac": (PLAIN.replace("\n", "\r"), [2, 3]),
    "with BOM": ("\ufeff" + PLAIN, [2, 3]),
    "semicolons": (PLAIN.replace(",", ";"), [2, 3]),
    "tabs": (PLAIN.replace(",", "\t"), [2, 3]),
    "semicolons after an empty line": ("\r\n" + PLAIN.replace(",", ";"), [3, 4]),
    "sep": ("sep=;\r\n" + PLAIN.replace(",", ";"), [3, 4]),
    "sep of tabs": ('"sep=\t"\n' + PLAIN.replace(",", "\t"), [3, 4]),
    "capital letters": (PLAIN.replace("user_name,name,email", "User_Name,NAME, Email "), [2, 3]),
    "empty rows": ("\n,,\n" + PLAIN.replace("lim", ",,\n  , ,\nlim") + ",,\n\n", [4, 7]),
    "unnamed empty columns": (PLAIN.replace("\n", ",,\n").replace("user_name,", "user_name,,").replace("a,R", "a,,R").replace("m,L", "m,,L"), [2, 3]),
    "cells beyond the header": (PLAIN.replace("example\n", "example,,\n"), [2, 3]),
    "marks of programs": (PLAIN.replace("Rina", "\u200eRi\ufeffna\u200f").replace("rina@", "\u200erina@"), [2, 3]),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_every_door_reads_the_same_table(kind: str) -> None:
    """`user import`, `user import --invite` and the portal's pasted table."""
    text, lines = TABLES[kind]
    people = parse_people(text.encode(), "p", entity_id="E1").entries_of("user")
    assert [(key, each.line, each.fields.get("name"), each.fields.get("email")) for key, each in people.items()] == [
        (("rina",), lines[0], "Rina", "rina@x.example"),
        (("lim",), lines[1], "Lim", None),
    ]
    members = parse_members(text.encode(), "p")
    assert [(line, each.user_name, each.name, each.email) for line, each in members] == [
        (lines[0], "rina", "Rina", "rina@x.example"),
        (lines[1], "lim", "Lim", ""),
    ]
    assert parse_access(text) == [
        AccessLine(
            line=lines[0], cells={"user_name": "rina", "name": "Rina", "email": "rina@x.example"}, parameters={}
        ),
        AccessLine(line=lines[1], cells={"user_name": "lim", "name": "Lim", "email": ""}, parameters={}),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sep=;\nuser_name;nmae\nx;X", (2, "'nmae' is not a field of a person; did you mean 'name'?")),
        ("user_name,name,\nrina,Rina,x", (2, "this line has a cell in a column without a name")),
        ("user_name,name\nrina,Rina,x", (2, "this line has 3 cells, the first line has 2 columns")),
        ("user_name,User_Name,name\nrina,rina,Rina", (1, "the column user_name occurs twice")),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, problem: tuple[int, str]) -> None:
    for read in (lambda: parse_people(text.encode(), "p", entity_id="E1"), lambda: parse_members(text.encode(), "p")):
        with pytest.raises(DirectoryError) as refused:
            read()
        assert problem in [(each.line, each.reason) for each in refused.value.problems]


def test_the_column_of_a_parameter_may_begin_with_a_capital_letter() -> None:
    [line] = parse_access("User_name;Service;Parameter: Permit Year\nrina;H;2026")
    assert line.parameters == {"Permit Year": "2026"}
