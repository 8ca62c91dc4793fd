"""The database: `corpid migrate`, `backup`, `restore` and `maintenance after-restore`.

A backup is the SQLite database as one file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec.structs import replace

from corpid import engines, settings
from corpid.cli import output
from corpid.cli.running import run
from corpid.flows.directory.write import audit_event
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.limits import MINUTE
from corpid.stores.data_loss import RestoreRefused
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME
from corpid.stores.sql import backup as copies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.settings import Settings
    from corpid.stores.sql.backup import RestoreResult
    from corpid.stores.sql.schema import MigrationPlan, PlannedMigration

_HEADINGS: Final = ("Migration", "Phase", "What it does", "What it locks", "About how long")
_CONTRACT: Final = "contract"
_SERVED: Final = "Servers of the previous version may keep running."
_GONE: Final = "No server of the previous version may be running."


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

    The default database does that by itself at start.

    Servers of the previous version may keep running. Ctrl-C stops after the present step or batch; the next
    `corpid migrate` goes on from there.
    """
    if json and not plan:
        output.fail("--json is for a plan, and changes nothing: write `corpid migrate --plan --json`.")
    if plan:
        _show(run(_planned(contract=contract)), contract=contract, json=json)
        _tell_unconfirmed()
        return
    name = run(_migrate(contract=contract))
    output.say(f"The database {name} has the schema of this version.")
    _tell_unconfirmed()
    left = run(_planned(contract=False)).later
    if left:
        output.say(
            f"{len(left)} more can wait ({', '.join(step.revision for step in left)}): run `corpid migrate --contract` when "
            "no server of the version before runs any more."
        )


async def _migrate(*, contract: bool) -> str:
    return await engines.migrate(settings.load(), contract=contract, report=output.say)


def _tell_unconfirmed() -> None:
    """Print why no server would start on the database.

    A restored dump of an older version is migrated before `after-restore`, so this refuses nothing.
    """
    if refused := run(_unconfirmed()):
        output.warn(f"No server starts on this database: {refused}.")


async def _unconfirmed() -> str:
    return await engines.unconfirmed_restore(settings.load())


async def _planned(*, contract: bool) -> MigrationPlan:
    plan = await engines.plan_migration(settings.load())
    return replace(plan, now=(*plan.now, *plan.later), later=()) if contract else plan


def _show(plan: MigrationPlan, *, contract: bool, json: bool) -> None:
    if json:
        output.as_json(plan)
        return
    if not plan.now and not plan.later:
        output.say(f"The database {plan.database} needs no migration.")
        return
    if plan.now:
        _steps(f"corpid migrate{' --contract' if contract else ''}: {plan.database}", plan.now)
        _tell_who_may_serve(plan)
    if plan.later:
        _steps("corpid migrate --contract: once no server of the previous version is running", plan.later)
    if any(step.rows for step in (*plan.now, *plan.later)):
        output.say("Durations are estimates from rates measured elsewhere; a fill prints its own while it runs.")
    output.say("Nothing was changed.")


def _tell_who_may_serve(plan: MigrationPlan) -> None:
    """Print which servers may keep running; none serves an empty database."""
    if plan.schema is not None:
        output.say(_GONE if any(step.phase == _CONTRACT for step in plan.now) else _SERVED)


def _steps(title: str, steps: Sequence[PlannedMigration]) -> None:
    rows = [(step.revision, step.phase, step.title, step.locks, _duration(step)) for step in steps]
    output.table(title, _HEADINGS, rows)


def _duration(step: PlannedMigration) -> str:
    if step.rows is None or step.seconds is None:
        return "as long as reading the table" if step.concurrently else "a moment"
    minutes = step.seconds // MINUTE
    length = f"{minutes} minutes" if minutes > 1 else f"{step.seconds} seconds"
    return f"{step.rows:,} rows, {length}"


_ELSEWHERE: Final = (
    "This is for SQLite, and database_url names PostgreSQL: use its own pg_dump and pg_restore, then `corpid "
    "maintenance after-restore`, as docs/reliability.md says."
)
_AFTERWARDS: Final = (
    "What was disabled, revoked or rotated after the backup is as it was before: see to that first (`corpid key list`, "
    "`corpid client list`). Codes of authenticator apps are accepted again a minute from now."
)
"""the operator's tasks after a restore"""

File = Annotated[Path, typer.Argument(help="The file of the backup.")]


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
        f"The key-encryption key is not in it, and without that key the backup cannot be opened or restored. It lies in "
        f"{_place_of_key(chosen)}: keep a copy of it apart from the backups."
    )


def restore(file: File) -> None:
    """Replace the database by a backup, while nothing runs.

    The present database stays next to it, under another name.

    Everybody has to sign in again, and what was issued before is refused. Changes since the backup are gone: what
    was disabled or revoked after it is as it was then.
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
    actor = engines.at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    event = audit_event(actor, AuditAction.DEPLOYMENT_RESTORE, file.name)
    try:
        return await copies.restore(path, file, engines.secret_cipher(chosen), time.time, event)
    except copies.BackupRefused as error:
        output.fail(str(error))


def after_restore() -> None:
    """After pg_restore or a move, before any server starts: end every session.

    Also what is in Redis of before is never used again. Changes since the backup are gone: what was disabled or
    revoked after it is as it was then.
    """
    run(_after_restore())
    output.say(
        "Sessions and everything short-lived have ended, and what was issued before is refused. Servers may start."
    )
    output.warn(_AFTERWARDS)


async def _after_restore() -> None:
    actor = engines.at_command_line()
    authorise(actor, "write", Object(kind="deployment"))
    event = audit_event(actor, AuditAction.DEPLOYMENT_RESTORE, "pg_restore")
    async with engines.open_stores(settings.load(), time.time, accept_other=True) as stores:
        try:
            await stores.after_restore(event, now=time.time())
        except RestoreRefused as error:
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
