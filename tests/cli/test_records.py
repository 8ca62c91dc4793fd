"""Commands that are made from the resources of records: their options, and what `none` and several matches do."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid import cli
from corpid.cli.records import NOUNS, Noun
from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

RENAMED = {"start_date": "start", "end_date": "end", "entity_statuses": "entity_status"}
GENERATED = {name: noun for name, noun in NOUNS.items() if noun.kind not in {"client", "grant"}}
ROLE = ("rina", "209900042K", "PERMITS", "--ref", "two")


def options(name: str, verb: str) -> set[str]:
    command: Any = cli.load_command(name).commands[verb]
    return {parameter.name for parameter in command.params} - {"dry_run", "json", "help"}


def expected(noun: Noun) -> set[str]:
    """The members that commands set, each by the name of its option; a list's names one value of it."""
    members = noun.resource.keys.keys() - {"enabled"}
    forms = {name: noun.resource.properties[name].get("type", "array") for name in members}
    return {
        RENAMED.get(name, name.removesuffix("s") if form in {"array", "object"} else name)
        for name, form in forms.items()
    }


@pytest.mark.parametrize("name", GENERATED)
def test_every_member_of_a_record_is_an_argument_or_option_and_nothing_else(name: str) -> None:
    """docs/directory.md: a member that a record gets is one of its commands, too."""
    noun = GENERATED[name]
    own = {"entity", "foreign", "with_factors", "only_print"} if name == "user" else set()
    assert options(name, "add") - own == expected(noun)
    if "update" in cli.load_command(name).commands:
        assert options(name, "update") == expected(noun)


def test_none_takes_a_member_back_and_what_is_not_named_stays(terminal: Terminal) -> None:
    """docs/directory.md, "Single commands"."""
    fill(terminal)
    said = terminal.done("role", "update", *ROLE, "--end", "2999-06-30", "--parameter", "none")
    assert "end_date: 9999-12-31 → 2999-06-30" in said
    assert "parameters: Limit = 500 → (none)" in said
    assert terminal.look(last_event)[0] == "assignment.update"
    assert "end_date: 2999-06-30 → 9999-12-31" in terminal.done("role", "update", *ROLE, "--end", "none")
    assert "email: rina@example.com → (none)" in terminal.done("user", "update", "rina", "--email", "none")
    assert terminal.done("user", "update", "rina", "--email", "none") == "Nothing to change.\n"


def test_a_list_is_sorted_and_counted_as_in_the_admin_api(terminal: Terminal) -> None:
    """D83: a place of another order is refused."""
    fill(terminal)
    by_name = json.loads(terminal.done("user", "list", "--sort=name", "--total", "--json"))
    backwards = json.loads(terminal.done("user", "list", "--sort=-name", "--json"))
    assert by_name["users"] == backwards["users"][::-1]
    assert (by_name["total"], by_name["total_is_exact"]) == (len(by_name["users"]), True)
    assert "total" not in backwards
    assert f"{by_name['total']} in all." in terminal.done("user", "list", "--total")
    first = json.loads(terminal.done("user", "list", "--sort=name", "--limit=1", "--json"))
    second = json.loads(
        terminal.done("user", "list", "--sort=name", "--limit=1", "--json", f"--after={first['after']}")
    )
    assert [first["users"][0], second["users"][0]] == by_name["users"][:2]
    assert f"--sort=name --limit=1 --after={first['after']}" in terminal.done(
        "user", "list", "--sort=name", "--limit=1"
    )
    for other in ("", "-name", "email"):
        refused = terminal.refused("user", "list", f"--sort={other}", f"--after={first['after']}")
        assert "--after is not a place in this list" in refused
    assert "the list can be sorted by user_name, name, email" in terminal.refused("user", "list", "--sort=colour")


