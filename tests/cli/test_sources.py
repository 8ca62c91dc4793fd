"""Who wins at the command line: `corpid apply` and what was changed without a file (D65)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from corpid.engines import at_command_line
from tests.cli.directories import DIRECTORY, fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

BY = f"{at_command_line().by} on the command line"


def apply(terminal: Terminal, text: str, *options: str) -> tuple[str, list[str]]:
    """What it prints, and the notes."""
    result = terminal.run("apply", terminal.file(text, "hr.yaml"), *options)
    assert result.exit_code == 0, result.output
    return result.stdout, [line.partition("hr.yaml:")[2].strip() for line in result.stderr.splitlines()]


def test_what_a_command_changed_stays_and_take_over_takes_it(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("entity", "update", "C3", "--name", "Delta")
    text = "entities: {C3: {name: Epsilon}}"
    kept = f"1: entity C3: name stays as set by {BY}; --take-over takes it over"
    assert apply(terminal, text) == ("Nothing to change.\n", [kept])
    said, notes = apply(terminal, text, "--take-over")
    assert (said, notes) == (
        f"~ entity C3\n    name: Delta → Epsilon\n    taken over: from {BY}\nDone: 1 changed.\n", []
    )  # fmt: skip
    assert apply(terminal, "entities: {C3: {name: Zeta}}")[1] == []


def test_a_dry_run_tells_programs_what_is_kept_and_of_whom(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("entity", "update", "C3", "--name", "Delta")
    terminal.done("role", "add", "arjun", "209900042K", "TAXES", "Viewer")
    text = "entities: {C3: {name: Epsilon}}\nassignments: []\n"
    told = json.loads(apply(terminal, text, "--prune", "--dry-run", "--json")[0])
    assert told["written"] is False
    by = {"sources": ["command line"], "by": [BY]}
    of_entity = {"verb": "change", "subject": "entity C3", "members": ["name"], **by, "line": 1}
    role = {
        "verb": "remove",
        "subject": "assignment: arjun for 209900042K at TAXES as Viewer",
        "members": [],
        **by,
        "line": 0,
    }
    assert [each for each in told["kept"] if each["by"]] == [of_entity, role]


def test_a_nightly_apply_with_prune_destroys_nothing_that_was_done_meanwhile(terminal: Terminal) -> None:
    """Roles, levels and people of the command line, and all that they rest on."""
    fill(terminal)
    terminal.done("role", "add", "arjun", "209900042K", "TAXES", "Viewer")
    terminal.done("administrator", "add", "arjun", "209900042K", "owner")
    terminal.done("user", "add", "tan", "--name", "Tan", "--entity", "C3")
    before = terminal.done("export")
    said, notes = apply(terminal, DIRECTORY, "--prune", "--prune-administrators")
    assert said == "Nothing to change.\n"
    assert terminal.done("export") == before
    assert any(
        f"--prune leaves assignment: arjun for 209900042K at TAXES as Viewer: last written by {BY}" in note
        for note in notes
    )
    assert apply(terminal, before, "--prune", "--prune-administrators") == ("Nothing to change.\n", [])
    said, _ = apply(terminal, DIRECTORY, "--prune", "--prune-administrators", "--take-over")
    assert "- user tan" in said
    assert "- assignment: arjun for 209900042K at TAXES as Viewer" in said
    assert apply(terminal, DIRECTORY, "--prune", "--prune-administrators") == ("Nothing to change.\n", [])


def test_what_was_taken_by_day_is_not_given_again_at_night(terminal: Terminal) -> None:
    """D65: also not what went with it, and also if it is the record of an operator."""
    fill(terminal)
    terminal.done("membership", "remove", "rina", "209900042K")
    terminal.done("administrator", "remove", "arjun", "209900042K")
    before = terminal.done("export")
    said, notes = apply(terminal, DIRECTORY, "--prune")
    assert said == "Nothing to change.\n"
    assert terminal.done("export") == before
    assert any(f"membership: rina acts for 209900042K stays removed, as by {BY}" in note for note in notes)
    assert any("administrator: arjun at 209900042K stays removed" in note for note in notes)
    assert "+ membership: rina acts for 209900042K" in apply(terminal, DIRECTORY, "--take-over")[0]
    assert apply(terminal, DIRECTORY, "--prune") == ("Nothing to change.\n", [])


def test_a_grant_that_one_side_ended_is_not_given_again_nor_the_roles_under_it(terminal: Terminal) -> None:
    """D56 with D65: also if it was declined or withdrawn before it gave anything."""
    fill(terminal)
    terminal.done("--reason", "Ticket 4711", "third-party", "end", "C3", "209900042K", "PERMITS")
    before = terminal.done("export")
    said, notes = apply(terminal, DIRECTORY, "--prune")
    assert said == "Nothing to change.\n"
    assert terminal.done("export") == before
    assert any(f"grant: C3 lets 209900042K act at PERMITS stays removed, as by {BY}" in note for note in notes)
    assert apply(terminal, DIRECTORY, "--take-over")[0].endswith("2 added.\n")


def test_of_a_person_the_command_line_and_a_file_each_keep_their_members(terminal: Terminal) -> None:
    fill(terminal)
    terminal.done("user", "disable", "arjun")
    text = "users:\n  arjun:\n    name: Arjun Two\n    enabled: true\n"
    said, notes = apply(terminal, text)
    assert "name: Arjun → Arjun Two" in said
    assert notes == [f"4: user arjun: enabled stays as set by {BY}; --take-over takes it over"]
    assert json.loads(terminal.done("user", "show", "arjun", "--json"))["enabled"] is False


def test_the_audit_says_from_whom_something_was_taken_over(terminal: Terminal) -> None:
    """D57, D65."""
    fill(terminal)
    terminal.done(
        "client",
        "add",
        "rp",
        "--name",
        "RP",
        "--redirect-uri",
        "https://rp.example/cb",
        "--jwks-uri",
        "https://rp.example/jwks",
    )
    apply(terminal, "clients: {rp: {name: RP}}", "--take-over")
    [event] = json.loads(
        f"[{','.join(terminal.done('audit', 'list', '--object', 'rp', '--last', '1', '--json').splitlines())}]"
    )
    assert (event["action"], event["detail"]["taken_over"]) == ("client.update", at_command_line().name)
    assert terminal.look(last_event)[0] == "directory.apply"


def test_a_file_that_takes_over_what_needs_approval_says_both(terminal: Terminal) -> None:
    """D55 with D65: it goes without approval, and the history says so and from whom it took."""
    fill(terminal)
    terminal.done("apply", terminal.file("services: {TAXES: {approval_required: true}}"))
    terminal.done("role", "add", "arjun", "209900042K", "TAXES", "Viewer")
    row = "{user: arjun, entity: 209900042K, service: TAXES, role: Viewer, end_date: 2998-12-31}"
    apply(terminal, f"assignments: [{row}]", "--take-over")
    told = terminal.done("audit", "list", "--action", "assignment.update", "--last", "1", "--json")
    detail = json.loads(told)["detail"]
    assert (detail["approval"], detail["taken_over"]) == ("bypassed", at_command_line().name)
