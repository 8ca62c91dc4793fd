"""`corpid operator`: who operates the deployment, and at which level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import appointments

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.rules.directory.records import OperatorLevel
    from corpid.rules.directory.records import User as Person

app = typer.Typer(no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")]


@app.command("list")
def show_all(*, json: listing.AsJson = False) -> None:
    """List the operators of the deployment, with their levels."""
    found = run(_all())
    if json:
        output.as_json(
            {"operators": [{"user": user.user_name, "level": level, "enabled": user.enabled} for user, level in found]}
        )
        return
    if not found:
        output.say(
            "Nobody operates this deployment in the browser yet: `corpid operator add USER operator` makes the first one."
        )
        return
    rows = [
        (user.user_name, user.name, level, "effective" if user.enabled else "the person is disabled")
        for user, level in found
    ]
    output.table("Operators", ("User", "Name", "Level", "State"), rows)


@app.command()
def add(
    user: User,
    level: Annotated[str, typer.Argument(metavar="LEVEL", help="operator, support or auditor.")] = "operator",
    *,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Make a person an operator of the deployment, at a level.

    If the person has a level already, it changes.
    """
    listing.report(run(_add(user, level, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def remove(user: User, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Take an operator's level; the last one who can act stays."""
    listing.report(run(_remove(user, dry_run=dry_run)), dry_run=dry_run, json=json)


async def _all() -> list[tuple[Person, OperatorLevel]]:
    async with open_registry(settings.load()) as opened:
        return await appointments.list_operators(opened.registry, actor=opened.actor)


async def _add(user: str, level: str, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await appointments.set_operator(
            opened.registry, opened.passwords, user, level, actor=opened.actor, dry_run=dry_run
        )


async def _remove(user: str, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await appointments.remove_operator(opened.registry, user, actor=opened.actor, dry_run=dry_run)
