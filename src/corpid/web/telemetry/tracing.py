"""Export of traces to an OpenTelemetry collector, configured by OTEL_* variables.

The libraries are an extra, and are loaded by those who ask for traces alone. What goes wrong here is a line in
the log; it never keeps the provider from answering.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from corpid.web.telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from corpid.web.telemetry.spans import Spans

FLUSH_SECONDS: Final = 3.0
"""how long a stopping process waits to send the remaining spans"""
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_NAMED_BY: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", _EXPORTER)
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_DISABLED: Final = "OTEL_SDK_DISABLED"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether this environment asks for traces.

    It names an endpoint or the exporter, and none of them is switched off.
    """
    if environment.get(_DISABLED, "").strip().lower() == "true":
        return False
    if environment.get(_EXPORTER, "").strip().lower() == "none":
        return False
    return any(environment.get(name, "").strip() for name in _NAMED_BY)


@asynccontextmanager
async def open_tracing(environment: Mapping[str, str] = os.environ) -> AsyncIterator[Spans | None]:
    """The factory of spans, until the context ends.

    It exports them from its own thread. None if off.

    To be entered in the process that serves. On leaving, what is left is sent, for at most FLUSH_SECONDS.
    """
    exporting = _export(environment) if is_wanted(environment) else None
    if exporting is None:
        yield None
        return
    spans, close = exporting
    try:
        yield spans
    finally:
        await _within(FLUSH_SECONDS, close)


def _export(environment: Mapping[str, str]) -> tuple[Spans, Callable[[], None]] | None:
    try:
        _refuse_others(environment)
        from corpid.web.telemetry import spans  # noqa: PLC0415 - the extra is loaded by those who asked for it

        return spans.export_spans()
    except ImportError:
        reason = "the packages are missing: install corpid[tracing]"
    except (ValueError, OSError) as error:
        reason = str(error)
    access_log.log().warning("traces_off", detail=reason)
    return None


def _refuse_others(environment: Mapping[str, str]) -> None:
    """Raise ValueError for a way of exporting that CorpID does not have."""
    exporter = environment.get(_EXPORTER, "").strip().lower() or "otlp"
    if exporter != "otlp":
        raise ValueError(f"{_EXPORTER} is {exporter}, and only otlp is there")
    for name in _PROTOCOLS:
        protocol = environment.get(name, "").strip().lower()
        if protocol and protocol != "http/protobuf":
            raise ValueError(f"{name} is {protocol}, and only http/protobuf is there")
        if protocol:
            return


async def _within(seconds: float, close: Callable[[], None]) -> None:
    """Run `close` in a daemon thread, for so many seconds.

    A collector that hangs must not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    closed = asyncio.Event()

    def work() -> None:
        try:
            close()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=work, name="traces-close", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await closed.wait()
    except TimeoutError:
        access_log.log().warning("traces_lost", detail=f"the collector did not take the last ones within {seconds:g} s")
