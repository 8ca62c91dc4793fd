"""`corpid maintenance`: its mode, an engine's restart, and the audit's age."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import __version__, settings
from corpid.cli import output
from corpid.cli.database import after_restore
from corpid.cli.running import run
from corpid.engines import at_command_line, open_registry, restarting
from corpid.flows.directory.write import Refused, audit_event
from corpid.flows.operations.audit_stream import last_left, oldest_waiting
from corpid.flows.operations.readiness import switch_maintenance
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.failures import OrderlyStopRefused
from corpid.rules.limits import DAY, MINUTE
from corpid.rules.server_processes import live
from corpid.stores.engines import engine_type
from corpid.stores.sql.audit_retention import RetentionPeriods

if TYPE_CHECKING:
    from corpid.stores.sql.audit_retention import PruneResult


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
) -> tuple[PruneResult | None, int | None]:
    """Remove old entries; None if everything is kept.

    And the number after which old entries stay, since they have not left yet.
    """
    actor = at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    chosen = settings.load()
    kept = RetentionPeriods(
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
        oldest_at = await oldest_waiting(stores.registry, after=left)
        pruned: PruneResult = await stores.prune(event, now=now, kept=kept, last=left)
        return pruned, left if oldest_at is not None and oldest_at < now - kept.least * DAY else None


_NAME_BYTES = 16
_NOTHING_TO_DO = (
    "Short-lived data is in the database or in a file of this machine, not in Redis or Valkey: there is nothing to close "
    "or open."
)


@app.command()
def close_store(
    *,
    minutes: Annotated[
        int, typer.Option(help="After these it opens by itself, if it was not restarted.", min=1, max=60)
    ] = 10,
) -> None:
    """Prepare a restart of Redis or Valkey that loses nothing.

    Until the engine is back, servers answer temporarily_unavailable. After a restart that kept its data they go on at
    once, without `open-store`. Not for a cluster.
    """
    name = run(_close_store(seconds=minutes * MINUTE))
    if not name:
        output.say(_NOTHING_TO_DO)
        return
    output.say(
        f"{name} is closed, and nothing is written to it. Restart it now: stop it with `SHUTDOWN SAVE` (with an "
        "appendonly file `SHUTDOWN` is enough), and start it again."
    )
    output.say(
        f"Servers go on by themselves when it is back. If it was not restarted in {minutes} minutes, or after `corpid "
        "maintenance open-store`, they go on as well."
    )
    output.warn(
        "`systemctl restart` keeps the data only if the engine's `save` is not empty, or `appendonly` is on. If it comes back "
        "without its data, callers wait as after a loss of data."
    )


@app.command()
def open_store() -> None:
    """Undo `close-store`, if the engine was not restarted."""
    opened = run(_open_store())
    if opened is None:
        output.say(_NOTHING_TO_DO)
    elif opened:
        output.say("It is open: servers go on within a second.")
    else:
        output.warn(
            "It is open, but `close-store` had not come to its end, so it cannot be proven that nothing was lost: callers "
            "wait as after a loss of data."
        )


def _can_be_closed(chosen: settings.Settings) -> bool:
    """Return whether short-lived data is in a separate engine."""
    return bool(chosen.transient_url) and not chosen.transient_engine.is_local


async def _close_store(*, seconds: int) -> str:
    """The name of the closed engine; empty if there is none."""
    actor, chosen = at_command_line(), settings.load()
    authorise(actor, "write", Object(kind="deployment"))
    if not _can_be_closed(chosen):
        return ""
    async with restarting(chosen) as store:
        others = {
            f"{process.name} has version {process.version}"
            for process in live(await store.registry.server_processes.list_all(), now=time.time())
            if process.version != __version__
        }
        if others:
            raise Refused(f"another version may not know that the engine is closed: {', '.join(sorted(others))}")
        await store.note(audit_event(actor, AuditAction.STORE_CLOSE, ""))
        try:
            await store.engine.close_for_restart(store.stops, name=secrets.token_hex(_NAME_BYTES), seconds=seconds)
        except OrderlyStopRefused as error:
            raise Refused(f"{error}.") from None
    return engine_type(chosen.transient_url).title


async def _open_store() -> bool | None:
    """Return whether nothing was lost; None without an engine."""
    actor, chosen = at_command_line(), settings.load()
    authorise(actor, "write", Object(kind="deployment"))
    if not _can_be_closed(chosen):
        return None
    async with restarting(chosen) as store:
        await store.note(audit_event(actor, AuditAction.STORE_OPEN, ""))
        try:
            return await store.engine.open_again(store.stops)
        except OrderlyStopRefused as error:
            raise Refused(f"{error}.") from None


app.command()(after_restore)
