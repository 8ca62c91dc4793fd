"""`corpid apply` and `corpid export` (directory as code)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid import settings
from corpid.cli.output import DIRECTORY_BYTES
from corpid.engines import Stores, open_registry
from corpid.rules.audit import AuditEvent
from corpid.rules.authentication.records import Credentials, Session
from corpid.rules.directory.records import Assignment, Change, Entity, Membership, User
from tests import quick_start

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

NEVER = 1 << 40
EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = """
entities: {A1: {type: UEN, country: SG, name: Alpha, status: Registered}, B2: {type: UEN, country: SG, name: Beta}}
services: {PLAIN: {name: Plain}}
users: {rina: {name: Rina, memberships: [A1, B2]}}
assignments: [{user: rina, entity: A1, service: PLAIN}]
"""
WITH_FACTORS = """
users:
  rina:
    name: Rina
    password: harbour lights at dawn
    totp_secret: L4JHDJKSXFZLGLBNIDK3NI7DLEEQCLD3
"""


async def credentials(stores: Stores) -> Credentials:
    user = await stores.registry.directory.user_by_name("rina")
    assert user is not None
    return await stores.registry.factors.credentials(user.user_id)


async def entities(stores: Stores) -> list[str]:
    return [entity.entity_id async for entity in stores.registry.directory.scan(Entity)]


def test_the_example_is_applied_and_the_second_time_changes_nothing(terminal: Terminal) -> None:
    first = terminal.done("apply", str(EXAMPLES / "directory.yaml"), "--development")
    assert "+ user rina" in first
    assert "harbour lights at dawn" not in first
    assert terminal.done("apply", str(EXAMPLES / "directory.yaml"), "--development") == "Nothing to change.\n"
    terminal.done("apply", str(EXAMPLES / "many-entities.yaml"))
    exported = terminal.done("export")
    assert "argon2" not in exported
    assert "totp_secret" not in exported
    assert terminal.done("apply", terminal.file(exported), "--prune") == "Nothing to change.\n"
    assert len(terminal.look(entities)) > 300


def test_an_export_makes_the_same_directory_elsewhere(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.done("apply", terminal.file(SMALL))
    exported = terminal.done("export")
    monkeypatch.setenv("CORPID_DATA_DIR", str(terminal.folder / "elsewhere"))
    terminal.done("apply", terminal.file(exported))
    assert terminal.done("export") == exported


def test_an_error_names_file_line_and_reason_and_changes_nothing(terminal: Terminal) -> None:
    file = terminal.file(SMALL + "third_party: {grants: [{client_entity: A1, third_party: B2, service: PLAIN}]}\n")
    said = terminal.refused("apply", file)
    assert f"{file}:6: PLAIN does not allow third parties" in said
    assert "Nothing was changed." in said
    assert terminal.look(entities) == []


def test_a_dry_run_shows_the_changes_and_makes_none(terminal: Terminal) -> None:
    shown = terminal.done("apply", terminal.file(SMALL), "--dry-run")
    assert "+ entity A1" in shown
    assert "Would be: 7 added." in shown
    assert terminal.look(entities) == []


def test_changes_are_shown_as_old_and_new_and_for_machines_as_json(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(SMALL))
    file = terminal.file("entities: {A1: {name: 'Alpha [bold]Two'}}")
    assert "name: Alpha → Alpha [bold]Two" in terminal.done("apply", file, "--dry-run")
    printed = json.loads(terminal.done("apply", file, "--json"))
    assert printed == {
        "changes": [{"sign": "~", "subject": "entity A1", "members": ["name: Alpha → Alpha [bold]Two"]}],
        "kept": [],
        "written": True,
    }


async def left(stores: Stores) -> tuple[int, int, int]:
    directory = stores.registry.directory
    counts = []
    for kind in (User, Membership, Assignment):
        counts.append(len([record async for record in directory.scan(kind)]))
    return counts[0], counts[1], counts[2]


def test_prune_removes_what_the_sections_of_the_file_do_not_name(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(SMALL))
    pruned = terminal.done("apply", terminal.file("entities: {B2: {}}\nassignments: []"), "--prune")
    assert "- entity A1" in pruned
    assert "- membership: rina acts for A1" in pruned
    assert terminal.look(entities) == ["B2"]

    assert terminal.look(left) == (1, 1, 0)


def test_plain_passwords_are_refused_outside_development(terminal: Terminal) -> None:
    assert "--development" in terminal.refused("apply", terminal.file(WITH_FACTORS))


async def change(own: Any, stores: Stores) -> None:
    await stores.registry.directory.write([Change(None, own)], AuditEvent(actor="operator", action="test"))


@pytest.mark.parametrize("setter", ["user", "operator"])
def test_a_factor_that_its_owner_or_an_operator_changed_is_never_undone(terminal: Terminal, setter: str) -> None:
    file = terminal.file(WITH_FACTORS)
    terminal.done("apply", file, "--development")
    own = msgspec.structs.replace(
        terminal.look(credentials),
        password_hash="$argon2id$own",
        password_set_by=setter,
        totp_secret="OWN",
        totp_set_by=setter,
    )

    terminal.look(partial(change, own))
    assert terminal.done("apply", file, "--development") == "Nothing to change.\n"
    assert terminal.look(credentials) == own


def test_a_changed_plain_password_in_the_file_is_taken_over(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(WITH_FACTORS), "--development")
    before = terminal.look(credentials)
    changed = terminal.done("apply", terminal.file(WITH_FACTORS.replace("dawn", "dusk")), "--development")
    assert "factors of rina" in changed
    assert terminal.look(credentials).password_hash != before.password_hash


async def last(terminal: Terminal, stores: Stores) -> dict[str, str]:
    [entry] = [each for each in await stores.registry.audit.entries() if each.action == "directory.apply"]
    assert entry.actor == f"file:{terminal.folder / 'directory.yaml'}"
    return entry.detail


def test_what_was_applied_is_in_the_audit_table_with_the_digest_of_the_file(terminal: Terminal) -> None:
    terminal.done("apply", terminal.file(SMALL))

    detail = terminal.look(partial(last, terminal))
    assert detail["add"] == "7"
    assert len(detail["sha256"]) == 64


async def every_record_of_a_file_has_its_own_event_in_the_audit_table(stores: Stores) -> list[tuple[str, str]]:
    return [(each.actor, each.action) for each in await stores.registry.audit.entries()]


def test_every_record_of_a_file_has_its_own_event_in_the_audit_table(terminal: Terminal) -> None:
    """D57: who and what, for each record; the file's own event comes last."""
    terminal.done("apply", terminal.file(SMALL))

    entries = terminal.look(every_record_of_a_file_has_its_own_event_in_the_audit_table)
    assert len(entries) == 7 + 1
    [file] = {actor for actor, _ in entries}
    assert file.startswith("file:")
    assert all(action.endswith(".add") for _, action in entries[:-1])
    assert entries[-1] == (file, "directory.apply")
    terminal.done("apply", terminal.file(SMALL))
    assert terminal.look(every_record_of_a_file_has_its_own_event_in_the_audit_table) == entries


