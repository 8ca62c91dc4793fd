"""`corpid entity`: the organisations that people act for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import access_review, approvals, entities, finding, lists
from corpid.rules.directory.member_details import identity
from corpid.rules.fields import NOTHING

if TYPE_CHECKING:
    from corpid.flows.directory.access_review import ReviewState
    from corpid.flows.directory.apply import ApplyResult
    from corpid.flows.directory.lists import Appointment, Belonging, ListPage
    from corpid.rules.directory.records import Entity
    from corpid.settings import Settings

OWNERS_SHOWN: Final = 10
_APPROVALS: Final = {
    "none": "none",
    "roles": "of roles, third parties and administrators",
    "all": "of every change by its administrators",
}

app = typer.Typer(no_args_is_help=True)

EntityId = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier, at most 10 characters.")]


@app.command("list")
def show_all(
    *,
    search: Annotated[str, typer.Option(help="Only identifiers that begin with this.")] = "",
    name: Annotated[str, typer.Option(help="Only names that begin with this, sorted by name; without --search.")] = "",
    user: Annotated[str, typer.Option(metavar="NAME", help="Those that this person acts for; without --search.")] = "",
    limit: listing.Limit = listing.DEFAULT,
    after: listing.After = "",
    json: listing.AsJson = False,
) -> None:
    """List entities, by identifier."""
    given = [f"--{option}" for option, value in (("user", user), ("search", search), ("name", name)) if value]
    if len(given) > 1:
        output.fail(f"{' and '.join(given)} cannot be combined: leave all but one of them out")
    if user:
        _of_person(user, after, limit, json=json)
        return
    page = run(_all(search, name, after, limit))
    if json:
        output.as_json({"entities": page.found, "after": page.after})
        return
    listing.show(
        "Entities",
        ("Entity", "Name", "Type", "Status", "State"),
        page,
        _row,
        "entity list",
        limit=limit,
        search=search,
        name=name,
    )


@app.command()
def show(entity_id: EntityId, *, json: listing.AsJson = False) -> None:
    """Show one entity, with its administrators."""
    entity, administrators, waits = run(_one(entity_id))
    shown = [(identity(each.membership, each.user), each.administrator.level) for each in administrators.found]
    if json:
        held = [{"user": name, "level": level} for name, level in shown]
        output.as_json(
            {"entity": entity, "administrators": held, "after": administrators.after, "requests_wait": waits}
        )
        return
    named = [f"{name} ({level})" for name, level in shown]
    further = f"and more: `corpid administrator list --entity {entity_id}`"
    values: dict[str, str | tuple[str, ...]] = {
        "Name": entity.name,
        "Type": entity.type,
        "Registration number": entity.registration_number,
        "Country": entity.country,
        "Status": entity.status or "(none)",
        "State": listing.state(enabled=entity.enabled),
        "Approvals": _APPROVALS[entity.approvals],
        "Administrators": (*named, *([further] if administrators.after else [])) or ("(none)",),
    }
    output.members(entity.entity_id, values)
    if waits:
        output.say(f"Changes wait for approval: `corpid approval list --entity {entity_id}`.")
    output.say(f"People: `corpid user list --entity {entity_id}`. Roles: `corpid role list --entity {entity_id}`.")


@app.command()
def review(entity_id: EntityId, *, json: listing.AsJson = False) -> None:
    """Show the yearly access review of an entity."""
    chosen = settings.load()
    state = run(_review(chosen, entity_id))
    if json:
        output.as_json(access_review.describe_review(entity_id, state))
        return
    found = state.review
    if found is None:
        output.say(f"{entity_id} has no access review yet: it gets a date within a day after its first administrators.")
        return
    values: dict[str, str | tuple[str, ...]] = {"Due": listing.moment(found.due_at, chosen)}
    if found.began_at:
        values |= {
            "Began": f"{listing.moment(found.began_at, chosen)}, by {found.began_by}",
            "Reviewed": f"{state.kept} of {state.people} people",
        }
    else:
        values["People"] = str(state.people)
    if found.signed_off_at:
        values |= {
            "Signed off": f"{listing.moment(found.signed_off_at, chosen)}, by {found.signed_off_by}",
            "Then": f"{found.kept} kept, {found.ended} ended",
        }
    output.members(f"Access review of {entity_id}", values)


@app.command()
def add(
    entity_id: EntityId,
    *,
    name: Annotated[str, typer.Option(help="Its registered name.")],
    entity_type: Annotated[str, typer.Option("--type", help="UEN, NON-UEN or GSTN.")] = "UEN",
    country: Annotated[str, typer.Option(help="Country of registration, two letters.")] = "SG",
    registration_number: Annotated[
        str | None, typer.Option(help="Its number in the register; a UEN entity's identifier is its number.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="Registered, Deregistered or Withdrawn.")] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Add an entity."""
    members: dict[str, object] = {
        "name": name,
        "type": entity_type,
        "country": country,
        "registration_number": registration_number,
        "status": status or ("Registered" if entity_type == "UEN" else None),
    }
    listing.report(run(_add(entity_id, members, dry_run=dry_run)), dry_run=dry_run, json=json, done="added")


