"""`corpid third-party list`: grants, and the roles that third parties gave to their people (R-21)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.directories import fill

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

MORE = """
services: {OTHER: {name: Other, third_parties: true}}
third_party:
  grants:
    - {client_entity: C3, third_party: 209900042K, service: OTHER}
    - {client_entity: C3, third_party: B2, service: OTHER}
  assignments: [{user: rina, third_party: B2, client_entity: C3, service: OTHER}]
"""


@pytest.mark.parametrize(
    ("filters", "grants", "roles"),
    [
        ((), 3, 2),
        (("--client-entity", "C3"), 3, 2),
        (("--client-entity", "B2"), 0, 0),
        (("--third-party", "209900042K"), 2, 1),
        (("--service", "OTHER"), 2, 1),
        (("--third-party", "B2", "--service", "OTHER"), 1, 1),
        (("--client-entity", "C3", "--third-party", "B2", "--service", "PERMITS"), 0, 0),
    ],
)
def test_grants_and_roles_are_narrowed_and_paged(
    terminal: Terminal, filters: tuple[str, ...], grants: int, roles: int
) -> None:
    fill(terminal)
    terminal.done("apply", terminal.file(MORE))
    for further, name, count in (((), "grants", grants), (("--people",), "roles", roles)):
        found, after = [], ""
        for _ in range(count + 1):
            arguments = ("third-party", "list", *filters, *further, "--limit", "1", "--after", after, "--json")
            page = json.loads(terminal.done(*arguments))
            found += page[name]
            after = page["after"]
            if not after:
                break
        assert found == json.loads(terminal.done("third-party", "list", *filters, *further, "--json"))[name]
        assert len(found) == count


def test_a_role_of_a_third_partys_person_says_why_it_is_not_effective(terminal: Terminal) -> None:
    """D23, D50, R-21."""
    fill(terminal)

    def reasons() -> list[str]:
        [role] = json.loads(terminal.done("third-party", "list", "--user", "rina", "--json"))["roles"]
        found: list[str] = role["not_effective"]
        return found

    assert reasons() == []
    terminal.done("entity", "disable", "C3")
    terminal.done("apply", terminal.file("services: {PERMITS: {third_parties: false}}"))
    assert reasons() == ["the entity C3 is disabled", "the service PERMITS does not allow third parties"]


def test_tables_show_grants_and_lead_on(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("apply", terminal.file(MORE))
    shown = terminal.done("third-party", "list", "--third-party", "209900042K", "--limit", "1")
    assert "(any)" in shown
    *_, line = shown.splitlines()
    assert line.startswith("There are more: corpid third-party list --third-party=209900042K --limit=1 --after=C3/")
    assert "2998-12-31" in terminal.done(*line.partition("corpid ")[2].split())
    assert "until 2998-12-31" in terminal.done("third-party", "list", "--people")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--third-party", "209900042"), "there is no entity '209900042'; did you mean '209900042K'?"),
        (("--user", "rnia"), "there is no user 'rnia'; did you mean 'rina'?"),
        (("--after", "C3/B2"), "--after is no place in this list"),
    ],
)
def test_what_is_not_there_is_a_sentence(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    fill(terminal)
    assert reason in terminal.refused("third-party", "list", *arguments)
