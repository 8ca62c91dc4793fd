"""`corpid client`: the relying parties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.cli.client_add import AsJson, add
from corpid.cli.migration import migration
from corpid.directory.access import OPERATOR
from corpid.flows.administration import clients
from corpid.protocol.registration import used
from corpid.settings.presets import client_rules

if TYPE_CHECKING:
    from corpid.protocol.records import Client
    from corpid.protocol.registration import Rules

app = typer.Typer(help="Relying parties: add, migration, list, show, disable, enable, drop-keys.", no_args_is_help=True)

Identifier = Annotated[str, typer.Argument(help="The client's identifier.")]


app.command()(add)
app.command()(migration)


@app.command(name="list")
def show_all(*, json: AsJson = False) -> None:
    """List every relying party."""
    found, rules = output.run(_all())
    if json:
        output.as_json(found)
        return
    rows = [
        (
            (each.client_id, each.name),
            each.redirect_uris,
            ", ".join(each.services),
            tuple(generation.name for generation in used(each, rules)),
            _state(each),
        )
        for each in found
    ]
    output.table("Relying parties", ("Client", "Redirect URIs", "Services", "Generations", "State"), rows)


@app.command()
def show(client_id: Identifier, *, json: AsJson = False) -> None:
    """Show one relying party."""
    client = output.run(_one(client_id))
    if json:
        output.as_json(client)
        return
    shown = {name: _shown(value) for name, value in msgspec.structs.asdict(client).items() if value is not None}
    output.members(client.client_id, shown)


@app.command()
def disable(client_id: Identifier) -> None:
    """Switch a relying party off: its requests are refused within 5 seconds."""
    output.run(_switch(client_id, enabled=False))
    output.say(f"The client {client_id} is disabled.")


@app.command()
def enable(client_id: Identifier) -> None:
    """Switch a relying party on again."""
    output.run(_switch(client_id, enabled=True))
    output.say(f"The client {client_id} is enabled.")


@app.command()
def drop_keys(client_id: Identifier) -> None:
    """Forget the key set that was fetched from a client's URL: it is fetched anew when it is next needed."""
    output.run(_drop_keys(client_id))
    output.say(f"The fetched key set of {client_id} is dropped. A running server follows within 5 seconds.")


def _state(client: Client) -> str:
    return "enabled" if client.enabled else "disabled"


def _shown(value: object) -> str | tuple[str, ...]:
    if isinstance(value, bool):
        return "true" if value else "false"
    return tuple(map(str, value)) if isinstance(value, tuple) else str(value)


async def _all() -> tuple[list[Client], Rules]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await clients.clients(opened.registry, actor=OPERATOR), client_rules(chosen)


async def _one(client_id: str) -> Client:
    async with open_registry(settings.load()) as opened:
        return await clients.client(opened.registry, client_id, actor=OPERATOR)


async def _switch(client_id: str, *, enabled: bool) -> None:
    async with open_registry(settings.load()) as opened:
        await clients.switch_client(opened.registry, client_id, enabled=enabled, actor=OPERATOR)


async def _drop_keys(client_id: str) -> None:
    async with open_registry(settings.load()) as opened:
        await clients.drop_keys(opened.registry, client_id, actor=OPERATOR)
