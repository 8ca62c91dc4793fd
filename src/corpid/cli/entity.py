"""`corpid entity`: the organisations that people act for."""

from __future__ import annotations

from typing import Annotated

import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.flows.directory import entities
from corpid.rules.directory.access import OPERATOR

app = typer.Typer(help="Entities: add, disable, enable.", no_args_is_help=True)

Identifier = Annotated[str, typer.Argument(help="The entity's identifier, at most 10 characters.")]


@app.command()
def add(
    entity_id: Identifier,
    *,
    name: Annotated[str, typer.Option(help="Its registered name.")],
    entity_type: Annotated[str, typer.Option("--type", help="UEN, NON-UEN or GSTN.")] = "UEN",
    country: Annotated[str, typer.Option(help="Country of registration, two letters.")] = "SG",
    registration_number: Annotated[
        str | None, typer.Option(help="Its number in the register; a UEN entity's identifier is its number.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="Registered, Deregistered or Withdrawn.")] = None,
) -> None:
    """Add an entity."""
    members: dict[str, object] = {
        "name": name,
        "type": entity_type,
        "country": country,
        "registration_number": registration_number,
        "status": status or ("Registered" if entity_type == "UEN" else None),
    }
    for remark in output.run(_add(entity_id, members)):
        output.warn(remark)
    output.say(f"The entity {entity_id} is added.")


@app.command()
def disable(entity_id: Identifier) -> None:
    """Disable an entity: nobody can act for it."""
    output.run(_switch(entity_id, enabled=False))
    output.say(f"The entity {entity_id} is disabled.")


@app.command()
def enable(entity_id: Identifier) -> None:
    """Switch an entity on again."""
    output.run(_switch(entity_id, enabled=True))
    output.say(f"The entity {entity_id} is enabled.")


async def _add(entity_id: str, members: dict[str, object]) -> tuple[str, ...]:
    async with open_registry(settings.load()) as opened:
        _, remarks = await entities.add_entity(opened.registry, opened.passwords, entity_id, members, actor=OPERATOR)
    return remarks


async def _switch(entity_id: str, *, enabled: bool) -> None:
    async with open_registry(settings.load()) as opened:
        await entities.switch_entity(opened.registry, entity_id, enabled=enabled, actor=OPERATOR)
