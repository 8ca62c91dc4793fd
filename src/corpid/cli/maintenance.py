"""Maintenance of the stores: `corpid migrate`, `backup`, `restore` and `maintenance`.

A backup is the SQLite database as one file.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import replace

from corpid import __version__, engines, settings
from corpid.cli import output
from corpid.cli.running import run, with_stores
from corpid.engines import at_command_line, open_for_restart, open_registry
from corpid.flows.directory.write import Refused, audit_event
from corpid.flows.operations.audit_stream import last_left, oldest_waiting
from corpid.flows.operations.readiness import switch_maintenance
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.failures import OrderlyStopRefused
from corpid.rules.limits import DAY, MINUTE
from corpid.rules.server_processes import live
from corpid.stores.data_loss import RestoreRefused
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME
from corpid.stores.sql import backup as copies
from corpid.stores.sql.audit_retention import PruneResult, RetentionPeriods
from corpid.stores.transient import engine_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.settings import Settings
    from corpid.stores.sql.backup import RestoreResult
    from corpid.stores.sql.schema import MigrationPlan, PlannedMigration


app = typer.Typer(no_args_is_help=True)


File = Annotated[Path, typer.Argument(help="The backup file.")]


_HEADINGS: Final = ("Migration", "Phase", "What it does", "What it locks", "About how long")
_CONTRACT: Final = "contract"
_SERVED: Final = "Servers of the previous version may keep running."
_STOPPED: Final = "No server of the previous version may be running."
_ELSEWHERE: Final = (
    "This is for SQLite, and database_url names PostgreSQL: use its own pg_dump and pg_restore, then `corpid "
    "maintenance after-restore`, as docs/reliability.md says."
)
_AFTERWARDS: Final = (
    "What was disabled, revoked or rotated after the backup is as it was before: see to that first (`corpid key list`, "
    "`corpid client list`). Codes of authenticator apps are accepted again a minute from now."
)
"""the operator's tasks after a restore"""
_NAME_BYTES = 16
_NOTHING_TO_DO = (
    "Short-lived data is in the database or in a file of this machine, not in Redis or Valkey: there is nothing to close "
    "or open."
)


def migrate(
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Show what would be done, but change nothing.")] = False,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract", help="Also remove what only the previous version needs: once no server of it is running."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --plan: print it as JSON.")] = False,
) -> None:
    """Bring the database's schema up to this version.

    A server with the default database, SQLite, does this when it starts.

    Servers of the previous version may keep running. Ctrl-C stops after the current step or batch; the next
    `corpid migrate` continues from there.
    """
    if json and not plan:
        output.fail("--json prints a plan only: write `corpid migrate --plan --json`.")
    if plan:
        _show_plan(run(_plan(contract=contract)), contract=contract, json=json)
        _warn_of_unconfirmed_restore()
        return
    name = run(_migrate(contract=contract))
    output.say(f"The database {name} has the schema of this version.")
    _warn_of_unconfirmed_restore()
    left = run(_plan(contract=False)).later
    if left:
        output.say(
            f"{len(left)} more can wait ({', '.join(step.revision for step in left)}): run `corpid migrate --contract` when "
            "no server of the previous version is running."
        )


async def _migrate(*, contract: bool) -> str:
    return await engines.migrate(settings.load(), contract=contract, report=output.say)


def _warn_of_unconfirmed_restore() -> None:
    """Print why no server would start on the database.

    A restored dump of an older version is migrated before `after-restore`, so this refuses nothing.
    """
    if refused := run(_unconfirmed()):
        output.warn(f"No server starts on this database: {refused}.")


async def _unconfirmed() -> str:
    return await engines.unconfirmed_restore(settings.load())


async def _plan(*, contract: bool) -> MigrationPlan:
    plan = await engines.plan_migration(settings.load())
    return replace(plan, now=(*plan.now, *plan.later), later=()) if contract else plan


def _show_plan(plan: MigrationPlan, *, contract: bool, json: bool) -> None:
    if json:
        output.as_json(plan)
        return
    if not plan.now and not plan.later:
        output.say(f"The database {plan.database} needs no migration.")
        return
    if plan.now:
        _steps(f"corpid migrate{' --contract' if contract else ''}: {plan.database}", plan.now)
        if plan.schema is not None:  # none serves an empty database
            output.say(_STOPPED if any(step.phase == _CONTRACT for step in plan.now) else _SERVED)
    if plan.later:
        _steps("corpid migrate --contract: once no server of the previous version is running", plan.later)
    if any(step.rows for step in (*plan.now, *plan.later)):
        output.say("Durations are estimates from rates measured elsewhere; a fill prints its own while it runs.")
    output.say("Nothing was changed.")


def _steps(title: str, steps: Sequence[PlannedMigration]) -> None:
    rows = [(step.revision, step.phase, step.title, step.locks, _duration(step)) for step in steps]
    output.table(title, _HEADINGS, rows)


def _duration(step: PlannedMigration) -> str:
    if step.rows is None or step.seconds is None:
        return "as long as reading the table" if step.concurrently else "a moment"
    minutes = step.seconds // MINUTE
    length = f"{minutes} minutes" if minutes > 1 else f"{step.seconds} seconds"
    return f"{step.rows:,} rows, {length}"


