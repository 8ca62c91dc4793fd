"""What a command loads: its own subject and what that needs, since loading takes most of a short command's time."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from corpid import cli
from corpid.stores.sql import registry
from tests.machine import free_port

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cli.conftest import Terminal

PROGRAM: Final = """
import json, sys
from corpid.cli import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""
SECONDS: Final = 60
NOTHING_AT_ALL: Final = {"corpid.settings", "corpid.engines", "corpid.web", "sqlalchemy", "cryptography"}
NO_SERVER: Final = {
    "corpid.app",
    "corpid.web.routes",
    "starlette",
    "uvicorn",
    "jinja2",
    "webauthn",
    "awscrt",
    "httpx",
    "structlog",
}
NO_OTHER_COMMAND: Final = {"corpid.cli.doctor"}
THE_LIST_OF_THE_KIT: Final = {"corpid_dev", "corpid_dev.cli"}
"""all of the developer kit that the list of commands may load"""
NO_DRIVER: Final = {"asyncpg", "redis", "aiosmtplib", "sqlalchemy.dialects.postgresql"}
NO_MIGRATION: Final = {"alembic", "mako"}
NO_FILE_NO_PAGE: Final = {"yaml", "segno", "babel", "corpid.web.pages", "email.headerregistry"}
NO_PASSWORD_NO_PLUGIN: Final = {"argon2", "precis_i18n", "tomllib", "pydantic_settings", "dotenv"}
OTHERS_STORES: Final = {
    f"corpid.stores.sql.{name}" for name in ("mappers", "directory", "sessions", "factors", "members")
}
NO_CERTIFICATE: Final = {"cryptography.x509"}
SERVING: Final = """
import json, os, signal, sys

def told(*_):
    print(json.dumps([os.getpid(), sorted(sys.modules)]), file=sys.stderr, flush=True)

signal.signal(signal.SIGUSR1, told)
sys.argv[0] = "corpid"
from corpid.__main__ import main
main()
"""
"""`corpid …`, which says at SIGUSR1 what it has loaded"""
OF_THE_COMMAND_LINE: Final = {"typer", "annotated-doc", "shellingham", "rich"}
OF_EVERYTHING: Final = {
    "annotated-types", "msgspec", "pydantic", "pydantic-core", "typing-extensions", "typing-inspection",
}  # fmt: skip
OF_THE_LIST: Final = OF_THE_COMMAND_LINE | OF_EVERYTHING | {"pygments", "attrs", "markdown-it-py", "mdurl"}
"""the help is written by rich"""
OF_A_DATABASE: Final = OF_EVERYTHING | {"cffi", "cryptography", "lmdb", "pyotp", "sqlalchemy"}
OF_A_COMMAND: Final = OF_THE_COMMAND_LINE | OF_A_DATABASE
OF_A_SERVER: Final = OF_A_DATABASE | {
    "anyio", "argon2-cffi", "argon2-cffi-bindings", "awscrt", "babel", "httptools", "jinja2", "markupsafe",
    "precis-i18n", "starlette", "uvloop",
}  # fmt: skip
"""packages that a server on SQLite and LMDB has when it answers; another one needs a reason (docs/decisions/0036)"""
MOST_OF_A_SERVER: Final = 900
"""modules"""
MOST_OF_ITS_MEMORY: Final = 100
"""MiB"""
MOST_OF_THE_LIST: Final = 370
"""modules that the list of commands may load, Python's own included: 30 of them read entry points"""
MOST_OF_A_COMMAND: Final = 720
"""modules that a command on SQLite may load"""


def loaded(*arguments: str) -> set[str]:
    """The modules that a fresh process has in the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def of_the_kit(found: Iterable[str]) -> set[str]:
    """The modules of the developer kit, except those that list its commands."""
    return {name for name in found if name.partition(".")[0] == "corpid_dev"} - THE_LIST_OF_THE_KIT


def packages(found: Iterable[str]) -> set[str]:
    """The names of the packages that modules belong to, except Python's and ours."""
    names = {name for module in found for name in installed().get(module.partition(".")[0], ())}
    return {re.sub("[-_.]+", "-", name).lower() for name in names} - {"corpid", "corpid-dev"}


@cache
def installed() -> dict[str, list[str]]:
    return {module: list(names) for module, names in packages_distributions().items()}


@dataclass(frozen=True, slots=True)
class Process:
    """A process of `corpid serve …` after the first answer of it."""

    modules: set[str]
    resident_mib: float
    """all of its memory, also what it shares with other processes"""


