"""Numbers, years and dates of the directory as people type them (D75)."""

from __future__ import annotations

from datetime import date

import pytest

from corpid.rules.directory.document import parse
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Service
from corpid.rules.directory.role_forms import ON_DAY, RoleForm, faults, row_of
from corpid.rules.directory.tables import parse_people
from corpid.rules.directory.values import ParameterDefinition, stored_value, unfit_parameter
from corpid.rules.readers import real_day

SERVICE = Service(service_id="H", name="Harbour", parameters=(ParameterDefinition(name="Year", kind="year"),))
TODAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("kind", "typed", "stored"),
    [
        ("year", "\uff12\uff10\uff12\uff16", "2026"),
        ("year", "\u0662\u0660\u0662\u0666", "2026"),
        ("number", "\u06f1\u00a0\u06f2\u06f3", "123"),
        ("number", "\u22125", "-5"),
        ("date", "\uff12\uff10\uff12\uff16\uff0d\uff11\uff12\uff0d\uff13\uff11", "2026-12-31"),
        ("text", "\u0662\u0660 - 5", "\u0662\u0660 - 5"),
    ],
)
def test_a_parameter_is_stored_with_the_digits_of_ascii(kind: str, typed: str, stored: str) -> None:
    """D75."""
    assert unfit_parameter(kind, typed) == ""  # type: ignore[arg-type]
    assert stored_value(kind, typed) == stored  # type: ignore[arg-type]


def test_a_range_is_no_number() -> None:
    assert unfit_parameter("number", "10-20")


def test_a_form_stores_days_and_years_that_were_typed_in_another_script() -> None:
    """D23, D75."""
    form = RoleForm(
        service=SERVICE, parameters={"Year": "\u0662\u0660\u0662\u0667"}, start=ON_DAY, start_date="\uff12\uff10\uff12\uff17-01-01",
        end=ON_DAY, end_date=" 2027\u201112\u201131 ",
    )  # fmt: skip
    assert faults(form, TODAY) == ()
    row = row_of(form, user_id="u", entity_id="e", today=TODAY)
    assert (row.start_date, row.end_date, row.parameters[0].value) == ("2027-01-01", "2027-12-31", "2027")


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("30/06/2099", "Enter a date as year, month and day, such as 2026-11-30."),
        ("", "Enter a date as year, month and day, such as 2026-11-30."),
        ("2099-02-30", "Enter a date that exists."),
    ],
)
def test_a_date_in_another_form_is_not_called_one_that_does_not_exist(typed: str, sentence: str) -> None:
    """D23: the sentence names the cause."""
    form = RoleForm(service=SERVICE, end=ON_DAY, end_date=typed)
    assert [str(text) for member, text in faults(form, TODAY) if member == "end_date"] == [sentence]


def test_a_day_may_be_typed_with_digits_of_any_script() -> None:
    assert real_day("\u0662\u0660\u0662\u0666-\u0661\u0662-\u0663\u0661") == "2026-12-31"


FILE = """
services: {H: {name: Harbour, parameters: {Year: {kind: year}}}}
entities: {E1: {type: UEN, country: SG, name: Acme}}
users: {rina: {name: Rina, identity_number: "%s", memberships: [E1]}}
"""


@pytest.mark.parametrize(
    ("written", "stored"),
    [("\uff33\uff11\uff12\uff13\uff21", "S123A"), ("S\u0661\u0662\u0663A", "S123A"), (" S 123 A", "S 123 A"), ("12E45", "12E45")],
)  # fmt: skip
def test_an_identity_number_is_normalised_in_files_and_tables(written: str, stored: str) -> None:
    """D75, D77: it is compared with the number that an upstream provider claims."""
    document = parse((FILE % written).encode(), "directory.yaml")
    table = parse_people(f"user_name,name,identity_number\nrina,Rina,{written}\n".encode(), "p", entity_id="E1")
    for found in (document, table):
        assert found.entries_of("user")["rina",].fields["identity_number"] == stored


@pytest.mark.parametrize("written", ["1.23E+08", "1,23E+08", "9E-05", "\uff11.\uff12E+08"])
def test_an_identity_number_that_a_spreadsheet_rounded_is_refused(written: str) -> None:
    """D75: its digits are lost."""
    with pytest.raises(DirectoryError, match="a spreadsheet has rounded: format its column as text"):
        parse((FILE % written).encode(), "directory.yaml")
    with pytest.raises(DirectoryError, match="a spreadsheet has rounded: format its column as text"):
        parse_people(f'user_name,name,identity_number\nrina,Rina,"{written}"\n'.encode(), "p", entity_id="E1")