async def actors(stores: Stores) -> set[str]:
    return {each.actor for each in await stores.registry.audit.entries()}


def test_a_file_of_any_name_is_applied_and_told(terminal: Terminal) -> None:
    """D57: a name may have octets that are no text."""
    path = Path(terminal.file(SMALL)).rename(terminal.folder / "a\udcff\n.yaml")
    terminal.done("apply", str(path))

    [actor] = terminal.look(actors)
    assert actor.endswith("/a\\udcff\\n.yaml")


def test_a_file_that_cannot_be_read_is_one_sentence(terminal: Terminal) -> None:
    assert "missing.yaml cannot be read" in terminal.refused("apply", "missing.yaml")


def test_what_is_no_regular_file_is_refused_at_once(terminal: Terminal) -> None:
    """A device has no end, and a pipe without a writer holds whoever opens it; a link is what it leads to."""
    os.mkfifo(terminal.folder / "pipe")
    (terminal.folder / "link").symlink_to("/dev/zero")
    (terminal.folder / "loop").symlink_to("loop")
    for file in ("/dev/zero", "link", "pipe"):
        assert f"{file} is a pipe, a socket or a device: name a regular file" in terminal.refused("apply", file)
    assert f"{terminal.folder} is a directory: name a regular file" in terminal.refused("apply", str(terminal.folder))
    assert "loop cannot be read: Too many levels of symbolic links" in terminal.refused("apply", "loop")
    assert terminal.look(entities) == []


