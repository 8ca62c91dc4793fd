"""A table of people: read by the rules of a directory file, with its lines."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.tables import NEEDED_PERSON_COLUMNS, PERSON_COLUMNS, parse_people


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(DirectoryError) as refused:
        parse_people(text.encode(), "people.csv", entity_id="A1")
    return [(problem.line, problem.reason) for problem in refused.value.problems]


def test_each_row_is_a_person_who_acts_for_the_entity_and_an_empty_cell_says_nothing() -> None:
    text = (
        'user_name,name,email\r\nRina,Rina Example,rina@example.org\r\n\r\nlim,"Lim, the\nsecond",\r\narjun,Arjun,\r\n'
    )
    document = parse_people(text.replace("\nsecond", " second").encode("utf-8-sig"), "people.csv", entity_id="A1")
    assert {key: (entry.line, entry.fields) for key, entry in document.entries_of("user").items()} == {
        ("rina",): (2, {"name": "Rina Example", "email": "rina@example.org"}),
        ("lim",): (4, {"name": "Lim, the second"}),
        ("arjun",): (5, {"name": "Arjun"}),
    }
    assert list(document.entries_of("membership")) == [("rina", "A1"), ("lim", "A1"), ("arjun", "A1")]


def test_semicolons_separate_too_and_every_column_may_be_there() -> None:
    assert set(NEEDED_PERSON_COLUMNS) == {"user_name", "name"}
    values = {"user_name": "rina", "name": "Rina", "email": "rina@example.org", "language": "ms", "identity_number": "S1",
              "identity_country": "SG", "account_type": "foreign"}  # fmt: skip
    assert set(values) == set(PERSON_COLUMNS)
    text = f"{';'.join(values)}\n{';'.join(values.values())}\n"
    [entry] = parse_people(text.encode(), "p", entity_id="A1").entries_of("user").values()
    assert entry.fields == {name: value for name, value in values.items() if name != "user_name"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (1, "the first line lacks user_name, name: the possible columns are user_name, name, email")),
        ("user_name,nmae\nx,X", (1, "'nmae' is not a field of a person; did you mean 'name'?")),
        ("user_name,name,password\n", (1, "'password' is not a field of a person")),
        ("user_name,name,name\nx,X,X", (1, "the column name occurs twice")),
        ("user_name,name\nrina\n", (2, "this line has 1 cells, the first line has 2 columns")),
        ("user_name,name\nrina,Rina\nRINA,Rina", (3, "the same user is already in line 2")),
        ("user_name,name,email\nrina,Rina,nowhere", (2, "email: ")),
        ("user_name,name\nri na\u202e,Rina", (2, "")),
        ('user_name,name\nrina,"Rina', (2, "not valid CSV")),
        ("user_name,name\n,Rina", (2, "")),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, expected: tuple[int, str]) -> None:
    assert any(line == expected[0] and reason.startswith(expected[1]) for line, reason in problems(text)), problems(
        text
    )


def test_every_line_that_is_wrong_is_said_at_once() -> None:
    rows = "".join(f"u{number},U,nowhere{number}\n" for number in range(9))
    assert [line for line, _ in problems(f"user_name,name,email\n{rows}")] == list(range(2, 11))


@given(st.binary(max_size=200))
def test_whatever_the_file_holds_the_answer_is_a_document_or_its_problems(content: bytes) -> None:
    for text in (content, b"user_name,name\n" + content):
        with suppress(DirectoryError):
            assert parse_people(text, "people.csv", entity_id="A1").complete == {"user"}
