"""`corpid serve`: the provider itself."""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from corpid import app, engines, settings
from corpid.cli import output
from corpid.cli import workers as worker_processes
from corpid.cli.workers import REFUSED, supervise
from corpid.settings.issuers import issuers
from corpid.web.http import server, tls
from corpid.web.http.addresses import ClientAddresses, OwnHosts
from corpid.web.http.connection_limits import Limits
from corpid.web.http.connections import files_for
from corpid.web.telemetry import access_log, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket

    from corpid.settings import Settings

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
    """Run the provider until SIGTERM or Ctrl-C.

    Settings come from CORPID_* and corpid.toml: see docs/settings.md. Of several issuers ([[issuers]]) all are served, told apart by host and path.
    """
    try:
        chosen = settings.load(**({} if workers is None else {"workers": workers}))
        listening = _Listening(
            public=server.bind(chosen.host, chosen.port), metrics=_bind_metrics(chosen.metrics_address)
        )
    except REFUSALS as error:
        output.fail(str(error))
    if chosen.workers == 1:
        raise typer.Exit(_work(chosen, listening, lambda: None))
    access_log.configure(clock=time.time, level=chosen.log_level)
    with worker_processes.shared() if listening.metrics else nullcontext(_keep_nothing) as forget:
        raise typer.Exit(supervise(lambda served: _work(chosen, listening, served), chosen.workers, on_ended=forget))


def _keep_nothing(_process: int) -> None:
    """Forget an ended worker, without metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listening:
    """Bound sockets, shared by all workers."""

    public: Sequence[socket]
    metrics: Sequence[socket]


def _bind_metrics(address: str) -> Sequence[socket]:
    host, _, port = address.rpartition(":")
    return server.bind(host.strip("[]"), int(port)) if address else ()


def _work(chosen: Settings, listening: _Listening, served: Callable[[], None]) -> int:
    """Serve until a signal to stop.

    The exit status. `served` is called when ready.
    """
    try:
        server.run(_serve(chosen, listening, served))
    except REFUSALS as error:
        output.complain(str(error))
        return REFUSED
    return 0


def _urls(chosen: Settings) -> str:
    return " ".join(issuer.base_url for issuer in issuers(chosen).values())


def _limits(chosen: Settings) -> Limits:
    connections = files_for(chosen.connections, chosen.database_connections)
    if connections < chosen.connections:
        access_log.log().warning(
            "connections_limited",
            detail=f"{connections} instead of {chosen.connections}: the system lets this process open no more files; "
            "raise its limit (ulimit -Hn, LimitNOFILE)",
        )
    return Limits(
        connections=connections,
        idle_seconds=chosen.keepalive_seconds,
        concurrent_requests=chosen.concurrent_requests,
    )


def _spare_the_collector() -> None:
    """Freeze present objects and collect garbage rarely, since requests leave no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)


async def _serve(chosen: Settings, listening: _Listening, served: Callable[[], None]) -> None:
    access_log.configure(clock=time.time, level=chosen.log_level, pretty=chosen.developer_mode and sys.stdout.isatty())
    async with AsyncExitStack() as stack:
        own_tls = measured = None
        if chosen.tls_certificate is not None and chosen.tls_key is not None:
            own_tls = await stack.enter_async_context(tls.renewing(chosen.tls_certificate, chosen.tls_key))
        if listening.metrics:
            from corpid.web.telemetry import metrics  # noqa: PLC0415 - reads the folder's name when it is loaded

            measured = metrics.Metrics(os.environ.get(worker_processes.VARIABLE), issuers=bool(chosen.issuers))
            measured.hosts = OwnHosts(chosen.metrics_address, chosen.allowed_hosts)
            await stack.enter_async_context(metrics.served(measured, listening.metrics))
        spans = await stack.enter_async_context(tracing.opened())
        application = await stack.enter_async_context(app.create(chosen, metrics=measured, spans=spans))
        running = server.Server(
            application.asgi,
            limits=_limits(chosen),
            bodiless=application.bodiless,
            addresses=ClientAddresses(chosen.trusted_proxies, chosen.forwarded_header),
            tls=own_tls,
            drain_seconds=chosen.drain_seconds,
            delay_seconds=chosen.drain_delay_seconds,
            on_draining=application.asgi.drain,
        )
        if measured is not None:
            measured.open_connections = running.open_connections
        _spare_the_collector()

        def tell() -> None:
            worker = f", process {os.getpid()}" if chosen.workers > 1 else ""
            access_log.log().info("listening", address=f"{chosen.host}:{chosen.port}", detail=_urls(chosen) + worker)
            served()

        await server.serve(running, listening.public, on_started=tell)
        access_log.log().info("stopped")
