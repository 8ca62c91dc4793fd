"""`corpid audit verify`, `export` and `seal`, and an export that is verified elsewhere (D58, docs/audit.md)."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.audit import AuditEvent
from corpid.rules.audit_seals import entry_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.engines import Stores
    from tests.cli.conftest import Terminal

SCRIPT = Path(__file__).parents[2] / "examples/python/verify_audit.py"
LINES = 100


async def five_entries(stores: Stores) -> None:
    for number in range(5):
        event = AuditEvent(
            actor="user:u1",
            action="user.update",
            object=f"o\u007f{number}",
            detail={"address": "203.0.113.9", "n": "ü"},
        )
        await stores.registry.audit.write(event, now=1_800_000_000)


def behind_its_back(terminal: Terminal, statement: str) -> None:
    with closing(sqlite3.connect(terminal.folder / "data" / "corpid.sqlite", isolation_level=None)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)


def exported(terminal: Terminal, name: str) -> Path:
    terminal.done("audit", "export", name)
    return terminal.folder / name


def example() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("verify_audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_audit_is_sealed_verified_and_exported(terminal: Terminal) -> None:
    terminal.look(five_entries)
    unsealed = terminal.done("audit", "verify")
    assert "There is no seal: nothing is protected." in unsealed
    assert "5 entries not sealed yet, and not protected: 1 to 5." in unsealed
    made = terminal.done("audit", "seal")
    assert made.startswith("seal 1: 5 entries up to 5, digest ")
    assert "Every entry is sealed already." in terminal.done("audit", "seal")
    terminal.done("entity", "add", "E1", "--type", "UEN", "--name", "One", "--country", "SG", "--status", "Registered")
    told = terminal.done("audit", "verify", "--expect", made.split()[-1])
    assert "No problems found: 1 seal and 5 entries were verified, up to number 5." in told
    assert "1 entry not sealed yet, and not protected: 6." in told
    found = json.loads(terminal.done("audit", "verify", "--json"))
    assert (found["entries"], found["unsealed"], found["findings"], found["digest"]) == (5, 1, [], made.split()[-1])


def test_what_was_changed_is_named_and_the_command_fails(terminal: Terminal) -> None:
    terminal.look(five_entries)
    terminal.done("audit", "seal")
    behind_its_back(terminal, "UPDATE audit SET actor = 'user:u2' WHERE number = 3")
    result = terminal.run("audit", "verify")
    assert result.exit_code == 1
    assert "Entry 3 was changed." in result.stdout
    assert "1 problem found" in result.stdout
    behind_its_back(terminal, "DELETE FROM audit WHERE number = 4")
    result = terminal.run("audit", "verify", "--json")
    assert [(each["number"], each["problem"]) for each in json.loads(result.stdout)["findings"]] == [
        (3, "changed"),
        (4, "removed"),
    ]


def test_an_audit_without_its_seals_or_details_fails_and_the_command_says_what_to_do(terminal: Terminal) -> None:
    """D58: neither looks like an audit that was never sealed, or whose details were erased."""
    terminal.look(five_entries)
    terminal.done("audit", "seal")
    behind_its_back(terminal, "DELETE FROM audit_details")
    result = terminal.run("audit", "verify")
    assert result.exit_code == 1
    assert "The details of entry 3 were removed, and neither an audit.erase nor an audit.prune" in result.stdout
    behind_its_back(terminal, "DELETE FROM audit_seals")
    behind_its_back(terminal, "DELETE FROM audit_digests")
    result = terminal.run("audit", "verify")
    assert result.exit_code == 1
    assert "Every seal was removed: there is an audit key" in result.stdout
    assert "1 problem found: there is no seal, so no entry can be verified." in result.stdout
    assert "compare the audit with an earlier export" in result.stdout
    assert "nothing is protected" not in result.stdout


def test_a_digest_that_no_seal_has_fails_and_one_that_is_none_is_refused(terminal: Terminal) -> None:
    terminal.look(five_entries)
    terminal.done("audit", "seal")
    result = terminal.run("audit", "verify", "--expect", "0" * 64)
    assert result.exit_code == 1
    assert "the end was cut off, seals were replaced, or a backup was restored" in result.stdout
    assert "64 hexadecimal digits" in terminal.refused("audit", "verify", "--expect", "seal-1")


def test_an_export_is_a_file_of_its_owner_alone_and_replaces_none(terminal: Terminal) -> None:
    terminal.look(five_entries)
    file = exported(terminal, "audit.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "cannot be written" in terminal.refused("audit", "export", "no-folder/audit.jsonl")
    assert "never replaces a file" in terminal.refused("audit", "export", "audit.jsonl")
    printed = terminal.done("audit", "export").splitlines()
    behind_its_back(terminal, "ALTER TABLE audit_seals RENAME TO elsewhere")
    assert "cannot be done at the moment" in terminal.refused("audit", "export", "half.jsonl")
    assert not (terminal.folder / "half.jsonl").exists(), "a part is no export"
    assert [json.loads(line) for line in printed][1:] == [json.loads(line) for line in file.read_text().splitlines()][
        1:
    ]


@pytest.mark.full
def test_an_export_is_verified_with_nothing_but_itself_and_the_audit_keys(terminal: Terminal) -> None:
    """By the example, in a process that has none of our modules."""
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= LINES
    terminal.look(five_entries)
    digest = terminal.done("audit", "seal").split()[-1]
    terminal.done("key", "rotate", "--audit")
    terminal.done("audit", "seal")
    file = exported(terminal, "audit.jsonl")
    keys = terminal.folder / "keys.json"
    keys.write_text(file.read_text().splitlines()[0])
    command = [sys.executable, "-I", str(SCRIPT), str(file), digest, str(keys)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=terminal.folder, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 seals, up to entry 7; 0 entries are not sealed yet.\nNothing is wrong.\n"


@pytest.mark.full
def test_whatever_is_changed_in_an_export_is_found_offline(terminal: Terminal) -> None:
    terminal.look(five_entries)
    digest = terminal.done("audit", "seal").split()[-1]
    terminal.done("maintenance", "prune", "--sign-in-days", "1", "--audit-detail-days", "0")
    lines = [json.loads(line) for line in exported(terminal, "whole.jsonl").read_text().splitlines()]

    script = example()

    def written(kept: Iterable[dict[str, Any]]) -> Path:
        file = terminal.folder / "changed.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in kept))
        return file

    def changed(*kept: dict[str, Any]) -> list[str]:
        return list(script.problems(str(written(kept)), digest))

    keys, one, two, *rest = lines
    other = {**two, "entry": two["entry"] | {"actor": "user:u2"}}
    added = {**two, "entry": two["entry"] | {"number": 9}}
    details = {**two, "details": two["details"] | {"detail": "{}"}}
    assert changed(*lines) == []
    assert changed(keys, one, other, *rest) == ["entry 2 was changed, or has what another one had"]
    assert changed(keys, one, *rest) == ["entry 2 was removed"]
    assert changed(keys, one, two, added, *rest) == ["entry 9 was inserted, or its digest is gone"]
    assert changed(keys, one, other, two, *rest) == ["entry 2 is there twice"]
    assert changed(keys, one, details, *rest) == ["the details of entry 2 were changed"]
    assert changed(keys, one, two, *rest[:-1]) == ["the end was cut off, or seals were replaced"]
    assert changed(keys, lines[-1]) == ["the end was cut off, or seals were replaced"]
    unsealed = [line for line in lines if "seal" not in line]
    assert list(script.problems(str(written(unsealed)))) == ["the end was cut off, or seals were replaced"]
    terminal.done("key", "rotate", "--audit")
    keys["keys"] = keys["keys"][1:]
    [said] = changed(keys, *lines[1:])
    assert said.startswith("the seal after seal 0 was changed, or its key is unknown")


def test_the_example_writes_every_text_as_the_provider_does() -> None:
    """RFC 8785: what two programs hash must be the same octets, whatever somebody typed."""
    row: dict[str, str | int] = {
        "number": 1,
        "at": 7,
        "actor": "".join(chr(point) for point in range(1, 0x3000)),
        "action": "",
        "object": "😀",
    }
    told = {name: row[name] for name in sorted(row) if row[name] and name != "number"}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    assert example().digest(text) == entry_digest(row).digest


@pytest.mark.full
def test_after_a_restore_the_chain_goes_on_from_where_the_backup_ends(terminal: Terminal) -> None:
    terminal.look(five_entries)
    terminal.done("audit", "seal")
    terminal.done("backup", "copy.sqlite")
    terminal.look(five_entries)
    later = terminal.done("audit", "seal").split()[-1]
    terminal.done("restore", "copy.sqlite")
    terminal.done("audit", "seal")
    assert "No problems found: 2 seals and 6 entries were verified, up to number 11." in terminal.done(
        "audit", "verify"
    )
    assert "or a backup was restored" in terminal.run("audit", "verify", "--expect", later).stdout


@pytest.mark.full
def test_a_new_audit_key_is_listed_and_the_old_one_goes_on_verifying(terminal: Terminal) -> None:
    terminal.look(five_entries)
    terminal.done("audit", "seal")
    assert "leave --now out" in terminal.refused("key", "rotate", "--audit", "--now")
    assert "seals the audit from now on" in terminal.done("key", "rotate", "--audit")
    listed = json.loads(terminal.done("key", "list", "--json"))
    states = [("audit", "in use"), ("audit", "retired, still verifies"), ("tokens", "in use"), ("tokens", "standby")]
    assert sorted((key["signs"], key["state"]) for key in listed) == states
    assert "Certificate" in terminal.done("key", "list")
    [old] = [key["kid"] for key in listed if key["state"] == "retired, still verifies"]
    assert "seals the audit, and stays" in terminal.refused("key", "revoke", old)
    terminal.done("audit", "seal")
    assert "No problems found: 2 seals" in terminal.done("audit", "verify")
