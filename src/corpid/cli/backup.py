"""`corpid backup`, `corpid restore`: the SQLite database as one file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import engines, settings
from corpid.cli import output
from corpid.flows.directory.write import audit_event
from corpid.rules.audit_actions import AuditAction
from corpid.rules.directory.access import OPERATOR, Object, authorise
from corpid.stores.encryption_at_rest import EMBEDDED_KEY_NAME
from corpid.stores.sql import backup as copies

if TYPE_CHECKING:
    from corpid.settings import Settings
    from corpid.stores.sql.backup import Restored

_ELSEWHERE: Final = (
    "This is for SQLite, and database_url names PostgreSQL: use its own pg_dump and pg_restore, then `corpid "
    "maintenance after-restore`, as docs/reliability.md says."
)
AFTERWARDS: Final = (
    "What was disabled, revoked or rotated after the backup is as it was before: see to that first (`corpid key list`, "
    "`corpid client list`). Codes of authenticator apps are accepted again a minute from now."
)
"""what every restore leaves to its operator"""

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
    restored = output.run(_restore(chosen, path, file.absolute()))
    output.say(f"Restored {file} to {path}. Sessions and everything short-lived in it have ended.")
    if restored.kept is not None:
        output.say(f"The database that was there is kept as {restored.kept}; remove it when you no longer need it.")
    output.warn(AFTERWARDS)


async def _restore(chosen: Settings, path: Path, file: Path) -> Restored:
    authorise(OPERATOR, "write", Object(kind="deployment"))
    event = audit_event(OPERATOR, AuditAction.DEPLOYMENT_RESTORE, file.name)
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