def backup(file: File) -> None:
    """Copy the database to a new file, also while servers use it.

    The key-encryption key is not in it.
    """
    chosen, path = _sqlite()
    try:
        octets = copies.back_up(path, file.absolute())
    except copies.BackupRefused as error:
        output.fail(str(error))
    output.say(f"Wrote {file} ({octets / 1e6:.1f} MB): the database {path} as it is now.")
    output.warn(
        f"The key-encryption key is not in it, and without that key the backup cannot be opened or restored. It is in "
        f"{_place_of_key(chosen)}: keep a copy of it apart from the backups."
    )


def restore(file: File) -> None:
    """Replace the database with a backup, while no server runs.

    The current database stays in its directory, under another name.

    Everybody has to sign in again, and what was issued before is refused. Changes since the backup are lost: what
    was disabled or revoked after it is in effect again.
    """
    chosen, path = _sqlite()
    if chosen.is_embedded and not _has_key(chosen):
        output.fail(
            f"there is no key-encryption key: put the {EMBEDDED_KEY_NAME} that belongs to the backup into "
            f"{chosen.data_dir}, mode 0600"
        )
    restored = run(_restore(chosen, path, file.absolute()))
    output.say(f"Restored {file} to {path}. Sessions and everything short-lived in it have ended.")
    if restored.kept is not None:
        output.say(f"The database that was there is kept as {restored.kept}; remove it when you no longer need it.")
    output.warn(_AFTERWARDS)


async def _restore(chosen: Settings, path: Path, file: Path) -> RestoreResult:
    actor = at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    event = audit_event(actor, AuditAction.DEPLOYMENT_RESTORE, file.name)
    try:
        return await copies.restore(path, file, engines.secret_cipher(chosen), time.time, event)
    except copies.BackupRefused as error:
        output.fail(str(error))


def _sqlite() -> tuple[Settings, Path]:
    try:
        chosen = settings.load()
    except settings.SettingsError as error:
        output.fail(str(error))
    if chosen.sqlite_path is None:
        output.fail(_ELSEWHERE)
    return chosen, chosen.sqlite_path


def _has_key(chosen: Settings) -> bool:
    named = chosen.key_encryption_key or chosen.key_encryption_key_file
    return named is not None or (chosen.data_dir / EMBEDDED_KEY_NAME).exists()


def _place_of_key(chosen: Settings) -> str:
    if chosen.key_encryption_key is not None:
        return "the setting key_encryption_key (CORPID_KEY_ENCRYPTION_KEY)"
    return str(chosen.key_encryption_key_file or chosen.data_dir / EMBEDDED_KEY_NAME)


@app.command()
def on() -> None:
    """Turn maintenance on: sign-ins and token requests get temporarily_unavailable within 5 seconds."""
    with_stores(lambda stores: switch_maintenance(stores.registry, on=True, actor=stores.actor))
    output.say("Maintenance is on: running servers answer temporarily_unavailable within 5 seconds.")


@app.command()
def off() -> None:
    """Turn maintenance off: requests are answered again."""
    with_stores(lambda stores: switch_maintenance(stores.registry, on=False, actor=stores.actor))
    output.say("Maintenance is off: running servers answer again within 5 seconds.")


@app.command()
def status() -> None:
    """Show whether maintenance is on."""
    is_on = with_stores(lambda stores: stores.registry.deployment.maintenance())
    output.say("Maintenance is on." if is_on else "Maintenance is off.")


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

    Decided requests for approval go with entries of their age. Entries that audit_stream has not received yet stay. Run
    it daily; servers can keep running.
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
            return await stores.registry.retention.prune(event, now=now, kept=kept), None
        left = await last_left(stores.registry)
        oldest_at = await oldest_waiting(stores.registry, after=left)
        pruned: PruneResult = await stores.registry.retention.prune(event, now=now, kept=kept, last=left)
        return pruned, left if oldest_at is not None and oldest_at < now - kept.least * DAY else None


@app.command()
def close_store(
    *,
    minutes: Annotated[
        int, typer.Option(help="Minutes after which it opens by itself, if it was not restarted.", min=1, max=60)
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
        f"Servers continue by themselves when it is back, after {minutes} minutes if it was not restarted, or after "
        "`corpid maintenance open-store`."
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
            "It is open, but `close-store` had not finished, so it cannot be proven that nothing was lost: callers "
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
    async with open_for_restart(chosen) as store:
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
    async with open_for_restart(chosen) as store:
        await store.note(audit_event(actor, AuditAction.STORE_OPEN, ""))
        try:
            return await store.engine.open_again(store.stops)
        except OrderlyStopRefused as error:
            raise Refused(f"{error}.") from None


@app.command()
def after_restore() -> None:
    """End every session after pg_restore or a move, before servers start.

    Nothing that Redis or Valkey holds from before is used again. Changes since the backup are lost: what was
    disabled or revoked after it is in effect again.
    """
    run(_after_restore())
    output.say(
        "Sessions and everything short-lived have ended, and what was issued before is refused. Servers may start."
    )
    output.warn(_AFTERWARDS)


async def _after_restore() -> None:
    actor = at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    event = audit_event(actor, AuditAction.DEPLOYMENT_RESTORE, "pg_restore")
    async with engines.open_stores(settings.load(), time.time, accept_other=True) as stores:
        try:
            await stores.after_restore(event, now=time.time())
        except RestoreRefused as error:
            output.fail(str(error))
