"""`corpid third-party`: entities whose people act for other entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.role import as_data, state
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import lists
from corpid.rules.directory.records import NO_END

if TYPE_CHECKING:
    from corpid.flows.directory.lists import Page, Wanted
    from corpid.rules.directory.effect import Role
    from corpid.rules.directory.records import ThirdPartyGrant

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def show_all(
    *,
    client_entity: Annotated[str, typer.Option(metavar="ID", help="Only what this entity grants.")] = "",
    third_party: Annotated[str, typer.Option(metavar="ID", help="Only what is granted to this entity.")] = "",
    service: listing.OfService = "",
    people: Annotated[bool, typer.Option("--people", help="The roles of third parties' people instead.")] = False,
    user: Annotated[str, typer.Option(metavar="NAME", help="With --people: only of this person.")] = "",
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List what entities grant to third parties.

    With --people, the roles that third parties gave to their people: for whom, until when, and why not, if not.
    """
    wanted = lists.Wanted(user=user, entity=third_party, client_entity=client_entity, service=service)
    given = {"client_entity": client_entity, "third_party": third_party, "service": service}
    if people or user:
        _people(wanted, given, limit=limit, after=after, json=json)
        return
    page = run(_grants(wanted, after, limit))
    if json:
        output.as_json({"grants": page.found, "after": page.after})
        return
    headings = ("Entity", "Third party", "Service", "Role", "From", "Until")
    listing.show("Grants", headings, page, _grant, "third-party list", limit=limit, **given)


def _people(wanted: Wanted, given: dict[str, str], *, limit: int, after: str, json: bool) -> None:
    page, today = run(_roles(wanted, after, limit))
    if json:
        output.as_json({"roles": [as_data(each, today) for each in page.found], "after": page.after})
        return
    headings = ("User", "Third party", "For", "Service", "Role", "State")
    command = "third-party list --people"
    title = "Roles of third parties' people"
    listing.show(title, headings, page, lambda each: _row(each, today), command, limit=limit, **given, user=wanted.user)


def _grant(grant: ThirdPartyGrant) -> tuple[str | tuple[str, ...], ...]:
    parts = listing.parts(grant, any_role="(any)")
    last = "" if grant.end_date == NO_END else grant.end_date
    return grant.client_entity_id, grant.entity_id, grant.service_id, parts, listing.first_day(grant.start_date), last


def _row(role: Role, today: str) -> tuple[str | tuple[str, ...], ...]:
    client = role.client_entity.entity_id if role.client_entity else ""
    parts = listing.parts(role.row)
    return role.user.user_name, role.entity.entity_id, client, role.row.service_id, parts, state(role, today)


async def _grants(wanted: Wanted, after: str, limit: int) -> Page[ThirdPartyGrant]:
    async with open_registry(settings.load()) as opened:
        return await lists.grants(opened.registry, opened.actor, wanted, after=after, limit=limit)


async def _roles(wanted: Wanted, after: str, limit: int) -> tuple[Page[Role], str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        page = await lists.third_party_roles(opened.registry, opened.actor, wanted, after=after, limit=limit)
        return page, listing.today(chosen, opened)
