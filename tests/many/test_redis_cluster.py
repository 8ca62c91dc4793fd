"""Two processes on PostgreSQL and a cluster of Redis or Valkey: sign-ins go through, and go on after a node was away."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.clusters import RedisCluster
from tests.engines import postgresql
from tests.many.nodes import Person, running, signed_in, within, within_five_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


FORGOTTEN_SECONDS = 60
"""after an engine has forgotten, what may have been issued before is refused for a while"""


@pytest.fixture
def cluster(program: str) -> Iterator[RedisCluster]:
    with RedisCluster(program=program) as running:
        yield running


@asynccontextmanager
async def signed_in_at(path: Path, cluster: RedisCluster) -> AsyncIterator[Person]:
    """Somebody who is signed in at two processes on this cluster."""
    with postgresql() as database, running(path, database, cluster.url, count=2) as nodes:
        async with signed_in(nodes) as person:
            yield person


async def sign_in(person: Person) -> None:
    """From the pushed request to the token, whose code is worth nothing then."""
    rp = person.party(0)
    code = await person.code(rp, 1)
    await rp.believe(await rp.token(code))
    assert (await rp.userinfo())["auth_info"]["Result_Set"]["ESrvc_Row_Count"] == 1
    rp.http = person.https[1]
    assert (await rp.token(code)).json()["error"] == "invalid_grant"


@pytest.mark.full
async def test_a_sign_in_from_the_pushed_request_to_the_token(tmp_path: Path, cluster: RedisCluster) -> None:
    """D18: its entries lie on several nodes, and a code yields one token."""
    async with signed_in_at(tmp_path, cluster) as person:
        for _ in range(3):
            await sign_in(person)
    keys = [node.ask("DBSIZE") for node in cluster.primaries]
    assert all(keys)


@pytest.mark.full
async def test_while_a_node_is_away_nobody_is_ready_and_then_it_goes_on(tmp_path: Path, cluster: RedisCluster) -> None:
    """/readyz says which part; no restart of CorpID; what was issued before is refused for a while."""

    async def says(person: Person, number: int, status: int) -> bool:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            answer = await http.get(f"{person.nodes.at(number)}/readyz")
        part = "short-lived state" if status == 503 else None
        return answer.status_code == status and answer.json().get("part") == part

    async def refused(person: Person) -> bool:
        """Every part is met before long, for each request has keys of its own."""
        answer = await person.party(0).push()
        assert answer.status_code in {201, 400, 503}
        if answer.status_code != 503:
            return False
        assert answer.json()["error"] == "temporarily_unavailable"
        return int(answer.headers["retry-after"]) > 0

    async def accepted(person: Person, number: int) -> bool:
        return (await person.party(number).push()).status_code == 201

    async with signed_in_at(tmp_path, cluster) as person:
        await sign_in(person)
        away = cluster.primaries[1]
        await asyncio.to_thread(away.crash)
        for number in range(2):
            await within_five_seconds(lambda number=number: says(person, number, 503))
        await within(20, lambda: refused(person))
        await asyncio.to_thread(away.start)
        for number in range(2):
            await within(20, lambda number=number: says(person, number, 200))
        for number in range(2):
            await within(FORGOTTEN_SECONDS, lambda number=number: accepted(person, number))
