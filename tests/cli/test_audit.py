"""`corpid audit`: what commands and files changed, found again by whoever asks (D54, D57)."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid.engines import Stores, at_command_line
from corpid.rules.audit import AuditAction, AuditEntry, AuditEvent, AuditQuery
from corpid.rules.directory.access import ACTOR_KINDS
from tests.cli.hostile import TRICKS, is_clean

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

BY = at_command_line().name
ENTITY = "entities: {E1: {type: UEN, registration_number: E1, country: SG, name: %s}}"
FILE = """
entities: {E1: {type: UEN, registration_number: E1, country: SG, name: Acme}}
services: {books: {name: Books, roles: [Clerk]}}
users:
  lim: {name: Lim, email: lim@example.org, identity_number: S1234567D, memberships: [E1]}
assignments: [{user: lim, entity: E1, service: books, role: Clerk}]
"""
KEYS = ("--jwks-uri", "https://rp.example/j")
CLIENT = ("client", "add", "rp", "--name", "RP", "--redirect-uri", "https://rp.example/cb", *KEYS)
LIM = ("user", "add", "lim", "--name", "Lim")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d  \S+ +(.+)")
SHORT = 40


def listed(terminal: Terminal, *arguments: str) -> list[str]:
    """What the lines say was done, without time and actor."""
    first, *lines = terminal.done("audit", "list", *arguments).splitlines()
    if not lines:
        assert first.startswith("No entry matches.")
    found = [LINE.fullmatch(line) for line in lines]
    return [match[1] if match else "no line of the audit" for match in found]


def told(terminal: Terminal, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in terminal.done("audit", "list", "--json", *arguments).splitlines()]


def last(terminal: Terminal) -> dict[str, Any]:
    [entry] = told(terminal, "--last", "1")
    return entry


def test_what_a_file_changes_tells_file_digest_and_who_applied_it(terminal: Terminal) -> None:
    """D57, D65: with members before and after."""
    file = terminal.file(ENTITY % "Acme")
    terminal.done("apply", file)
    terminal.done("apply", terminal.file(ENTITY % "Acme Ltd"))
    summary, change, *_ = told(terminal)
    assert (change["action"], change["object_kind"], change["object"], change["entity_id"]) == (
        "entity.update",
        "entity",
        "E1",
        "E1",
    )
    assert (change["before"], change["after"]) == ({"name": "Acme"}, {"name": "Acme Ltd"})
    assert change["actor"] == summary["actor"] == f"file:{file}"
    assert change["detail"]["by"] == at_command_line().by
    assert change["detail"]["sha256"] == summary["detail"]["sha256"]
    assert change["detail"]["members"] == "name"


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "action", "before", "after"),
    [
        (("user", "disable", "lim"), "user.disable", {"enabled": True}, {"enabled": False}),
        (("entity", "disable", "E1"), "entity.disable", {"enabled": True}, {"enabled": False}),
        (("client", "update", "rp", "--name", "New"), "client.update", {"name": "RP"}, {"name": "New"}),
        (("client", "disable", "rp"), "client.disable", {"enabled": True}, {"enabled": False}),
        (("maintenance", "on"), "maintenance.on", {"maintenance": False}, {"maintenance": True}),
        (
            ("user", "reset-password", "lim"),
            "user.reset_password",
            {"password_hash": "set"},
            {"password_hash": "changed"},
        ),
        (
            ("user", "reset-factors", "lim"),
            "user.reset_factors",
            {"totp_secret": "set", "recovery_codes": 0},
            {"totp_secret": "changed", "recovery_codes": 0},
        ),
    ],
)
def test_a_command_tells_members_before_and_after(
    terminal: Terminal, command: tuple[str, ...], action: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    """D57: from each door; D54: by whom, as the system says."""
    terminal.done("apply", terminal.file(ENTITY % "Acme"))
    terminal.done(*LIM, "--with-factors")
    terminal.done(*CLIENT)
    terminal.done(*command)
    entry = last(terminal)
    assert (entry["action"], entry["actor"], entry["before"], entry["after"]) == (action, BY, before, after)


def test_a_reason_stands_with_what_the_command_changes(terminal: Terminal) -> None:
    """D57: also with what a file changes; it is free text, and so goes with the details."""
    terminal.done("--reason", "Ticket 4711", "apply", terminal.file(ENTITY % "Acme"))
    assert {entry["detail"]["reason_given"] for entry in told(terminal)} == {"Ticket 4711"}
    terminal.done("entity", "disable", "E1")
    assert "reason_given" not in last(terminal)["detail"]
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite")) as opened:
        assert "Ticket 4711" not in str(opened.execute("SELECT * FROM audit").fetchall())
    for reason in ("x" * 501, "two\nlines"):
        assert "one line of at most 500" in terminal.refused("--reason", reason, "entity", "enable", "E1")


def test_keys_and_links_tell_their_moments_and_no_secret(terminal: Terminal) -> None:
    terminal.done("key", "rotate")
    by_action = {entry["action"]: entry for entry in told(terminal)}
    assert sorted(by_action) == ["key.publish", "key.retire", "key.rotate"]
    retired, made, published = (by_action[name] for name in ("key.retire", "key.rotate", "key.publish"))
    assert (retired["before"], retired["after"]["retired_at"]) == ({"retired_at": None}, made["after"]["active_from"])
    assert published["after"]["secret"] == "set"
    terminal.done(*LIM)
    link = last(terminal)
    assert link["action"] == "link.invitation"
    assert set(link["after"]) == {"purpose", "user_id", "created_at", "expires_at"}


def test_what_commands_print_once_is_nowhere_in_the_audit(terminal: Terminal) -> None:
    """D57: raw, as the file holds it."""
    printed = terminal.done(*LIM, "--with-factors") + terminal.done("user", "link", "lim", "--for", "password")
    printed += terminal.done("user", "reset-password", "lim") + terminal.done("user", "reset-factors", "lim")
    terminal.done("apply", terminal.file(FILE))
    secrets = {word for word in re.split(r"[\s=&/#?]+", printed) if len(word) > 15 and not word.startswith("http")}
    assert len(secrets) >= 5
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite")) as opened:
        rows = [str(opened.execute(f"SELECT * FROM {table}").fetchall()) for table in ("audit", "audit_details")]
    assert "S1234567D" not in "".join(rows)
    assert not [secret for secret in secrets if secret in "".join(rows)]


def test_the_latest_comes_first_with_names_and_one_line_for_each(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(FILE))
    terminal.done("user", "disable", "lim")
    first, *lines = terminal.done("audit", "list").splitlines()
    assert first == "The latest first; times in UTC."
    assert len(lines) == 7
    assert all(LINE.fullmatch(line) for line in lines)
    assert lines[0].endswith("A person was disabled: lim")
    assert lines[0][18:].startswith(at_command_line().by)
    terminal.done("apply", terminal.file(FILE.replace("Acme", "Acme Ltd").replace("SG", "MY")))
    assert listed(terminal, "--last", "2")[1] == "An organisation was changed: E1 (country, name)"
    assert listed(terminal, "--last", "5")[3:] == [
        "A file was applied: directory.yaml",
        "A person got a role: lim E1 books Clerk",
    ]


def test_times_are_those_of_the_deployment(terminal: Terminal) -> None:
    terminal.done(*CLIENT)
    with terminal.given({"timezone": "Asia/Singapore"}):
        first, line = terminal.done("audit", "list").splitlines()
        assert first == "The latest first; times in Asia/Singapore."
        at = datetime.strptime(line[:16], "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp() - 8 * 3600
        [entry] = told(terminal)
        assert 0 <= entry["at"] - at < 60
        assert entry["time"].endswith("+08:00")


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("--user", "LIM"), ["A person got a role", "A person can act for an organisation", "A person was added"]),
        (("--user", "lim", "--action", "membership."), ["A person can act for an organisation"]),
        (("--entity", "E1", "--action", "entity.add"), ["An organisation was added"]),
        (("--client", "rp"), ["A client was registered"]),
        (("--action", "service."), ["A service was added"]),
        (("--object", "books"), ["A service was added"]),
        (("--object", "lim/E1"), ["A person can act for an organisation"]),
        (("--entity", "E9"), []),
        (("--since", "2h", "--last", "1"), ["A client was registered"]),
        (("--since", "2100-01-01"), []),
    ],
)
def test_filters_find_what_they_say(terminal: Terminal, filters: tuple[str, ...], found: list[str]) -> None:
    terminal.done("apply", terminal.file(FILE))
    terminal.done(*CLIENT)
    assert [line.partition(":")[0] for line in listed(terminal, *filters)] == found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--action", "membership.ad"), "'membership.ad' is not an action; did you mean 'membership.add'?"),
        (("--action", "membrship."), "did you mean 'membership.'?"),
        (("--action", "membership"), "did you mean 'membership.'?"),
        (("--since", "yesterday"), "'yesterday' is not a time: write how long ago (30m, 2h, 3d, 1w), a day ("),
        (("--since", "2026-13-01"), "is not a time"),
        (("--user", "nobody"), "there is no user 'nobody', and the audit has no removed one of that name"),
        (
            ("--after", "3", "--user", "lim"),
            "--after gives every entry in order, and goes with --limit and --json only",
        ),
        (("--limit", "3"), "--limit goes with --after; without it, --last says how many"),
    ],
)
def test_a_question_that_means_nothing_is_told_what_would(
    terminal: Terminal, arguments: tuple[str, ...], said: str
) -> None:
    assert said in terminal.refused("audit", "list", *arguments)


def test_a_question_about_what_is_not_there_is_told_so(terminal: Terminal) -> None:
    """A wrong identifier looks like an empty history otherwise."""
    terminal.done(*CLIENT)
    asked = ("audit", "list", "--entity", "E9", "--client", "rpp")
    assert terminal.done(*asked).strip() == (
        "No entry matches. There is no entity 'E9' in the directory. There is no client 'rpp'; did you mean 'rp'?"
    )


def test_programs_follow_by_number_without_gaps(terminal: Terminal) -> None:
    """docs/audit.md."""
    terminal.done("apply", terminal.file(FILE))
    numbers, after = [], 0
    while found := told(terminal, "--after", str(after), "--limit", "4"):
        numbers += [entry["number"] for entry in found]
        after = numbers[-1]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert terminal.done("audit", "list", "--after", "6").strip() == "There are no later entries."


def removed(terminal: Terminal) -> str:
    """Lim's identifier, after the file no longer names them."""
    terminal.done("apply", terminal.file(FILE))
    user_id = told(terminal, "--action", "user.add")[0]["object"]
    other = "users: {tan: {name: Tan, memberships: [E1]}}\nassignments: []\n"
    terminal.done("apply", "--prune", terminal.file(f"{ENTITY % 'Acme'}\n{other}", "pruned.yaml"))
    assert isinstance(user_id, str)
    return user_id


