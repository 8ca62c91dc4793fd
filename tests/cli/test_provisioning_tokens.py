"""`corpid provisioning-token`: tokens of SCIM clients (D60)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.directories import fill, last_event

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def listed(terminal: Terminal) -> list[dict[str, object]]:
    shown = json.loads(terminal.done("provisioning-token", "list", "--entity", "C3", "--json"))
    return list(shown["tokens"])


def test_a_token_is_shown_once_listed_without_its_secret_and_removed(terminal: Terminal) -> None:
    fill(terminal)
    assert terminal.done("provisioning-token", "list", "--entity", "C3") == "Provisioning tokens: none.\n"
    add = ("provisioning-token", "add", "--entity", "C3", "--name", "HR")
    made = json.loads(terminal.done(*add, "--days", "30", "--json"))
    assert (len(made["token"]), made["url"].rpartition("//")[2].partition("/")[2]) == (43, "scim/v2")
    assert terminal.look(last_event)[0] == "provisioning_token.add"
    assert made["expires_at"] - made["created_at"] == 30 * 86400
    shown = terminal.done(*add)
    assert "is not shown again" in shown
    assert len(listed(terminal)) == 2
    everything = terminal.done("provisioning-token", "list", "--entity", "C3") + json.dumps(listed(terminal))
    assert made["token"] not in everything + terminal.done("audit", "list", "--json", "--last", "20")
    remove = ("provisioning-token", "remove", made["token_id"], "--entity")
    assert "B2 has no such token" in terminal.refused(*remove, "B2")
    assert "- provisioning token HR of C3" in terminal.done(*remove, "C3", "--dry-run")
    assert len(listed(terminal)) == 2
    terminal.done(*remove, "C3")
    assert [each["token_id"] for each in listed(terminal)] != [made["token_id"]]
    assert terminal.look(last_event)[0] == "provisioning_token.remove"


def test_what_no_token_can_have_is_refused(terminal: Terminal) -> None:
    """D60: at most a year; at most twenty of an entity."""
    fill(terminal)
    add = ("provisioning-token", "add", "--entity", "C3", "--name")
    assert "there is no entity" in terminal.refused("provisioning-token", "add", "--entity", "C4", "--name", "HR")
    assert "name: " in terminal.refused(*add, "\u202e")
    assert terminal.run(*add, "HR", "--days", "366").exit_code == 2
    for _ in range(20):
        terminal.done(*add, "HR")
    assert "C3 has 20 tokens, which is the maximum" in terminal.refused(*add, "HR")
