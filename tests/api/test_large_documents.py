"""Documents of up to 16 MiB: read of known callers, planned beside the event loop, written in parts (D59)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tracemalloc
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from corpid.flows.directory import apply
from corpid.flows.operations.idempotency import once_at_end
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.document import MOST_PROBLEMS, from_nodes, parse
from corpid.rules.directory.nodes import MOST_NODES, DirectoryError, json_value, nodes
from corpid.rules.directory.yaml_file import read_nodes
from corpid.rules.limits import BODY_BYTES, BULK_BODY_BYTES
from corpid.rules.oauth.api_client import StoredResponse
from tests.api.calling import HARBOUR, Api
from tests.protocol.deployment import ISSUER
from tests.world.clock import NOON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.protocol.provider import World

PEOPLE = 1200


def document(number: int = PEOPLE) -> dict[str, Any]:
    person = {"name": "A name of some length", "email": "person@example.org", "memberships": [HARBOUR]}
    return {"users": {f"person-{each:06}": person for each in range(number)}}


def yaml(number: int) -> bytes:
    entry = "  person-%06d: {name: A name of some length, email: person@example.org, memberships: [" + HARBOUR + "]}\n"
    return ("users:\n" + "".join(entry % each for each in range(number))).encode()


@pytest.mark.full
def test_a_document_of_more_than_one_transaction_is_applied_once_under_its_key(api: Api) -> None:
    """D59: the lists of the answer are not stored, so that they are not repeated."""
    body, before = yaml(PEOPLE), len(api.get("/audit?action=directory.apply").json()["items"])
    assert len(body) > BODY_BYTES
    sent: dict[str, Any] = {"body": body, "content_type": "application/yaml", "idempotency_key": "k"}
    first = api.call("POST", "/directory", **sent)
    assert (first.status_code, len(first.json()["changes"]), first.json()["written"]) == (200, 2 * PEOPLE, True)
    again = api.call("POST", "/directory", **sent)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == {"changes": [], "kept": [], "written": True, "warnings": []}
    assert api.call("POST", "/directory", **{**sent, "body": body + b"\n"}).status_code == 422
    applied = api.get("/audit?action=directory.apply").json()["items"]
    assert (len(applied), applied[0]["detail"]["add"]) == (before + 1, str(2 * PEOPLE))
    assert api.get("/users?search=person-001199").json()["items"][0]["name"] == "A name of some length"


async def call(done: Any, api: Api, world: Any, method: str, path: str, **more: Any) -> int:
    url = f"{ISSUER}/api/v1{path}"
    sent = {"authorization": f"DPoP {api.token}", "dpop": api.caller.proof(method, url, api.token)}
    answer = await world.http.request(method, url, headers={**sent, **more.pop("headers", {})}, **more)
    done.append(method)
    status: int = answer.status_code
    return status


async def both(call: Any) -> tuple[int, list[int]]:
    yaml_type = {"content-type": "application/yaml"}
    large = asyncio.create_task(call("POST", "/directory", content=yaml(PEOPLE), headers=yaml_type))
    await asyncio.sleep(0)
    small = [await call("GET", "/services") for _ in range(5)]
    return await large, small


@pytest.mark.full
def test_others_are_answered_while_a_large_document_is_carried_out(api: Api) -> None:
    """D59: the event loop goes on."""
    api.token = api.caller.access_token(scope=" ".join(api.scopes))
    world = api.world
    done: list[str] = []

    assert world.run(both(partial(call, done, api, world))) == (200, [200] * 5)
    assert done.index("POST") > 0


def test_a_body_above_the_limit_is_refused_here_too(api: Api) -> None:
    """D59: also where no connection of ours has read it."""
    answer = api.call("POST", "/directory", body=b" " * (BULK_BODY_BYTES + 1), content_type="application/yaml")
    assert (answer.status_code, answer.json()["status"]) == (413, 413)


async def applied(
    world: World, content: bytes, save: Callable[[StoredResponse], Awaitable[None]], new_user_id: Callable[[], str]
) -> StoredResponse:
    answer = StoredResponse(request="mac", status=200, headers={}, body="first")

    async def within(_: apply.ApplyResult) -> None:
        await save(answer)

    registry, passwords, actor = world.provider.registry, world.provider.passwords, CommandLine(by="lee@node1")
    await apply.apply_document(
        registry, passwords, content, file="", actor=actor, new_user_id=new_user_id, within=within
    )  # fmt: skip
    return answer


async def nothing_is_locked_while_a_request_with_a_key_is_planned(world: World, new_user_id: Any) -> None:
    await once_at_end(
        world.provider.registry, "api-1", "key", "mac",
        lambda save: applied(world, yaml(3), save, new_user_id), now=NOON,
    )  # fmt: skip


def test_nothing_is_locked_while_a_request_with_a_key_is_planned(world: World) -> None:
    """D59: another process may write until the changes are written."""
    written = 0

    def new_user_id() -> str:
        nonlocal written
        with closing(sqlite3.connect(world.directory / "corpid.sqlite", timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        written += 1
        return f"00000000-0000-4000-8000-{written:012}"

    world.run(nothing_is_locked_while_a_request_with_a_key_is_planned(world, new_user_id))
    assert written == 3


async def applied_or_dies(
    world: World,
    content: bytes,
    new_user_id: Callable[[], str],
    save: Callable[[StoredResponse], Awaitable[None]],
    *,
    dies: bool,
) -> StoredResponse:
    async def dying(answer: StoredResponse) -> None:
        await save(answer)
        if dies:
            raise RuntimeError

    return await applied(world, content, dying, new_user_id)


def test_a_document_that_dies_in_the_middle_is_finished_by_its_key(world: World) -> None:
    """D59: key and last change are written in one transaction; what came before it is not done again."""
    ids = iter(f"00000000-0000-4000-8000-{number:012}" for number in range(10_000))
    registry = world.provider.registry

    def run(content: bytes, *, dies: bool) -> tuple[StoredResponse, bool]:
        carry_out = partial(applied_or_dies, world, content, lambda: next(ids), dies=dies)
        return world.run(once_at_end(registry, "api-1", "key", "mac", carry_out, now=NOON))

    with pytest.raises(RuntimeError):
        run(yaml(150), dies=True)
    last = world.run(registry.directory.user_by_name("person-000149"))
    assert last is not None
    assert world.run(registry.directory.acting(last.user_id, HARBOUR)) is None
    assert not run(yaml(150), dies=False)[1]
    assert world.run(registry.directory.acting(last.user_id, HARBOUR)) is not None
    assert run(yaml(150), dies=True)[1]


async def slow(
    registry: Any, world: World, ids: Any, save: Callable[[StoredResponse], Awaitable[None]]
) -> StoredResponse:
    quick = await once_at_end(
        registry, "api-1", "key", "mac", lambda other: applied(world, yaml(2), other, ids(0)), now=NOON
    )
    assert not quick[1]
    return await applied(world, yaml(2), save, ids(100))


def test_of_two_processes_with_one_key_the_second_gets_the_answer_of_the_first(world: World) -> None:
    """D59."""
    registry = world.provider.registry

    def ids(start: int) -> Callable[[], str]:
        numbers = iter(range(start, start + 100))
        return lambda: f"00000000-0000-4000-8000-{next(numbers):012}"

    answer, repeated = world.run(
        once_at_end(registry, "api-1", "key", "mac", partial(slow, registry, world, ids), now=NOON)
    )
    assert (answer.body, repeated) == ("first", True)


def test_a_document_of_more_keys_and_values_than_allowed_is_refused_before_they_are_built() -> None:
    """D59: a body of 16 MiB could become gigabytes."""
    lists = b'{"users": [' + b"[]," * MOST_NODES + b"[]]}"
    tracemalloc.start()
    with pytest.raises(DirectoryError, match="too large"):
        json_value(lists)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20
    with pytest.raises(DirectoryError, match="too large"):
        read_nodes(b"users: [[], [], [], []]", "", 6)
    read_nodes(b"users: [[], [], []]", "", 6)


def test_a_document_full_of_faults_is_not_read_to_its_end() -> None:
    """D59: each fault is compared with what could have been meant."""
    wrong = "services:\n  S1:\n" + "".join(f"    nmae{number}: x\n" for number in range(3 * MOST_PROBLEMS))
    with pytest.raises(DirectoryError) as refused:
        parse(wrong.encode(), "f")
    assert len(refused.value.problems) == MOST_PROBLEMS
    assert refused.value.lines()[-1] == f"f: and {MOST_PROBLEMS - 50} more problems"


@pytest.mark.full
def test_a_document_of_sixteen_mebibytes_is_read_within_a_gigabyte() -> None:
    """D59."""
    body = json.dumps(document(140_000)).encode()
    assert 15 << 20 < len(body) <= BULK_BODY_BYTES
    tracemalloc.start()
    from_nodes(nodes(json_value(body)).root, "")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 30
