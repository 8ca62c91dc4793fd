"""A relying party or a name server that is slow or dead delays nobody else and stops no password check (D27)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from argon2.profiles import CHEAPEST

from corpid.outbound.client_keys import FetchedClientKeys
from corpid.outbound.passwords import Argon2Passwords
from corpid.rules.failures import KeySetUnavailable
from corpid.rules.oauth.records import Client, FetchedKeySet
from tests.adapters.rp_server import answer, drip, egress_to, hang, relying_party

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEvent
    from tests.adapters.rp_server import Answer

T = 1_800_000_000.0
ONE_KEY = json.dumps(
    {
        "keys": [
            {
                "kty": "EC",
                "crv": "P-256",
                "use": "sig",
                "kid": "one",
                # the generator point of P-256 (SEC 2)
                "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
                "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
            }
        ]
    }
).encode()


@dataclass(slots=True)
class Kept:
    """The part of a registry that keeps fetched key sets."""

    sets: dict[str, FetchedKeySet] = field(default_factory=dict)

    async def fetched_key_set(self, client_id: str) -> FetchedKeySet | None:
        return self.sets.get(client_id)

    async def keep_fetched_key_set(self, client_id: str, fetched: FetchedKeySet) -> None:
        self.sets[client_id] = fetched

    async def drop_fetched_key_set(self, client_id: str, event: AuditEvent) -> None:
        self.sets.pop(client_id, None)

    async def get(self, client_id: str) -> Client | None:
        return None

    async def list_all(self) -> list[Client]:
        return []

    async def named(self, *, first: str, until: str, limit: int) -> list[Client]:
        return []


def client(client_id: str, url: str) -> Client:
    return Client(client_id=client_id, name=client_id, redirect_uris=(), jwks_uri=url)


def url(name: str, port: int) -> str:
    return f"https://{name}:{port}/jwks"


@pytest.mark.parametrize("behave", [hang, drip])
async def test_while_one_relying_party_is_slow_others_are_served_and_passwords_checked(behave: Answer) -> None:
    async with AsyncExitStack() as running:
        slow, fast = [await running.enter_async_context(relying_party(way)) for way in (behave, answer(ONE_KEY))]
        keys = FetchedClientKeys(Kept(), egress_to(slow.port, fast.port, seconds=60).fetch)
        passwords = Argon2Passwords(threads=1, profile=CHEAPEST)
        waiting = [asyncio.create_task(keys.current(client("slow", slow.url), now=T)) for _ in range(50)]
        await slow.arrived(1)
        assert (await keys.current(client("fast", fast.url), now=T)).signing
        assert await passwords.verify(None, "whatever it is") is False
        assert not any(task.done() for task in waiting)
        assert len(slow.requests) == 1
        await keys.close()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_slow_relying_party_with_a_set_of_yesterday_is_itself_not_delayed() -> None:
    async with relying_party(hang) as slow:
        stored = FetchedKeySet(jwks_uri=slow.url, jwks=ONE_KEY.decode(), fetched_at=int(T) - 80_000)
        keys = FetchedClientKeys(Kept({"slow": stored}), egress_to(slow.port, seconds=60).fetch)
        for seconds in range(0, 60, 6):
            assert (await keys.current(client("slow", slow.url), now=T + seconds)).signing
        await keys.close()


async def test_a_name_server_that_hangs_stops_neither_other_names_nor_passwords_nor_the_loops_own_threads() -> None:
    release = threading.Event()

    def resolve(name: str, port: int) -> list[str]:
        if name.startswith("hung"):
            release.wait(60)
        return ["127.0.0.1"]

    async with relying_party(answer(ONE_KEY)) as fast:
        keys = FetchedClientKeys(Kept(), egress_to(fast.port, seconds=60, resolve=resolve).fetch)
        passwords = Argon2Passwords(threads=1, profile=CHEAPEST)
        waiting = [
            asyncio.create_task(keys.current(client(f"hung{n}", url(f"hung{n}.example", fast.port)), now=T))
            for n in range(15)
        ]
        await asyncio.sleep(0.01)
        assert (await keys.current(client("fast", fast.url), now=T)).signing
        assert await passwords.verify(None, "whatever it is") is False
        assert await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 443)
        assert not any(task.done() for task in waiting)
        await keys.close()
        await asyncio.gather(*waiting, return_exceptions=True)
        release.set()


@pytest.mark.full
async def test_when_all_turns_are_taken_by_the_dead_a_healthy_client_still_gets_its_own() -> None:
    """D27: 16 fetches in all; the dead ones give their turns back when their seconds are over."""
    async with AsyncExitStack() as running:
        slow, fast = [await running.enter_async_context(relying_party(way)) for way in (hang, answer(ONE_KEY))]
        keys = FetchedClientKeys(Kept(), egress_to(slow.port, fast.port, seconds=2).fetch)
        dead = [asyncio.create_task(keys.current(client(f"dead{n}", slow.url), now=T)) for n in range(16)]
        await slow.arrived(16)
        # late enough that a loop which stalls does not find both waits over at once
        await asyncio.sleep(1)
        healthy = asyncio.create_task(keys.current(client("fast", fast.url), now=T))
        outcomes = await asyncio.gather(*dead, return_exceptions=True)
        assert all(isinstance(outcome, KeySetUnavailable) for outcome in outcomes)
        assert (await healthy).signing


def test_the_process_can_end_while_a_name_server_hangs() -> None:
    program = textwrap.dedent(
        """
        import asyncio, time
        from corpid.outbound.client_keys import HttpClientError
        from corpid.outbound.http_client import HttpClient

        async def fetch():
            egress = HttpClient(own_url="https://id.example", resolve=lambda name, port: time.sleep(600), seconds=0.2)
            try:
                await egress.fetch("https://rp.example/")
            except HttpClientError as error:
                print(error)

        asyncio.run(fetch())
        """
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "within 0.2 s" in ended.stdout
