"""A provider on real sockets, with people to sign in as."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
import uuid
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import uvloop

from corpid import app, settings
from corpid.flows.directory.apply import apply_document
from corpid.rules.directory.access import CommandLine
from corpid.settings.issuers import client_rules
from corpid_dev.demo.demo import next_free
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.people import Person
from tests.interop.wire import Wire
from tests.world import clients
from tests.world.provider import RunningProvider, served, started

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from corpid_dev.relying_party.verification import Callback

PATIENCE = 90.0
PEOPLE = 70
PASSWORD = "a plain phrase for tests"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
ENTITY = {"type": "UEN", "registration_number": "209900042K", "country": "SG", "name": "Example Harbour"}
SERVICE = {"name": "Harbour permits", "roles": ["Approver", "Applicant"], "third_parties": True}


@dataclass
class Provider:
    """A running provider; `newcomer` is somebody who has not signed in yet."""

    issuer: str
    data_dir: Path
    wire: Wire
    loop: asyncio.AbstractEventLoop
    composed: app.Application
    chosen: settings.Settings
    people: Iterator[Person] = field(default_factory=lambda: iter(map(_person, range(PEOPLE))))

    def newcomer(self) -> Person:
        return next(self.people)

    def register(self, client_id: str, redirect_uri: str, jwks: dict[str, Any], **members: Any) -> None:
        """What docs/relying-parties.md does with a file for `corpid apply`."""
        known = {
            "name": "Interop",
            "redirect_uris": [redirect_uri],
            "scopes": ["openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name"],
            "services": ["HARBOUR-PERMIT"],
        }
        self.apply({"clients": {client_id: clients.members(jwks, **{**known, **members})}})

    def visited(self, address: str, person: Person) -> Callback:
        """What a person's browser brings back from this address, through all pages."""
        return asyncio.run(self._visited(address, person))

    async def _visited(self, address: str, person: Person) -> Callback:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            return await people.sign_in(Browser(http, frozenset({self.issuer})), address, person)

    def apply(self, directory: dict[str, Any]) -> None:
        applied = _apply(self.composed, self.chosen, directory)
        asyncio.run_coroutine_threadsafe(applied, self.loop).result(PATIENCE)


async def _apply(composed: app.Application, chosen: settings.Settings, directory: dict[str, Any]) -> None:
    await apply_document(
        composed.provider.registry,
        composed.provider.passwords,
        json.dumps(directory).encode(),
        file="tests",
        actor=CommandLine(by="lee@node1"),
        new_user_id=lambda: str(uuid.uuid4()),
        rules=client_rules(chosen),
        plain_passwords=True,
    )


def _person(number: int) -> Person:
    return Person(user_name=f"person.{number}", password=PASSWORD, totp_secret=SECRET, name=f"Person Nr {number}")


def _directory() -> dict[str, Any]:
    people = [_person(number) for number in range(PEOPLE)]
    return {
        "entities": {"209900042K": ENTITY, "209912345D": {**ENTITY, "registration_number": "209912345D"}},
        "services": {"HARBOUR-PERMIT": SERVICE},
        "users": {
            each.user_name: {
                "name": each.name,
                "password": PASSWORD,
                "totp_secret": SECRET,
                "memberships": ["209900042K"],
            }
            for each in people
        },
        "assignments": [
            {"user": each.user_name, "entity": "209900042K", "service": "HARBOUR-PERMIT", "role": "Approver"}
            for each in people
        ],
        "third_party": {
            "grants": [
                {"client_entity": "209912345D", "third_party": "209900042K", "service": "HARBOUR-PERMIT", "role": "Applicant"}
            ],
            "assignments": [
                {"user": each.user_name, "third_party": "209900042K", "client_entity": "209912345D",
                 "service": "HARBOUR-PERMIT", "role": "Applicant"}
                for each in people
            ],
        },
    }  # fmt: skip


@contextmanager
def provider(data_dir: Path, **chosen: Any) -> Iterator[Provider]:
    """A provider on a free port of localhost, in a thread and a loop of its own."""
    started: queue.Queue[Provider] = queue.Queue()
    stop = threading.Event()

    async def main() -> None:
        async with _running(data_dir, chosen) as running:
            await _apply(running.composed, running.chosen, _directory())
            started.put(running)
            while not stop.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.01)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield started.get(timeout=PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)


@asynccontextmanager
async def _running(data_dir: Path, chosen: dict[str, Any]) -> AsyncIterator[Provider]:
    port, sockets = next_free("localhost", 0)
    issuer = f"http://localhost:{port}"
    loaded = settings.load(
        data_dir=data_dir, base_url=issuer, host="localhost", port=port, developer_mode=True, **chosen
    )
    async with started(RunningProvider, loaded, clock=time.time) as made:
        wire = Wire(made.application.asgi)
        async with served(wire, sockets, drain_seconds=0.1):
            yield Provider(issuer, data_dir, wire, asyncio.get_running_loop(), made.application, loaded)
