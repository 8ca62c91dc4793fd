"""`corpid maintenance` and `corpid audit`: maintenance mode, and the audit table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.database import after_restore
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory.write import audit_event
from corpid.flows.operations.readiness import switch_maintenance
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import CommandLine

if TYPE_CHECKING:
    from corpid.ports import AuditEntry


app = typer.Typer(no_args_is_help=True)


@app.command()
def on() -> None:
    """Answer temporarily_unavailable to every sign-in and token request, within 5 seconds."""
    run(_switch(on=True))
    output.say("Maintenance is on: running servers answer temporarily_unavailable within 5 seconds.")


@app.command()
def off() -> None:
    """Answer again."""
    run(_switch(on=False))
    output.say("Maintenance is off: running servers answer again within 5 seconds.")


@app.command()
def status() -> None:
    """Show whether maintenance is on."""
    output.say("Maintenance is on." if run(_status()) else "Maintenance is off.")


async def _switch(*, on: bool) -> None:
    async with open_registry(settings.load()) as stores:
        await switch_maintenance(stores.registry, on=on, actor=CommandLine())


async def _status() -> bool:
    async with open_registry(settings.load()) as stores:
        return await stores.registry.deployment.maintenance()


@app.command()
def prune(
    *,
    audit_days: Annotated[
        int | None, typer.Option(help="Days that entries are kept; 0: for ever. Default: the setting.", min=0)
    ] = None,
    sign_in_days: Annotated[
        int | None, typer.Option(help="The same for entries of sign-ins. Default: the setting.", min=0)
    ] = None,
) -> None:
    """Remove audit entries past their retention.

    To be run daily. Servers may be running.
    """
    removed = run(_prune(audit_days, sign_in_days))
    if removed is None:
        output.say("Audit entries are kept for ever, since audit_days and sign_in_days are 0. Nothing was removed.")
        return
    output.say(f"Removed {removed:,} audit entries.")


async def _prune(audit_days: int | None, sign_in_days: int | None) -> int | None:
    """Remove old entries; None if all are kept."""
    authorise(CommandLine(), "write", Object(kind="deployment"))
    chosen = settings.load()
    audit_days = chosen.audit_days if audit_days is None else audit_days
    sign_in_days = chosen.sign_in_days if sign_in_days is None else sign_in_days
    if not audit_days and not sign_in_days:
        return None
    kept = {"audit_days": str(audit_days), "sign_in_days": str(sign_in_days)}
    event = audit_event(CommandLine(), AuditAction.AUDIT_PRUNE, "", **kept)
    async with open_registry(chosen) as stores:
        return await stores.prune(event, now=stores.clock(), audit_days=audit_days, sign_in_days=sign_in_days)


app.command()(after_restore)
audit_app = typer.Typer(no_args_is_help=True)


@audit_app.command("list")
def list_audit_entries(
    *,
    after: Annotated[int, typer.Option(help="Only entries with a higher number.", min=0)] = 0,
    limit: Annotated[int, typer.Option(help="At most so many entries.", min=1, max=10000)] = 100,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show events in the order in which they were written."""
    entries = run(_audit_entries(after, limit))
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


async def _audit_entries(after: int, limit: int) -> list[AuditEntry]:
    async with open_registry(settings.load()) as stores:
        return await stores.registry.audit.entries(after=after, limit=limit)
