"""The example relying parties as processes of their own."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx
import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser
from tests import quick_start
from tests.interop.node_process import NODE
from tests.interop.running import PATIENCE, Provider
from tests.interop.stock_clients import public_keys, write_keys
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from corpid_dev.relying_party.people import Person

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFLINE = {**os.environ, "GOPROXY": "off", "GOTOOLCHAIN": "local"}
"""Go builds with what is there"""
ROLES = ('"CPRole":"Approver"', '"CPRole":"Applicant"', '"CP_Clnt_ID":"209912345D"')
"""what the examples show of everybody's roles, without spaces"""


class Shown(NamedTuple):
    """The page at the end of a sign-in."""

    status: int
    text: str

    def tells(self, *words: str) -> bool:
        """Somebody is signed in, and the page has each of these words, whatever the spaces of its JSON."""
        dense = re.sub(r"\s", "", self.text)
        assert self.status == 200
        assert self.text.startswith("Signed in\n")
        return all(re.sub(r"\s", "", word) in dense for word in words)


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
        return public_keys(self.keys)

    def sign_in(self, person: Person, *, change_callback: Callable[[str], str] = str) -> Shown:
        """Press Sign in, walk through the provider's pages in a browser, and follow the redirect back."""
        return asyncio.run(
            self._sign_in(lambda browser, address: people.sign_in(browser, address, person), change_callback)
        )

    def cancel(self) -> Shown:
        """Press Sign in, and Cancel on the first page."""

        async def cancelled(browser: Browser, address: str) -> str:
            await browser.open(address)
            return await people.cancel(browser)

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

    def wait_until_it_listens(self) -> None:
        """Some print their address just before they listen."""
        end = time.monotonic() + PATIENCE
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(self.home.rsplit(":", 1)[1]))) == 0:
                    return
            assert time.monotonic() < end, "\n".join(self.printed)
            time.sleep(0.02)


def _shown(response: httpx.Response) -> Shown:
    return Shown(response.status_code, response.text)


def installed(language: str, *programs: str, probe: tuple[str, ...]) -> None:
    """In CI everything must run; elsewhere what lacks its toolchain is skipped, and says so."""
    missing = [program for program in programs if shutil.which(program) is None]
    if (
        not missing
        and subprocess.run(probe, cwd=EXAMPLES / language, env=OFFLINE, capture_output=True, check=False).returncode
    ):
        missing = [f"{probe[0]} as new as examples/{language} needs"]
    if missing:
        said = f"missing: {', '.join(missing)}; `make interop` says how to install it"
        if os.environ.get("CI") == "true":
            pytest.fail(said)
        pytest.skip(said)


@cache
def _built_with_go() -> Path:
    """The Go example, built once for each test process; its modules are those that `make interop` fetched."""
    installed("go", "go", probe=("go", "list", "-m"))
    program = Path(tempfile.mkdtemp(prefix="corpid-example-")) / "rp"
    atexit.register(shutil.rmtree, program.parent)
    subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(program), "."],
        cwd=EXAMPLES / "go",
        env=OFFLINE,
        check=True,
        timeout=PATIENCE,
    )
    return program


def _run_by_java() -> list[str]:
    """The Java example as its one file; its libraries are those that `make interop` fetched."""
    installed("java", "java", "mvn", probe=("java", "--version"))
    return ["java", "-cp", f"{EXAMPLES}/java/lib/*", f"{EXAMPLES}/java/RelyingParty.java"]


COMMANDS: dict[str, Callable[[], list[str]]] = {
    "node": lambda: [str(NODE), str(EXAMPLES / "node" / "rp.mjs")],
    "python": lambda: [sys.executable, str(EXAMPLES / "python" / "rp.py")],
    "joserfc": lambda: [sys.executable, str(EXAMPLES / "python" / "plain_rp.py")],
    "go": lambda: [str(_built_with_go())],
    "java": _run_by_java,
}
"""each example, and how it is run"""
KINDS = tuple(COMMANDS)
FOREIGN: Final = ("go", "java")
"""whose toolchains `make interop` asks for"""


def of_kind(kind: str, *values: Any, full: bool = True) -> Any:
    """A parameter for tests of an example; `make test` runs those of no foreign toolchain that are not `full`."""
    mark = pytest.mark.interop if kind in FOREIGN else pytest.mark.full if full else None
    return pytest.param(kind, *values, marks=[mark] if mark else [])


@contextmanager
def example(kind: str, issuer: str, keys: Path, client_id: str, **environment: str) -> Iterator[Example]:
    """Run the very file of `examples/`; kind is one of KINDS, `environment` has what it reads besides."""
    command = COMMANDS[kind]()
    if not keys.exists():
        write_keys(keys)
    settings = {"ISSUER": issuer, "PORT": str(free_port()), "KEYS": str(keys), "CLIENT_ID": client_id, **environment}
    with started(command, issuer, keys, client_id, settings["PORT"], {**os.environ, **settings}) as running:
        yield running


@contextmanager
def started(
    command: Sequence[str], issuer: str, keys: Path, client_id: str, port: str, environment: dict[str, str]
) -> Iterator[Example]:
    """Run a relying party in the folder of its keys, with what its command starts."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=keys.parent,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    running = Example(f"http://127.0.0.1:{port}", client_id, keys, process, issuer)
    assert process.stdout is not None
    output = process.stdout
    # extend takes the lines as they come
    reader = threading.Thread(target=lambda: running.printed.extend(line.rstrip() for line in output))
    reader.start()
    try:
        running.wait_for("Open ")
        running.wait_until_it_listens()
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)
        reader.join(PATIENCE)
        output.close()


def run_documented(words: Sequence[str], running: Provider, folder: Path) -> None:
    """Run a `corpid` command of docs/relying-parties.md in a folder, against the running provider's directory."""
    environment = {
        **os.environ,
        "CORPID_DATA_DIR": str(running.data_dir),
        "CORPID_BASE_URL": running.issuer,
        "CORPID_GENERATIONS": ",".join(running.chosen.generations),
        "CORPID_DEVELOPER_MODE": "true",
    }
    finished = quick_start.run(
        (Path(sys.executable).with_name("corpid"), *words),
        env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
