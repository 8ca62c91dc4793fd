"""How commands speak: tables and differences for people, JSON for machines, one clear sentence for an error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corpid.directory.access import Forbidden
from corpid.directory.problems import DirectoryError
from corpid.engines import StartError
from corpid.flows.administration.writing import Refused
from corpid.ports import Conflict, PasswordsBusy, SecretUnreadable, StoreUnavailable
from corpid.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from pathlib import Path

    from corpid.directory.differences import Difference

T = TypeVar("T")

MAX_FILE_BYTES: Final = 65536
_COLOURS: Final = {"+": "green", "~": "yellow", "-": "red"}
_WORDS: Final = (("+", "added"), ("~", "changed"), ("-", "removed"))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do a command's work; a refusal becomes a sentence on stderr and exit code 1."""
    try:
        return asyncio.run(work)
    except (Refused, Forbidden, SettingsError, StartError, SecretUnreadable) as error:
        fail(str(error))
    except DirectoryError as error:
        fail("\n".join([*error.lines(), "Nothing was changed."]))
    except Conflict as error:
        fail(f"The database refused this: {error}")
    except StoreUnavailable as error:
        fail(f"This cannot be done at the moment: {error}")
    except PasswordsBusy:
        fail("Too many passwords are being hashed; try again in a moment.")


def fail(sentence: str) -> NoReturn:
    """Say what is wrong, on stderr, and end with exit code 1."""
    complain(sentence)
    raise typer.Exit(1)


def complain(sentence: str) -> None:
    """Say what is wrong, on stderr."""
    Console(stderr=True, highlight=False, emoji=False).print(f"[bold red]Error:[/] {escape(sentence)}", soft_wrap=True)


def text_of(file: Path, *, expected: str) -> str:
    """The text of a file of at most 64 KiB; `expected` says in words what it should be."""
    try:
        with file.open("rb") as opened:
            octets = opened.read(MAX_FILE_BYTES + 1)
        text = octets.decode()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file} cannot be read: {getattr(error, 'strerror', None) or f'it is not {expected}'}")
    if len(octets) > MAX_FILE_BYTES:
        fail(f"{file} is larger than {MAX_FILE_BYTES // 1024} KiB: it is not {expected}")
    return text


def say(sentence: str) -> None:
    """One line for a person; markup in it is not interpreted."""
    Console(highlight=False, emoji=False).print(escape(sentence), soft_wrap=True)


def warn(sentence: str) -> None:
    """A remark on stderr."""
    Console(stderr=True, highlight=False, emoji=False).print(f"[yellow]Note:[/] {escape(sentence)}", soft_wrap=True)


def as_json(value: object) -> None:
    """One JSON document on stdout."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for people."""
    shown = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        shown.add_column(heading, overflow="fold")
    for row in rows:
        shown.add_row(*map(escape, row))
    Console(highlight=False, emoji=False).print(shown)


def members(title: str, values: Mapping[str, str]) -> None:
    """The members of one record, one a line and never broken, so that they can be copied."""
    say(title)
    width = max(map(len, values))
    for name, value in values.items():
        first, *further = value.split("\n")
        say(f"  {name.ljust(width)}  {first}")
        for line in further:
            say(f"  {''.ljust(width)}  {line}")


def differences(found: Sequence[Difference], *, done: bool) -> None:
    """What changed or would change, and a count at the end."""
    console = Console(highlight=False, emoji=False)
    for one in found:
        console.print(f"[{_COLOURS[one.sign]}]{one.sign} {escape(one.subject)}[/]", soft_wrap=True)
        for member in one.members:
            console.print(f"    {escape(member)}", soft_wrap=True)
    signs = [one.sign for one in found]
    counts = ", ".join(f"{signs.count(sign)} {word}" for sign, word in _WORDS if sign in signs)
    say(f"{'Done' if done else 'Would be'}: {counts}." if counts else "Nothing to change.")
