"""`corpid role`: the roles of people at services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import lists
from corpid.flows.directory.role_assignment import RoleFilter, add_role, remove_role
from corpid.rules.directory.member_details import identity
from corpid.rules.directory.roles import last_day, reasons

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import ListFilter, ListPage
    from corpid.rules.directory.roles import RoleRecords

app = typer.Typer(no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")]
Entity = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity that the person acts for.")]
Service = Annotated[str, typer.Argument(metavar="SERVICE", help="The service's identifier.")]


@app.command("list")
def show_all(
    *,
    user: listing.OfUser = "",
    entity: listing.OfEntity = "",
    service: listing.OfService = "",
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List roles, also those that are not effective, with the reason."""
    page, today = run(_all(lists.ListFilter(user=user, entity=entity, service=service), after, limit))
    if json:
        output.as_json({"roles": [as_data(each, today) for each in page.found], "after": page.after})
        return
    given = {"user": user, "entity": entity, "service": service}
    headings = ("User", "Entity", "Service", "Role", "State")
    listing.show("Roles", headings, page, lambda each: _row(each, today), "role list", limit=limit, **given)


@app.command()
def add(
    user: User,
    entity: Entity,
    service: Service,
    role: Annotated[
        str | None, typer.Argument(metavar="ROLE", help="One of the service's roles, if it has any.")
    ] = None,
    *,
    sub_entity: Annotated[str | None, typer.Option(help="The part of the entity that it is for.")] = None,
    ref: Annotated[str | None, typer.Option(help="Distinguishes it from an otherwise identical role.")] = None,
    start: Annotated[str | None, typer.Option(metavar="DATE", help="Its first day, such as 2027-01-01.")] = None,
    end: Annotated[str | None, typer.Option(metavar="DATE", help="Its last day, such as 2027-12-31.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of the service; repeat.")
    ] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Give a person a role for an entity.

    If the person has that role already, what is named of it changes.
    """
    members: dict[str, object] = {
        "role": role,
        "sub_entity": sub_entity,
        "ref": ref,
        "start_date": start,
        "end_date": end,
        "parameters": parameters(parameter or []),
    }
    listing.report(run(_add(user, entity, service, members, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def remove(
    user: User,
    entity: Entity,
    service: Service,
    *,
    role: Annotated[str | None, typer.Option(help="Only this role; '' is the one without a name.")] = None,
    sub_entity: Annotated[str | None, typer.Option(help="Only for this part of the entity; '' for the whole.")] = None,
    ref: Annotated[str | None, typer.Option(help="Only the one with this ref; '' is the one without.")] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Take one role from a person.

    If several are meant, nothing is changed, and they are listed.
    """
    wanted = RoleFilter(user=user, entity=entity, service=service, role=role, sub_entity=sub_entity, ref=ref)
    listing.report(run(_remove(wanted, dry_run=dry_run)), dry_run=dry_run, json=json)


def as_data(role: RoleRecords, today: str) -> dict[str, object]:
    """Return a role for JSON, with why it is not effective."""
    row = role.row
    client = {} if role.client_entity is None else {"client_entity": role.client_entity.entity_id}
    return {
        "user": role.user.user_name,
        "identity": identity(role.membership, role.user),
        "entity": role.entity.entity_id,
        **client,
        "service": row.service_id,
        "role": row.role,
        "sub_entity": row.sub_entity,
        "ref": row.ref,
        "start_date": row.start_date,
        "end_date": row.end_date,
        "parameters": row.parameters,
        "not_effective": reasons(role, today),
    }


def state(role: RoleRecords, today: str) -> str:
    """Return the state of a role, for a table."""
    why = reasons(role, today)
    last = last_day(role, today)
    return "; ".join(why) if why else f"until {last}" if last else "effective"


def _row(role: RoleRecords, today: str) -> tuple[str | tuple[str, ...], ...]:
    return (
        identity(role.membership, role.user),
        listing.entity(role.entity),
        role.row.service_id,
        listing.parts(role.row),
        state(role, today),
    )


def parameters(given: list[str]) -> dict[str, list[str]] | None:
    """Return the values of parameters by name, None if none is given."""
    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            output.fail(f"--parameter {each}: write a name and a value, such as Limit=500")
        found.setdefault(name, []).append(value)
    return found or None


async def _all(wanted: ListFilter, after: str, limit: int) -> tuple[ListPage[RoleRecords], str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        page = await lists.list_roles(opened.registry, opened.actor, wanted, after=after, limit=limit)
        return page, listing.today(chosen, opened)


async def _add(user: str, entity: str, service: str, members: dict[str, object], *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await add_role(
            opened.registry, opened.passwords, user, entity, service, members, actor=opened.actor, dry_run=dry_run
        )


async def _remove(wanted: RoleFilter, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await remove_role(opened.registry, wanted, actor=opened.actor, dry_run=dry_run)
