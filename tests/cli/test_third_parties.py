"""`corpid third-party list`: grants, and the roles that third parties gave to their people (R-21)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.directories import fill, last_event

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
        (("--after", "C3/B2"), "--after is not a place in this list"),
    ],
)
def test_what_is_not_there_is_a_sentence(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    fill(terminal)
    assert reason in terminal.refused("third-party", "list", *arguments)


BETWEEN = ("B2", "209900042K", "PERMITS")
WHY = ("--reason", "Ticket 4711")


def state(terminal: Terminal) -> list[str]:
    """The states of what B2 grants."""
    found = json.loads(terminal.done("third-party", "list", "--client-entity", "B2", "--json"))["grants"]
    return [each["state"] for each in found]


def test_an_offer_is_accepted_and_ended_by_command(terminal: Terminal) -> None:
    """D54, D56: the operator speaks for one side at a time, and says why it ends."""
    fill(terminal)
    said = terminal.done("third-party", "offer", *BETWEEN, "Filer", "--end", "2998-12-31", "--parameter", "Limit=5")
    assert said.startswith("+ grant: B2 lets 209900042K act at PERMITS as Filer\n")
    assert terminal.look(last_event)[0] == "grant.offer"
    row = "third_party: {assignments: [{user: rina, third_party: 209900042K, client_entity: B2, service: PERMITS, "
    row += "role: Filer, end_date: 2998-12-31, parameters: {Limit: 5}}]}"
    refused = terminal.refused("apply", terminal.file(row))
    assert "the row has no effect: 209900042K has not accepted what B2 offers for PERMITS" in refused
    assert "offered → accepted" in terminal.done("third-party", "accept", *BETWEEN)
    assert terminal.look(last_event)[0] == "grant.accept"
    terminal.done("apply", terminal.file(row))
    assert "say why" in terminal.refused("third-party", "end", *BETWEEN)
    shown = terminal.done("third-party", "end", *BETWEEN, "--dry-run")
    assert shown.endswith("Would be: 2 removed.\n")
    assert terminal.done(*WHY, "third-party", "end", *BETWEEN) == shown.replace("Would be", "Done")
    assert terminal.look(last_event)[0] == "third_party_assignment.remove"
    assert state(terminal) == []


def test_an_offer_is_declined_or_withdrawn(terminal: Terminal) -> None:
    fill(terminal)
    for command, action in (("decline", "grant.decline"), ("end", "grant.withdraw")):
        terminal.done("third-party", "offer", *BETWEEN)
        assert state(terminal) == ["offered"]
        assert terminal.done(*WHY, "third-party", command, *BETWEEN).endswith("Done: 1 removed.\n")
        assert (terminal.look(last_event)[0], state(terminal)) == (action, [])


def test_both_sides_are_spoken_for_if_that_is_said(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("third-party", "offer", *BETWEEN, "--accepted")
    assert state(terminal) == ["accepted"]
    assert terminal.look(last_event)[0] == "grant.add"
    assert terminal.done("third-party", "offer", *BETWEEN) == "Nothing to change.\n"
    assert "start_date: 0001-01-01 → 2026-01-01" in terminal.done(
        "third-party", "offer", *BETWEEN, "--start", "2026-01-01"
    )
    assert state(terminal) == ["accepted"]
    wider = terminal.run("third-party", "offer", *BETWEEN, "--start", "2025-01-01")
    assert "209900042K has accepted less than this" in wider.stderr
    assert state(terminal) == ["offered"]


def test_a_file_accepts_for_both_sides_and_an_export_changes_nothing(terminal: Terminal) -> None:
    """D56, D65; also an export with an offer that has roles under it."""
    fill(terminal)
    terminal.done("third-party", "offer", "C3", "209900042K", "PERMITS", "--end", "9999-12-31")
    exported = terminal.done("export")
    assert "state: offered" in exported
    applied = terminal.run("apply", terminal.file(exported, "now.yaml"))
    assert applied.stdout == "Nothing to change.\n"
    assert "the row has no effect" in applied.stderr
    grant = "third_party: {grants: [{client_entity: C3, third_party: 209900042K, service: PERMITS}]}"
    assert "state stays as set by" in terminal.run("apply", terminal.file(grant)).stderr
    assert "state: offered → accepted" in terminal.done("apply", terminal.file(grant), "--take-over")
    assert "state:" not in terminal.done("export")


def test_what_a_grant_covered_is_pruned_with_it(terminal: Terminal) -> None:
    fill(terminal)
    removed = terminal.done("apply", terminal.file("third_party: {grants: []}"), "--prune")
    assert removed.endswith("Done: 2 removed.\n")
    assert "Roles of third parties' people: none." in terminal.done("third-party", "list", "--people")


def test_a_role_under_an_offer_says_that_it_is_not_accepted(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("third-party", "offer", "C3", "209900042K", "PERMITS", "--end", "9999-12-31")
    assert "209900042K has not accepted what C3 offers" in terminal.done("user", "show", "rina")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("offer", "B2", "209900042", "PERMITS"), "did you mean '209900042K'?"),
        (("offer", *BETWEEN[:2], "PERMIT"), "there is no service 'PERMIT'; did you mean 'PERMITS'?"),
        (("offer", "B2", "B2", "PERMITS"), "an entity cannot be its own third party"),
        (("offer", *BETWEEN[:2], "TAXES"), "TAXES does not allow third parties"),
        (("offer", *BETWEEN, "Filler"), "did you mean 'Filer'?"),
        (("accept", *BETWEEN), "there is no offer of B2 to 209900042K at PERMITS"),
        (("accept", "C3", *BETWEEN[1:]), "there is\n  --role '' --sub-entity '' --ref ''  (accepted)"),
        (("end", *BETWEEN[:2], "PERMIT"), "did you mean 'PERMITS'?"),
    ],
)
def test_what_cannot_be_decided_is_a_sentence(terminal: Terminal, arguments: tuple[str, ...], reason: str) -> None:
    fill(terminal)
    before = terminal.done("export")
    assert reason in terminal.refused(*WHY, "third-party", *arguments)
    assert terminal.done("export") == before


def test_several_grants_are_told_apart_by_their_options(terminal: Terminal) -> None:
    fill(terminal)
    for ref in ("one", "two"):
        terminal.done("third-party", "offer", *BETWEEN, "Filer", "--ref", ref)
    assert terminal.refused("third-party", "accept", *BETWEEN).splitlines() == [
        "Error: several are meant; name one of them by its options",
        "  --role Filer --sub-entity '' --ref one  (offered)",
        "  --role Filer --sub-entity '' --ref two  (offered)",
    ]
    terminal.done("third-party", "accept", *BETWEEN, "--ref", "two")
    assert state(terminal) == ["offered", "accepted"]
