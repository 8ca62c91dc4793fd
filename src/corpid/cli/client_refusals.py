"""`corpid client refusals`: why a relying party was refused lately."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import clients
from corpid.flows.oauth.recent_refusals import KEPT, refusals_of
from corpid.rules.oauth.errors import reason_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from corpid.rules.oauth.refusals import ClientRefusal


def refusals(
    client_id: Annotated[str, typer.Argument(help="The client's identifier.")], *, json: listing.AsJson = False
) -> None:
    """Show the latest refusals of a relying party, with remedies.

    Requests that only claim to come from it are shown, too, marked as claimed: nobody has proven whose they are.
    """
    found, zone = run(_found(client_id))
    if json:
        output.as_json({"refusals": found})
        return
    if not found:
        output.say(f"No refusal of {client_id} is known. The last few seconds may be missing.")
        return
    headings = ("Time", "Request", "Reason", "What was wrong", "Reference")
    output.table(f"Refusals of {client_id}, the latest first", headings, [_row(each, zone) for each in found])
    remedies = {each.reason: reason_of(each.reason).value.remedy for each in found}
    output.members("What to do", remedies)
    if len(found) >= KEPT[False]:
        output.say(f"At most {KEPT[False]} are kept, and {KEPT[True]} of requests that only claim to come from it.")


def _row(refusal: ClientRefusal, zone: ZoneInfo) -> tuple[str | tuple[str, ...], ...]:
    at = f"{datetime.fromtimestamp(refusal.at, zone):%Y-%m-%d %H:%M:%S}"
    request = f"{refusal.method} {refusal.path}"
    return (
        at,
        (request, "claimed") if refusal.claimed else request,
        refusal.reason,
        refusal.detail,
        refusal.request_id,
    )


async def _found(client_id: str) -> tuple[list[ClientRefusal], ZoneInfo]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        await clients.client(opened.registry, client_id, actor=opened.actor)
        return await refusals_of(opened.registry, client_id, actor=opened.actor), chosen.timezone
