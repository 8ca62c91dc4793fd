"""`corpid entity`: the organisations that people act for, with their reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid.cli import listing, output, records
from corpid.cli.running import on_stores
from corpid.flows.directory import access_review

if TYPE_CHECKING:
    from corpid.engines import Stores

app = records.commands_of("entity")


@app.command()
@on_stores
async def review(
    stores: Stores,
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier.")],
    *,
    json: listing.AsJson = False,
) -> None:
    """Show the yearly access review of an entity."""
    state = await access_review.load_review_state(stores.registry, stores.actor, entity_id)
    if json:
        output.as_json(access_review.describe_review(entity_id, state))
        return
    found = state.review
    if found is None:
        output.say(f"{entity_id} has no access review yet: it gets a date within a day of its first administrator.")
        return
    values: dict[str, str | tuple[str, ...]] = {"Due": listing.moment(found.due_at, stores.settings)}
    if found.began_at:
        values |= {
            "Began": f"{listing.moment(found.began_at, stores.settings)}, by {state.names[found.began_by]}",
            "Reviewed": f"{state.kept} of {state.people} people",
        }
    else:
        values["People"] = str(state.people)
    if found.signed_off_at:
        values |= {
            "Signed off": f"{listing.moment(found.signed_off_at, stores.settings)}, by {state.names[found.signed_off_by]}",
            "Then": f"{found.kept} kept, {found.ended} ended",
        }
    output.members(f"Access review of {entity_id}", values)
