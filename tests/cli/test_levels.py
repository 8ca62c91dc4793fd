"""Administrators and operators by the operator's file and commands (D53, D54, D65)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corpid.rules.directory.records import Administrator, Operator, User

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

DIRECTORY = """
entities: {A1: {type: UEN, country: SG, name: Alpha}, B2: {type: UEN, country: SG, name: Beta}}
services: {PLAIN: {name: Plain}, OTHER: {name: Other}}
users: {rina: {name: Rina, memberships: [A1, B2]}, arjun: {name: Arjun, memberships: [A1]}}
administrators:
  - {user: rina, entity: A1, level: owner}
  - {user: arjun, entity: A1, level: sub_administrator, services: [PLAIN, OTHER]}
  - {user: rina, entity: B2, level: administrator}
operators: [{user: rina, level: operator}, {user: arjun, level: auditor}]
"""


async def held(stores: Stores) -> list[str]:
    """Everybody's level, by name."""
    directory = stores.registry.directory
    names = {user.user_id: user.user_name async for user in directory.scan(User)}
    operators = {names[each.user_id]: each.level async for each in directory.scan(Operator)}
    return [
        *sorted(
            [f"{names[each.user_id]} {each.entity_id} {each.level}" async for each in directory.scan(Administrator)]
        ),
        *sorted(f"{name} {level}" for name, level in operators.items()),
    ]


async def actions(stores: Stores) -> list[str]:
    return [entry.action for entry in await stores.registry.audit.entries()]


EVERYBODY = ["arjun A1 sub_administrator", "rina A1 owner", "rina B2 administrator", "arjun auditor", "rina operator"]


def test_levels_are_applied_audited_and_exported(terminal: Terminal) -> None:
    said = terminal.done("apply", terminal.file(DIRECTORY))
    assert "+ administrator: rina at A1" in said
    assert terminal.look(held) == EVERYBODY
    assert terminal.look(actions).count("administrator.add") == 3
    assert terminal.look(actions).count("operator.add") == 2
    exported = terminal.done("export")
    assert "- {user: arjun, entity: A1, level: sub_administrator, services: [PLAIN, OTHER]}" in exported
    assert "- {user: rina, entity: A1, level: owner}\n" in exported
    again = terminal.file(exported, "again.yaml")
    assert terminal.done("apply", again, "--prune", "--prune-administrators") == "Nothing to change.\n"


def test_a_file_that_is_silent_about_levels_takes_none(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(DIRECTORY))
    part = terminal.file(
        DIRECTORY.partition("administrators:")[0] + "administrators: [{user: rina, entity: A1, level: owner}]"
    )
    assert terminal.done("apply", part, "--prune") == "Nothing to change.\n"
    assert terminal.look(held) == EVERYBODY
    said = terminal.done("apply", part, "--prune-administrators", "--dry-run")
    assert "- administrator: arjun at A1" in said
    terminal.done("apply", part, "--prune-administrators")
    assert terminal.look(held) == ["rina A1 owner", "arjun auditor", "rina operator"]


def test_prune_stops_at_a_person_who_operates(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(DIRECTORY))
    part = terminal.file("users: {rina: {memberships: [A1, B2]}}")
    said = terminal.refused("apply", part, "--prune")
    assert "arjun, who is an operator" in said
    assert "Nothing was changed." in said
    terminal.done("apply", part, "--prune", "--prune-administrators")
    assert terminal.look(held) == ["rina A1 owner", "rina B2 administrator", "rina operator"]


def test_neither_file_nor_command_takes_the_last_operator(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(DIRECTORY))
    assert "no operator who can act would remain" in terminal.refused(
        "apply", terminal.file("operators: [{user: rina, level: support}]")
    )
    said = terminal.refused("user", "disable", "rina")
    assert said.startswith("Error: no operator who can act would remain: appoint another one first.")
    terminal.done("apply", terminal.file("operators: [{user: arjun, level: operator}]"))
    terminal.done("user", "disable", "rina")
    assert "no operator who can act would remain" in terminal.refused("user", "disable", "arjun")


def test_taking_an_entitys_last_owner_is_noted(terminal: Terminal) -> None:
    """D54: the operator may."""
    terminal.done("apply", terminal.file(DIRECTORY + "  \n"))
    terminal.done("apply", terminal.file("operators: [{user: arjun, level: operator}]"))
    result = terminal.run("user", "disable", "rina")
    assert result.exit_code == 0
    assert "the entity A1 will have no owner who can act" in result.stderr
    assert "B2" not in result.stderr
    terminal.done("user", "enable", "rina")
    file = terminal.file("users: {rina: {memberships: [{entity: A1, enabled: false}]}}")
    result = terminal.run("apply", file)
    assert f"{file}:1: the entity A1 will have no owner who can act" in result.stderr
    assert result.exit_code == 0


def test_a_command_makes_operators_changes_their_level_and_never_takes_the_last_one(terminal: Terminal) -> None:
    """D53."""
    terminal.done("apply", terminal.file(DIRECTORY.partition("operators:")[0]))
    assert "makes the first one" in terminal.done("operator", "list")
    terminal.done("operator", "add", "rina")
    terminal.done("operator", "add", "arjun", "auditor")
    terminal.done("operator", "add", "arjun", "support")
    told = json.loads(terminal.done("operator", "list", "--json"))
    assert {each["user"]: each["level"] for each in told["operators"]} == {"rina": "operator", "arjun": "support"}
    assert "no operator who can act would remain" in terminal.refused("operator", "remove", "rina")
    terminal.done("operator", "remove", "arjun")
    assert "does not operate this deployment" in terminal.refused("operator", "remove", "arjun")
