"""`corpid role`: giving, taking and listing roles (R-14, D53)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

ADD = ("role", "add", "arjun", "209900042K", "PERMITS", "Filer")
REMOVE = ("role", "remove", "rina", "209900042K", "PERMITS")


def test_a_role_is_added_changed_and_removed_each_with_its_event(terminal: Terminal) -> None:
    fill(terminal)
    said = terminal.done(*ADD, "--end", "2999-06-30", "--parameter", "Limit=5", "--parameter", "Limit=7")
    assert said.startswith("+ assignment: arjun for 209900042K at PERMITS as Filer\n")
    assert "parameters: Limit = 5, Limit = 7\n" in said
    assert terminal.look(last_event)[:2] == ("assignment.add", "209900042K/PERMITS/Filer//")
    assert "end_date: 2999-06-30 → 2999-07-31" in terminal.done(*ADD, "--end", "2999-07-31")
    assert terminal.look(last_event)[::2] == ("assignment.update", {"members": "end_date"})
    assert terminal.done(*ADD, "--end", "2999-07-31") == "Nothing to change.\n"
    taken = terminal.done("role", "remove", "arjun", "209900042K", "PERMITS")
    assert taken == "- assignment: arjun for 209900042K at PERMITS as Filer\nDone: 1 removed.\n"
    assert terminal.look(last_event)[:2] == ("assignment.remove", "209900042K/PERMITS/Filer//")


@pytest.mark.parametrize("arguments", [ADD, (*REMOVE, "--ref", "two")])
def test_a_dry_run_shows_the_change_and_writes_nothing(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    fill(terminal)
    before = terminal.done("export"), terminal.done("audit", "list", "--json", "--last", "1000")
    assert "Would be: 1 " in terminal.done(*arguments, "--dry-run")
    assert json.loads(terminal.done(*arguments, "--dry-run", "--json"))["written"] is False
    assert (terminal.done("export"), terminal.done("audit", "list", "--json", "--last", "1000")) == before


def test_a_removal_that_means_several_roles_lists_them_and_takes_none(terminal: Terminal) -> None:
    """What tells them apart stands there as options, to be copied."""
    fill(terminal)
    said = terminal.refused(*REMOVE)
    assert said.splitlines() == [
        "Error: several roles are meant; name one of them by its options",
        "  --role Approver --sub-entity '' --ref ''  (until 31 December 2999)",
        "  --role Approver --sub-entity North --ref two",
    ]
    terminal.done(*REMOVE, "--role", "Approver", "--sub-entity", "", "--ref", "")
    [left] = json.loads(terminal.done("role", "list", "--user", "rina", "--service", "PERMITS", "--json"))["roles"]
    assert (left["sub_entity"], left["ref"]) == ("North", "two")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("role", "add", "rnia", "209900042K", "PERMITS"), "there is no user 'rnia'; did you mean 'rina'?"),
        (("role", "add", "rina", "209900042L", "PERMITS"), "there is no entity '209900042L'; did you mean '209900042K'?"),
        (("role", "add", "rina", "209900042K", "PERMIT"), "there is no service 'PERMIT'; did you mean 'PERMITS'?"),
        ((*ADD[:-1], "Filler"), "'Filler' is no role of PERMITS; its roles are Approver, Filer; did you mean 'Filer'?"),
        (ADD[:-1], "a role is required at PERMITS; its roles are Approver, Filer"),
        (("role", "add", "mei", "209900042K", "TAXES", "Viewer"), "mei does not act for 209900042K"),
        ((*ADD, "--end", "2027-02-30"), "end_date: the date 2027-02-30 does not exist"),
        ((*ADD, "--start", "2027-02-02", "--end", "2027-02-01"), "the row ends on 2027-02-01, before it starts"),
        ((*ADD, "--parameter", "Limt=5"), "PERMITS defines no parameter 'Limt'; did you mean 'Limit'?"),
        ((*ADD, "--parameter", "Limit"), "--parameter Limit: write a name and a value, such as Limit=500"),
        (("role", "add", "rina", "209900042K", "TAXES", "Viewer", "--sub-entity", "N"), "TAXES has no sub-entities"),
        ((*REMOVE, "--role", "Filer"), "rina has no such role for 209900042K at PERMITS; there is\n  --role Approver"),
        (("role", "remove", "arjun", "209900042K", "TAXES"), "arjun has no role for 209900042K at TAXES"),
        (("role", "list", "--entity", "209900042"), "did you mean '209900042K'?"),
        (("role", "list", "--after", "somewhere"), "--after is not a place in this list"),
        (("role", "list", "--service", "\udcff"), "there is no service"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_a_sentence_that_says_what_to_change(
    terminal: Terminal, arguments: tuple[str, ...], reason: str
) -> None:
    """docs/directory.md; nothing is half-written."""
    fill(terminal)
    before = terminal.done("export")
    assert reason in terminal.refused(*arguments)
    assert terminal.done("export") == before


def test_a_list_says_why_a_role_is_not_effective(terminal: Terminal) -> None:
    """D23, D50."""
    fill(terminal)
    found = json.loads(terminal.done("role", "list", "--user", "rina", "--service", "TAXES", "--json"))["roles"]
    assert {each["entity"]: each["not_effective"] for each in found} == {
        "209900042K": ["it starts on 1 January 2999"],
        "B2": ["it ended on 1 January 2020", "the entity B2 is disabled"],
    }


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ((), 4),
        (("--user", "rina"), 4),
        (("--user", "arjun"), 0),
        (("--entity", "209900042K"), 3),
        (("--service", "TAXES"), 2),
        (("--entity", "209900042K", "--service", "TAXES"), 1),
        (("--user", "rina", "--entity", "B2"), 1),
        (("--user", "rina", "--entity", "B2", "--service", "PERMITS"), 0),
    ],
)  # fmt: skip
def test_a_list_is_narrowed_and_paged_without_a_gap(terminal: Terminal, filters: tuple[str, ...], count: int) -> None:
    fill(terminal)
    found, after = [], ""
    for _ in range(count + 1):
        page = json.loads(terminal.done("role", "list", *filters, "--limit", "1", "--after", after, "--json"))
        found += page["roles"]
        after = page["after"]
        if not after:
            break
    assert found == json.loads(terminal.done("role", "list", *filters, "--json"))["roles"]
    assert len(found) == count


def test_the_last_line_of_a_list_is_the_command_that_goes_on(terminal: Terminal) -> None:
    fill(terminal)
    *_, line = terminal.done("role", "list", "--user", "rina", "--limit", "2").splitlines()
    assert line.startswith("There are more: corpid role list --user=rina --limit=2 --after=")
    following = terminal.done(*line.partition("corpid ")[2].split())
    assert "TAXES" in following
    assert "There are more" not in following
    assert terminal.done("role", "list", "--user", "arjun") == "Roles: none.\n"
