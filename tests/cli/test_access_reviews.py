"""`corpid entity review` (docs/decisions/0022)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

ENTITY = ("entity", "add", "209900042K", "--type", "UEN", "--country", "SG", "--name", "Harbour")


def test_an_entity_without_administrators_has_no_review_yet(terminal: Terminal) -> None:
    terminal.done(*ENTITY)
    assert "209900042K has no access review yet" in terminal.done("entity", "review", "209900042K")
    shown = json.loads(terminal.done("entity", "review", "209900042K", "--json"))
    assert (shown["entity"], shown["due_at"], shown["people"]) == ("209900042K", None, 0)