@app.command()
def update(
    entity_id: EntityId,
    *,
    name: Annotated[str | None, typer.Option(help="Its registered name.")] = None,
    entity_type: Annotated[str | None, typer.Option("--type", help="UEN, NON-UEN or GSTN.")] = None,
    country: Annotated[str | None, typer.Option(help="Country of registration, two letters.")] = None,
    registration_number: Annotated[str | None, typer.Option(help="Its number in the register.")] = None,
    status: Annotated[str | None, typer.Option(help="Registered, Deregistered or Withdrawn; none removes it.")] = None,
    approvals: Annotated[
        str | None, typer.Option(help="Changes that another administrator approves: none, roles or all.")
    ] = None,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Change members of an entity; the others keep their values."""
    members: dict[str, object] = {
        "name": name,
        "type": entity_type,
        "country": country,
        "registration_number": registration_number,
        "status": "" if status == NOTHING else status,
        "approvals": approvals,
    }
    listing.report(run(_update(entity_id, members, dry_run=dry_run)), dry_run=dry_run, json=json)


@app.command()
def disable(entity_id: EntityId, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Disable an entity: nobody can act for it."""
    _switch(entity_id, enabled=False, dry_run=dry_run, json=json)


@app.command()
def enable(entity_id: EntityId, *, dry_run: listing.DryRun = False, json: listing.AsJson = False) -> None:
    """Switch an entity on again."""
    _switch(entity_id, enabled=True, dry_run=dry_run, json=json)


def _switch(entity_id: str, *, enabled: bool, dry_run: bool, json: bool) -> None:
    applied = run(_switched(entity_id, enabled=enabled, dry_run=dry_run))
    listing.report(applied, dry_run=dry_run, json=json, done=listing.state(enabled=enabled))


def _of_person(user: str, after: str, limit: int, *, json: bool) -> None:
    page = run(_held(user, after, limit))
    if json:
        shown = [{"entity": each.entity, "membership_enabled": each.membership.enabled, "level": each.level or None}
                 for each in page.found]  # fmt: skip
        output.as_json({"entities": shown, "after": page.after})
        return
    headings = ("Entity", "Name", "Level", "State")
    listing.show(f"Entities of {user}", headings, page, _held_row, "entity list", limit=limit, user=user)


def _held_row(held: Belonging) -> tuple[str, ...]:
    entity = held.entity
    disabled = "membership disabled" if entity.enabled and not held.membership.enabled else ""
    return entity.entity_id, entity.name, held.level, disabled or listing.state(enabled=entity.enabled)


def _row(entity: Entity) -> tuple[str, ...]:
    return entity.entity_id, entity.name, entity.type, entity.status, listing.state(enabled=entity.enabled)


async def _all(search: str, name: str, after: str, limit: int) -> ListPage[Entity]:
    async with open_registry(settings.load()) as opened:
        if name:
            return await lists.list_entities_by_name(opened.registry, opened.actor, name=name, after=after, limit=limit)
        return await lists.list_entities(opened.registry, opened.actor, search=search, after=after, limit=limit)


async def _held(user: str, after: str, limit: int) -> ListPage[Belonging]:
    async with open_registry(settings.load()) as opened:
        person = await finding.find_user(opened.registry, user, actor=opened.actor)
        return await lists.list_memberships(opened.registry, opened.actor, person, after=after, limit=limit)


async def _one(entity_id: str) -> tuple[Entity, ListPage[Appointment], bool]:
    async with open_registry(settings.load()) as opened:
        found = await finding.find_entity(opened.registry, entity_id, actor=opened.actor)
        wanted = lists.ListFilter(entity=entity_id)
        held = await lists.list_administrators(opened.registry, opened.actor, wanted, after="", limit=OWNERS_SHOWN)
        pending = await approvals.list_requests(
            opened.registry, opened.actor, entity_id=entity_id, state="pending", now=opened.clock(), after="", limit=1
        )
        return found, held, bool(pending.found)


async def _review(chosen: Settings, entity_id: str) -> ReviewState:
    async with open_registry(chosen) as opened:
        return await access_review.load_review_state(opened.registry, opened.actor, entity_id)


async def _add(entity_id: str, members: dict[str, object], *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await entities.add_entity(
            opened.registry, opened.passwords, entity_id, members, actor=opened.actor, dry_run=dry_run
        )


async def _update(entity_id: str, members: dict[str, object], *, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await entities.update_entity(
            opened.registry, opened.passwords, entity_id, members, actor=opened.actor, dry_run=dry_run
        )


async def _switched(entity_id: str, *, enabled: bool, dry_run: bool) -> ApplyResult:
    async with open_registry(settings.load()) as opened:
        return await entities.switch_entity(
            opened.registry, entity_id, enabled=enabled, actor=opened.actor, dry_run=dry_run
        )
