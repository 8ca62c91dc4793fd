"""Commands that change one record: `--dry-run` and `--json`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer

from corpid import cli
from tests.cli.directories import fill

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

RP = ("--name", "RP", "--redirect-uri", "https://rp.example/cb", "--jwks-uri", "https://rp.example/jwks")
API = ("--name", "Portal", "--scope", "directory.read", "--jwks-uri", "https://portal.example/jwks")
CHANGES: dict[tuple[str, ...], tuple[str, str]] = {
    ("user", "add", "tan", "--name", "Tan", "--entity", "C3"): ("+", "user tan"),
    ("user", "update", "rina", "--email", "rina@beta.example"): ("~", "user rina"),
    ("user", "remove", "rina"): ("-", "user rina"),
    ("user", "disable", "rina"): ("~", "user rina"),
    ("user", "enable", "off"): ("~", "user off"),
    ("entity", "add", "D4", "--name", "Delta"): ("+", "entity D4"),
    ("entity", "update", "C3", "--name", "Delta"): ("~", "entity C3"),
    ("entity", "remove", "C3"): ("-", "entity C3"),
    ("entity", "disable", "C3"): ("~", "entity C3"),
    ("entity", "enable", "B2"): ("~", "entity B2"),
    ("service", "add", "NEW", "--name", "New"): ("+", "service NEW"),
    ("service", "update", "TAXES", "--name", "Other"): ("~", "service TAXES"),
    ("service", "remove", "TAXES"): ("-", "service TAXES"),
    ("service", "disable", "TAXES"): ("~", "service TAXES"),
    ("service", "enable", "OFF"): ("~", "service OFF"),
    ("client", "add", "new", *RP): ("+", "client new"),
    ("client", "update", "rp", "--name", "Other"): ("~", "client rp"),
    ("client", "disable", "rp"): ("~", "client rp"),
    ("client", "enable", "off"): ("~", "client off"),
    ("client", "remove", "rp"): ("-", "client rp"),
    ("client", "add", "portal", "--api", *API): ("+", "API client portal"),
    ("client", "update", "api", "--name", "Other"): ("~", "API client api"),
    ("client", "disable", "api"): ("~", "API client api"),
    ("client", "enable", "api-off"): ("~", "API client api-off"),
    ("client", "remove", "api"): ("-", "API client api"),
    ("role", "add", "arjun", "209900042K", "TAXES", "Viewer"): (
        "+",
        "assignment: arjun for 209900042K at TAXES as Viewer",
    ),
    ("role", "update", "rina", "B2", "TAXES", "--end", "2999-12-31"): (
        "~",
        "assignment: rina for B2 at TAXES as Viewer",
    ),
    ("role", "remove", "rina", "B2", "TAXES"): ("-", "assignment: rina for B2 at TAXES as Viewer"),
    ("administrator", "add", "rina", "B2", "owner"): ("+", "administrator: rina at B2"),
    ("administrator", "update", "arjun", "209900042K", "--level", "administrator"): (
        "~",
        "administrator: arjun at 209900042K",
    ),
    ("administrator", "remove", "arjun", "209900042K"): ("-", "administrator: arjun at 209900042K"),
    ("operator", "add", "rina", "auditor"): ("+", "operator: rina"),
    ("operator", "update", "arjun", "--level", "support"): ("~", "operator: arjun"),
    ("operator", "remove", "arjun"): ("-", "operator: arjun"),
    ("membership", "add", "mei", "C3"): ("+", "membership: mei acts for C3"),
    ("membership", "invite", "--entity", "C3", "--name", "Tan", "--email", "tan@gamma.example"): (
        "+",
        "membership: tan@gamma.example acts for C3",
    ),
    ("provisioning-token", "add", "--entity", "C3", "--name", "HR"): ("+", "provisioning token HR of C3"),
    ("membership", "remove", "rina", "B2"): ("-", "assignment: rina for B2 at TAXES as Viewer"),
    ("membership", "update", "rina", "B2", "--job-title", "Clerk"): ("~", "membership: rina acts for B2"),
    ("membership", "disable", "rina", "B2"): ("~", "membership: rina acts for B2"),
    ("membership", "enable", "off", "C3"): ("~", "membership: off acts for C3"),
}
"""command → the first change that it makes"""
WITHOUT = {
    ("user", "invite"), ("user", "link"), ("user", "factors"), ("user", "reset-password"), ("user", "reset-factors"),
    ("user", "unlock"), ("user", "import"), ("provisioning-token", "remove"), ("membership", "resend"), ("client", "drop-keys"), ("client", "migration"),
    ("client", "refusals"), ("client", "keys"), ("user", "erase"), ("entity", "review"),
}  # fmt: skip
"""they show or make a secret, change no record, or many: tests/cli/test_user_import.py, test_provisioning_tokens.py, test_erasing.py"""
READS = {"list", "show"}


def prepared(terminal: Terminal) -> str:
    fill(terminal)
    terminal.done("client", "add", "rp", *RP)
    terminal.done("client", "add", "off", *RP)
    terminal.done("client", "disable", "off")
    terminal.done("client", "add", "api", "--api", *API)
    terminal.done("client", "add", "api-off", "--api", *API)
    terminal.done("client", "disable", "api-off")
    terminal.done("service", "add", "OFF", "--name", "Off")
    terminal.done("service", "disable", "OFF")
    terminal.done("user", "add", "off", "--name", "Off", "--entity", "C3")
    terminal.done("user", "disable", "off")
    terminal.done("membership", "disable", "off", "C3")
    terminal.done("operator", "add", "arjun", "auditor")
    return terminal.done("export")


def test_every_command_that_changes_a_record_is_looked_at() -> None:
    subjects = {path[0] for path in CHANGES}
    known = {(subject, name) for subject in subjects for name in commands(subject)}
    assert {path[:2] for path in CHANGES} == {path for path in known if path[1] not in READS} - WITHOUT


def commands(subject: str) -> list[str]:
    found: Any = cli.load_command(subject)
    return list(found.list_commands(typer.Context(found)))


def test_a_dry_run_writes_nothing_and_says_what_would_be_and_json_says_it_to_programs(terminal: Terminal) -> None:
    before, clients = prepared(terminal), terminal.done("client", "list", "--json")
    for command, (sign, subject) in CHANGES.items():
        shown = terminal.done(*command, "--dry-run")
        assert f"{sign} {subject}\n" in shown, command
        assert "Would be: " in shown, command
        told = json.loads(terminal.done(*command, "--dry-run", "--json"))
        assert {"sign": sign, "subject": subject} == {name: told["changes"][0][name] for name in ("sign", "subject")}, (
            command
        )
        assert told["written"] is False
    assert (terminal.done("export"), terminal.done("client", "list", "--json")) == (before, clients)


@pytest.mark.parametrize("options", [(), ("--with-factors",)])
def test_a_program_reads_what_a_new_person_needs(terminal: Terminal, options: tuple[str, ...]) -> None:
    """D46: the link with its code, or first factors; each only this once."""
    fill(terminal)
    told = json.loads(terminal.done("user", "add", "tan", "--name", "Tan", *options, "--json"))
    assert told["user"]["user_name"] == "tan"
    if options:
        assert set(told) == {"user", "password", "totp_secret", "otpauth_uri"}
    else:
        assert (told["sent"], set(told["link"])) == (False, {"url", "code", "seconds"})


def test_a_switch_that_was_turned_is_told_to_programs(terminal: Terminal) -> None:
    fill(terminal)
    told = json.loads(terminal.done("entity", "disable", "C3", "--json"))
    assert told == {
        "changes": [{"sign": "~", "subject": "entity C3", "members": ["enabled: true → false"]}],
        "written": True,
    }
