"""`corpid membership`: the entities that people act for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import memberships

if TYPE_CHECKING:
    from corpid.flows.directory.apply import Applied

app = typer.Typer(no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The name that the person signs in with.")]
Entity = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier.")]


@app.command()
def add(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Let a person act for an entity."""
    listing.tell(run(_add(user, entity, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def remove(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """End a membership, with its level and roles."""
    listing.tell(run(_remove(user, entity, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def disable(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Suspend a membership: its level and roles stay, without effect."""
    listing.tell(run(_switch(user, entity, enabled=False, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def enable(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Restore a membership, with its level and roles."""
    listing.tell(run(_switch(user, entity, enabled=True, dry_run=dry_run)), dry_run=dry_run, json=json)


async def _add(user: str, entity: str, *, dry_run: bool) -> Applied:
    async with open_registry(settings.load()) as opened:
        return await memberships.add_membership(
            opened.registry, opened.passwords, user, entity, actor=opened.actor, dry_run=dry_run
        )


async def _remove(user: str, entity: str, *, dry_run: bool) -> Applied:
    async with open_registry(settings.load()) as opened:
        return await memberships.remove_membership(opened.registry, user, entity, actor=opened.actor, dry_run=dry_run)


async def _switch(user: str, entity: str, *, enabled: bool, dry_run: bool) -> Applied:
    async with open_registry(settings.load()) as opened:
        return await memberships.switch_membership(
            opened.registry, opened.passwords, user, entity, enabled=enabled, actor=opened.actor, dry_run=dry_run
        )
