"""`corpid client`: the relying parties."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it when the program runs
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from corpid import settings
from corpid.app import open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.flows.administration import clients
from corpid.protocol.metadata import DISCOVERY_PATH
from corpid.protocol.scopes import SCOPES

if TYPE_CHECKING:
    from corpid.protocol.records import Client

app = typer.Typer(help="Relying parties: add, list, show, disable, enable, drop-keys.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Identifier = Annotated[str, typer.Argument(help="The client's identifier.")]


@app.command()
def add(
    client_id: Identifier,
    *,
    name: Annotated[str, typer.Option(help="The name that people see when they sign in.")],
    redirect_uri: Annotated[list[str], typer.Option(help="Where browsers are sent back to; repeat for several.")],
    jwks: Annotated[Path | None, typer.Option(help="A file with the client's public JSON Web Key Set.")] = None,
    jwks_uri: Annotated[str | None, typer.Option(help="Or the https URL where the client publishes it.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="A scope it may ask for; repeat. Default: all of them.")
    ] = None,
    service: Annotated[list[str] | None, typer.Option(help="An entity service it may read; repeat.")] = None,
    subject: Annotated[str | None, typer.Option(help="Whom sub names: user (default) or entity.")] = None,
    sector: Annotated[str | None, typer.Option(help="private (default; consent is asked) or government.")] = None,
    json: AsJson = False,
) -> None:
    """Register a relying party."""
    members: dict[str, object] = {
        "name": name,
        "redirect_uris": redirect_uri,
        "jwks": _text(jwks) if jwks else None,
        "jwks_uri": jwks_uri,
        "scopes": scope or list(SCOPES),
        "services": service,
        "subject": subject,
        "sector": sector,
    }
    client, remarks, issuer = output.run(_add(client_id, members))
    for remark in remarks:
        output.warn(remark)
    if json:
        output.as_json(client)
        return
    output.members(
        f"Registered {client.client_id}. Configure the relying party with:", _for_the_relying_party(client, issuer)
    )


@app.command(name="list")
def show_all(*, json: AsJson = False) -> None:
    """List every relying party."""
    found = output.run(_all())
    if json:
        output.as_json(found)
        return
    rows = [
        (each.client_id, each.name, "\n".join(each.redirect_uris), ", ".join(each.services), _state(each))
        for each in found
    ]
    output.table("Relying parties", ("Client", "Name", "Redirect URIs", "Services", "State"), rows)


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


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        output.fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}")


def _state(client: Client) -> str:
    return "enabled" if client.enabled else "disabled"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\n".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _for_the_relying_party(client: Client, issuer: str) -> dict[str, str]:
    return {
        "Issuer": issuer,
        "Discovery": issuer + DISCOVERY_PATH,
        "client_id": client.client_id,
        "Redirect URIs": "\n".join(client.redirect_uris),
        "Scopes": " ".join(client.scopes),
        "Client authentication": "private_key_jwt; aud is the issuer",
        "Tokens": f"bound by DPoP; ID token encrypted with {client.id_token_encryption_enc}",
        "Keys": client.jwks_uri or "as registered; replace them with `corpid apply`",
    }


async def _add(client_id: str, members: dict[str, object]) -> tuple[Client, tuple[str, ...], str]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        client, remarks = await clients.add_client(
            opened.registry,
            opened.passwords,
            client_id,
            members,
            actor=OPERATOR,
            developer_mode=chosen.developer_mode,
        )
    return client, remarks, chosen.base_url


async def _all() -> list[Client]:
    async with open_registry(settings.load()) as opened:
        return await clients.clients(opened.registry, actor=OPERATOR)


async def _one(client_id: str) -> Client:
    async with open_registry(settings.load()) as opened:
        return await clients.client(opened.registry, client_id, actor=OPERATOR)


async def _switch(client_id: str, *, enabled: bool) -> None:
    async with open_registry(settings.load()) as opened:
        await clients.switch_client(opened.registry, client_id, enabled=enabled, actor=OPERATOR)


async def _drop_keys(client_id: str) -> None:
    async with open_registry(settings.load()) as opened:
        await clients.drop_keys(opened.registry, client_id, actor=OPERATOR)
