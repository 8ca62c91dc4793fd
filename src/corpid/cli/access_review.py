"""`corpid entity`: the organisations that people act for, with their reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from corpid.cli import listing, output, records
from corpid.cli.running import with_stores
from corpid.flows.directory import access_review

if TYPE_CHECKING:
    from corpid.engines import Stores
    from corpid.flows.directory.access_review import ReviewState
    from corpid.settings import Settings

app = records.commands_of("entity")


@app.command()
def review(
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's identifier.")],
    *,
    json: listing.AsJson = False,
) -> None:
    """Show the yearly access review of an entity."""
    state, chosen = with_stores(lambda stores, chosen: _review(stores, chosen, entity_id))
    if json:
        output.as_json(access_review.describe_review(entity_id, state))
        return
    found = state.review
    if found is None:
        output.say(f"{entity_id} has no access review yet: it gets a date within a day of its first administrator.")
        return
    values: dict[str, str | tuple[str, ...]] = {"Due": listing.moment(found.due_at, chosen)}
    if found.began_at:
        values |= {
            "Began": f"{listing.moment(found.began_at, chosen)}, by {state.names[found.began_by]}",
            "Reviewed": f"{state.kept} of {state.people} people",
        }
    else:
        values["People"] = str(state.people)
    if found.signed_off_at:
        values |= {
            "Signed off": f"{listing.moment(found.signed_off_at, chosen)}, by {state.names[found.signed_off_by]}",
            "Then": f"{found.kept} kept, {found.ended} ended",
        }
    output.members(f"Access review of {entity_id}", values)


async def _review(stores: Stores, chosen: Settings, entity_id: str) -> tuple[ReviewState, Settings]:
    return await access_review.load_review_state(stores.registry, stores.actor, entity_id), chosen
