"""What a command loads: its own subject and what that needs, since loading takes most of a short command's time."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from corpid import cli
from corpid.stores.sql import registry

if TYPE_CHECKING:
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
NO_OTHER_COMMAND: Final = {"corpid.sandbox", "corpid.cli.doctor", "corpid.flows.developer", "corpid.web.developer"}
NO_DRIVER: Final = {"asyncpg", "redis", "aiosmtplib", "sqlalchemy.dialects.postgresql"}
NO_MIGRATION: Final = {"alembic", "mako"}
NO_FILE_NO_PAGE: Final = {"yaml", "segno", "babel", "corpid.web.pages", "email.headerregistry"}
NO_PASSWORD_NO_PLUGIN: Final = {"argon2", "precis_i18n", "tomllib", "pydantic_settings", "dotenv"}
OTHERS_STORES: Final = {
    f"corpid.stores.sql.{name}" for name in ("mappers", "directory", "sessions", "factors", "provisioning")
}
NO_CERTIFICATE: Final = {"cryptography.x509"}
MOST_OF_THE_LIST: Final = 340
"""modules that the list of commands may load, Python's own included"""
MOST_OF_A_COMMAND: Final = 720
"""modules that a command on SQLite may load"""


def loaded(*arguments: str) -> set[str]:
    """The modules that a fresh process has in the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("version",)])
def test_the_list_of_commands_and_the_version_need_no_command(arguments: tuple[str, ...]) -> None:
    found = loaded(*arguments)
    assert not found & (NOTHING_AT_ALL | NO_SERVER | NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION)
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
    assert arguments[0] in {"user", "export"} or not found & OTHERS_STORES
    assert arguments[0] == "key" or not found & NO_CERTIFICATE
    assert "corpid.engines" in found
    assert len(found) <= MOST_OF_A_COMMAND


def test_of_a_subject_only_the_command_that_was_asked_for_is_made() -> None:
    assert set(cli.loaded("client", "list").commands) == {"list"}
    assert {"add", "list", "show"} < set(cli.loaded("client", "lst").commands)


def test_a_server_needs_no_migration_and_no_demo() -> None:
    found = loaded("serve", "--help")
    assert not found & (NO_OTHER_COMMAND | NO_DRIVER | NO_MIGRATION)
    assert "corpid.app" in found


def test_a_server_loads_stores_and_slow_libraries_before_its_workers_are_forked() -> None:
    """No request waits until one is loaded."""
    stores = set(re.findall(r"from (corpid\.stores\.sql\.\w+) import", inspect.getsource(registry)))
    assert len(stores) > 15
    assert stores | {"precis_i18n", "argon2", "awscrt"} <= loaded("serve", "--help")