def test_a_removed_person_is_found_by_name_and_by_identifier(terminal: Terminal) -> None:
    user_id = removed(terminal)
    by_name = listed(terminal, "--user", "Lim")
    assert by_name == listed(terminal, "--user", user_id)
    assert "A person was removed: lim" in by_name
    assert any(line.startswith("A person got a role: lim E1") for line in by_name)


def test_what_the_audit_tells_of_a_removed_person_is_erased(terminal: Terminal) -> None:
    """D57: names and addresses go, who did what stays."""
    user_id = removed(terminal)
    assert "tan is in the directory: remove them first" in terminal.refused("audit", "erase", "tan")
    told_of_it = terminal.done("audit", "erase", "lim")
    assert re.fullmatch(rf"Erased the details of \d entries of the person {user_id}\.", told_of_it.strip())
    assert last(terminal)["action"] == "audit.erase"
    assert "no removed one of that name" in terminal.refused("audit", "list", "--user", "lim")
    entries = told(terminal, "--user", user_id)
    assert {entry["erased"] for entry in entries if entry["action"].startswith("user.")} == {True}
    assert f"A person was removed: {user_id[:8]}…" in listed(terminal, "--user", user_id)
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite")) as opened:
        rows = [str(opened.execute(f"SELECT * FROM {table}").fetchall()) for table in ("audit", "audit_details")]
    assert "lim@example.org" not in "".join(rows)
    assert "tan" in rows[1]


