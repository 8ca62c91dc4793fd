"""`corpid third-party`: entities whose people act for other entities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.role import as_data, parameters, state
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import grants, lists
from corpid.rules.directory.member_details import identity
from corpid.rules.directory.values import NO_END

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.engines import Stores
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import ListFilter, ListPage
    from corpid.rules.directory.records import ThirdPartyGrant
    from corpid.rules.directory.roles import RoleRecords

app = typer.Typer(no_args_is_help=True)

ClientEntity = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity that lets the other one act for it.")]
ThirdParty = Annotated[str, typer.Argument(metavar="THIRD_PARTY", help="The entity that acts for the first one.")]
Service = Annotated[str, typer.Argument(metavar="SERVICE", help="The service's identifier.")]
OfRole = Annotated[str | None, typer.Option(help="Only the one of this role; '' is the one for any.")]
OfSubEntity = Annotated[str | None, typer.Option(help="Only for this part of the entity; '' for any.")]
OfRef = Annotated[str | None, typer.Option(help="Only the one with this ref; '' is the one without.")]


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
    """List what entities offer and grant to third parties.

    An offer gives nothing until the third party has accepted it. With --people, the roles that third parties gave to
    their people: for whom, until when, and why not, if not.
    """
    wanted = lists.ListFilter(user=user, entity=third_party, client_entity=client_entity, service=service)
    given = {"client_entity": client_entity, "third_party": third_party, "service": service}
    if people or user:
        _people(wanted, given, limit=limit, after=after, json=json)
        return
    page = run(_grants(wanted, after, limit))
    if json:
        output.as_json({"grants": page.found, "after": page.after})
        return
    headings = ("Entity", "Third party", "Service", "Role", "From", "Until", "State")
    listing.show("Grants", headings, page, _grant, "third-party list", limit=limit, **given)


@app.command()
def offer(
    client_entity: ClientEntity,
    third_party: ThirdParty,
    service: Service,
    role: Annotated[str | None, typer.Argument(metavar="ROLE", help="One of the service's roles; else any.")] = None,
    *,
    sub_entity: Annotated[str | None, typer.Option(help="The part of the entity that it is for; else any.")] = None,
    ref: Annotated[str | None, typer.Option(help="Distinguishes it from an otherwise identical grant.")] = None,
    start: Annotated[str | None, typer.Option(metavar="DATE", help="Its first day, such as 2027-01-01.")] = None,
    end: Annotated[str | None, typer.Option(metavar="DATE", help="Its last day, such as 2027-12-31.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter of the service; repeat.")
    ] = None,
    accepted: Annotated[bool, typer.Option("--accepted", help="Accept it on the third party's behalf, too.")] = False,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Offer a third party to act for an entity at a service.

    It is effective once `corpid third-party accept` has accepted it, or at once with --accepted. If the grant exists,
    narrower terms take effect at once; wider ones suspend it until they are accepted.
    """
    wanted = grants.GrantFilter(
        client_entity=client_entity, third_party=third_party, service=service, role=role, sub_entity=sub_entity, ref=ref
    )
    terms: dict[str, object] = {"start_date": start, "end_date": end, "parameters": parameters(parameter or [])}

    def offered(opened: Stores) -> Awaitable[ApplyResult]:
        return grants.offer_grant(
            opened.registry, opened.passwords, wanted, terms, actor=opened.actor, accepted=accepted, dry_run=dry_run
        )

    listing.report(run(_with_stores(offered)), dry_run=dry_run, json=json)


def _command(name: str, flow: Callable[..., Awaitable[ApplyResult]], text: str) -> None:
    """Register a command that decides about one offer or grant."""

    def decide(
        client_entity: ClientEntity,
        third_party: ThirdParty,
        service: Service,
        *,
        role: OfRole = None,
        sub_entity: OfSubEntity = None,
        ref: OfRef = None,
        dry_run: listing.DryRun = False,
        json: listing.AsJson = False,
    ) -> None:
        wanted = grants.GrantFilter(
            client_entity=client_entity,
            third_party=third_party,
            service=service,
            role=role,
            sub_entity=sub_entity,
            ref=ref,
        )

        def decided(opened: Stores) -> Awaitable[ApplyResult]:
            return flow(opened.registry, wanted, actor=opened.actor, dry_run=dry_run)

        listing.report(run(_with_stores(decided)), dry_run=dry_run, json=json)

    decide.__doc__ = text
    app.command(name)(decide)


_command("accept", grants.accept_grant, "Accept an offer on the third party's behalf.\n\nIt takes effect at once.")
_command(
    "decline",
    grants.decline_grant,
    "Decline an offer on the third party's behalf. Needs `corpid --reason TEXT`.",
)
_command(
    "end",
    grants.end_grant,
    "End a grant at once, or withdraw an offer.\n\nNeeds `corpid --reason TEXT`. The roles of the third party's people "
    "end with it, except those that another accepted grant allows.",
)


def _people(wanted: ListFilter, given: dict[str, str], *, limit: int, after: str, json: bool) -> None:
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
    first = listing.first_day(grant.start_date)
    return grant.client_entity_id, grant.entity_id, grant.service_id, parts, first, last, grant.state


def _row(role: RoleRecords, today: str) -> tuple[str | tuple[str, ...], ...]:
    client = role.client_entity.entity_id if role.client_entity else ""
    parts = listing.parts(role.row)
    return (
        identity(role.membership, role.user),
        role.entity.entity_id,
        client,
        role.row.service_id,
        parts,
        state(role, today),
    )


async def _with_stores(work: Callable[[Stores], Awaitable[ApplyResult]]) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await work(opened)


async def _grants(wanted: ListFilter, after: str, limit: int) -> ListPage[ThirdPartyGrant]:
    async with open_registry(settings.load()) as opened:
        return await lists.list_grants(opened.registry, opened.actor, wanted, after=after, limit=limit)


async def _roles(wanted: ListFilter, after: str, limit: int) -> tuple[ListPage[RoleRecords], str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        page = await lists.list_third_party_roles(opened.registry, opened.actor, wanted, after=after, limit=limit)
        return page, listing.today(chosen, opened)
