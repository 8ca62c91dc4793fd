"""What an OpenTelemetry collector is told, and whose traces go on here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from corpid import app, settings
from corpid.flows import namespaces
from corpid.flows.namespaces import Namespace
from corpid.outbound.destinations import HttpClientError
from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth import discovery
from corpid.rules.oauth.errors import InvalidGrant
from corpid.rules.oauth.refusals import Reason
from corpid.web.telemetry import tracing
from corpid.web.telemetry.spans import ATTRIBUTES, Spans
from corpid_dev.relying_party import people
from tests.logs import capture_logs
from tests.web.collector import Collector, collecting
from tests.web.processes import DIRECTORY, KEYS, RINA, Running, command, serving
from tests.web.served import PROCESS_SECONDS, served
from tests.web.test_workers import events, until, working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.full

THEIRS = "4bf92f3577b34da6a3ce929d0e0e4736"
KEPT, LEFT_OUT = f"00-{THEIRS}-00f067aa0ba902b7-01", f"00-{THEIRS}-00f067aa0ba902b7-00"
KINDS = {each.name for each in vars(namespaces).values() if isinstance(each, Namespace)}
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """What servers that are started meanwhile send their spans to; only when they stop, or have many."""
    with collecting() as made:
        monkeypatch.setenv(ENDPOINT, made.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
        yield made


# --- a sign-in, as it is told ------------------------------------------------------------------


async def key_set(scope: Scope, _receive: Receive, send: Send) -> None:
    """What stands at the relying party's jwks_uri."""
    if scope["type"] != "http":
        raise NotImplementedError
    body = json.dumps(KEYS.public()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


def with_keys_at(url: str, folder: Path) -> None:
    """A directory whose relying party has its keys at a URL."""
    content = json.loads(json.dumps(DIRECTORY))
    del content["clients"]["rp-1"]["jwks"]
    content["clients"]["rp-1"]["jwks_uri"] = url
    (folder / "directory.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = command(folder, "apply", "--development", "directory.yaml", developer_mode="true")
    assert done.returncode == 0, done.stderr


async def signs_in(running: Running) -> list[str]:
    """A whole sign-in; everything of it that nobody else may read."""
    async with running.parties() as (rp, browser):
        rp.scope = "openid authinfo user.name"
        where = await rp.begin()
        await people.sign_in(browser, where, replace(RINA), "A1")
        assert browser.left is not None
        tokens = await rp.redeem(browser.left)
        await rp.userinfo()
        query = httpx.URL(where).params
        cookies = [cookie.value or "" for cookie in browser.http.cookies.jar]
        code = httpx.URL(browser.left).params["code"]
        return [*query.values(), code, tokens.access_token, RINA.user_name, RINA.password, "rp-1", "Alpha", *cookies]


def test_a_sign_in_is_told_request_by_request_with_what_each_of_them_cost(tmp_path: Path, collector: Collector) -> None:
    """OpenTelemetry's conventions for HTTP servers; nothing of a request but names of ours (D48)."""
    with served(key_set) as keys:
        with_keys_at(f"http://127.0.0.1:{keys.port}/secret-path?secret-query", tmp_path)
        with serving(tmp_path, developer_mode="true") as running:
            secrets = asyncio.run(signs_in(running))
            lines = running.lines()
    spans = collector.spans
    requests = [told for told in spans if not told.parent]
    assert {told.attributes["http.route"] for told in requests} == {
        discovery.DISCOVERY_PATH, discovery.JWKS_PATH, discovery.PAR_PATH, discovery.AUTHORIZATION_PATH,
        discovery.TOKEN_PATH, "/sign-in/{rest}", "/userinfo",
    }  # fmt: skip
    assert all(told.span.kind == told.span.SPAN_KIND_SERVER for told in requests)
    assert all(
        told.name.split() == [told.attributes["http.request.method"], told.attributes["http.route"]]
        for told in requests
    )
    costs = {(told.name, by_id.name) for told in spans for by_id in requests if told.parent == by_id.id}
    assert {
        ("GET", f"POST {discovery.PAR_PATH}"), ("passwords.verify", "POST /sign-in/{rest}"),
        ("transient.batch", f"POST {discovery.TOKEN_PATH}"), ("directory.assignments", "GET /userinfo"),
    } <= costs  # fmt: skip
    assert all(told.attributes.keys() <= set(ATTRIBUTES) for told in spans)
    kinds = {kind for told in spans for kind in str(told.attributes.get("corpid.kind", "")).split()}
    assert {"pushed_request", "proof", "assertion", "code"} <= kinds <= KINDS
    sent = b"".join(collector.received)
    assert [secret for secret in (*secrets, "secret-path", "secret-query") if secret.encode() in sent] == []
    by_request = {told.attributes["corpid.request_id"]: told.trace for told in requests}
    logged = {line["request_id"]: line["trace_id"] for line in lines if line["event"] == "request"}
    assert by_request == logged
    assert {told.resource["service.name"] for told in spans} == {"corpid"}


def test_every_worker_sends_what_it_has_when_it_stops(tmp_path: Path, collector: Collector) -> None:
    """Each under an instance's name of its own, from a thread that began after the fork."""
    with working(tmp_path, 2) as (process, url):
        until(lambda: events(tmp_path, "listening") == 2)
        for _ in range(40):
            with httpx.Client(trust_env=False) as http:
                assert http.get(f"{url}/.well-known/keys").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PROCESS_SECONDS) == 0
    requests = [told for told in collector.spans if not told.parent]
    assert len(requests) == 40
    assert len({told.attributes["corpid.request_id"] for told in requests}) == 40
    assert len({told.resource["service.instance.id"] for told in requests}) == 2


# --- who asks for traces, and has them ---------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", ENDPOINT: "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "TRUE", ENDPOINT: "http://collector:4318"}, False),
        ({"OTEL_SERVICE_NAME": "login"}, False),
    ],
)
def test_traces_are_on_where_the_environment_names_where_they_go(environment: dict[str, str], expected: bool) -> None:
    """OpenTelemetry's environment variables; without one of them nothing is loaded."""
    assert tracing.is_wanted(environment) is expected


