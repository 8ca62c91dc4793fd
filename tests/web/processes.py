"""`corpid serve` and other commands in processes of their own, with a small directory to apply."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid_dev.relying_party.browser import Browser
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.relying_party import RelyingParty
from tests import quick_start
from tests.machine import free_port
from tests.web.served import PROCESS_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


RINA = Person(user_name="rina", password="harbour lights at dawn", totp_secret="L4JHDJKSXFZLGLBNIDK3NI7DLEEQCLD3")
KEYS = RelyingPartyKeys.generate()
DIRECTORY = {
    "entities": {
        "A1": {"type": "UEN", "country": "SG", "name": "Alpha", "status": "Registered"},
        "B2": {"type": "UEN", "country": "SG", "name": "Beta", "status": "Registered"},
    },
    "services": {"BOOKS": {"name": "Books", "roles": ["Reader"]}},
    "users": {
        "rina": {
            "name": "Rina",
            "password": RINA.password,
            "totp_secret": RINA.totp_secret,
            "memberships": ["A1", "B2"],
        }
    },
    "assignments": [{"user": "rina", "entity": "A1", "service": "BOOKS", "role": "Reader"}],
    "clients": {
        "rp-1": {
            "name": "Relying party",
            "redirect_uris": ["https://rp.example/callback"],
            "jwks": KEYS.public(),
            "scopes": ["openid", "authinfo", "tpauthinfo", "user.name"],
            "services": ["BOOKS"],
        }
    },
}


def environment(settings: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    return {**inherited, **{f"CORPID_{name.upper()}": value for name, value in settings.items()}}


def command(directory: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return quick_start.run(
        [sys.executable, "-m", "corpid", *arguments],
        cwd=directory, env=environment(settings), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


class Running:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], settings: dict[str, str]) -> None:
        self.process = process
        self.base_url = settings["base_url"]
        self.origin = re.sub(r"(://[^/]+).*", r"\1", self.base_url)

    def lines(self) -> list[dict[str, Any]]:
        """Everything it has logged, once it was told to stop."""
        self.process.send_signal(signal.SIGTERM)
        said, complaint = self.process.communicate(timeout=PROCESS_SECONDS)
        assert (self.process.returncode, complaint) == (0, "")
        return [json.loads(line) for line in said.splitlines()]

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=PROCESS_SECONDS, trust_env=False, **options)

    @asynccontextmanager
    async def parties(self, **options: Any) -> AsyncIterator[tuple[RelyingParty, Browser]]:
        """A relying party and somebody's browser."""
        async with self.client(**options) as http, self.client(**options) as cookies:
            yield RelyingParty(client_id="rp-1", issuer=self.base_url, http=http, keys=KEYS), Browser(cookies)


@contextmanager
def serving(directory: Path, *, path: str = "", scheme: str = "http", **settings: str) -> Iterator[Running]:
    """Answers as soon as this is entered; its log is a file, so that nobody has to read it meanwhile."""
    port = int(settings.get("port") or free_port())
    chosen = {"port": str(port), "base_url": f"{scheme}://localhost:{port}{path}", "hashing_threads": "1", **settings}
    with quick_start.Popen(
        [sys.executable, "-m", "corpid", "serve"],
        cwd=directory, env=environment(chosen), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            wait_for(process, port)
            yield Running(process, chosen)
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], port: int) -> None:
    while process.poll() is None:
        with closing(socket.socket()) as probe:
            probe.settimeout(0.05)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)  # a refusal comes at once: asking without pause takes the processor from the one that starts
    pytest.fail(f"it ended: {process.communicate()[1]}")
