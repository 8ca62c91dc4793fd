"""`corpid user import`: many people of one entity, from a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corpid.cli import user
from corpid.flows.directory import imports
from corpid.rules.failures import StoreUnavailable
from tests.cli.directories import fill

if TYPE_CHECKING:
    import pytest

    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

ROWS = "user_name,name,email\n" + "".join(
    f"p{number:04},Person {number},p{number}@example.org\n" for number in range(250)
)


def people(terminal: Terminal) -> list[str]:
    listed = json.loads(terminal.done("user", "list", "--entity", "C3", "--limit", "1000", "--json"))["users"]
    return [each["user_name"] for each in listed]


def test_a_table_adds_people_and_memberships_once(terminal: Terminal) -> None:
    fill(terminal)
    file = terminal.file(ROWS, "people.csv")
    would = terminal.done("user", "import", file, "--entity", "C3", "--dry-run")
    assert would == "Would be: 250 people and 250 memberships added, of 250 people in the table.\n"
    assert people(terminal) == []
    told = json.loads(terminal.done("user", "import", file, "--entity", "C3", "--json"))
    assert told == {"people": 250, "added": 250, "memberships": 250, "remarks": [], "written": True}
    assert len(people(terminal)) == 250
    again = terminal.done("user", "import", file, "--entity", "C3")
    assert again == "Nothing to change: all of the 250 people are there and act for C3.\n"
    assert "(given by" in terminal.done("user", "show", "p0001")


def test_who_is_there_gets_the_membership_and_stays_as_they_are(terminal: Terminal) -> None:
    fill(terminal)
    result = terminal.run(
        "user", "import", terminal.file("user_name,name\nmei,Somebody Else\n", "p.csv"), "--entity", "C3"
    )
    assert result.stdout == "Done: 0 people and 1 memberships added, of 1 people in the table.\n"
    assert "p.csv:2: mei is there already, with another name, which stays" in result.stderr
    assert json.loads(terminal.done("user", "show", "mei", "--json"))["name"] == "Mei"


def test_a_table_with_anything_wrong_changes_nothing(terminal: Terminal) -> None:
    """Every problem with its line, before the first change."""
    fill(terminal)
    before = terminal.done("export")
    rows = ROWS.replace("p249@example.org", "nowhere").replace("p3@example.org", "nobody")
    said = terminal.refused("user", "import", terminal.file(rows, "people.csv"), "--entity", "C3")
    assert "people.csv:5: email: " in said
    assert "people.csv:251: email: " in said
    assert "Nothing was changed." in said
    assert "there is no entity 'C4'" in terminal.refused("user", "import", terminal.file(ROWS), "--entity", "C4")
    assert terminal.done("export") == before


def test_an_import_that_stopped_is_finished_by_the_same_table(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(terminal)
    file = terminal.file(ROWS, "people.csv")
    reported: list[tuple[str, int, int]] = []

    def stops(what: str, done: int, total: int) -> None:
        reported.append((what, done, total))
        if (what, done) == ("imported", 200):
            raise StoreUnavailable("the power went")

    monkeypatch.setattr(user, "_report_progress", stops)
    assert "the power went" in terminal.refused("user", "import", file, "--entity", "C3")
    assert len(people(terminal)) == 200
    monkeypatch.undo()
    assert [(what, done) for what, done, _ in reported] == [
        ("checked", 100), ("checked", 200), ("checked", 250), ("imported", 100), ("imported", 200),
    ]  # fmt: skip
    told = json.loads(terminal.done("user", "import", file, "--entity", "C3", "--json"))
    assert (told["added"], told["memberships"], len(people(terminal))) == (50, 50, 250)


async def added(stores: Stores) -> int:
    return len([each for each in await stores.registry.audit.entries(limit=10_000) if each.action == "user.add"])


def test_each_person_has_their_own_event(terminal: Terminal) -> None:
    """D57."""
    fill(terminal)

    before = terminal.look(added)
    terminal.done("user", "import", terminal.file(ROWS, "people.csv"), "--entity", "C3")
    assert terminal.look(added) - before == 250
    assert imports.PEOPLE_AT_ONCE * 2 <= 200, "one transaction of the store"


def test_people_of_a_table_who_cannot_be_reached_are_noted_and_counted(terminal: Terminal) -> None:
    """D60, D68: nobody could accept such an invitation."""
    fill(terminal)
    rows = "user_name,name\nbob,Bob\nanna@m\u00fcnchen.example,Anna\ncarol@x.example,Carol\n"
    told = terminal.run("user", "import", terminal.file(rows, "people.csv"), "--entity", "C3", "--invite")
    assert "people.csv:2: bob: there is no e-mail address, so nobody can accept the invitation" in told.stderr
    assert "people.csv:3" not in told.stderr
    assert told.stdout == "Done: 3 invited, of 3 people in the table; 1 without an e-mail address.\n"


def test_members_of_a_table_are_invited_once_each(terminal: Terminal) -> None:
    """D60: no account is made; the same table again goes on where an import was interrupted."""
    fill(terminal)
    file = terminal.file(ROWS, "people.csv")
    command = ("user", "import", file, "--entity", "C3", "--no-invite")
    assert terminal.done(*command, "--dry-run") == "Would be: 250 invited, of 250 people in the table.\n"
    assert people(terminal) == []
    assert terminal.done(*command) == "Done: 250 invited, of 250 people in the table.\n"
    assert terminal.done(*command) == "Nothing to change: all of the 250 people are there and act for C3.\n"
    told = json.loads(terminal.done("membership", "list", "--entity", "C3", "--limit", "1000", "--json"))
    assert {each["state"] for each in told["members"]} == {"invited"}
    assert [each["user_name"] for each in told["members"]] == [f"p{number:04}" for number in range(250)]


def test_a_table_of_members_with_anything_wrong_changes_nothing(terminal: Terminal) -> None:
    """Every problem with its line, before the first change."""
    fill(terminal)
    rows = "user_name,name,email,external_id\na,A,nowhere,1\nb,B,,2\nB,B2,,3\nc,C,,2\n,D,,\n"
    said = terminal.refused("user", "import", terminal.file(rows, "people.csv"), "--entity", "C3", "--invite")
    for line in (
        "people.csv:2: email: 'nowhere'",
        "people.csv:4: user_name: the same as in line 3",
        "people.csv:5: external_id: the same as in line 3",
        "people.csv:6: user_name: a name for this member is required",
    ):
        assert line in said
    assert people(terminal) == []
    said = terminal.refused(
        "user", "import", terminal.file("user_name,name,language\n", "p.csv"), "--entity", "C3", "--invite"
    )
    assert "p.csv:1: 'language' is not a field of a person" in said
