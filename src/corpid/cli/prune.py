"""`corpid maintenance prune`: what the audit table need not keep any longer."""

from __future__ import annotations

from typing import Annotated

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR, Object, authorise
from corpid.flows.administration.writing import audit_event


def prune(
    *,
    audit_days: Annotated[
        int | None, typer.Option(help="Days that entries are kept; 0: for ever. Default: the setting.", min=0)
    ] = None,
    sign_in_days: Annotated[
        int | None, typer.Option(help="The same for entries of sign-ins. Default: the setting.", min=0)
    ] = None,
) -> None:
    """Remove audit entries that are older than they need be kept. To be run daily; servers may be running."""
    removed = output.run(_prune(audit_days, sign_in_days))
    if removed is None:
        output.say("Audit entries are kept for ever, since audit_days and sign_in_days are 0. Nothing was removed.")
        return
    output.say(f"Removed {removed:,} audit entries.")


async def _prune(audit_days: int | None, sign_in_days: int | None) -> int | None:
    """How many entries went; None where all are to be kept."""
    authorise(OPERATOR, "write", Object(kind="deployment"))
    chosen = settings.load()
    audit_days = chosen.audit_days if audit_days is None else audit_days
    sign_in_days = chosen.sign_in_days if sign_in_days is None else sign_in_days
    if not audit_days and not sign_in_days:
        return None
    kept = {"audit_days": str(audit_days), "sign_in_days": str(sign_in_days)}
    event = audit_event(OPERATOR, "audit.prune", "", **kept)
    async with open_registry(chosen) as stores:
        return await stores.prune(event, now=stores.clock(), audit_days=audit_days, sign_in_days=sign_in_days)
