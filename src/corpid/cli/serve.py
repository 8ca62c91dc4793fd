"""`corpid serve`: the provider itself."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from corpid import app, settings
from corpid.cli.workers import REFUSED, supervise
from corpid.web import access_log, server, tls
from corpid.web.connection_limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from corpid.settings import Settings

_COLLECT: Final = (20_000, 50, 50)
REFUSALS = (
    settings.SettingsError,
    app.StartError,
    server.ListenError,
    server.StartupFailed,
    tls.CertificateUnusable,
)


def serve(
    *,
    workers: Annotated[
        int | None, typer.Option(help="Processes that answer, on the same port. Default: the setting workers.", min=1)
    ] = None,
) -> None:
    """Run the provider until it is told to stop (SIGTERM, or Ctrl-C).

    Settings come from CORPID_* and corpid.toml: see docs/settings.md.
    """
    try:
        chosen = settings.load(**({} if workers is None else {"workers": workers}))
        sockets = server.bind(chosen.host, chosen.port)
    except REFUSALS as error:
        _refuse(error)
    if chosen.workers == 1:
        raise typer.Exit(_work(chosen, sockets))
    access_log.configure(clock=time.time, level=chosen.log_level)
    raise typer.Exit(supervise(lambda: _work(chosen, sockets), chosen.workers))


def _refuse(error: Exception) -> NoReturn:
    typer.echo(str(error), err=True)
    raise typer.Exit(REFUSED) from None


def _work(chosen: Settings, sockets: Sequence[socket]) -> int:
    """Serve until told to stop; the exit status."""
    try:
        server.run(_serve(chosen, sockets))
    except REFUSALS as error:
        typer.echo(str(error), err=True)
        return REFUSED
    return 0


def _spare_the_collector() -> None:
    """What exists now stays; requests leave no cycles behind, so looking for some is rarely worth its time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)


async def _serve(chosen: Settings, sockets: Sequence[socket]) -> None:
    access_log.configure(clock=time.time, level=chosen.log_level, pretty=chosen.developer_mode and sys.stdout.isatty())
    own_tls = None
    if chosen.tls_certificate is not None and chosen.tls_key is not None:
        own_tls = tls.server_context(chosen.tls_certificate, chosen.tls_key)
    async with app.create(chosen) as application:
        running = server.Server(
            application.asgi,
            limits=Limits(idle_seconds=chosen.keepalive_seconds),
            tls=own_tls,
            drain_seconds=chosen.drain_seconds,
            delay_seconds=chosen.drain_delay_seconds,
            on_draining=application.asgi.drain,
        )
        _spare_the_collector()

        def tell() -> None:
            access_log.log().info("listening", address=f"{chosen.host}:{chosen.port}", detail=chosen.base_url)

        await server.serve(running, sockets, on_started=tell)
        access_log.log().info("stopped")
