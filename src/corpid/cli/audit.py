"""`corpid audit`: events of the append-only audit table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output

if TYPE_CHECKING:
    from corpid.ports import AuditEntry

app = typer.Typer(help="The audit table: list.", no_args_is_help=True)


@app.command("list")
def list_entries(
    *,
    after: Annotated[int, typer.Option(help="Only entries with a higher number.", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="At most so many entries.", min=1, max=10000)] = 100,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show events in the order in which they were written."""
    entries = output.run(_entries(after, limit))
    if json:
        output.as_json(entries)
        return
    rows = [
        (
            str(entry.number),
            f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d %H:%M:%S}",
            entry.actor,
            entry.action,
            entry.object or entry.client_id,
            entry.outcome,
        )
        for entry in entries
    ]
    output.table("Audit (UTC)", ("No", "At", "Actor", "Action", "Object", "Outcome"), rows)


async def _entries(after: int, limit: int) -> list[AuditEntry]:
    async with open_registry(settings.load()) as stores:
        return await stores.registry.audit.entries(after=after, limit=limit)
