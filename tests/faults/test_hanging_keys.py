"""Relying parties whose key servers hang, under load: nobody else is refused or waits for them (D27)."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from corpid.outbound.client_keys import WAITING
from corpid.web.http.connections import Limits
from corpid.web.telemetry import access_log
from tests.adapters.rp_server import RelyingPartyServer, hang, relying_party
from tests.faults.attempts import Attempt, attempt
from tests.faults.in_process import Standing, standing

if TYPE_CHECKING:
    from pathlib import Path

    import httpx


pytestmark = pytest.mark.full

HANGING = ("slow-1", "slow-2", "slow-3")
EACH = 2 * WAITING
"""requests of each at once: twice as many as may wait"""
ROOM = len(HANGING) * WAITING + 20
"""less than what all of them send"""
OTHERS = 4
"""who sign in meanwhile, again and again; how often each comes through depends on the machine"""


async def sent(there: Standing, server: RelyingPartyServer, client_id: str) -> list[asyncio.Task[httpx.Response]]:
    """Requests of a client whose key server hangs; of those behind the first some wait, the others are refused."""
    await there.registers(client_id, f"http://127.0.0.1:{server.port}/jwks")
    parties = [there.party(client_id) for _ in range(EACH)]
    for party in parties:
        party.metadata = await parties[0].discover()
    first = asyncio.create_task(parties[0].push())
    await server.arrived(1)
    return [first, *(asyncio.create_task(party.push()) for party in parties[1:])]


async def test_while_key_servers_hang_every_request_of_the_others_succeeds(tmp_path: Path) -> None:
    """D27: and whoever is concerned is told; the log says which server did what."""
    log = io.BytesIO()
    attempts: list[Attempt] = []

    async def others(there: Standing, hanging: list[asyncio.Task[httpx.Response]]) -> None:
        while not all(task.done() for task in hanging):
            await attempt(there.party(), there.browsing, attempts)

    async def story(there: Standing) -> None:
        async with AsyncExitStack() as running:
            servers = [await running.enter_async_context(relying_party(hang, tls=False)) for _ in HANGING]
            hanging = [task for each in zip(servers, HANGING, strict=True) for task in await sent(there, *each)]
            await asyncio.gather(*(others(there, hanging) for _ in range(OTHERS)))
            answers = [await task for task in hanging]
        assert sum(bool(one.token) for one in attempts) >= OTHERS
        assert {(answer.status_code, answer.json()["error"]) for answer in answers} == {(500, "server_error")}
        assert all("the key set of this client cannot be fetched" in answer.text for answer in answers)

    async with standing(tmp_path, Limits(concurrent_requests=ROOM)) as there:
        await there.sign_in()
        access_log.configure(clock=time.time, stream=log)
        await story(there)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert all(one.token for one in attempts)
    told = [line for line in lines if line["event"] == "key_set_not_fetched"]
    assert {line["client_id"] for line in told} == set(HANGING)
    assert all("gave no complete answer within 3 s" in line["detail"] for line in told)
    refused = Counter("others" if "other requests wait for it" in line["detail"] else "hung" for line in failed(lines))
    assert sum(refused.values()) == len(HANGING) * EACH
    assert set(refused) == {"hung", "others"}


def failed(lines: list[dict[str, str]]) -> list[dict[str, str]]:
    return [line for line in lines if line["event"] == "request" and line.get("error") == "server_error"]
