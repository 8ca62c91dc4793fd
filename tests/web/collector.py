"""An OpenTelemetry collector of a few lines: it takes OTLP over HTTP on a port of its own and keeps the spans."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Told:
    """A span as the collector got it."""

    def __init__(self, span: Span, resource: dict[str, Any]) -> None:
        self.span: Final = span
        self.resource: Final = resource
        self.name: Final[str] = span.name
        self.id: Final = span.span_id.hex()
        self.parent: Final = span.parent_span_id.hex()
        self.trace: Final = span.trace_id.hex()
        self.attributes: Final = _read(span.attributes)
        self.links: Final = [link.trace_id.hex() for link in span.links]


class Collector:
    """What arrived so far. With `silent` set it takes a request and never answers it."""

    def __init__(self) -> None:
        self.received: Final[list[bytes]] = []
        self.silent: Final = threading.Event()
        self.url = ""

    @property
    def spans(self) -> list[Told]:
        return [told for content in self.received for told in _decoded(content)]

    def named(self, name: str) -> list[Told]:
        return [told for told in self.spans if told.name == name]


def _decoded(content: bytes) -> Iterator[Told]:
    for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
        about = _read(resource.resource.attributes)
        for scope in resource.scope_spans:
            yield from (Told(span, about) for span in scope.spans)


def _read(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens; `url` is what OTEL_EXPORTER_OTLP_ENDPOINT names."""
    collector = Collector()
    ended = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            content = self.rfile.read(int(self.headers["content-length"]))
            if collector.silent.is_set():
                ended.wait()
                return
            collector.received.append(content)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            ended.set()
            server.shutdown()
            thread.join()
