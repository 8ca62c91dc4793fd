"""`corpid rp-new`: a relying party from nothing."""

from __future__ import annotations

import asyncio
import shlex
from enum import Enum
from pathlib import Path  # noqa: TC003 - typer reads it when the program runs
from typing import Annotated, Final

import typer

from corpid.cli import output
from corpid_dev.demo.new_rp import DEFAULT_ISSUER, FILES, KEYS, README, FilesExist, NewRp, create
from corpid_dev.developer_api import NotDone, developer_api, trusting

_SECONDS: Final = 10.0
_Language = Enum("_Language", {name: name for name in FILES})  # type: ignore[misc]  # typer shows its values


def rp_new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write to: a new or an empty one.")],
    *,
    language: Annotated[_Language, typer.Option(help="Language of the relying party.")],
    demo: Annotated[
        str, typer.Option("--demo", metavar="URL", help="Address of an issuer, as `corpid demo` prints it.")
    ] = DEFAULT_ISSUER,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The demo's authority, as `corpid demo --tls` prints it.")
    ] = None,
    client_id: Annotated[str, typer.Option(help="Identifier of the client. Default: the name of the folder.")] = "",
    port: Annotated[
        int, typer.Option(help="Where it listens. Default: a free one.", min=0, max=65535, show_default=False)
    ] = 0,
) -> None:
    """Create a small complete relying party, registered at a running `corpid demo`.

    Writes one of the examples with keys of its own, and a README. Existing files are never overwritten.
    """
    try:
        made = asyncio.run(_created(demo, folder, language.value, client_id, port, ca))
    except FilesExist as error:
        output.fail(f"{folder} has {error} already, and nothing is overwritten: choose a new or an empty folder")
    except NotDone as error:
        output.fail(str(error))
    except OSError as error:
        output.fail(f"{error.filename or folder} cannot be written: {error.strerror}")
    output.say(f"Made        {folder}: {', '.join(made.files)}")
    output.say(f"Registered  {made.client_id} at {made.issuer}, generation {made.generation}: {made.page}")
    output.say(f"Keys        {folder / KEYS} has the private keys: keep it secret, like a password")
    output.say("Start it:")
    output.line(f"  cd {shlex.quote(str(folder))} && {made.start}")
    if ca and not made.example.trusts:
        output.say("Before that, let it trust the demo as `corpid demo --tls` prints.")
    output.say(f"Then open {made.home}/login. {README} says more.")


async def _created(demo: str, folder: Path, language: str, client_id: str, port: int, ca: Path | None) -> NewRp:
    async with developer_api(demo, seconds=_SECONDS, tls=trusting(ca)) as api:
        return await create(api, folder, language=language, client_id=client_id, port=port, authority=ca)
