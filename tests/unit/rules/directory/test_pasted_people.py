"""People pasted as lines of text (D60)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.directory.tables import read_pasted_people


@pytest.mark.parametrize(
    ("line", "name", "email"),
    [
        ("Marcus Lim <marcus@example.org>", "Marcus Lim", "marcus@example.org"),
        ('"Lim, Marcus" <marcus@example.org>', "Lim, Marcus", "marcus@example.org"),
        ("Lim, Marcus <marcus@example.org>", "Lim, Marcus", "marcus@example.org"),
        ("<marcus@example.org>", "", "marcus@example.org"),
        ("marcus@example.org", "", "marcus@example.org"),
        ("Marcus Lim, marcus@example.org", "Marcus Lim", "marcus@example.org"),
        ("marcus@example.org; Marcus Lim", "Marcus Lim", "marcus@example.org"),
        ("Marcus\tLim\tmarcus@example.org", "Marcus Lim", "marcus@example.org"),
        ("  陈伟明, chan@example.org ,", "陈伟明", "chan@example.org"),
    ],
)
def test_a_person_is_read_from_a_line(line: str, name: str, email: str) -> None:
    """D60."""
    (found,) = read_pasted_people(line)
    assert found.fault is None
    assert found.details is not None
    assert (found.details.name, found.details.email) == (name, email)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Marcus Lim", "no address"),
        ("Marcus Lim <>", "no address"),
        ("Marcus, marcus@", "address"),
        ("Marcus <marcus at example.org>", "address"),
        ("M\u200barcus, marcus@example.org", "name"),
    ],
)
def test_what_is_wrong_with_a_line_is_found(line: str, fault: str) -> None:
    """D60."""
    assert [each.fault for each in read_pasted_people(line)] == [fault]


def test_lines_keep_their_numbers_and_a_repeated_address_names_the_first() -> None:
    """D60."""
    found = read_pasted_people("Marcus <m@example.org>\n\nRina, r@example.org\nM@Example.org\nwrong")
    assert [(each.line, each.fault, each.first_line) for each in found] == [
        (1, None, 0),
        (3, None, 0),
        (4, "repeated", 1),
        (5, "no address", 0),
    ]


@pytest.mark.parametrize("columns", ["name,email", "E-mail;Name", '"Name"\t"Email"\t', "\nname,email"])
def test_a_first_line_with_the_names_of_the_columns_is_no_person(columns: str) -> None:
    """D81: as tables have it."""
    [found] = read_pasted_people(f"{columns}\nRina, r@example.org\n,,\n")
    assert (found.details and found.details.email, found.line) == ("r@example.org", columns.count("\n") + 2)


def test_people_on_one_line_as_mail_programs_copy_them() -> None:
    """D60."""
    found = read_pasted_people("Marcus <m@example.org>; Rina <r@example.org>, Alice <a@example.org>")
    assert [each.details and each.details.email for each in found] == [
        "m@example.org",
        "r@example.org",
        "a@example.org",
    ]


@given(st.text())
def test_whatever_is_pasted_each_line_is_a_person_or_a_fault(text: str) -> None:
    """D60."""
    for each in read_pasted_people(text):
        assert (each.details is None) is (each.fault is not None)
