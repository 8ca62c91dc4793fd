"""`corpid apply` and `corpid export`: the directory as a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corpid import settings
from corpid.app import new_user_id, open_registry
from corpid.cli import output
from corpid.directory.access import OPERATOR
from corpid.directory.problems import located
from corpid.flows.administration import applying, exporting
from corpid.settings.presets import client_rules

if TYPE_CHECKING:
    from corpid.flows.administration.applying import Applied


def apply(
    file: Annotated[Path, typer.Argument(help="A directory file (YAML); - reads standard input.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Also remove what the file does not name, in the sections it has.")
    ] = False,
    development: Annotated[bool, typer.Option("--development", help="Accept plain passwords in the file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """Make the directory what a file says. What the file does not name stays as it is."""
    content, name = _read(file)
    applied = output.run(_apply(content, name, dry_run=dry_run, prune=prune, development=development))
    for warning in applied.warnings:
        output.warn(located(name, warning))
    if json:
        output.as_json({"changes": applied.differences, "written": applied.written})
    else:
        output.differences(applied.differences, done=not dry_run)


def export(
    file: Annotated[Path, typer.Argument(help="Where to write; - writes to standard output.")] = Path("-"),
) -> None:
    """Write the directory as a file, without secrets. Applying that file changes nothing."""
    text = output.run(_export())
    if str(file) == "-":
        output.document(text)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        output.fail(f"{file} cannot be written: {error.strerror}")


def _read(file: Path) -> tuple[bytes, str]:
    if str(file) == "-":
        return sys.stdin.buffer.read(), "standard input"
    try:
        return file.read_bytes(), str(file)
    except OSError as error:
        output.fail(f"{file} cannot be read: {error.strerror}")


async def _apply(content: bytes, name: str, *, dry_run: bool, prune: bool, development: bool) -> Applied:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await applying.apply(
            opened.registry,
            opened.passwords,
            content,
            file=name,
            actor=OPERATOR,
            new_user_id=new_user_id,
            rules=client_rules(chosen),
            plain_passwords=chosen.developer_mode or development,
            prune=prune,
            dry_run=dry_run,
        )


async def _export() -> str:
    async with open_registry(settings.load()) as opened:
        return "".join([piece async for piece in exporting.export(opened.registry, actor=OPERATOR)])
