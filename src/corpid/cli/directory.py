"""`corpid apply` and `corpid export`: the directory's file."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from corpid import settings
from corpid.cli import output
from corpid.cli.running import run
from corpid.engines import new_user_id, open_registry
from corpid.flows.directory import apply as apply_flow
from corpid.rules.directory.actors import DirectoryFile
from corpid.rules.directory.differences import remarks
from corpid.rules.directory.nodes import locate_problem
from corpid.settings.issuers import client_rules
from corpid.stores import private_files

if TYPE_CHECKING:
    from corpid.flows.directory.apply import ApplyResult

DIRECTORY_BYTES: Final = 256 << 20
"""of a file, which is about a million people; what it says takes many times as much memory"""
_READ_BYTES: Final = 1 << 20


def apply(
    file: Annotated[Path, typer.Argument(help="A directory file (YAML); - reads standard input.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, but change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Also remove what the file does not name, in the sections it has.")
    ] = False,
    prune_administrators: Annotated[
        bool,
        typer.Option(
            "--prune-administrators",
            help="Also remove administrators and operators that the file does not name, in the sections it has.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Also change, and with --prune remove, what others than a file have written since."
        ),
    ] = False,
    development: Annotated[bool, typer.Option("--development", help="Accept plain passwords in the file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """Apply a directory file.

    What the file does not name stays as it is, and so does what others have changed since.
    """
    content, name = read_file(file)
    applied = run(
        _apply(
            content,
            name,
            dry_run=dry_run,
            prune=prune,
            prune_administrators=prune_administrators,
            take_over=take_over,
            development=development,
        )
    )
    for warning in sorted({*applied.warnings, *remarks(applied.kept)}):
        output.warn(locate_problem(name, warning))
    if json:
        output.as_json({"changes": applied.differences, "kept": applied.kept, "written": applied.written})
    else:
        output.differences(applied.differences, done=not dry_run)


def export(
    file: Annotated[Path, typer.Argument(help="Where to write; - writes to standard output.")] = Path("-"),
) -> None:
    """Write the directory as a file, without secrets.

    Applying that file changes nothing. It has names and identity numbers: only its owner can read it.
    """
    text = run(_export())
    if str(file) == "-":
        output.document(text)
        return
    try:
        private_files.replace(file, text.encode())
    except OSError as error:
        output.fail(f"{file} cannot be written: {error.strerror}")


def read_file(file: Path) -> tuple[bytes, str]:
    """The content and name of a regular file or standard input."""
    if str(file) == "-":
        return _bounded(sys.stdin.buffer, "standard input"), "standard input"
    try:
        _refuse_another_kind(file, file.stat())  # a device may do something when it is opened
        # It may be another file by now: opening a FIFO without a writer would block.
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            _refuse_another_kind(file, os.fstat(opened.fileno()))
            return _bounded(opened, str(file)), str(file)
    except OSError as error:
        output.fail(f"{file} cannot be read: {error.strerror}")


def _refuse_another_kind(file: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"
        output.fail(f"{file} is {what}: name a regular file, or write - and send the directory to standard input")


def _bounded(opened: BinaryIO, name: str) -> bytes:
    content = bytearray()
    while piece := opened.read(_READ_BYTES):
        content += piece
        if len(content) > DIRECTORY_BYTES:
            output.fail(
                f"{name} is larger than {DIRECTORY_BYTES >> 20} MiB: apply it in parts, a section or some people each"
            )
    return bytes(content)


async def _apply(
    content: bytes,
    name: str,
    *,
    dry_run: bool,
    prune: bool,
    prune_administrators: bool,
    take_over: bool,
    development: bool,
) -> ApplyResult:
    chosen = settings.load()
    async with open_registry(chosen) as opened:
        return await apply_flow.apply_document(
            opened.registry,
            opened.passwords,
            content,
            file=name,
            actor=DirectoryFile.from_content(name, content, by=opened.actor),
            new_user_id=new_user_id,
            rules=client_rules(chosen),
            plain_passwords=chosen.developer_mode or development,
            prune=prune,
            prune_administrators=prune_administrators,
            take_over=take_over,
            dry_run=dry_run,
        )


async def _export() -> str:
    async with open_registry(settings.load()) as opened:
        return "".join([piece async for piece in apply_flow.export_directory(opened.registry, actor=opened.actor)])
