"""`corpid administrator`: who administers an entity, and at which level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import appointments, lists
from corpid.rules.directory.member_details import identity
from corpid.rules.directory.values import ALL

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import Appointment, ListFilter, ListPage

app = typer.Typer(no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The person's user name.")]
Entity = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity; the person is one of its members.")]


@app.command("list")
def show_all(
    *,
    user: listing.OfUser = "",
    entity: listing.OfEntity = "",
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List administrators of entities, with their levels."""
    page = run(_all(lists.ListFilter(user=user, entity=entity), after, limit))
    if json:
        output.as_json({"administrators": [_as_data(each) for each in page.found], "after": page.after})
        return
    headings = ("User", "Entity", "Level", "Services", "State")
    listing.show("Administrators", headings, page, _row, "administrator list", limit=limit, user=user, entity=entity)


@app.command()
def add(
    user: User,
    entity: Entity,
    level: Annotated[str, typer.Argument(metavar="LEVEL", help="owner, administrator or sub_administrator.")],
    *,
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help=f"Of a sub_administrator: a service to give roles at, or {ALL}; repeat."),
    ] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Make a member of an entity its administrator, at a level.

    If the person has a level there already, it changes.
    """
    members: dict[str, object] = {"level": level, "services": ALL if service == [ALL] else service or None}
    listing.report(run(_add(user, entity, members, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def remove(user: User, entity: Entity, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Take a person's level; the membership and the roles stay."""
    listing.report(run(_remove(user, entity, dry_run=dry_run)), dry_run=dry_run, json=json)


def hindrances(held: Appointment) -> list[str]:
    """Return why an administrator cannot act at present."""
    links = {
        "the invitation has not been accepted": not held.membership.invited,
        "the person is disabled": held.user.enabled or held.user.placeholder,
        "the membership is disabled": held.membership.enabled,
        "the entity is disabled": held.entity.enabled,
    }
    return [why for why, enabled in links.items() if not enabled]


def _as_data(held: Appointment) -> dict[str, object]:
    own = held.administrator
    return {
        "user": held.user.user_name,
        "identity": identity(held.membership, held.user),
        "entity": held.entity.entity_id,
        "level": own.level,
        "services": own.services if own.level == "sub_administrator" else ALL,
        "not_effective": hindrances(held),
    }


def _row(held: Appointment) -> tuple[str | tuple[str, ...], ...]:
    own = held.administrator
    services = own.services if own.level == "sub_administrator" else ALL
    shown = ", ".join(services) if isinstance(services, tuple) else services
    state = "; ".join(hindrances(held)) or "effective"
    return identity(held.membership, held.user), listing.entity(held.entity), own.level, shown, state


async def _all(wanted: ListFilter, after: str, limit: int) -> ListPage[Appointment]:
    async with open_registry(settings.load()) as opened:
        return await lists.list_administrators(opened.registry, opened.actor, wanted, after=after, limit=limit)


async def _add(user: str, entity: str, members: dict[str, object], *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await appointments.set_administrator(
            opened.registry, opened.passwords, user, entity, members, actor=opened.actor, dry_run=dry_run
        )


async def _remove(user: str, entity: str, *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await appointments.remove_administrator(
            opened.registry, user, entity, actor=opened.actor, dry_run=dry_run
        )
