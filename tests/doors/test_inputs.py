"""Names, addresses and numbers as people and programs write them: the same at every door (D51, D74, D75)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from tests.api.calling import HARBOUR, calling
from tests.cli.directories import fill
from tests.manage.access_scene import confirm, staffed
from tests.manage.scene import ACME, in_portal
from tests.scim.calling import USER, provisioning

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Terminal
    from tests.protocol.provider import World as ProtocolWorld
    from tests.sign_in.world import World

PERSIAN: Final = "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"
"""a name whose letters need a zero-width non-joiner"""


class Invited(NamedTuple):
    """A person whom a door has taken, with what it stored."""

    name: str
    email: str


class Row(NamedTuple):
    """What is written, and what comes of it: a person, or what the refusal says."""

    name: str
    email: str
    programs: Invited | str
    """at machine doors: file, table, API, SCIM"""
    people: Invited | str
    """on a page and in a command"""


def same(name: str, email: str, outcome: Invited | str) -> Row:
    return Row(name, email, outcome, outcome)


ANNA: Final = "anna@x.example"
ROWS: Final = {
    "plain": same("Anna", ANNA, Invited("Anna", ANNA)),
    "joiner that letters need": same(PERSIAN, ANNA, Invited(PERSIAN, ANNA)),
    "joiner elsewhere": same("an\u200cna", ANNA, "U+200C (zero width non-joiner)"),
    "zero-width space": same("an\u200bna", ANNA, "U+200B (zero width space)"),
    "mark": Row("An\u200ena", ANNA, Invited("Anna", ANNA), "U+200E (left-to-right mark)"),
    "right-to-left mark": Row("An\u200fna", ANNA, Invited("Anna", ANNA), "U+200F (right-to-left mark)"),
    "byte order mark": Row("An\ufeffna", ANNA, Invited("Anna", ANNA), "U+FEFF (zero width no-break space)"),
    "tab": Row("Anna\tLee", ANNA, Invited("Anna Lee", ANNA), "U+0009 (tab)"),
    "domain in other letters": same(
        "Anna", "anna@m\u00fcnchen.example", Invited("Anna", "anna@xn--mnchen-3ya.example")
    ),
    "zero-width space in an address": same("Anna", f"{ANNA}\u200b", "U+200B (zero width space)"),
}


def command(request: pytest.FixtureRequest, name: str, email: str) -> Invited | str:
    """`corpid membership invite`."""
    terminal = filled(request)
    result = terminal.run("membership", "invite", "--entity", "C3", "--name", name, "--email", email)
    return member(terminal) if result.exit_code == 0 else result.stderr


def table(request: pytest.FixtureRequest, name: str, email: str) -> Invited | str:
    """`corpid user import --invite`."""
    terminal = filled(request)
    file = terminal.file(f'user_name,name,email\nanna,"{name}",{email}\n', "people.csv")
    result = terminal.run("user", "import", file, "--entity", "C3", "--invite")
    return member(terminal) if result.exit_code == 0 else result.stderr


def member(terminal: Terminal) -> Invited:
    [found] = json.loads(terminal.done("membership", "list", "--entity", "C3", "--json"))["members"]
    return Invited(found["name"], found["email"])


def file(request: pytest.FixtureRequest, name: str, email: str) -> Invited | str:
    """`corpid apply`."""
    terminal = filled(request)
    written = terminal.file(f"users: {{anna: {json.dumps({'name': name, 'email': email}, ensure_ascii=False)}}}")
    result = terminal.run("apply", written)
    if result.exit_code:
        return result.stderr
    person = json.loads(terminal.done("user", "show", "anna", "--json"))
    return Invited(person["name"], person["email"])


def api(request: pytest.FixtureRequest, name: str, email: str) -> Invited | str:
    """POST /api/v1/invitations."""
    answer = calling(world(request)).post("/invitations", {"entity": HARBOUR, "name": name, "email": email})
    found = answer.json()
    return Invited(found["name"], found["email"]) if answer.status_code == 201 else json.dumps(found)


def scim(request: pytest.FixtureRequest, name: str, email: str) -> Invited | str:
    """POST /scim/v2/Users."""
    sent = {"schemas": [USER], "userName": "anna", "displayName": name, "emails": [{"value": email}]}
    found = provisioning(world(request)).call("POST", "/Users", sent).json()
    return Invited(found["displayName"], found["emails"][0]["value"]) if "id" in found else str(found["detail"])


def filled(request: pytest.FixtureRequest) -> Terminal:
    terminal: Terminal = request.getfixturevalue("terminal")
    fill(terminal)
    return terminal


def world(request: pytest.FixtureRequest) -> ProtocolWorld:
    made: ProtocolWorld = request.getfixturevalue("world")
    return made


def agrees(outcome: Invited | str, wanted: Invited | str) -> bool:
    """Return whether a person was taken as wanted, or a refusal says what it has to."""
    return outcome == wanted if isinstance(wanted, Invited) else isinstance(outcome, str) and wanted in outcome


@pytest.mark.parametrize("written", ROWS)
@pytest.mark.parametrize("door", [command, table, file, api, scim])
def test_a_person_is_taken_or_refused_alike(
    request: pytest.FixtureRequest, door: Callable[[pytest.FixtureRequest, str, str], Invited | str], written: str
) -> None:
    """D74, RFC 5892 A.1, RFC 5891 §4: programs' marks are dropped where programs write, and named to people."""
    row = ROWS[written]
    outcome = door(request, row.name, row.email)
    assert agrees(outcome, row.people if door is command else row.programs), outcome


