"""Clients of the admin API, for the commands of `corpid client`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from corpid import settings
from corpid.cli import listing, output
from corpid.cli.running import run
from corpid.engines import open_registry
from corpid.flows.directory import clients
from corpid.rules.limits import API_TOKEN_SECONDS
from corpid.rules.oauth import api_server
from corpid.settings.issuers import client_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.cli.output import Lines
    from corpid.flows.directory.apply import ApplyResult
    from corpid.rules.oauth.api_client import RegisteredApiClient
    from corpid.settings import Settings


def add(client_id: str, members: Mapping[str, object], entity: str, *, dry_run: bool, json: bool) -> None:
    """Register a client of the API and print its configuration."""
    client, applied, chosen = run(_add(client_id, members, entity, dry_run=dry_run))
    if dry_run:
        listing.report(applied, dry_run=True, json=json)
        return
    for warning in applied.warnings:
        output.warn(warning.reason)
    if json:
        output.as_json(client)
        return
    output.members(f"Registered {client.client_id}. Configure the API client with:", _for_the_client(client, chosen))


def show(client: RegisteredApiClient) -> None:
    """Print one client of the API."""
    at = datetime.fromtimestamp(client.created_at, UTC)
    values: dict[str, Lines] = {
        "kind": "client of the admin API",
        "name": client.name,
        "scopes": client.scopes,
        "entity": client.entity_id or "none: the whole deployment",
        "keys": client.jwks_uri or client.jwks or "",
        "state": state(client),
        "registered": f"{at:%Y-%m-%d %H:%M} UTC",
    }
    output.members(client.client_id, values)


def table(found: Sequence[RegisteredApiClient]) -> None:
    """Print clients of the API as a table."""
    rows = [((each.client_id, each.name), each.scopes, each.entity_id, state(each)) for each in found]
    output.table("Clients of the admin API", ("Client", "Scopes", "Entity", "State"), rows)


def state(client: RegisteredApiClient) -> str:
    """Return whether a client may ask for tokens."""
    return "enabled" if client.enabled else "disabled"


async def _add(
    client_id: str, members: Mapping[str, object], entity: str, *, dry_run: bool
) -> tuple[RegisteredApiClient, ApplyResult, Settings]:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        client, applied = await clients.add_api_client(
            opened.registry,
            client_id,
            members,
            entity_id=entity,
            actor=opened.actor,
            rules=client_rules(chosen),
            now=opened.clock(),
            dry_run=dry_run,
        )
    return client, applied, chosen


def _for_the_client(client: RegisteredApiClient, chosen: Settings) -> dict[str, Lines]:
    base = chosen.base_url
    return {
        "Issuer": base + api_server.ISSUER_PATH,
        "Metadata": api_server.metadata_url(base),
        "Token endpoint": base + api_server.TOKEN_PATH,
        "API": base + api_server.API_PATH,
        "client_id": client.client_id,
        "Client authentication": "private_key_jwt; aud is the issuer",
        "Tokens": f"{api_server.RULES.scheme}, bound to its key; {API_TOKEN_SECONDS // 60} minutes",
        "Scopes": client.scopes,
        "Entity": client.entity_id or "none: the whole deployment",
        "Keys": client.jwks_uri or "as registered; replace them with `corpid client update`",
    }
