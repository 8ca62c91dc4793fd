"""Clients of the admin API on each database: their records, their keys, and identifiers of one kind only (D27, D59)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Change, ChangedMeanwhile, Conflict, Precondition
from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.rules.oauth.records import Client, FetchedKeySet
from tests.adapters.opened import EVENT

if TYPE_CHECKING:
    from corpid.rules.fields import KeyedRecord
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

PORTAL = RegisteredApiClient(
    client_id="portal",
    name="Portal",
    scopes=("directory.read", "audit.read"),
    jwks_uri="https://portal.example/keys",
    entity_id="E1",
    created_at=1_800_000_000,
)
OTHER = RegisteredApiClient(client_id="another", name="Other", scopes=("operations",), jwks="{}", enabled=False)
FETCHED = FetchedKeySet(jwks_uri="https://portal.example/keys", jwks='{"keys": []}', fetched_at=1_800_000_000)


def relying_party(client_id: str) -> Client:
    return Client(client_id=client_id, name="RP", redirect_uris=("https://rp.example/cb",), jwks="{}")


async def written(stores: SqlStores, *records: KeyedRecord) -> bool:
    """Whether records were written; those whose identifier the other kind has are not."""
    try:
        await stores.registry.directory.write([Change(None, each, EVENT) for each in records])
    except Conflict as conflict:
        return "a client of another kind has this identifier" not in str(conflict)
    return True


async def test_a_client_of_the_api_is_kept_and_listed(place: Place) -> None:
    """D59: it belongs to nobody but the API."""
    async with place.opened() as stores:
        registry = stores.registry
        assert await written(stores, PORTAL, OTHER)
        assert await registry.api_clients.list_all() == [OTHER, PORTAL]
        assert await registry.api_clients.get("portal") == PORTAL
        assert (await registry.clients.get("portal"), await registry.clients.list_all()) == (None, [])
        await registry.directory.write([Change(PORTAL, None, EVENT)])
        assert await registry.api_clients.get("portal") is None


async def test_a_change_of_a_record_that_was_changed_meanwhile_is_refused(place: Place) -> None:
    """A client that is being disabled is not enabled again by an update that read it before."""
    async with place.opened() as stores:
        await written(stores, PORTAL)
        await written(stores, replace(PORTAL, enabled=False))
        with pytest.raises(ChangedMeanwhile):
            await stores.registry.directory.write(
                [
                    Precondition(RegisteredApiClient, PORTAL.key, PORTAL),
                    Change(None, replace(PORTAL, name="New"), EVENT),
                ]
            )
        assert await stores.registry.api_clients.get("portal") == replace(PORTAL, enabled=False)


async def test_fetched_keys_are_kept_apart_and_end_with_the_client(place: Place) -> None:
    """D27: also through a restart; those of relying parties are another table's."""
    async with place.opened() as stores:
        registry = stores.registry
        await written(stores, PORTAL)
        await registry.api_clients.keep_fetched_key_set("portal", FETCHED)
        assert await registry.api_clients.fetched_key_set("portal") == FETCHED
        assert await registry.clients.fetched_key_set("portal") is None
        await registry.api_clients.drop_fetched_key_set("portal", EVENT)
        assert await registry.api_clients.fetched_key_set("portal") is None
        await registry.api_clients.keep_fetched_key_set("portal", FETCHED)
        await registry.directory.write([Change(PORTAL, None, EVENT)])
        assert await registry.api_clients.fetched_key_set("portal") is None


async def test_an_identifier_is_of_one_kind_of_client(place: Place) -> None:
    """D59: whoever writes; once it is free, the other kind may have it."""
    async with place.opened() as stores:
        assert await written(stores, PORTAL, relying_party("rp"))
        assert not await written(stores, relying_party("portal"))
        assert not await written(stores, replace(PORTAL, client_id="rp"))
        assert await written(stores, replace(PORTAL, name="New"), replace(relying_party("rp"), name="New"))
        await stores.registry.directory.write([Change(PORTAL, None, EVENT)])
        assert await written(stores, relying_party("portal"))


async def test_of_two_writers_of_one_identifier_one_wins(place: Place) -> None:
    """D59: in each round both begin at once, in transactions of their own."""
    async with place.opened() as stores, place.opened() as others:
        for number in range(10):
            client_id = f"c{number}"
            outcomes = await asyncio.gather(
                written(stores, replace(PORTAL, client_id=client_id)), written(others, relying_party(client_id))
            )
            assert sorted(outcomes) == [False, True]
