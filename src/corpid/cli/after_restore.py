"""`corpid maintenance after-restore`: what has to end after pg_restore, before servers start again."""

from __future__ import annotations

import time

from corpid import engines, settings
from corpid.adapters.sql.restores import RestoreRefused
from corpid.cli import output
from corpid.cli.backup import AFTERWARDS
from corpid.directory.access import OPERATOR, Object, authorise
from corpid.flows.administration.writing import audit_event


def after_restore() -> None:
    """After pg_restore, before any server starts: end every session and refuse what was issued before.

    Also what is in Redis of before is never used again. Changes since the backup are gone: what was disabled or
    revoked after it is as it was then.
    """
    output.run(_after_restore())
    output.say(
        "Sessions and everything short-lived have ended, and what was issued before is refused. Servers may start."
    )
    output.warn(AFTERWARDS)


async def _after_restore() -> None:
    authorise(OPERATOR, "write", Object(kind="deployment"))
    event = audit_event(OPERATOR, "deployment.restore", "pg_restore")
    async with engines.opened(settings.load(), time.time) as stores:
        try:
            await stores.after_restore(event, now=time.time())
        except RestoreRefused as error:
            output.fail(str(error))
