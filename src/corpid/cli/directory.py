"""`corpid apply` and `corpid export`: the directory's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corpid.cli import output
from corpid.cli.running import with_stores
from corpid.engines import Stores, new_user_id
from corpid.flows.directory import apply as apply_flow
from corpid.rules.directory.access import DirectoryFile
from corpid.rules.directory.differences import remarks
from corpid.rules.directory.nodes import locate_problem
from corpid.settings.issuers import client_rules
from corpid.stores import private_files


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
            "--take-over",
            help="Also change, and with --prune remove, what something other than a file has written since.",
        ),
    ] = False,
    development: Annotated[bool, typer.Option("--development", help="Accept plain passwords in the file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """Apply a directory file.

    What the file does not name stays as it is, and so does what others have changed since.
    """
    content, name = output.read_file(file)
    applied = with_stores(
        lambda stores: apply_flow.apply_document(
            stores.registry, stores.passwords, content, file=name,
            actor=DirectoryFile.from_content(name, content, by=stores.actor), new_user_id=new_user_id,
            rules=client_rules(stores.settings), plain_passwords=stores.settings.developer_mode or development, prune=prune,
            prune_administrators=prune_administrators, take_over=take_over, dry_run=dry_run,
        )
    )  # fmt: skip
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

    async def read(stores: Stores) -> str:
        return "".join([piece async for piece in apply_flow.export_directory(stores.registry, actor=stores.actor)])

    text = with_stores(read)  # a pager may read for long, and a restore waits for stores that are open
    if str(file) == "-":
        output.document(text)
        return
    try:
        private_files.replace(file, text.encode())
    except OSError as error:
        output.fail(f"{file} cannot be written: {error.strerror}")