LISTS = {
    "user": "user_name", "entity": "entity_id", "membership": "user", "service": "service_id", "role": "user",
    "administrator": "user", "operator": "user", "third-party": "client_entity", "client": "client_id",
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_printed_whole_as_csv(terminal: Terminal, name: str) -> None:
    """D83: in the columns of the admin API, whatever else the list shows."""
    fill(terminal)
    narrowed = ["--entity", "209900042K"] if name == "membership" else []
    rows = list(csv.DictReader(io.StringIO(terminal.done(name, "list", "--csv", "--limit=1", *narrowed))))
    shown = json.loads(terminal.done(name, "list", "--json", *narrowed))
    assert len(rows) == len(shown if name == "client" else next(iter(shown.values())))
    assert all(set(row) == set(NOUNS[name].resource.columns) for row in rows)
    assert all(row[LISTS[name]] for row in rows)


def test_one_record_of_each_kind_is_shown_as_its_list_shows_it(terminal: Terminal) -> None:
    fill(terminal)
    for noun, names, filters in (
        ("membership", ("rina", "209900042K"), ("--entity", "209900042K")),
        ("role", ("rina", "B2", "TAXES"), ("--entity", "B2")),
        ("administrator", ("arjun", "209900042K"), ("--user", "arjun")),
        ("operator", ("mei",), ()),
        ("third-party", ("C3", "209900042K", "PERMITS"), ()),
    ):
        shown = json.loads(terminal.done(noun, "show", *names, "--json"))
        [listed] = [each for each in json.loads(terminal.done(noun, "list", *filters, "--json")).values() if each]
        assert shown in listed
        assert names[0] in terminal.done(noun, "show", *names)


def test_a_service_is_added_with_its_roles_and_parameters_changed_and_removed(terminal: Terminal) -> None:
    """R-14.1."""
    fill(terminal)
    add = ("service", "add", "LIBRARY", "--name", "Library", "--role", "Reader", "--role-description", "Reader=Reads.")
    assert terminal.done(*add, "--parameter", "Shelf=text,mandatory", "--third-parties", "true") == (
        "The service LIBRARY is added.\n"
    )
    shown = json.loads(terminal.done("service", "show", "LIBRARY", "--json"))
    assert (shown["roles"], shown["third_parties"]) == (["Reader"], True)
    assert shown["parameters"] == [{"name": "Shelf", "kind": "text", "mandatory": True}]
    assert "roles: Reader → (none)" in terminal.done("service", "update", "LIBRARY", "--role", "none")
    assert terminal.done("service", "disable", "LIBRARY") == "The service LIBRARY is disabled.\n"
    assert "LIBRARY exists already" in terminal.refused(*add)
    terminal.done("service", "remove", "LIBRARY")
    assert "there is no service 'LIBRARY'" in terminal.refused("service", "show", "LIBRARY")


def test_what_ends_with_a_removed_record_is_said(terminal: Terminal) -> None:
    """D54, R-21: an operator may remove the last owner, too."""
    fill(terminal)
    person = terminal.run("user", "remove", "rina", "--dry-run")
    assert "the entity 209900042K will have no owner who can act" in person.stderr
    assert "what rests on it ends, too: factors, memberships, levels, roles" in person.stderr
    assert "memberships, levels, roles, grants" in terminal.run("entity", "remove", "C3").stderr
    assert "there is no entity 'C3'" in terminal.refused("entity", "show", "C3")
    assert "through 209900042K" not in terminal.done("user", "show", "rina")
    assert "no operator who can act would remain" in terminal.refused("user", "remove", "mei")


def test_operators_are_paged(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("operator", "add", "rina", "auditor")
    first = terminal.done("operator", "list", "--sort=-level", "--limit", "1")
    assert ("mei" in first, "rina" in first) == (True, False)
    *_, line = first.splitlines()
    assert "rina" in terminal.done(*line.partition("corpid ")[2].split())
    both = [json.loads(terminal.done("operator", "list", f"--sort={sort}", "--json")) for sort in ("level", "-level")]
    assert [[each["user"] for each in found["operators"]] for found in both] == [["rina", "mei"], ["mei", "rina"]]
    assert "--after is not a place" in terminal.refused("operator", "list", "--after", "arjun")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("role", "update", *ROLE), "nothing was named to change: `corpid role update --help` lists what can be"),
        (("role", "update", *ROLE[:3], "--end", "none"), "several roles are meant; name one of them by its options"),
        (("role", "show", *ROLE[:3], "--role", "Filer"), "rina has no such role for 209900042K at PERMITS"),
        (("membership", "show", "mei", "C3"), "mei does not act for C3"),
        (("administrator", "update", "arjun", "209900042K", "--service", "TAXED"), "did you mean 'TAXES'?"),
        (("administrator", "update", "arjun", "209900042K", "--level", "ownr"), "did you mean 'owner'?"),
        (("operator", "update", "rina", "--level", "auditor"), "rina does not operate this deployment"),
        (("service", "update", "TAXES", "--parameter", "Limit=number,mandatry"), "only the word mandatory is expected"),
        (("service", "update", "TAXES", "--parameter", "Limit"), "write a name and a value, such as Limit=500"),
        (("service", "update", "TAXES", "--third-parties", "ture"), "third_parties: "),
        (("service", "add", "PERMITS", "--name", "Again"), "exists already"),
        (("user", "update", "rnia", "--name", "X"), "there is no user 'rnia'; did you mean 'rina'?"),
        (("user", "list", "--name", "x", "--entity", "B2"), "--entity and --name cannot be combined"),
        (("entity", "list", "--user", "rina", "--search", "x"), "--user and --search cannot be combined"),
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
