"""OpenTelemetry spans of requests and of calls to other systems.

Names and values are ours: a route, a method of a port, the code of an error. Nothing that a caller wrote stands in
a span, no path, no query, no address and no client; the request id leads to the line in the log (D48). Loaded only
if traces are enabled (`tracing`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit
from uuid import uuid4

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)

from corpid import __version__
from corpid.rules.oauth.errors import OAuthError
from corpid.rules.oauth.urls import DEFAULT_PORTS
from corpid.rules.transient import PipelinedVerb
from corpid.web.http.requests import header_values, trace_parent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.outbound.passwords import Passwords
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientBatch, TransientStore

    Attributes = Mapping[str, str | int]
    Fetch = Callable[[str], Awaitable[bytes]]

ATTRIBUTES: Final = (
    "http.request.method", "http.route", "http.response.status_code", "url.scheme", "server.address", "server.port",
    "network.protocol.version", "error.type", "corpid.request_id", "corpid.reason",
    "db.system.name", "db.operation.name", "corpid.kind",
)  # fmt: skip
"""all that a span may hold"""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_OTHER: Final = "_OTHER"
_SILENT: Final = {"record_exception": False, "set_status_on_exception": False}
"""an exception's message can contain a caller's text (D48)"""


def export_spans() -> tuple[Spans, Callable[[], None]]:
    """Spans exported to the collector in OTEL_*, and their shutdown.

    Raises ValueError for a variable that the library cannot use.
    """
    own = {"service.name": "corpid", "service.version": __version__, "service.instance.id": str(uuid4())}
    resource = Resource.create(own).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider.get_tracer("corpid", __version__)), provider.shutdown


class Spans:
    """Wrappers that make spans; without them tracing costs nothing."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer: Final = tracer

    def requests(self, app: ASGIApp, *, base_url: str, trusts: Callable[[str], bool]) -> ASGIApp:
        """An ASGI application with a span for each request.

        `trusts` says whose traceparent is believed.

        Sets `scope["state"]["trace_id"]`. Expects `request_id` and `log` there, as Shell puts them. D48.
        """
        return _Requests(app, self._tracer, base_url, trusts)

    def registry(self, registry: Registry, system: str) -> Registry:
        """A registry whose calls are spans, named by its engine."""
        attributes = {"db.system.name": system}
        parts = {name: _Traced(self, getattr(registry, name), name, attributes) for name in registry.part_names()}
        return cast("Registry", SimpleNamespace(lost_at=registry.lost_at, retention=registry.retention, **parts))

    def transient(self, store: TransientStore, system: str) -> TransientStore:
        """A transient store whose batches and verbs are spans."""
        return cast("TransientStore", _TracedTransient(self, store, "transient", {"db.system.name": system}))

    def passwords(self, passwords: Passwords) -> Passwords:
        """Traced password hashing, with the time spent in the queue."""
        return cast("Passwords", _Traced(self, passwords, "passwords", {}, SpanKind.INTERNAL))

    def fetch(self, fetch: Fetch) -> Fetch:
        """A fetch of relying parties' key sets.

        The relying party gets no trace headers (D27).
        """

        async def traced(url: str) -> bytes:
            if not get_current_span().is_recording():
                return await fetch(url)
            with self.child("GET", {"http.request.method": "GET", **_server(url)}):
                return await fetch(url)

        return traced

    @contextmanager
    def child(self, name: str, attributes: Attributes, kind: SpanKind = SpanKind.CLIENT) -> Iterator[None]:
        """A child of the current span.

        An exception other than a refusal is recorded by type.
        """
        with self._tracer.start_as_current_span(name, kind=kind, attributes=attributes, **_SILENT) as span:  # type: ignore[arg-type]
            try:
                yield
            except Exception as error:
                if not isinstance(error, OAuthError):
                    _failed(span, type(error).__name__)
                raise


