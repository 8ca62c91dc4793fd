"""Two nodes under load whose engine is closed and restarted: nobody waits afterwards, and nothing is spent twice (D67)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.authentication.totp import STEP_SECONDS
from tests.engines import RedisServer, postgresql
from tests.many.nodes import Person, running, signed_in
from tests.many.test_data_loss import again

if TYPE_CHECKING:
    from pathlib import Path

    from corpid_dev.relying_party.relying_party import RelyingParty

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

WAIT_SECONDS = 20
"""far less than the wait after a loss, far more than a restart takes"""
SNAPSHOTS = ("--save", "3600 1", "--appendonly", "no")
APPENDED = ("--save", "", "--appendonly", "yes")


class Load:
    """Requests that are pushed at both nodes without a pause; what is refused may be sent again."""

    def __init__(self) -> None:
        self.pushed: list[tuple[RelyingParty, dict[str, Any], dict[str, Any]]] = []
        self._refused: list[float] = []
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, person: Person) -> None:
        self._tasks = [asyncio.create_task(self._push(person, number)) for number in (0, 1)]

    async def end(self, back_at: float) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        first, last = self._refused[0], self._refused[-1]
        print(f"refused for {last - first:.2f} s, until {last - back_at:.2f} s after the engine was back")

    async def _push(self, person: Person, number: int) -> None:
        while True:
            rp = person.party(number)
            url = (await rp.discover())["pushed_authorization_request_endpoint"]
            form, headers = {"client_assertion": rp.assertion()}, {"DPoP": rp.proof("POST", url)}
            answer = await rp.push(form, headers)
            if answer.status_code == 201:
                self.pushed.append((rp, form, headers))
            else:
                assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable"), answer.text
                assert int(answer.headers["retry-after"]) > 0
                self._refused.append(time.monotonic())
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("program", "options"), [("redis", APPENDED), ("valkey", SNAPSHOTS)], ids=["redis, appended", "valkey, snapshot"]
)
async def test_after_a_prepared_restart_sign_ins_go_on_at_once_and_nothing_is_spent_twice(
    tmp_path: Path, program: str, options: tuple[str, ...]
) -> None:
    """RFC 9449 §11.1, RFC 7523 §3, RFC 6749 §4.1.2: proofs, assertions and codes of before are used, or usable once."""
    load = Load()

    with RedisServer(*options, program=program) as server, postgresql() as database:
        time.sleep(2)
        with running(tmp_path, database, server.url, count=2) as nodes:
            async with signed_in(nodes) as person:
                await asyncio.sleep(STEP_SECONDS - time.time() % STEP_SECONDS)
                spent_by = person.party(0)
                spent = await person.code(spent_by, 0)
                assert (await spent_by.token(spent)).status_code == 200
                unspent_by = person.party(0)
                unspent = await person.code(unspent_by, 0)
                load.begin(person)
                await asyncio.sleep(2)
                await asyncio.to_thread(person.nodes.command, "maintenance", "close-store")
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
                back_at = time.monotonic()
                before = list(load.pushed)
                while len(load.pushed) < len(before) + 20:
                    assert time.monotonic() < back_at + WAIT_SECONDS, "it waits as after a loss"
                    await asyncio.sleep(0.02)
                await load.end(back_at)
                for number in (1, 0):
                    for request in before[-10:]:
                        assert (await again(person, number, request)).isdisjoint({200, 201, 503})
                    spent_by.http = unspent_by.http = person.https[number]
                    assert (await spent_by.token(spent)).json()["error"] == "invalid_grant"
                assert (await unspent_by.token(unspent)).status_code == 200, "it was issued before the restart"
                assert (await unspent_by.token(unspent)).json()["error"] == "invalid_grant"
    reported = [_reported(nodes.log(number)) for number in (0, 1)]
    # A process that does not look meanwhile finds the engine as it was.
    assert [1, 1, 0] in reported
    assert all(each in ([1, 1, 0], [0, 0, 0]) for each in reported)


def _reported(lines: list[dict[str, Any]]) -> list[int]:
    events = [line["event"] for line in lines]
    return [events.count(event) for event in ("store_closed", "store_opened", "data_lost")]
