"""`corpid serve`: the provider itself."""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import app, engines, settings
from corpid.cli.workers import REFUSED, supervise
from corpid.web import access_log, server, tls
from corpid.web.connection_limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from socket import socket

    from corpid.settings import Settings

DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
_COLLECT: Final = (20_000, 50, 50)
REFUSALS = (
    settings.SettingsError,
    engines.StartError,
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
        listening = _Listening(
            public=server.bind(chosen.host, chosen.port), metrics=_bind_metrics(chosen.metrics_address)
        )
    except REFUSALS as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(REFUSED) from None
    if chosen.workers == 1:
        raise typer.Exit(_work(chosen, listening))
    access_log.configure(clock=time.time, level=chosen.log_level)
    with shared_metrics(listening.metrics) as forget:
        raise typer.Exit(supervise(lambda: _work(chosen, listening), chosen.workers, on_ended=forget))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    """Bound sockets, which all workers share."""

    public: Sequence[socket]
    metrics: Sequence[socket]


def _bind_metrics(address: str) -> Sequence[socket]:
    host, _, port = address.rpartition(":")
    return server.bind(host.strip("[]"), int(port)) if address else ()


@contextmanager
def shared_metrics(sockets: Sequence[socket]) -> Iterator[Callable[[int], None]]:
    """A folder in which workers count together, while they run; what comes back forgets one that has ended."""
    if not sockets:
        yield lambda _: None
        return
    with TemporaryDirectory(prefix="corpid-metrics-") as folder:
        os.environ[DIRECTORY_VARIABLE] = folder

        def forget(process: int) -> None:
            from corpid.web.metrics import worker_ended  # noqa: PLC0415 - reads the folder's name when it is loaded

            worker_ended(process)

        yield forget


def _work(chosen: Settings, listening: _Listening) -> int:
    """Serve until told to stop; the exit status."""
    try:
        server.run(_serve(chosen, listening))
    except REFUSALS as error:
        typer.echo(str(error), err=True)
        return REFUSED
    return 0


def _spare_the_collector() -> None:
    """What exists now stays; requests leave no cycles behind, so looking for some is rarely worth its time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)


async def _serve(chosen: Settings, listening: _Listening) -> None:
    access_log.configure(clock=time.time, level=chosen.log_level, pretty=chosen.developer_mode and sys.stdout.isatty())
    own_tls = None
    if chosen.tls_certificate is not None and chosen.tls_key is not None:
        own_tls = tls.server_context(chosen.tls_certificate, chosen.tls_key)
    async with AsyncExitStack() as stack:
        measured = None
        if listening.metrics:
            from corpid.web import metrics  # noqa: PLC0415 - reads the folder's name when it is loaded

            measured = metrics.Metrics(os.environ.get(DIRECTORY_VARIABLE))
            await stack.enter_async_context(metrics.served(measured, listening.metrics))
        application = await stack.enter_async_context(app.create(chosen, metrics=measured))
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

        await server.serve(running, listening.public, on_started=tell)
        access_log.log().info("stopped")
