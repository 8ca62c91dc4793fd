"""`corpid maintenance`: answer 503 for a while, on purpose (Spec 7); and what else a deployment needs at times."""

from __future__ import annotations

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.flows.administration.maintenance import switch_maintenance

app = typer.Typer(
    help="Maintenance: on, off, status; old audit entries: prune; after pg_restore: after-restore.",
    no_args_is_help=True,
)


@app.command()
def on() -> None:
    """Answer temporarily_unavailable to every sign-in and token request, within 5 seconds."""
    output.run(_switch(on=True))
    output.say("Maintenance is on: running servers answer temporarily_unavailable within 5 seconds.")


@app.command()
def off() -> None:
    """Answer again."""
    output.run(_switch(on=False))
    output.say("Maintenance is off: running servers answer again within 5 seconds.")


@app.command()
def status() -> None:
    """Say whether maintenance is on."""
    output.say("Maintenance is on." if output.run(_status()) else "Maintenance is off.")


async def _switch(*, on: bool) -> None:
    async with open_registry(settings.load()) as stores:
        await switch_maintenance(stores.registry, on=on, actor=OPERATOR)


async def _status() -> bool:
    async with open_registry(settings.load()) as stores:
        return await stores.registry.deployment.maintenance()
