"""What every request gets, whatever answers it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from contextlib import contextmanager
from ipaddress import ip_network
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from corpid.flows.operations.readiness import NotReady
from corpid.web.http.middleware import Middleware
from corpid.web.telemetry import access_log
from tests.logs import log_left_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

NOW = 1_700_000_000.25
PAGE = [(b"content-type", b"text/html; charset=utf-8")]
JSON = [(b"content-type", b"application/json")]


@contextmanager
def log_of(**options: Any) -> Iterator[io.BytesIO]:
    stream = options.pop("stream", None) or io.BytesIO()
    with log_left_alone():
        access_log.configure(clock=lambda: NOW, stream=stream, **options)
        yield stream


@pytest.fixture
def lines() -> Iterator[io.BytesIO]:
    """The log of the test."""
    with log_of() as stream:
        yield stream


def logged(stream: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def ready() -> float:
    """The deployment answers, and recovers from nothing."""
    return 0.0


def answering(headers: list[tuple[bytes, bytes]], **added: str) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["log"].update(added)
        content = json.dumps([scope["state"]["request_id"], scope["state"]["client_address"]]).encode()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return app


def asked(app: ASGIApp, path: str = "/", method: str = "GET", **options: Any) -> httpx.Response:
    host = options.pop("host", "idp.example")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, client=options.pop("client", ("192.0.2.1", 1)))
        async with httpx.AsyncClient(transport=transport, base_url="https://idp.example") as client:
            return await client.request(method, path, headers={"host": host, **options.pop("headers", {})}, **options)

    return asyncio.run(ask())


def shell(app: ASGIApp, **options: Any) -> Middleware:
    return Middleware(app, **{"base_url": "https://idp.example", "ready": ready, "clock": lambda: NOW, **options})


@pytest.mark.usefixtures("lines")
def test_a_page_forbids_what_it_does_not_need() -> None:
    """D36"""
    headers = asked(shell(answering(PAGE))).headers
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.usefixtures("lines")
def test_a_machine_answer_is_not_to_be_sniffed() -> None:
    """D36"""
    headers = asked(shell(answering(JSON))).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" not in headers


@pytest.mark.usefixtures("lines")
def test_a_page_may_have_a_policy_of_its_own() -> None:
    """D37"""
    headers = asked(shell(answering([*PAGE, (b"content-security-policy", b"default-src 'none'")]))).headers
    assert headers.get_list("content-security-policy") == ["default-src 'none'"]
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.usefixtures("lines")
def test_hsts_is_said_on_https_only() -> None:
    """D36"""
    local = shell(answering(PAGE), base_url="http://localhost:8080")
    assert "strict-transport-security" not in asked(local, host="localhost:8080").headers


@pytest.mark.usefixtures("lines")
def test_hsts_is_not_said_where_other_servers_share_the_host() -> None:
    """D36: on a developer's machine, whose other servers speak http."""
    assert "strict-transport-security" not in asked(shell(answering(PAGE), keeps_https=False)).headers


def test_another_host_name_is_421(lines: io.BytesIO) -> None:
    """D35"""
    answer = asked(shell(answering(PAGE)), host="evil.example")
    assert (answer.status_code, answer.json()["error"]) == (421, "invalid_request")
    (line,) = logged(lines)
    assert line["request_id"] in answer.json()["error_description"]
    assert line["status"] == 421
    assert asked(shell(answering(PAGE), allowed_hosts=["evil.example"]), host="evil.example").status_code == 200


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("hosts", [[], ["idp.example", "evil.example"], ["idp.example", "idp.example"]])
async def test_a_request_has_exactly_one_host(hosts: list[str]) -> None:
    """D35, RFC 9112 §3.2"""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"host", host.encode()) for host in hosts]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": None}
    await shell(answering(PAGE))(scope, receive, send)
    assert sent[0]["status"] == 400


