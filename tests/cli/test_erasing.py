"""`corpid user erase` and `corpid user list --deletion-requested` (D57, D61)."""

from __future__ import annotations

import json
import sqlite3
from functools import partial
from typing import TYPE_CHECKING

from corpid.rules.audit import AuditEvent
from corpid.rules.directory.records import Change, DeletionRequest
from tests.cli.directories import fill

if TYPE_CHECKING:
    from corpid.engines import Stores
    from tests.cli.conftest import Terminal


async def _asks(stores: Stores, user_name: str) -> str:
    user = await stores.registry.directory.user_by_name(user_name)
    assert user is not None
    event = AuditEvent(actor=f"user:{user.user_id}", action="user.request_deletion", object=user.user_id)
    await stores.registry.directory.write([Change(None, DeletionRequest(user_id=user.user_id, requested_at=0), event)])
    return user.user_id


def asks(terminal: Terminal, user_name: str) -> str:
    return terminal.look(partial(_asks, user_name=user_name))


def test_requests_are_seen_and_carried_out(terminal: Terminal) -> None:
    """D57, D61: the list, the person, the erasure, and what is left."""
    fill(terminal)
    assert "People who asked to be deleted: none." in terminal.done("user", "list", "--deletion-requested")
    assert "has not asked to be deleted" in terminal.refused("user", "erase", "rina")
    user_id = asks(terminal, "rina")
    assert "rina" in terminal.done("user", "list", "--deletion-requested")
    [listed] = json.loads(terminal.done("user", "list", "--deletion-requested", "--json"))["users"]
    assert (listed["user_name"], listed["deletion_requested_at"]) == ("rina", 0)
    assert "--deletion-requested cannot be combined" in terminal.refused(
        "user", "list", "--deletion-requested", "--search", "r"
    )
    said = terminal.done("user", "erase", "RINA")
    assert f"Erased the person {user_id}" in said
    assert "there is no user" in terminal.refused("user", "show", "rina")
    assert terminal.done("user", "erase", user_id).startswith(f"Erased the person {user_id}")
    assert "there is no user" in terminal.refused("user", "erase", "00000000-0000-4000-8000-000000000000")
    entries = terminal.done("audit", "list", "--user", user_id, "--json")
    assert "user.remove" in entries
    assert "rina" not in entries.lower()


def test_no_table_keeps_the_name_of_an_erased_person(terminal: Terminal) -> None:
    """D57: every row of every table is looked at; the last owner's entity is named in a note."""
    fill(terminal)
    terminal.done("user", "add", "vexley", "--name", "Qwertine Vexley", "--email", "q.vexley@example.com")
    user_id = asks(terminal, "vexley")
    assert kept(terminal, "vexley")
    terminal.done("user", "erase", "vexley")
    assert not kept(terminal, "vexley")
    assert not kept(terminal, "qwertine")
    assert kept(terminal, user_id)


def kept(terminal: Terminal, text: str) -> list[str]:
    """The tables that have a text."""
    found = []
    with sqlite3.connect(terminal.folder / "data" / "corpid.sqlite") as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for name in names:
            rows = database.execute(f'SELECT * FROM "{name}"').fetchall()
            found += [name] if text in str(rows).lower() else []
    return found


def test_an_erasure_tells_of_an_entity_without_owner_and_of_a_file(terminal: Terminal) -> None:
    """D54, D65."""
    fill(terminal)
    result = terminal.run("user", "erase", "rina", "--unrequested")
    said = result.stderr
    assert "the entity 209900042K has no owner left who can act" in said
    assert "a directory file names this person" in said
