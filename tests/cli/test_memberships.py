"""`corpid membership`: for whom a person acts (D50, D53, D60)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corpid.engines import at_command_line
from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

BY = f"{at_command_line().by} on the command line"


def entities_of(terminal: Terminal, user: str) -> dict[str, bool]:
    held = json.loads(terminal.done("entity", "list", "--user", user, "--json"))["entities"]
    return {each["entity"]["entity_id"]: each["membership_enabled"] for each in held}


def test_a_membership_is_given_once(terminal: Terminal) -> None:
    fill(terminal)
    assert (
        terminal.done("membership", "add", "Mei", "C3", "--dry-run")
        == "+ membership: mei acts for C3\nWould be: 1 added.\n"
    )
    assert entities_of(terminal, "mei") == {}
    assert terminal.done("membership", "add", "mei", "C3") == "+ membership: mei acts for C3\nDone: 1 added.\n"
    assert terminal.done("membership", "add", "mei", "C3") == "Nothing to change.\n"
    assert terminal.look(last_event)[:2] == ("membership.add", "C3")
    assert f"Acts for C3 (Gamma) (given by {BY})." in terminal.done("user", "show", "mei")


def test_a_suspended_membership_keeps_its_roles_and_comes_back(terminal: Terminal) -> None:
    fill(terminal)
    result = terminal.run("membership", "disable", "rina", "209900042K")
    assert "enabled: true → false" in result.stdout
    assert "the entity 209900042K will have no owner left who can act" in result.stderr
    assert entities_of(terminal, "rina")["209900042K"] is False
    assert "Cannot act as Approver at PERMITS" in terminal.done("user", "show", "rina")
    terminal.done("membership", "enable", "rina", "209900042K")
    assert entities_of(terminal, "rina")["209900042K"] is True
    assert "May act as Approver at PERMITS" in terminal.done("user", "show", "rina")


def test_a_membership_ends_with_its_level_and_roles_each_with_its_event(terminal: Terminal) -> None:
    """D53: a new one starts empty."""
    fill(terminal)
    shown = json.loads(terminal.done("membership", "remove", "rina", "209900042K", "--dry-run", "--json"))
    assert [change["sign"] for change in shown["changes"]] == ["-"] * 6
    assert shown["written"] is False
    result = terminal.run("membership", "remove", "rina", "209900042K")
    assert result.stdout.endswith("Done: 6 removed.\n")
    assert "the entity 209900042K will have no owner left who can act" in result.stderr
    assert entities_of(terminal, "rina") == {"B2": True}
    ended = terminal.done("audit", "list", "--user", "rina", "--action", "membership.", "--last", "1")
    assert "209900042K" in ended
    terminal.done("membership", "add", "rina", "209900042K")
    assert "Approver" not in terminal.done("user", "show", "rina")


def test_whoever_does_not_act_for_the_entity_is_said(terminal: Terminal) -> None:
    fill(terminal)
    for verb in ("remove", "disable", "enable"):
        assert "mei does not act for C3: `corpid entity list --user mei`" in terminal.refused(
            "membership", verb, "mei", "C3"
        )
    assert "there is no entity '20990042K'; did you mean '209900042K'?" in terminal.refused(
        "membership", "add", "mei", "20990042K"
    )