def serving(folder: Path, *arguments: str) -> dict[int, Process]:
    """The processes of `corpid serve …`, by their numbers."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CORPID_")}
    environment |= {"CORPID_PORT": str(port), "CORPID_BASE_URL": f"http://localhost:{port}"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVING, "serve", *arguments],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["event"] == "listening"
            with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=SECONDS) as answer:
                assert answer.status == 200
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
            found = {}
            for each in map(int, children or [str(process.pid)]):
                os.kill(each, signal.SIGUSR1)
                number, names = json.loads(process.stderr.readline())
                status = Path(f"/proc/{number}/status").read_text(encoding="ascii")
                [resident] = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
                found[number] = Process(set(names), int(resident) / 1024)
            return found
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


def test_a_serving_process_has_loaded_these_packages_and_no_other_and_is_small(tmp_path: Path) -> None:
    """docs/decisions/0036: on a database that has its schema."""
    serving(tmp_path)
    [process] = serving(tmp_path).values()
    found = process.modules
    assert packages(found) == OF_A_SERVER
    assert not found & (NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION | NO_CERTIFICATE)
    assert not of_the_kit(found)
    assert not found & {"corpid.cli", "corpid.web.directory.endpoints", "corpid.web.operations.endpoints"}
    assert len(found) <= MOST_OF_A_SERVER
    assert process.resident_mib <= MOST_OF_ITS_MEMORY


@pytest.mark.full
def test_what_fetches_key_sets_is_loaded_before_a_server_of_such_clients_is_ready(tmp_path: Path) -> None:
    """docs/decisions/0036: so that no request waits for it."""
    client = {"name": "RP", "redirect_uris": ["https://rp.example/cb"], "jwks_uri": "https://rp.example/jwks"}
    file = tmp_path / "directory.json"
    file.write_text(json.dumps({"clients": {"rp": client}}), encoding="utf-8")
    environment = {**os.environ, "CORPID_BASE_URL": "http://localhost:1"}
    subprocess.run(
        [sys.executable, "-m", "corpid", "apply", file], cwd=tmp_path, env=environment, check=True, timeout=SECONDS
    )
    [process] = serving(tmp_path).values()
    assert {"corpid.outbound.http_client", "httpx"} <= process.modules


@pytest.mark.full
def test_workers_share_what_a_single_process_loads_when_it_is_needed(tmp_path: Path) -> None:
    """docs/decisions/0036: all of it is loaded before the fork."""
    [process] = serving(tmp_path, "--workers", "1").values()
    rare = {
        "corpid.outbound.http_client",
        "corpid.rules.authentication.passkey_verification",
        "corpid.web.directory.endpoints",
        "corpid.web.operations.endpoints",
    }
    assert not rare & process.modules
    workers = serving(tmp_path, "--workers", "2")
    assert len(workers) == 2
    assert all(rare <= each.modules for each in workers.values())


@pytest.mark.parametrize("arguments", [("--help",), ("version",)])
def test_the_list_of_commands_and_the_version_need_no_command(arguments: tuple[str, ...]) -> None:
    found = loaded(*arguments)
    assert not found & (NOTHING_AT_ALL | NO_SERVER | NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION)
    assert not of_the_kit(found)
    assert packages(found) <= OF_THE_LIST
    assert len(found) <= MOST_OF_THE_LIST


@pytest.mark.parametrize(
    "arguments",
    [
        ("client", "list"),
        *(
            pytest.param(each, marks=pytest.mark.full)
            for each in (("user", "list"), ("maintenance", "status"), ("key", "list"), ("export",))
        ),
    ],
)
def test_a_command_on_the_database_needs_no_server(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    """One that has nothing to migrate."""
    terminal.done("migrate")
    found = loaded(*arguments)
    assert not found & (
        NO_SERVER | NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION | NO_FILE_NO_PAGE | NO_PASSWORD_NO_PLUGIN
    )
    assert not of_the_kit(found)
    assert arguments[0] in {"user", "client", "export"} or not found & OTHERS_STORES
    assert arguments[0] == "key" or not found & NO_CERTIFICATE
    assert packages(found) <= OF_A_COMMAND
    assert "corpid.engines" in found
    assert len(found) <= MOST_OF_A_COMMAND


def test_of_a_subject_only_the_command_that_was_asked_for_is_made() -> None:
    assert set(cli.load_command("client", "list").commands) == {"list"}
    assert {"add", "list", "show"} < set(cli.load_command("client", "lst").commands)


@pytest.mark.full
def test_a_server_needs_no_migration_and_no_demo() -> None:
    found = loaded("serve", "--help")
    assert not found & (NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION)
    assert not of_the_kit(found)
    assert "corpid.app" in found


@pytest.mark.full
def test_a_server_loads_stores_and_slow_libraries_before_its_workers_are_forked() -> None:
    """No request waits until one is loaded."""
    stores = {f"corpid.stores.sql.{name}" for name in re.findall(r": sql\.(\w+)\.", inspect.getsource(registry))}
    assert len(stores) > 8
    assert stores | {"precis_i18n", "argon2", "awscrt"} <= loaded("serve", "--help")
