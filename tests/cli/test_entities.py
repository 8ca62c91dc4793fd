"""`corpid entity`, `corpid service` and `corpid administrator`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

UPDATE = ("entity", "update", "209900042K")
ADD = ("administrator", "add")


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (("entity", "list"), ["209900042K", "B2", "C3"]),
        (("entity", "list", "--search", "2099"), ["209900042K"]),
        (("entity", "list", "--search", "D"), []),
        (("service", "list"), ["PERMITS", "TAXES"]),
        (("service", "list", "--search", "T"), ["TAXES"]),
    ],
)
def test_entities_and_services_are_listed_and_paged(
    terminal: Terminal, arguments: tuple[str, ...], keys: list[str]
) -> None:
    fill(terminal)
    found, after = [], ""
    for _ in range(len(keys) + 1):
        page = json.loads(terminal.done(*arguments, "--limit", "1", "--after", after, "--json"))
        after = page.pop("after")
        found += [next(iter(record.values())) for [*records] in page.values() for record in records]
        if not after:
            break
    assert found == keys


def test_an_entity_is_shown_with_its_administrators(terminal: Terminal) -> None:
    """D53."""
    fill(terminal)
    shown = terminal.done("entity", "show", "209900042K")
    assert "Saltwater Foods" in shown
    assert {"rina (owner)", "arjun (sub_administrator)"} <= {
        line.split("  ")[-1].strip() for line in shown.splitlines()
    }
    read = json.loads(terminal.done("entity", "show", "209900042K", "--json"))
    assert {each["user"]: each["level"] for each in read["administrators"]} == {
        "rina": "owner", "arjun": "sub_administrator",
    }  # fmt: skip
    assert "administrators       (none)" in terminal.done("entity", "show", "C3")


def test_the_entities_of_a_person_are_paged(terminal: Terminal) -> None:
    """D50: a person may act for thousands."""
    fill(terminal)
    first = terminal.done("entity", "list", "--user", "rina", "--limit", "1")
    assert ("209900042K" in first, "owner" in first, "Beta" in first) == (True, True, False)
    *_, line = first.splitlines()
    assert "Beta" in terminal.done(*line.partition("corpid ")[2].split())
    terminal.done("apply", terminal.file("users: {rina: {memberships: [{entity: 209900042K, enabled: false}]}}"))
    assert "suspended" in terminal.done("entity", "list", "--user", "rina")
    found = json.loads(terminal.done("entity", "list", "--user", "rina", "--json"))["entities"]
    assert [(each["entity"]["entity_id"], each["membership_enabled"]) for each in found] == [
        ("209900042K", False), ("B2", True),
    ]  # fmt: skip
    assert "did you mean 'rina'?" in terminal.refused("entity", "list", "--user", "rnia")
    said = terminal.refused("entity", "list", "--user", "rina", "--search", "B", "--name", "x")
    assert "--user and --search and --name cannot be combined" in said
    assert "Gamma" in terminal.done("entity", "list", "--name", "GAM")


def test_a_service_is_shown_with_roles_and_parameters(terminal: Terminal) -> None:
    """R-14.1, R-20."""
    fill(terminal)
    shown = terminal.done("service", "show", "PERMITS")
    assert "Approver: Approves permits." in shown
    assert "Filer" in shown
    assert "Limit (number)" in shown
    assert json.loads(terminal.done("service", "show", "PERMITS", "--json"))["third_parties"] is True


def test_an_entity_is_updated_and_the_rest_of_it_stays(terminal: Terminal) -> None:
    fill(terminal)
    said = terminal.done(*UPDATE, "--name", "Sweetwater", "--status", "Registered")
    assert "name: Saltwater Foods → Sweetwater" in said
    assert terminal.look(last_event) == ("entity.update", "", {"members": "name status"})
    assert terminal.done(*UPDATE, "--name", "Sweetwater") == "Nothing to change.\n"
    assert "status: Registered → (none)" in terminal.done(*UPDATE, "--status", "none", "--dry-run")
    assert json.loads(terminal.done(*UPDATE, "--status", "none", "--json"))["written"] is True
    entity = json.loads(terminal.done("entity", "show", "209900042K", "--json"))["entity"]
    assert (entity["name"], entity["status"], entity["type"]) == ("Sweetwater", "", "UEN")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (UPDATE, "nothing was named to change: `corpid entity update --help` lists what can be"),
        ((*UPDATE, "--status", "Registred"), "did you mean 'Registered'?"),
        ((*UPDATE, "--name", ""), "name"),
        (("entity", "update", "20990042K", "--name", "X"), "there is no entity '20990042K'; did you mean '209900042K'?"),
        (("entity", "disable", "20990042K"), "did you mean '209900042K'?"),
        (("entity", "add", "B2", "--name", "B"), "exists already: change it with `corpid entity update`"),
        (("entity", "list", "--search", "\udcff"), "characters that no record has"),
        (("entity", "show", "\udcff"), "there is no entity"),
        (("service", "show", "TAXED"), "there is no service 'TAXED'; did you mean 'TAXES'?"),
        ((*ADD, "rina", "209900042K", "ownr"), "'ownr' is not one of owner, administrator, sub_administrator; did you mean 'owner'?"),
        ((*ADD, "mei", "209900042K", "owner"), "mei does not act for 209900042K"),
        ((*ADD, "rina", "B2", "sub_administrator", "--service", "TAXED"), "did you mean 'TAXES'?"),
        ((*ADD, "rina", "B2", "owner", "--service", "TAXES"), "owner has every service"),
        (("administrator", "remove", "mei", "209900042K"), "mei does not administer 209900042K"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_sentence_and_changes_nothing(
    terminal: Terminal, arguments: tuple[str, ...], reason: str
) -> None:
    """docs/directory.md."""
    fill(terminal)
    before = terminal.done("export")
    assert reason in terminal.refused(*arguments)
    assert terminal.done("export") == before


def test_a_level_is_given_changed_and_taken_each_with_its_event(terminal: Terminal) -> None:
    """D53."""
    fill(terminal)
    given = (*ADD, "rina", "B2", "sub_administrator", "--service", "PERMITS", "--service", "TAXES")
    assert "services: PERMITS, TAXES" in terminal.done(*given)
    assert terminal.look(last_event)[0] == "administrator.add"
    [held] = json.loads(terminal.done("administrator", "list", "--entity", "B2", "--json"))["administrators"]
    assert (held["services"], held["not_effective"]) == (["PERMITS", "TAXES"], ["the entity is disabled"])
    assert "services: PERMITS, TAXES → all" in terminal.done(*given[:5], "--service", "all")
    assert "level: sub_administrator → owner" in terminal.done(*ADD, "rina", "B2", "owner", "--dry-run")
    terminal.done("administrator", "remove", "rina", "B2")
    assert terminal.look(last_event)[0] == "administrator.remove"
    assert terminal.done("administrator", "list", "--entity", "B2") == "Administrators: none.\n"


def test_taking_the_last_owner_is_possible_and_remarked_on(terminal: Terminal) -> None:
    """D54: the operator may."""
    fill(terminal)
    remark = "the entity 209900042K will have no owner who can act"
    for arguments in (
        ("administrator", "remove", "rina", "209900042K", "--dry-run"),
        (*ADD, "rina", "209900042K", "administrator", "--dry-run"),
        ("administrator", "remove", "rina", "209900042K"),
    ):
        result = terminal.run(*arguments)
        assert (result.exit_code, remark in result.stderr) == (0, True)
    assert remark not in terminal.run("administrator", "remove", "arjun", "209900042K").stderr


@pytest.mark.parametrize(
    ("filters", "held"),
    [
        ((), {("rina", "owner"), ("arjun", "sub_administrator")}),
        (("--user", "rina"), {("rina", "owner")}),
        (("--entity", "C3"), set()),
        (("--user", "arjun", "--entity", "209900042K"), {("arjun", "sub_administrator")}),
    ],
)
def test_administrators_are_listed_by_person_and_entity(
    terminal: Terminal, filters: tuple[str, ...], held: set[tuple[str, str]]
) -> None:
    """D53."""
    fill(terminal)
    found = json.loads(terminal.done("administrator", "list", *filters, "--json"))["administrators"]
    assert {(each["user"], each["level"]) for each in found} == held
