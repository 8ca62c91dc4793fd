"""`corpid testing`: a provider for the tests of a relying party."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid.cli import output
from corpid.settings.fields import PREFIX, PRESETS
from corpid_dev.cli.stopping import stop_event
from corpid_dev.flows.people import Developer
from corpid_dev.relying_party.interfaces import CURRENT, INTERFACES
from corpid_dev.testing import server
from corpid_dev.web.mode import KEY
from corpid_dev.web.paths import SIGN_INS_PATH

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

_LOCALHOST: Final = "localhost"


def provider_for_tests(
    directory: Annotated[
        Path | None, typer.Argument(help="File with people, entities, roles and clients. Default: the demo's.")
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(help="The port, also of the issuer. 0: any free one.", min=0, max=65535, envvar="CORPID_PORT")
    ] = 0,
    listen: Annotated[
        str, typer.Option(help="The address to listen on, in a container 0.0.0.0.", envvar="CORPID_HOST")
    ] = _LOCALHOST,
    generation: Annotated[
        str, typer.Option(help=f"Generations, separated by commas: {', '.join(INTERFACES)}.")
    ] = CURRENT.name,
    preset: Annotated[
        str, typer.Option(help=f"Group of settings: {', '.join(PRESETS)} (docs/settings.md). Default: none.")
    ] = "",
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Serve https, with its own certificate authority, which the printed line contains."),
    ] = False,
) -> None:
    """Run a provider for the tests of a relying party.

    Once it is ready, it prints one line of JSON: issuer, address to sign people in at, and people. Its log goes to
    stderr. It keeps nothing, and ends at SIGTERM or Ctrl-C.
    """
    try:
        content = None if directory is None else directory.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        output.fail(f"{directory} cannot be read: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}")
    names = [name.strip() for name in generation.split(",")]
    with tempfile.TemporaryDirectory(prefix="corpid-testing-") as folder:
        _forget_settings(Path(folder))
        started = server.started(
            Path(folder),
            name=None if directory is None else str(directory),
            content=content,
            generations=names,
            preset=preset,
            settings={},
            listen=listen,
            port=port,
            log=sys.stderr.buffer,
            tls=tls,
            developer=Developer(key=secrets.token_urlsafe(32), spares_loopback=server.is_own_machine(listen)),
        )
        try:
            asyncio.run(_until_stopped(started))
        except server.PROBLEMS as error:
            output.complain(server.sentence(error), label="The provider cannot start:")
            raise typer.Exit(1) from None


def _forget_settings(folder: Path) -> None:
    """Leave the settings of this shell and this folder aside."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.chdir(folder)


async def _until_stopped(started: AbstractAsyncContextManager[server.Sandbox]) -> None:
    stopped = stop_event()
    async with started as sandbox:
        output.json_lines([_description(sandbox)])
        sys.stdout.flush()
        await stopped.wait()


def _description(sandbox: server.Sandbox) -> dict[str, object]:
    """All that tests have to know, with the key of this start."""
    issuer = sandbox.provider.policy.base_url
    key = sandbox.developer.key if sandbox.developer else ""
    trusted = sandbox.certificate.authority if sandbox.certificate else None
    return {
        "issuer": issuer,
        "sign_ins": f"{issuer}{SIGN_INS_PATH}?{KEY}={key}",
        **({"ca_file": str(trusted), "ca": trusted.read_text()} if trusted else {}),
        "people": [
            {
                "user_name": each.user_name,
                "name": each.name,
                "password": each.password,
                "totp_secret": each.totp_secret,
                "entities": each.entities,
            }
            for each in sandbox.known.values()
        ],
    }