def test_a_link_to_a_file_is_applied(terminal: Terminal) -> None:
    """So configuration is handed to containers."""
    terminal.file(SMALL, "there.yaml")
    (terminal.folder / "here.yaml").symlink_to("there.yaml")
    assert "+ user rina" in terminal.done("apply", "here.yaml")


@pytest.mark.full
def test_a_file_beyond_the_limit_is_one_sentence(terminal: Terminal) -> None:
    """256 MiB, also where the content comes from standard input; nothing after that is read."""
    file = terminal.folder / "large.yaml"
    with file.open("wb") as opened:
        opened.truncate(DIRECTORY_BYTES + 1)
    sentence = "is larger than 256 MiB: apply it in parts"
    assert f"large.yaml {sentence}" in terminal.refused("apply", str(file))
    with file.open("rb") as opened:
        command = [sys.executable, "-c", "from corpid.cli import main; main()", "apply", "-"]
        ended = quick_start.run(command, stdin=opened, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"standard input {sentence}" in ended.stderr


async def both(file: Any) -> int:
    async with open_registry(settings.load()) as stores:
        applying = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "from corpid.cli import main; main()", "apply", file, stdout=subprocess.DEVNULL
        )
        written = 0
        while applying.returncode is None:
            await stores.registry.audit.write(AuditEvent(actor="system", action="test.write"), now=stores.clock())
            written += 1
            await asyncio.sleep(0.01)
        assert applying.returncode == 0
        return written


async def count(stores: Stores) -> int:
    return len([row async for row in stores.registry.directory.scan(Assignment)])


@pytest.mark.full
def test_a_large_file_is_applied_while_somebody_else_keeps_writing(terminal: Terminal) -> None:
    """20,000 rows in short transactions: another connection's small writes go through meanwhile."""
    rows = "".join(
        f"  - {{user: big{person}, entity: A1, service: PLAIN, ref: '{row}'}}\n"
        for person in range(20)
        for row in range(1000)
    )
    users = "".join(f"  big{person}: {{name: Big, memberships: [A1]}}\n" for person in range(20))
    file = terminal.file(SMALL.replace("assignments: [{user: rina, entity: A1, service: PLAIN}]\n", "").replace(
        "users: {rina: {name: Rina, memberships: [A1, B2]}}\n", "users:\n" + users) + "assignments:\n" + rows)  # fmt: skip

    assert asyncio.run(both(file)) > 10

    assert terminal.look(count) == 20_000


@pytest.mark.parametrize(
    ("password", "reason"), [("password12345", "attackers try first"), ("rina-rina-rina", "user name")]
)
def test_a_plain_password_that_others_guess_is_refused(terminal: Terminal, password: str, reason: str) -> None:
    """D44: the blocklist holds for files, too; the message never repeats the password."""
    told = terminal.refused(
        "apply", "--development", terminal.file(WITH_FACTORS.replace("harbour lights at dawn", password))
    )
    assert "directory.yaml:5: password of rina: " in told
    assert reason in told
    assert password not in told


async def signed_in(stores: Stores) -> str:
    """A session of rina's."""
    held = await credentials(stores)
    session = Session(
        session_id="s", user_id=held.user_id, browser_id="b", auth_time=1, amr=("pwd",), level=2, expires_at=NEVER
    )
    await stores.registry.sessions.put(session)
    return held.user_id


async def sessions(user_id: Any, stores: Stores) -> int:
    return len(await stores.registry.sessions.list_for_user(user_id, now=1))


@pytest.mark.parametrize(
    "change",
    [
        WITH_FACTORS.replace("dawn", "dusk"),
        pytest.param(WITH_FACTORS.replace("L4JH", "L4JK"), marks=pytest.mark.full),
        pytest.param(
            WITH_FACTORS.replace("    name: Rina\n", "    name: Rina\n    enabled: false\n"), marks=pytest.mark.full
        ),
    ],
)
def test_who_gets_other_factors_or_is_disabled_by_a_file_is_signed_out(terminal: Terminal, change: str) -> None:
    """D44, D45, D50: and who is only given another name is not."""
    terminal.done("apply", terminal.file(WITH_FACTORS), "--development")
    user_id = terminal.look(signed_in)

    terminal.done("apply", terminal.file(WITH_FACTORS.replace("Rina", "Rina Rao")), "--development")
    assert terminal.look(partial(sessions, user_id)) == 1
    terminal.done("apply", terminal.file(change), "--development")
    assert terminal.look(partial(sessions, user_id)) == 0
