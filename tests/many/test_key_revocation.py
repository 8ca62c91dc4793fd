"""A signing key is revoked while people sign in through two nodes: no sign-in fails (D42)."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.engines import RedisServer, postgresql
from tests.many.nodes import Nodes, Person, running, signed_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


BEFORE, AFTER = 6, 12
"""sign-ins before the first revocation, and seconds of them after the last"""


pytestmark = pytest.mark.full


def keys(nodes: Nodes) -> dict[str, str]:
    listed = json.loads(nodes.command("key", "list", "--json"))
    return {key["kid"]: key["state"] for key in listed if key["signs"] == "tokens"}


def in_use(nodes: Nodes) -> str:
    (kid,) = [kid for kid, state in keys(nodes).items() if state == "in use"]
    return kid


async def published(person: Person, number: int) -> list[str]:
    answer = await person.https[number].get(f"{person.nodes.issuer}/.well-known/keys")
    return [key["kid"] for key in answer.json()["keys"]]


async def sign_in(person: Person, first: int) -> str:
    """Each step at another node than the one before; the kid that signed."""
    other = 1 - first
    rp = person.party(first)
    code = await person.code(rp, other)
    rp.http = person.https[first]
    found = await rp.believe(await rp.token(code))
    rp.http = person.https[other]
    await rp.userinfo()
    return str(found.access_token_header["kid"])


async def until(tasks: list[asyncio.Task[None]], holds: Callable[[], bool]) -> None:
    """Wait until it holds; a sign-in that fails ends the wait."""
    while not holds() and not any(task.done() for task in tasks):  # noqa: ASYNC110 - time passes, too
        await asyncio.sleep(0.05)


async def revoke(nodes: Nodes, before: list[str]) -> str:
    """Revoke the key in use, which is none of those before."""
    while (kid := await asyncio.to_thread(in_use, nodes)) in before:  # noqa: ASYNC110 - in other processes
        await asyncio.sleep(0.05)
    await asyncio.to_thread(nodes.command, "key", "revoke", kid)
    return kid


async def story(person: Person) -> None:
    seen: list[str] = []
    ended = asyncio.Event()

    async def signing_in(first: int) -> None:
        while not ended.is_set():
            seen.append(await sign_in(person, first))

    tasks = [asyncio.create_task(signing_in(number)) for number in (0, 1)]
    await until(tasks, lambda: len(seen) >= BEFORE)
    revoked: list[str] = []
    for _ in range(2):
        revoked.append(await revoke(person.nodes, revoked))
    end = time.monotonic() + AFTER
    await until(tasks, lambda: time.monotonic() >= end)
    ended.set()
    await asyncio.gather(*tasks)
    following = await asyncio.to_thread(in_use, person.nodes)
    assert seen[0] == revoked[0]
    assert seen[-1] == following
    for number in (0, 1):
        kids = await published(person, number)
        assert kids[0] == following
        assert len(kids) == 2
        assert not set(revoked).intersection(kids)


async def test_no_sign_in_fails_while_keys_are_revoked_twice_in_a_row(tmp_path: Path) -> None:
    """D42: the published key signs next, at both nodes, and what one signs the other accepts."""
    with (
        RedisServer() as server,
        postgresql() as database,
        running(tmp_path, database, server.url, count=2) as nodes,
    ):
        async with signed_in(nodes) as person:
            await story(person)
    for lines in map(nodes.log, (0, 1)):
        refused = [line for line in lines if line["event"] == "request" and line["status"] >= 400]
        assert not refused, refused
        told = [line["event"] for line in lines if line["event"].startswith("signing_key_")]
        assert [told.count(f"signing_key_{event}") for event in ("used", "revoked", "published")] == [2, 2, 2]
