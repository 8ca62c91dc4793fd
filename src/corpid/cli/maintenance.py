"""`corpid maintenance`: maintenance mode, and how long the audit is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.database import after_restore
from corpid.cli.running import run
from corpid.engines import at_command_line, open_registry
from corpid.flows.directory.write import audit_event
from corpid.flows.operations.audit_stream import last_left
from corpid.flows.operations.readiness import switch_maintenance
from corpid.rules.audit_actions import AuditAction
from corpid.rules.audit_seals import DAY_SECONDS
from corpid.rules.directory.access import Object, authorise
from corpid.stores.sql.audit_retention import Kept

if TYPE_CHECKING:
    from corpid.stores.sql.audit_retention import Pruned


app = typer.Typer(no_args_is_help=True)

_ANY_NUMBER: Final = (1 << 63) - 1


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
        await switch_maintenance(stores.registry, on=on, actor=stores.actor)


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
    audit_detail_days: Annotated[
        int | None,
        typer.Option(help="The same for details of entries: addresses and names. Default: the setting.", min=0),
    ] = None,
) -> None:
    """Remove audit entries, and details of them, past their retention.

    Decided requests for approval go with entries of their age. Entries that audit_stream has not received yet stay. To
    be run daily. Servers may be running.
    """
    pruned, kept_after = run(_prune(audit_days, sign_in_days, audit_detail_days))
    if pruned is None:
        output.say(
            "Audit entries are kept for ever, since audit_days, sign_in_days and audit_detail_days are 0. "
            "Nothing was removed."
        )
        return
    output.say(
        f"Removed {pruned.removed:,} audit entries, the details of {pruned.erased:,} entries, and {pruned.requests:,} "
        "decided requests for approval."
    )
    if kept_after is not None:
        output.say(
            f"Entries after number {kept_after} stay, also old ones: audit_stream has not received them "
            "(`corpid audit stream`)."
        )


async def _prune(
    audit_days: int | None, sign_in_days: int | None, audit_detail_days: int | None
) -> tuple[Pruned | None, int | None]:
    """Remove old entries; None if everything is kept.

    And the number after which old entries stay, since they have not left yet.
    """
    actor = at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    chosen = settings.load()
    kept = Kept(
        audit_days=chosen.audit_days if audit_days is None else audit_days,
        sign_in_days=chosen.sign_in_days if sign_in_days is None else sign_in_days,
        audit_detail_days=chosen.audit_detail_days if audit_detail_days is None else audit_detail_days,
    )
    if not kept:
        return None, None
    event = audit_event(actor, AuditAction.AUDIT_PRUNE, "")
    async with open_registry(chosen) as stores:
        now = stores.clock()
        if not chosen.audit_stream:
            return await stores.prune(event, now=now, kept=kept), None
        left = await last_left(stores.registry)
        waiting = await stores.registry.audit.between(after=left, last=_ANY_NUMBER, limit=1)
        pruned: Pruned = await stores.prune(event, now=now, kept=kept, last=left)
        return pruned, left if waiting and waiting[0].at < now - kept.least * DAY_SECONDS else None


app.command()(after_restore)