@pytest.mark.usefixtures("lines")
def test_health_is_told_to_whatever_host_a_probe_names() -> None:
    """D35"""
    app = shell(answering(PAGE))
    for path, word in (("/healthz", "alive"), ("/readyz", "ready")):
        answer = asked(app, path, host="10.1.2.3:8080")
        assert (answer.status_code, answer.json()) == (200, {"status": word})
        assert asked(app, path, "HEAD", host="10.1.2.3:8080").content == b""
        refused = asked(app, path, "POST")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def not_ready() -> None:
    raise NotReady("database", "it does not answer")


def test_a_deployment_that_is_not_ready_says_which_part_and_is_alive(lines: io.BytesIO) -> None:
    app = shell(answering(PAGE), ready=not_ready)
    answer = asked(app, "/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready", "part": "database"})
    assert logged(lines)[0]["detail"] == "not ready: database: it does not answer"
    assert asked(app, "/healthz").status_code == 200


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    scope["state"]["log"]["reason"] = scope["path"][1:]
    await send({"type": "http.response.start", "status": 503, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.usefixtures("lines")
def test_a_store_that_failed_a_request_is_asked_again_soon() -> None:
    """D49: so its outage is in the log though nobody probes."""
    suspected: list[bool] = []
    layer = shell(app, suspect=lambda: suspected.append(True))
    for reason in ("busy", "maintenance", "store_unavailable"):
        asked(layer, f"/{reason}")
    assert suspected == [True]


async def recovering() -> float:
    return 1_700_000_042.3


@pytest.mark.usefixtures("lines")
def test_one_that_recovers_from_a_loss_of_data_is_ready_and_says_until_when() -> None:
    """D67: all nodes are equal, so none is taken out."""
    answer = asked(shell(answering(PAGE), ready=recovering), "/readyz")
    expected = {"status": "ready", "recovering": "short-lived state", "until": "2023-11-14T22:14:03Z"}
    assert (answer.status_code, answer.json()) == (200, expected)


@pytest.mark.usefixtures("lines")
def test_a_stopping_process_is_not_ready() -> None:
    app = shell(answering(PAGE))
    app.drain()
    assert asked(app, "/readyz").json() == {"status": "stopping"}
    assert asked(app).status_code == 200


async def an_unforeseen_exception_is_a_500_that_tells_the_caller_nothing(
    scope: Scope, receive: Receive, send: Send
) -> None:
    raise RuntimeError("S1234567A")


def test_an_unforeseen_exception_is_a_500_that_tells_the_caller_nothing(lines: io.BytesIO) -> None:
    """D28, D48"""
    answer = asked(shell(an_unforeseen_exception_is_a_500_that_tells_the_caller_nothing))
    event, line = logged(lines)
    assert answer.status_code == 500
    assert answer.json()["error"] == "server_error"
    assert line["request_id"] == event["request_id"]
    assert line["request_id"] in answer.json()["error_description"]
    assert (line["status"], line["error"]) == (500, "server_error")
    assert event["exception"].startswith("RuntimeError < ")
    assert "test_middleware.py" in event["exception"]
    assert b"S1234567A" not in lines.getvalue() + answer.content


def test_the_request_id_is_ours_and_new_and_says_when(lines: io.BytesIO) -> None:
    """D28, D82"""
    app = shell(answering(JSON))
    ids = {asked(app, headers={"x-request-id": "mine"}).json()[0] for _ in range(3)}
    assert len(ids) == 3
    assert all(len(request_id) == 16 and int(request_id[:8], 16) == int(NOW) for request_id in ids)
    assert {line["request_id"] for line in logged(lines)} == ids


@pytest.mark.usefixtures("lines")
def test_the_address_comes_from_a_header_only_behind_a_declared_proxy() -> None:
    """D47"""
    headers = {"x-forwarded-for": "198.51.100.7"}
    assert asked(shell(answering(JSON)), headers=headers).json()[1] == "192.0.2.1"
    behind = shell(answering(JSON), trusted_proxies=[ip_network("192.0.2.0/24")])
    assert asked(behind, headers=headers).json()[1] == "198.51.100.7"


def test_a_line_has_the_closed_list_of_fields_and_nothing_of_what_was_sent(lines: io.BytesIO) -> None:
    """D48"""
    added = {"client_id": "rp", "claimed_client_id": "rp\n" + "x" * 300, "error": "invalid_grant"}
    added |= {"reason": "code_unknown", "detail": "spent", "entity_number": "S1234567A"}
    secrets = {"authorization": "DPoP at-1", "dpop": "proof-1", "cookie": "corpid=c-1"}
    asked(shell(answering(JSON, **added)), "/a?code=code-1&state=state-1", "POST", headers=secrets, content=b"body-1")
    (line,) = logged(lines)
    assert {**line, "request_id": "", "duration_ms": 0} == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "event": "request",
        "request_id": "",
        "method": "POST",
        "path": "/a",
        "status": 200,
        "duration_ms": 0,
        "address": "192.0.2.1",
        "client_id": "rp",
        "claimed_client_id": "rp\\n" + "x" * 197 + "...",
        "error": "invalid_grant",
        "reason": "code_unknown",
        "detail": "spent",
    }
    for secret in (b"at-1", b"proof-1", b"c-1", b"code-1", b"state-1", b"body-1", b"S1234567A"):
        assert secret not in lines.getvalue()


async def the_path_is_the_route_tables(scope: Scope, receive: Receive, send: Send) -> None:
    scope["route"] = SimpleNamespace(path="/sign-in/{interaction}")
    await answering(JSON)(scope, receive, send)


def test_the_path_is_the_route_tables(lines: io.BytesIO) -> None:
    """D48"""
    asked(shell(the_path_is_the_route_tables), "/sign-in/of-one-browser")
    assert logged(lines)[0]["path"] == "/sign-in/{interaction}"


def test_a_callers_text_is_escaped_and_cut(lines: io.BytesIO) -> None:
    """D48"""
    asked(shell(answering(JSON, client_id="a\n\x1b[31m\u202e" + "b" * 5000)), "/%0Aforged%1b")
    assert lines.getvalue().count(b"\n") == 1
    assert b"\x1b" not in lines.getvalue()
    (line,) = logged(lines)
    assert line["path"] == "/\\nforged\\x1b"
    assert line["client_id"].startswith("a\\n\\x1b[31m\\u202ebb")
    assert len(line["client_id"]) < 300


def test_a_library_that_logs_logs_the_same_way(lines: io.BytesIO) -> None:
    logging.getLogger("asyncio").error("Something\nhappened")
    logging.getLogger("httpx").info("GET https://idp.example/?secret")
    (line,) = logged(lines)
    assert (line["level"], line["event"]) == ("error", "Something\\nhappened")


def test_a_higher_level_leaves_requests_out() -> None:
    with log_of(level="error") as lines:
        asked(shell(answering(JSON)))
        access_log.log().error("seen")
    assert [line["event"] for line in logged(lines)] == ["seen"]


def test_at_a_terminal_a_line_is_for_people_and_still_closed() -> None:
    """D48"""
    with log_of(pretty=True) as lines:
        asked(shell(answering(JSON, client_id="rp\x1b[2J", secret="hidden")), "/a?hidden")
    text = lines.getvalue().decode()
    assert "request" in text
    assert "/a" in text
    assert "\x1b[2J" not in text
    assert "hidden" not in text


def options_of_the_server(*hosts: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to OPTIONS *, which no client library sends."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", host) for host in hosts]
    scope = {"type": "http", "method": "OPTIONS", "path": "*", "headers": headers, "client": ("192.0.2.1", 1)}
    asyncio.run(shell(answering(JSON))(scope, None, send))  # type: ignore[arg-type] # it receives nothing
    return sent[0]["status"], sent[1]["body"]


def test_the_whole_server_is_asked_for_its_options(lines: io.BytesIO) -> None:
    """RFC 9110 §9.3.7: OPTIONS * is answered, under a name that is served here (D35)."""
    assert options_of_the_server(b"idp.example") == (204, b"")
    assert options_of_the_server(b"other.example")[0] == 421
    assert options_of_the_server()[0] == 400
    assert [line["path"] for line in logged(lines)] == ["*"] * 3