class _Traced:
    """A traced port: its coroutines are spans within a traced request."""

    def __init__(
        self, spans: Spans, inner: object, name: str, attributes: Attributes, kind: SpanKind = SpanKind.CLIENT
    ) -> None:
        self._spans = spans
        self._inner = inner
        self._name = name
        self._attributes = attributes
        self._kind = kind

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._inner, name)
        if not iscoroutinefunction(found):
            return found
        traced = self._around(found, f"{self._name}.{name}")
        setattr(self, name, traced)
        return traced

    def _around(self, call: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        attributes = (
            {**self._attributes, "db.operation.name": name} if self._kind is SpanKind.CLIENT else self._attributes
        )

        @wraps(call)
        async def traced(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            if not get_current_span().is_recording():
                return await call(*arguments, **named)
            with self._spans.child(name, self._with(attributes, arguments), self._kind):
                return await call(*arguments, **named)

        return traced

    def _with(self, attributes: Attributes, _arguments: tuple[Any, ...]) -> Attributes:
        return attributes


class _TracedBatch(_Traced):
    """The verbs of a batch.

    Of keys and values nothing is recorded, only their kinds.
    """

    def _with(self, attributes: Attributes, arguments: tuple[Any, ...]) -> Attributes:
        return {**attributes, "corpid.kind": " ".join(dict.fromkeys(_kinds(arguments[0])))}


def _kinds(of: str | Sequence[PipelinedVerb | tuple[str, bytes, float]]) -> list[str]:
    """The kinds of a verb or counter, or of a pipeline."""
    if isinstance(of, str):
        return [of]
    return [each.kind if isinstance(each, PipelinedVerb) else each[0] for each in of]


class _TracedTransient(_Traced):
    def batch(self, now: float) -> AbstractAsyncContextManager[TransientBatch]:
        batch = cast("TransientStore", self._inner).batch(now)
        return self._batch(batch) if get_current_span().is_recording() else batch

    @asynccontextmanager
    async def _batch(self, batch: AbstractAsyncContextManager[TransientBatch]) -> AsyncIterator[TransientBatch]:
        attributes = {**self._attributes, "db.operation.name": "transient.batch"}
        with self._spans.child("transient.batch", attributes):
            async with batch as verbs:
                yield cast("TransientBatch", _TracedBatch(self._spans, verbs, "transient", self._attributes))


class _Requests:
    """See Spans.requests."""

    def __init__(self, app: ASGIApp, tracer: Tracer, base_url: str, trusts: Callable[[str], bool]) -> None:
        self._app = app
        self._tracer = tracer
        self._always = {"url.scheme": urlsplit(base_url).scheme, **_server(base_url)}
        self._trusts = trusts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with self._started(scope) as span:
            scope["state"]["trace_id"] = format_trace_id(span.get_span_context().trace_id)
            failure = ""
            try:
                await self._app(scope, receive, sending)
            except BaseException as error:
                failure = type(error).__name__
                raise
            finally:
                if span.is_recording():
                    _describe(span, scope, status, failure)

    def _started(self, scope: Scope) -> AbstractContextManager[Span]:
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        attributes = {
            "http.request.method": method,
            "network.protocol.version": scope["http_version"],
            "corpid.request_id": scope["state"]["request_id"],
            **self._always,
        }
        context, links = self._origin(scope)
        return self._tracer.start_as_current_span(
            _shown(method), context=context, kind=SpanKind.SERVER, attributes=attributes, links=links, **_SILENT
        )

    def _origin(self, scope: Scope) -> tuple[Context, list[Link]]:
        """The parent of a span: a trusted proxy's trace, else none.

        A trusted trace continues here, with its decision to sample. Any other is only linked to: a stranger may not
        decide what is recorded, nor write into a trace of ours, but may still be found by theirs.
        """
        named = trace_parent(header_values(scope["headers"]).get(b"traceparent", ()))
        if named is None:
            return Context(), []
        flags = TraceFlags(int(named.flags, 16) & TraceFlags.SAMPLED)
        caller = SpanContext(int(named.trace, 16), int(named.span, 16), is_remote=True, trace_flags=flags)
        if scope.get("client") and self._trusts(scope["client"][0]):
            return set_span_in_context(NonRecordingSpan(caller), Context()), []
        return Context(), [Link(caller)]


def _describe(span: Span, scope: Scope, status: int, failure: str) -> None:
    route = getattr(scope.get("route"), "path", "")
    if route:
        span.update_name(f"{_shown(scope['method'])} {route}")
        span.set_attribute("http.route", route)
    if status:
        span.set_attribute("http.response.status_code", status)
    reason = scope["state"]["log"].get("error", "")
    if reason:
        span.set_attribute("corpid.reason", reason)
    if failure or status >= 500:
        _failed(span, failure or reason or str(status))


def _shown(method: str) -> str:
    return method if method in _METHODS else "HTTP"


def _failed(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _server(url: str) -> dict[str, str | int]:
    parts = urlsplit(url)
    return {"server.address": parts.hostname or "", "server.port": parts.port or DEFAULT_PORTS.get(parts.scheme, 0)}
