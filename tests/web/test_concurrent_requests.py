"""The bound of requests that one process answers at the same time, as a setting."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Self

import pytest

from tests.web.processes import Running, serving
from tests.web.served import PATIENCE, Answer, Caller
from tests.web.test_workers import until


class TwoCallers:
    """Two connections to a server, which reads what both say in the same moment."""

    def __init__(self, running: Running) -> None:
        self._process = running.process
        self._port = int(running.base_url.rpartition(":")[2])
        self._first, self._second = self._connected(), self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for caller in (self._first, self._second):
            caller.__exit__()

    def ask(self, path: str, headers: str = "") -> tuple[Answer, Answer]:
        """The answers to a request for `/` that is being answered when the next one begins, and to that one."""
        until(
            lambda: self._state() == "S"
        )  # a loop that is still busy looks first at the connection that it served last
        self._process.send_signal(signal.SIGSTOP)
        until(lambda: self._state() == "T")
        self._first.say(self._request("/"))
        self._second.say(self._request(path, headers))
        self._process.send_signal(signal.SIGCONT)
        return self._first.answer(), self._second.answer()

    def _state(self) -> str:
        """As the system sees the process: S if it waits for events, T if it is stopped."""
        return Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]

    def ask_alone(self, path: str) -> Answer:
        """The answer to a request on the second connection."""
        return self._second.say(self._request(path)).answer()

    def _connected(self) -> Caller:
        caller = Caller(socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE))
        assert caller.say(self._request("/healthz")).answer().status == 200
        return caller

    def _request(self, path: str, headers: str = "") -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: localhost:{self._port}\r\n{headers}\r\n".encode()


@pytest.mark.full
def test_the_setting_reaches_the_server_and_health_is_answered_beyond_it(tmp_path: Path) -> None:
    with serving(tmp_path, concurrent_requests="1") as running, TwoCallers(running) as callers:
        for path, status in (("/", 503), ("/.well-known/keys", 503), ("/healthz", 200), ("/readyz", 200)):
            first, second = callers.ask(path)
            assert (first.status, second.status) == (200, status), path
            assert (second.headers.get("retry-after") == "5") == (status == 503)
            assert callers.ask_alone("/").status == 200


def test_beyond_it_a_resource_still_asks_for_a_token_that_is_not_there(tmp_path: Path) -> None:
    """Spec 7.4 rule 2: no Authorization: the bare 401, whatever else is the matter."""
    with serving(tmp_path, concurrent_requests="1") as running, TwoCallers(running) as callers:
        for credentials, status in (
            ("", 401),
            ("Authorization: Basic eDp5\r\n", 401),
            ("Authorization: DPoP x\r\n", 503),
        ):
            first, second = callers.ask("/userinfo", credentials)
            assert (first.status, second.status) == (200, status), credentials
            assert ("www-authenticate" in second.headers, second.body == b"") == ((status == 401),) * 2
