"""Two writers cannot both win, and a request is carried out once (D59)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from functools import partial
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from corpid.flows import namespaces
from corpid.flows.directory import objects
from corpid.flows.directory.objects import Administration, ApiObject, ObjectChanged, ObjectConflict
from corpid.flows.operations.idempotency import KEPT_SECONDS, KeyReused, run_once
from corpid.rules.directory.access import ALL_SCOPES, ApiClient
from corpid.rules.directory.objects import RESOURCES
from corpid.rules.oauth.api_client import StoredResponse
from corpid.rules.oauth.client_registration import PLAIN_RULES
from corpid.web.api.calls import KEYS_PER_DAY
from tests.adapters.conftest import place
from tests.api.calling import ENTITY, Api, calling
from tests.world.provider import hashing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.rules.directory.nodes import Json
    from corpid.stores.sql.open import SqlStores
    from corpid.web.routes import Router
    from tests.adapters.databases import Place
    from tests.protocol.provider import World

__all__ = ["place"]

ENTITIES = next(each for each in RESOURCES if each.title == "Entity")
NOW = 1_800_000_000.0


def test_a_change_needs_the_tag_that_was_read(api: Api) -> None:
    """RFC 6585 §3, RFC 9110 §13.1.1."""
    tag = api.added("/entities", ENTITY)["etag"]
    path = "/entities/E1001"
    assert api.patch(path, {"name": "B"}).status_code == api.delete(path).status_code == 428
    for wrong in ('"other"', f"W/{tag}", tag.strip('"'), ""):
        assert api.patch(path, {"name": "B"}, if_match=wrong).status_code == 412, wrong
        assert api.delete(path, if_match=wrong).status_code == 412
    assert api.patch(path, {"name": "B"}, if_match=f'"other", {tag}').status_code == 200
    assert api.patch(path, {"name": "C"}, if_match=tag).status_code == 412
    assert api.get(path).json()["name"] == "B"
    assert api.delete(path, if_match="*").status_code == 204


def administration(stores: SqlStores) -> Administration:
    return Administration(
        registry=stores.registry,
        passwords=hashing(),
        actor=ApiClient(client_id="api-1", scopes=ALL_SCOPES),
        rules=PLAIN_RULES,
        new_user_id=lambda: "5b0b6d0e-21a4-4c55-8a19-3c2e6f7b9a10",
        tag=lambda record: msgspec.json.encode(record).decode(),
        now=NOW,
        new_id=lambda: token_urlsafe(32),
    )


def raced(place: Place, prepared: Callable[[SqlStores], Awaitable[Any]], calls: Any) -> list[Any]:
    """What two processes got who called at the same moment."""

    async def both() -> list[Any]:
        async with place.opened() as one, place.opened() as other:
            before = await prepared(one)
            return [*await asyncio.gather(calls(one, before), calls(other, before), return_exceptions=True)]

    return asyncio.run(both())


async def added(by: Administration) -> ApiObject:
    """An entity that needs nobody's approval."""
    found = await objects.add_object(by, ENTITIES, {**ENTITY})
    assert isinstance(found, ApiObject)
    return found


async def entity(stores: SqlStores) -> str:
    return (await added(administration(stores))).tag


async def nothing(_: SqlStores) -> None: ...


async def call(verb: str, stores: SqlStores, tag: str) -> Any:
    by = administration(stores)
    if verb == "remove":
        return await objects.remove_object(by, ENTITIES, "E1001", matches=tag.__eq__)
    name = f"Name {id(stores)}"
    return await objects.change_object(by, ENTITIES, "E1001", {"name": name}, matches=tag.__eq__)


@pytest.mark.parametrize("verb", ["change", "remove"])
def test_of_two_writers_with_one_tag_one_wins(place: Place, verb: str) -> None:
    """D59: decided in the transaction of the change, on both engines."""
    results = raced(place, entity, partial(call, verb))
    lost = [each for each in results if isinstance(each, Exception)]
    assert [type(each) for each in lost] in ([ObjectChanged], [objects.ObjectNotFound]), results


async def of_two_that_add_the_same_object_one_wins(stores: SqlStores, _: None) -> Any:
    new: Json = {**ENTITY, "name": f"Name {id(stores)}"}
    return await objects.add_object(administration(stores), ENTITIES, new)


def test_of_two_that_add_the_same_object_one_wins(place: Place) -> None:
    """D59: what is not there cannot be locked, so the insertion decides."""
    results = raced(place, nothing, of_two_that_add_the_same_object_one_wins)
    [lost] = [each for each in results if isinstance(each, Exception)]
    [won] = [each for each in results if not isinstance(each, Exception)]
    assert isinstance(lost, ObjectConflict)
    rows = place.sql("SELECT name FROM entities WHERE entity_id = 'E1001'")
    assert [name for (name,) in rows] == [won.members["name"]]


async def of_two_requests_with_one_key_one_is_carried_out_and_both_get_its_answer(stores: SqlStores, _: None) -> Any:
    async def add() -> StoredResponse:
        found = await added(administration(stores))
        return StoredResponse(request="mac", status=201, headers={"ETag": found.tag}, body=found.id)

    return await run_once(stores.registry, "api-1", "key", "mac", add, now=NOW)


def test_of_two_requests_with_one_key_one_is_carried_out_and_both_get_its_answer(place: Place) -> None:
    """D59."""
    (first, repeated), (second, also) = raced(
        place, nothing, of_two_requests_with_one_key_one_is_carried_out_and_both_get_its_answer
    )
    assert first == second
    assert sorted([repeated, also]) == [False, True]