def test_what_nobody_asked_for_is_not_loaded() -> None:
    program = "import sys, corpid.cli, corpid.cli.serve, corpid.app; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def test_where_the_libraries_are_missing_that_is_told_and_the_provider_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "first"), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "first" / "opentelemetry").mkdir(parents=True)
    (tmp_path / "first" / "opentelemetry" / "__init__.py").write_text("raise ImportError\n", encoding="utf-8")
    with serving(tmp_path) as running:
        assert httpx.get(f"{running.base_url}/.well-known/keys", trust_env=False).status_code == 200
        lines = running.lines()
    [said] = [line["detail"] for line in lines if line["event"] == "traces_off"]
    assert "corpid[tracing]" in said


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]
)
async def test_traces_that_cannot_be_had_are_told_of_and_not_made(name: str, value: str) -> None:
    """OpenTelemetry: what is unknown is warned of and ignored."""

    async def made() -> Spans | None:
        async with tracing.open_tracing({ENDPOINT: "http://127.0.0.1:9", name: value}) as spans:
            return spans

    with capture_logs() as lines:
        assert await made() is None
    [said] = [line["detail"] for line in lines if line["event"] == "traces_off"]
    assert f"{name} is {value}" in said


# --- whose traces go on ------------------------------------------------------------------------


class Traced:
    """A provider in this process, and the spans that it made."""

    def __init__(self, asgi: Any, exporter: InMemorySpanExporter) -> None:
        self._asgi = asgi
        self._exporter = exporter

    async def get(self, path: str, traceparent: str, peer: str) -> Sequence[ReadableSpan]:
        """The spans of one request, the request's own last."""
        self._exporter.clear()
        transport = httpx.ASGITransport(app=self._asgi, client=(peer, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as http:
            await http.get(path, headers={"traceparent": traceparent} if traceparent else {})
        return self._exporter.get_finished_spans()


@asynccontextmanager
async def traced(folder: Path) -> AsyncIterator[Traced]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("test"))
    chosen = settings.load(data_dir=folder, trusted_proxies="10.0.0.0/8")
    async with app.create(chosen, spans=spans) as application:
        yield Traced(application.asgi, exporter)


async def test_only_a_trusted_proxys_trace_goes_on_here(tmp_path: Path) -> None:
    """D47; W3C Trace Context §3.4: anybody else neither writes into a trace of ours nor decides what is kept."""
    async with traced(tmp_path) as made:
        *_, believed = await made.get("/.well-known/keys", KEPT, "10.1.2.3")
        assert believed.parent is not None
        assert (f"{believed.context.trace_id:032x}", f"{believed.parent.span_id:016x}") == (
            THEIRS,
            "00f067aa0ba902b7",
        )
        assert await made.get("/.well-known/keys", LEFT_OUT, "10.1.2.3") == ()
        for header in (KEPT, LEFT_OUT):
            *_, apart = await made.get("/.well-known/keys", header, "192.0.2.1")
            assert apart.parent is None
            assert f"{apart.context.trace_id:032x}" != THEIRS
            assert [f"{link.context.trace_id:032x}" for link in apart.links] == [THEIRS]
        *_, alone = await made.get("/.well-known/keys", "00-broken", "10.1.2.3")
        assert (alone.parent, list(alone.links)) == (None, [])


async def test_what_met_no_route_has_no_path_and_health_is_not_traced(tmp_path: Path) -> None:
    async with traced(tmp_path) as made:
        [nowhere] = await made.get("/made-up/secret", "", "192.0.2.1")
        assert nowhere.name == "GET"
        assert nowhere.kind is SpanKind.SERVER
        assert "made-up" not in nowhere.to_json()
        for path in ("/healthz", "/readyz"):
            assert all(span.kind is not SpanKind.SERVER for span in await made.get(path, "", "192.0.2.1"))


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told_as"),
    [(StoreUnavailable("secret place"), "StoreUnavailable"), (HttpClientError("secret"), "HttpClientError"), (InvalidGrant(Reason.CODE_UNKNOWN, "secret"), None)],
)  # fmt: skip
def test_a_failure_is_told_by_its_kind_and_a_refusal_is_none(error: Exception, told_as: str | None) -> None:
    """D48: the message of an exception may hold what a caller sent."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider.get_tracer("test"))
    with pytest.raises(type(error)), spans.child("directory.acting", {}):
        raise error
    [span] = exporter.get_finished_spans()
    assert (span.attributes or {}).get("error.type") == told_as
    assert (span.status.status_code is StatusCode.ERROR) is (told_as is not None)
    assert "secret" not in span.to_json()