async def write(stores: Stores) -> None:
    detail = {"address": TRICKS, "members": f"{TRICKS} b"}
    for actor in (f"file:{TRICKS}", f"user:{TRICKS}", TRICKS):
        event = AuditEvent(actor=actor, action=f"unknown.{TRICKS}", object=f"{TRICKS}/{TRICKS}", detail=detail)
        await stores.registry.audit.write(event, now=stores.clock())


def test_hostile_names_do_nothing_to_a_terminal(terminal: Terminal) -> None:
    terminal.look(write)
    for arguments in ((), ("--json",), ("--object", f"{TRICKS}/{TRICKS}"), ("--after", "0")):
        printed = terminal.done("audit", "list", *arguments)
        assert is_clean(printed), printed
        assert len(printed.splitlines()) == 3 + ("--json" not in arguments)


@pytest.mark.parametrize("option", ["--user", "--entity", "--client", "--action", "--object", "--since"])
def test_a_hostile_question_finds_nothing_and_does_nothing(terminal: Terminal, option: str) -> None:
    for typed in (TRICKS, "' OR 1=1 --", "%", "x" * 5000, "\x00", "../"):
        result = terminal.run("audit", "list", option, typed)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert is_clean(result.output)
        assert "no entry matches" in result.output.lower() or result.exit_code


def test_every_action_says_in_a_few_words_what_was_done() -> None:
    """One line of 80 columns has room for them."""
    summaries = [action.summary for action in AuditAction]
    assert all(10 < len(text) <= SHORT and text[0].isupper() and not text.endswith(".") for text in summaries), (
        summaries
    )
    assert len(set(summaries)) == len(summaries)


def test_every_actor_is_of_a_kind_that_is_declared(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(FILE))
    terminal.done("maintenance", "on")
    assert {entry["actor"].partition(":")[0] for entry in told(terminal)} == {"file", "command"} <= set(ACTOR_KINDS)


async def found(user_id: Any, stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.latest(AuditQuery(user_id=user_id), limit=50)


def test_an_entry_about_a_name_that_is_erased_is_still_found_by_question(terminal: Terminal) -> None:
    user_id = removed(terminal)

    before = [entry.number for entry in terminal.look(partial(found, user_id))]
    terminal.done("audit", "erase", user_id)
    assert [entry.number for entry in terminal.look(partial(found, user_id))][1:] == before


def test_a_file_is_shown_by_its_name_alone(terminal: Terminal) -> None:
    """D57: a line of 80 columns has no room for its folders, which `--json` has."""
    (terminal.folder / "people").mkdir()
    path = terminal.file(ENTITY % "Acme", "people/hr.yaml")
    terminal.done("apply", path)
    lines = terminal.done("audit", "list").splitlines()[-2:]
    assert all(line.split()[2] == "hr.yaml" for line in lines)
    assert lines[0].endswith("A file was applied: hr.yaml")
    assert last(terminal)["object"] == path
