"""`corpid doctor` where somebody else answers, who may say anything: a report comes all the same."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from corpid.cli.doctor import deployment, request_checks
from corpid.cli.doctor.deployment import ExaminedDeployment, Origin, RawResponse
from corpid.rules.diagnostics import SkippedCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Terminal

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\n\nproblem: none"
ANSWERS: dict[str, dict[str, Any] | bytes] = {
    "an issuer that redraws the screen": {"issuer": f"http://x{ESCAPES}"},
    "JSON without end": b'{"issuer":' + b"[" * 200_000,
    "no UTF-8": b'{"issuer":"\xff"}',
    "algorithms that are no list": {"token_endpoint_auth_signing_alg_values_supported": {"a": 1}},
    "a path outside of ASCII": {"token_endpoint": "/\u00e9"},
    "a long number": {"error_description": f"(reference 0123456789abcdef) expired {'9' * 5000} s ago"},
}


@contextmanager
def answering(said: dict[str, Any] | bytes, pause: threading.Event | None = None) -> Iterator[str]:
    """A website that answers everything with this, or, with `pause`, a byte a moment until that is set."""

    class Website(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}"
            whole = said if isinstance(said, bytes) else json.dumps(_completed(url, said)).encode()
            self.send_response(200)
            self.send_header("Server", ESCAPES.replace("\n", ""))
            self.send_header("Strict-Transport-Security", "max-age=" + "9" * 5000)
            self.end_headers()
            while pause is not None and not pause.wait(0.02):
                try:
                    self.wfile.write(b"x")
                except OSError:
                    return
            self.wfile.write(whole)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with served(Website) as url:
        yield url


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as website:
        thread = threading.Thread(target=website.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{website.server_port}"
        finally:
            website.shutdown()
            thread.join()


def _completed(url: str, said: dict[str, Any]) -> dict[str, Any]:
    paths = {"token_endpoint": "/token", "jwks_uri": "/jwks", "userinfo_endpoint": "/userinfo"}
    return {"issuer": url, **{name: url + said.get(name, path) for name, path in paths.items()}} | {
        name: value for name, value in said.items() if name not in paths
    }


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_whatever_is_answered_becomes_a_line_and_does_nothing_to_the_terminal(
    terminal: Terminal, said: dict[str, Any] | bytes
) -> None:
    with answering(said) as url:
        result = terminal.run("doctor", url)
    assert result.exit_code == 1, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert all(each.isprintable() for each in result.stdout.replace("\n", ""))
    assert not [line for line in result.stdout.splitlines() if line.startswith("problem:")]
    assert "problem" in result.stdout.splitlines()[-1]


def test_interim_answers_without_end_are_not_read_on(terminal: Terminal) -> None:
    """RFC 9110 §15.2: http.client passes over any number of 100s, hundreds of megabytes in ten seconds."""
    sent = 0
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def flood() -> None:
            nonlocal sent
            with suppress(OSError):
                while True:
                    connected, _ = listening.accept()
                    with connected, suppress(OSError):
                        for _ in range(4000):
                            connected.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
                            sent += 25_000

        thread = threading.Thread(target=flood)
        thread.start()
        said = terminal.run("doctor", f"http://127.0.0.1:{listening.getsockname()[1]}").stdout
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()
    assert "more than 2 MiB came" in said
    assert sent < 60 << 20


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "ANSWER_SECONDS", 0.5)
    pause = threading.Event()
    with answering(b"", pause) as url:
        try:
            assert "no answer within 0.5 seconds" in terminal.run("doctor", url).stdout
        finally:
            pause.set()


def test_userinfo_that_is_down_says_nothing_about_the_authorization_header() -> None:
    """One scheme is refused without a look at the database, the other is told to come again."""
    down = {
        "error": "temporarily_unavailable",
        "error_description": "try again in a moment (reference 0123456789abcdef)",
    }

    class Website(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers["Authorization"].startswith("DPoP"):
                self.send_response(503)
                self.end_headers()
                self.wfile.write(json.dumps(down).encode())
            else:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "DPoP")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with served(Website) as url:
        found = request_checks.check_authorization(
            ExaminedDeployment(
                origin=Origin(url),
                answer=RawResponse(status=200, headers=[], body=b""),
                document={"issuer": url, "userinfo_endpoint": f"{url}/userinfo"},
            )
        )
    assert isinstance(found, SkippedCheck)
    assert "503 by CorpID" in found.seen
