"""`corpid service`: the services at which people have roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import finding, lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.flows.directory.lists import ListPage
    from corpid.rules.directory.records import Service
    from corpid.rules.directory.values import ParameterDefinition

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def show_all(
    *,
    search: Annotated[str, typer.Option(help="Only identifiers that begin with this.")] = "",
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List services, by identifier."""
    page = run(_all(search, after, limit))
    if json:
        output.as_json({"services": page.found, "after": page.after})
        return
    headings = ("Service", "Name", "Roles", "Third parties", "State")
    listing.show("Services", headings, page, _row, "service list", limit=limit, search=search)


@app.command()
def show(
    service_id: Annotated[str, typer.Argument(metavar="SERVICE", help="The service's identifier.")],
    *,
    json: listing.AsJson = False,
) -> None:
    """Show one service: its roles, and which entities may use it."""
    service = run(_one(service_id))
    if json:
        output.as_json(service)
        return
    values: dict[str, str | tuple[str, ...]] = {
        "Name": service.name,
        "Description": service.description or "(none)",
        "Roles": tuple(_roles(service)) or "(none)",
        "Parameters": tuple(map(_parameter, service.parameters)) or "(none)",
        "Sub-entity": service.sub_entity,
        "Third parties": "allowed" if service.third_parties else "not allowed",
        "Entity types": ", ".join(service.entity_types),
        "Entity statuses": ", ".join(status or "(no status)" for status in service.entity_statuses),
        "Approval": "required for roles" if service.approval_required else "as the entity wants it",
        "State": listing.state(enabled=service.enabled),
    }
    output.members(service.service_id, values)
    output.say(f"Who has a role there: `corpid role list --service {service_id}`.")


def _row(service: Service) -> tuple[str, ...]:
    third_parties = "allowed" if service.third_parties else ""
    state = listing.state(enabled=service.enabled)
    return service.service_id, service.name, ", ".join(service.roles), third_parties, state


def _roles(service: Service) -> Iterator[str]:
    described = {each.name: each.description for each in service.role_descriptions}
    return (f"{role}: {described[role]}" if described.get(role) else role for role in service.roles)


def _parameter(definition: ParameterDefinition) -> str:
    return f"{definition.name} ({definition.kind}{', mandatory' if definition.mandatory else ''})"


async def _all(search: str, after: str, limit: int) -> ListPage[Service]:
    async with open_registry(settings.load()) as opened:
        return await lists.list_services(opened.registry, opened.actor, search=search, after=after, limit=limit)


async def _one(service_id: str) -> Service:
    async with open_registry(settings.load()) as opened:
        return await finding.find_service(opened.registry, service_id, actor=opened.actor)
