"""`corpid maintenance prune`: the audit table keeps what the operator says (docs/decisions/0008)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.engines import Stores, at_command_line
from corpid.rules.audit import AuditEntry, AuditEvent

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

DAY = 86_400


async def events(stores: Stores) -> list[AuditEntry]:
    return await stores.registry.audit.entries()


async def of_two_ages(stores: Stores) -> None:
    for action, days in (("key.rotate", 400), ("sign_in.complete", 100), ("key.rotate", 1)):
        event = AuditEvent(actor="system", action=action)
        await stores.registry.audit.write(event, now=stores.clock() - days * DAY)


def test_old_entries_go_and_an_event_tells_how_many(terminal: Terminal) -> None:
    terminal.look(of_two_ages)
    kept_for_ever = terminal.done("maintenance", "prune")
    assert "for ever, since audit_days, sign_in_days and audit_detail_days are 0" in kept_for_ever
    assert "Removed 0 audit entries" in terminal.done("maintenance", "prune", "--audit-days", "500")
    told = terminal.done("maintenance", "prune", "--audit-days", "365", "--sign-in-days", "90")
    assert "Removed 2 audit entries" in told
    kept, pruned = terminal.look(events)
    assert (kept.action, pruned.action, pruned.actor) == ("key.rotate", "audit.prune", at_command_line().name)
    assert pruned.detail == {
        "audit_days": "365",
        "sign_in_days": "90",
        "audit_detail_days": "0",
        "removed": "2",
        "erased": "0",
    }
