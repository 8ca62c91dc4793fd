"""`corpid provisioning-token`: tokens by which SCIM clients provision an entity."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from corpid.cli import listing, output
from corpid.cli.running import on_stores, with_stores
from corpid.engines import Stores, new_id, new_user_id
from corpid.flows.directory import provisioning_tokens
from corpid.flows.directory.apply import ApplyResult
from corpid.flows.directory.person_names import name_actors
from corpid.rules.directory.differences import Difference
from corpid.rules.directory.provisioning_tokens import LONGEST_LIFE_DAYS, RegisteredProvisioningToken

app = typer.Typer(no_args_is_help=True)

Entity = Annotated[str, typer.Option(metavar="ID", help="The entity whose members it provisions.")]
_SCIM: Final = "/scim/v2"


@app.command()
@on_stores
async def add(
    stores: Stores,
    *,
    entity: Entity,
    name: Annotated[str, typer.Option(help="What it is for, such as the name of the SCIM client.")],
    days: Annotated[
        int, typer.Option(help="Number of days for which it is valid.", min=1, max=LONGEST_LIFE_DAYS)
    ] = LONGEST_LIFE_DAYS,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Create a token, which is shown once."""
    token, url = new_id(), stores.settings.base_url + _SCIM
    record = await provisioning_tokens.add_token(
        stores.registry, entity, name, days=days, token=token, token_id=new_user_id(), actor=stores.actor,
        now=stores.clock(), dry_run=dry_run,
    )  # fmt: skip
    if dry_run:
        _report(record, "+", written=False, json=json)
        return
    if json:
        output.as_json({**_as_data(record), "token": token, "url": url})
        return
    values = {
        "URL": url,
        "Token": token,
        "Identifier": record.token_id,
        "Lasts until": _moment(record.expires_at),
    }
    output.members(
        f"Token created for {record.entity_id}. It is not shown again. Configure the SCIM client with:", values
    )


@app.command("list")
@on_stores
async def show_all(stores: Stores, *, entity: Entity, json: listing.AsJson = False) -> None:
    """List the tokens of an entity, without their secrets."""
    found = await provisioning_tokens.list_tokens(stores.registry, entity, actor=stores.actor)
    makers = [each.created_by for each in found]
    names = await name_actors(stores.registry, entity, makers, reader=stores.actor)
    if json:
        shown = [{**_as_data(each), "created_by_name": str(names[each.created_by])} for each in found]
        output.as_json({"tokens": shown})
        return
    if not found:
        output.say("Provisioning tokens: none.")
        return
    rows = [
        (each.token_id, each.name, _until(each, stores.clock()), _moment(each.last_used_at), names[each.created_by])
        for each in found
    ]
    output.table(f"Provisioning tokens of {entity}", ("Identifier", "Name", "Until", "Last used", "Made by"), rows)


@app.command()
def remove(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The token's identifier, as `list` shows it.")],
    *,
    entity: Entity,
    dry_run: listing.DryRun = False,
    json: listing.AsJson = False,
) -> None:
    """Remove a token: it no longer works."""
    removed = with_stores(
        lambda stores: provisioning_tokens.remove_token(
            stores.registry, entity, token, actor=stores.actor, dry_run=dry_run
        )
    )
    _report(removed, "-", written=not dry_run, json=json)


def _report(record: RegisteredProvisioningToken, sign: str, *, written: bool, json: bool) -> None:
    change = Difference(
        sign="+" if sign == "+" else "-", subject=f"provisioning token {record.name} of {record.entity_id}"
    )
    listing.report(ApplyResult(differences=(change,), warnings=(), written=written), dry_run=not written, json=json)


def _as_data(record: RegisteredProvisioningToken) -> dict[str, object]:
    return {
        "token_id": record.token_id,
        "entity": record.entity_id,
        "name": record.name,
        "created_at": record.created_at,
        "created_by": record.created_by,
        "expires_at": record.expires_at,
        "last_used_at": record.last_used_at or None,
    }


def _moment(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" if at else "never"


def _until(record: RegisteredProvisioningToken, now: float) -> str:
    return _moment(record.expires_at) if now < record.expires_at else f"ended {_moment(record.expires_at)}"
