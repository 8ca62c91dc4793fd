"""Instrumentation: connects metrics and traces with parts of the application."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corpid.stores.engines import engine_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.engines import Engines
    from corpid.flows.provider import Provider
    from corpid.outbound.passwords import Argon2Passwords
    from corpid.ports import Passwords
    from corpid.settings import Settings
    from corpid.web.telemetry.metrics import Watched
    from corpid.web.telemetry.spans import Spans

    Fetch = Callable[[str], Awaitable[bytes]]


def watched(settings: Settings, provider: Provider, hashing: Argon2Passwords, stores: Engines) -> Watched:
    """The sources of gauges for the metrics."""
    # Where several processes answer as one, a folder must be named before this is loaded.
    from corpid.web.telemetry.metrics import Watched  # noqa: PLC0415

    return Watched(
        clock=provider.clock,
        signing_keys=provider.signing_keys,
        hashing=lambda: hashing.pending,
        hashing_limit=settings.hashing_threads + settings.hashing_queue,
        pool=stores.connections_in_use,
        pool_limit=settings.database_connections if engine_type(settings.database_url).has_pool else 0,
    )


def traced(
    spans: Spans | None, settings: Settings, stores: Engines, passwords: Passwords, fetch: Fetch
) -> tuple[Engines, Passwords, Fetch]:
    """The same parts, with a span for each call if traced."""
    if spans is None:
        return stores, passwords, fetch
    with_spans = replace(
        stores,
        registry=spans.registry(stores.registry, engine_type(settings.database_url).telemetry_name),
        transient=spans.transient(
            stores.transient, engine_type(settings.transient_url or settings.database_url).telemetry_name
        ),
    )
    return with_spans, spans.passwords(passwords), spans.fetch(fetch)