@pytest.mark.parametrize("written", ROWS)
async def test_a_page_takes_or_refuses_a_person_alike(made: World, written: str) -> None:
    """D74: the page names the character."""
    row = ROWS[written]
    await staffed(made)
    browser = await in_portal(made, "invite")
    await confirm(browser, name=row.name, email=row.email)
    found = await made.provider.registry.invitations.of_entity(ACME, after="", limit=10)
    outcome = Invited(found[0].name, found[0].email) if found else browser.page.text
    assert agrees(outcome, row.people), outcome


NUMBERS: Final = {
    "\uff33\uff11\uff12\uff13\uff21": "S123A",
    "S\u0661\u0662\u0663A": "S123A",
    "1.23E+08": None,
    "\uff11.23\uff25+08": None,
}
"""an identity number as written, and as stored; None: refused"""
ROUNDED: Final = "a spreadsheet has rounded"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("door", ["command", "table", "file"])
def test_an_identity_number_is_taken_alike(terminal: Terminal, door: str, number: str) -> None:
    """D75, D77."""
    fill(terminal)
    result = {
        "command": lambda: terminal.run(
            "user", "add", "anna", "--name", "Anna", "--print", "--identity-number", number
        ),
        "table": lambda: terminal.run(
            "user", "import", terminal.file(f"User_Name;NAME;identity_number\nanna;Anna;{number}\n"), "--entity", "C3"
        ),
        "file": lambda: terminal.run(
            "apply", terminal.file(f'users: {{anna: {{name: Anna, identity_number: "{number}"}}}}')
        ),
    }[door]()
    stored = NUMBERS[number]
    if stored is None:
        assert ROUNDED in result.stderr
        return
    assert result.exit_code == 0, result.output
    assert stored in terminal.done("export")


@pytest.mark.parametrize("number", NUMBERS)
def test_an_identity_number_is_taken_alike_by_the_api(world: ProtocolWorld, number: str) -> None:
    """D75, D77."""
    answer = calling(world).post("/users", {"user_name": "anna2", "name": "Anna", "identity_number": number})
    if NUMBERS[number] is None:
        assert ROUNDED in answer.text
        return
    assert answer.status_code == 201, answer.text
    stored = world.run(world.provider.registry.directory.user_by_name("anna2"))
    assert stored is not None
    assert stored.identity_number == NUMBERS[number]


@pytest.mark.parametrize("year", ["2027", "\u0662\u0660\u0662\u0667", "\uff12\uff10\uff12\uff17", " 20 27 "])
def test_the_year_and_days_of_a_role_are_stored_in_the_digits_of_ascii(terminal: Terminal, year: str) -> None:
    """D75."""
    fill(terminal)
    content = f"""
services: {{H: {{name: Harbour, roles: [Viewer], parameters: {{Year: {{kind: year}}}}}}}}
users: {{anna: {{name: Anna, memberships: [C3]}}}}
assignments: [{{user: anna, entity: C3, service: H, role: Viewer, end_date: "{year}-12-31", parameters: {{Year: "{year}"}}}}]
"""
    written = terminal.file(content)
    terminal.done("apply", written)
    exported = terminal.done("export")
    assert "2027-12-31" in exported
    assert "2027" in exported.replace("2027-12-31", "")
    assert terminal.done("apply", written).startswith("Nothing to change")
