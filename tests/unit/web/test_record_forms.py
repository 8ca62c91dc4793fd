"""Forms of records take what a directory file takes, and say at its field what to do about the rest (D51, D74, D75)."""

from __future__ import annotations

import pytest

from corpid.rules.directory.document import parse
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.records import Entity, MemberDetails, Service
from corpid.web.operations.entities import OWNER
from corpid.web.pages.record_forms import form_of

ENTITY = form_of(Entity, "entity_id", "name", "type", "registration_number", "country", "status", "approvals")
SERVICE = form_of(Service, "name", "description", "approval_required")
GOOD = {
    "entity_id": "E1", "name": "Harbour", "type": "UEN", "registration_number": "1", "country": "SG", "status": "",
    "approvals": "none",
}  # fmt: skip
FAULTS = [
    ("entity_id", "has space", "Use 1 to 10 letters, digits, full stops, hyphens or underscores."),
    ("entity_id", "12345678901", "Use at most 10 characters."),
    ("name", "", "Enter the name of the organisation, in at most 200 characters."),
    ("name", "x" * 201, "Use at most 200 characters."),
    ("name", "Har\u200bbour", "Remove the invisible character U+200B (zero width space)."),
    ("type", "X", "Choose how the organisation is registered."),
    ("registration_number", "9" * 51, "Use at most 50 characters."),
    (
        "registration_number",
        "2E+08",
        "This text cannot be used: '2E+08' is a number that a spreadsheet has rounded: format its column as text.",
    ),
    ("country", "Singapore", "Enter the country's code of two capital letters, such as SG."),
    ("status", "X", "Choose one of the statuses."),
    ("approvals", "X", "Choose what needs approval."),
]


@pytest.mark.parametrize(("member", "text", "remedy"), FAULTS)
def test_what_a_file_refuses_is_refused_at_its_field_with_what_to_do(member: str, text: str, remedy: str) -> None:
    """R-12.4, R-14.2, D74."""
    typed = ENTITY.read({**GOOD, member: text})
    assert ENTITY.find_errors(typed) == [(member, remedy)]
    entity_id = typed.pop("entity_id")
    lines = "".join(f'    {name}: "{value}"\n' for name, value in typed.items())
    with pytest.raises(DirectoryError):
        parse(f'entities:\n  "{entity_id}":\n{lines}'.encode(), "f")


def test_every_fault_is_named_at_once_and_what_a_file_takes_is_no_fault() -> None:
    """D51, D75: spaces that a name does not keep are not counted, and digits of any script are digits."""
    wrong = {"entity_id": "has space", "name": "", "type": "", "country": "", "approvals": ""}
    assert [name for name, _ in ENTITY.find_errors(ENTITY.read(wrong))] == list(wrong)
    taken = {**GOOD, "name": f"{'x' * 100}{' ' * 150}{'y' * 99}", "registration_number": "\uff12\uff10"}
    assert ENTITY.find_errors(ENTITY.read(taken)) == []


def test_a_control_has_names_limits_and_values_of_its_declaration() -> None:
    """D84."""
    text, lines, flag = SERVICE.show(SERVICE.read({"name": "Permits", "approval_required": "yes"}))
    assert (text.kind, text.value, text.most) == ("text", "Permits", 100)
    assert (lines.hint, lines.most) == ("What it is for, in a sentence.", 300)
    assert (flag.kind, flag.value) == ("flag", "yes")
    assert SERVICE.show(SERVICE.read({}))[2].value == ""
    kind = ENTITY.show(GOOD)[2]
    assert (kind.kind, kind.value) == ("words", "UEN")
    assert [value for value, _ in kind.words] == ["UEN", "NON-UEN", "GSTN"]
    email = OWNER.show({"email": "mei@harbour.example"})[1]
    assert (email.name, email.kind, email.most, email.value) == ("owner_email", "email", 200, "mei@harbour.example")


def test_a_form_can_ask_for_what_its_record_may_lack() -> None:
    """D60: an invitation needs a name and an address."""
    form = form_of(MemberDetails, "name", "email")
    nothing = form.read({})
    assert form.find_errors(nothing) == []
    assert [error for _, error in form.find_errors(nothing, required=True)] == [
        "Enter the name of the person.",
        "Enter an e-mail address such as name@example.com.",
    ]