async def test_a_request_that_fails_on_any_line_leaves_neither_change_nor_key(place: Place) -> None:
    """D59: the same key carries it out afterwards."""
    async with place.opened() as stores:
        by = administration(stores)

        async def dies_before() -> StoredResponse:
            raise RuntimeError

        async def dies_after() -> StoredResponse:
            await objects.add_object(by, ENTITIES, {**ENTITY})
            raise RuntimeError

        async def add() -> StoredResponse:
            found = await added(by)
            return StoredResponse(request="mac", status=201, headers={}, body=found.id)

        for work in (dies_before, dies_after):
            with pytest.raises(RuntimeError):
                await run_once(stores.registry, "api-1", "key", "mac", work, now=NOW)
        assert not (await run_once(stores.registry, "api-1", "key", "mac", add, now=NOW))[1]
        assert (await run_once(stores.registry, "api-1", "key", "mac", dies_before, now=NOW + 1))[1]
        with pytest.raises(KeyReused):
            await run_once(stores.registry, "api-1", "key", "another", add, now=NOW + 1)
        with pytest.raises(RuntimeError):  # another client's key is another key
            await run_once(stores.registry, "api-2", "key", "mac", dies_before, now=NOW)
        with pytest.raises(ObjectConflict):  # a day later the key is forgotten
            await run_once(stores.registry, "api-1", "key", "mac", add, now=NOW + KEPT_SECONDS)


def test_an_answer_is_repeated_with_its_headers_and_says_so(api: Api) -> None:
    """D59."""
    first = api.post("/entities", ENTITY, idempotency_key="a key")
    again = api.post("/entities", ENTITY, idempotency_key="a key")
    assert (first.status_code, again.status_code) == (201, 201)
    assert (first.content, first.headers["etag"], first.headers["location"]) == (
        again.content, again.headers["etag"], again.headers["location"],
    )  # fmt: skip
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert api.post("/entities", {**ENTITY, "name": "B"}, idempotency_key="a key").status_code == 422
    assert api.post("/services", ENTITY, idempotency_key="a key").status_code == 422
    assert api.post("/entities", ENTITY, idempotency_key="x" * 256).status_code == 400
    refused = api.post("/entities", ENTITY, idempotency_key="another")
    assert refused.status_code == api.post("/entities", ENTITY, idempotency_key="another").status_code == 409


def test_nothing_that_a_record_says_is_stored_with_a_key(world: World) -> None:
    """D57, D59: what was said of a person goes with them; until then the answer shows them as they are now."""
    only = calling(world, "writer", scopes=["directory.write"])
    person = {"user_name": "zoe", "name": "Zoe Zimmer", "email": "zoe@example.org"}
    first = only.post("/users", person, idempotency_key="k")
    with closing(sqlite3.connect(world.directory / "corpid.sqlite")) as database:
        stored = str(database.execute("SELECT * FROM api_answers").fetchall())
    assert "writer" in stored
    assert not any(word in stored for word in ("zoe", "Zimmer"))
    named = first.headers["location"].rpartition("/")[2]
    changed = only.patch(f"/users/{named}", {"name": "Zoe Other"}, if_match=first.headers["etag"])
    again = only.post("/users", person, idempotency_key="k")
    assert (again.status_code, again.json(), again.headers["etag"]) == (201, changed.json(), changed.headers["etag"])
    assert only.delete(f"/users/{named}", if_match="*").status_code == 204
    gone = only.post("/users", person, idempotency_key="k")
    assert (gone.status_code, gone.headers["idempotent-replayed"]) == (409, "true")
    assert gone.json()["detail"] == "The object that this request created has since been removed"


def test_an_answer_that_the_version_before_has_stored_is_repeated_as_it_is(world: World, api: Api) -> None:
    """D49: versions run side by side."""
    api.post("/entities", ENTITY, idempotency_key="k")
    with closing(sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)) as database:
        [(stored,)] = database.execute("SELECT answer FROM api_answers").fetchall()
        older = {**json.loads(stored), "body": '{"id":"E1001"}', "headers": {"ETag": '"old"'}}
        older.pop("shown")
        database.execute("UPDATE api_answers SET answer = ?", (json.dumps(older),))
    again = api.post("/entities", ENTITY, idempotency_key="k")
    assert (again.status_code, again.json(), again.headers["etag"]) == (201, {"id": "E1001"}, '"old"')


async def count(world: World, counter: Any, by: int) -> None:
    async with world.provider.transient.batch(world.clock.now) as batch:
        await counter.count(batch, by)


def test_a_client_may_send_so_many_keys_in_a_day(world: World, api: Api) -> None:
    """D59: each is a row for a day."""
    counter = namespaces.API_KEYS.entry(world.provider.policy.deployment_url, "api-1")

    world.run(count(world, counter, KEYS_PER_DAY))
    refused = api.post("/entities", ENTITY, idempotency_key="k")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    assert api.get("/entities/E1001").status_code == 404
    assert api.post("/entities", ENTITY).status_code == 201
    world.run(count(world, counter, -2))
    assert api.post("/entities", {**ENTITY, "entity_id": "E2"}, idempotency_key="k").status_code == 201


def test_a_key_whose_request_is_being_carried_out_is_refused(api: Api) -> None:
    """D59: in this process at once; another one waits for the answer."""

    asgi: Any = api.world.application.asgi
    router: Router = asgi._app
    router._context.api_calls.update({("api-1", "key busy"), ("api-1", "directory")})
    assert api.post("/entities", ENTITY, idempotency_key="busy").status_code == 409
    assert api.post("/directory?dry_run=true", {}).status_code == 409
    router._context.api_calls.clear()
    assert api.post("/entities", ENTITY, idempotency_key="busy").status_code == 201
    assert api.post("/directory", {"entities": {}}, idempotency_key="directory").status_code == 200
