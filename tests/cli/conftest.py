"""Commands as a person runs them, on a real SQLite database of their own."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner, Result

from corpid import cli, settings
from corpid.engines import Stores, open_registry
from tests.engines import sqlite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path


T = TypeVar("T")
COMMANDS = cache(get_command)
"""Typer's own runner makes all commands for each one that it runs, which takes a fifth of the time."""


def program() -> Any:
    """`corpid` with all its commands loaded."""
    whole: Any = get_command(cli.app)
    whole.commands.update({name: cli.load_command(name) for name in cli.find_commands()})
    return whole


class Terminal:
    """Runs `corpid …` and looks into the database behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def given(self, settings: Mapping[str, str]) -> Iterator[Self]:
        """What runs meanwhile finds these settings in its environment."""
        with pytest.MonkeyPatch.context() as patched:
            for name, value in settings.items():
                patched.setenv(f"CORPID_{name.upper()}", value)
            yield self

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli.app, list(arguments))

    def done(self, *arguments: str) -> str:
        """The standard output of a command that succeeds."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def refused(self, *arguments: str) -> str:
        """The standard error of a command that is refused."""
        result = self.run(*arguments)
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 1, result.output
        return result.stderr

    def file(self, text: str, name: str = "directory.yaml") -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def look(self, question: Callable[[Stores], Awaitable[T]]) -> T:
        async def ask() -> T:
            async with open_registry(settings.load()) as stores:
                return await question(stores)

        return asyncio.run(ask())


@contextmanager
def at(folder: Path) -> Iterator[Terminal]:
    """A person at a terminal in this folder; the database will lie below it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setenv("CORPID_DATA_DIR", str(folder / "data"))
        patched.setattr(testing, "_get_command", COMMANDS)
        patched.setenv("CORPID_PASSWORD_HASH", "owasp")  # the cheapest
        yield Terminal(folder)


@pytest.fixture
def terminal(empty_terminal: Terminal) -> Terminal:
    """Where the database has its schema, and nothing in it: making that takes longer than most commands."""
    sqlite(empty_terminal.folder / "data" / "corpid.sqlite")
    return empty_terminal


@pytest.fixture
def empty_terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Where nothing is yet."""
    with at(tmp_path) as made:
        yield made
