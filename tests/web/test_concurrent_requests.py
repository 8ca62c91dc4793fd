"""The bound of requests that one process answers at the same time, as a setting (issue: overload)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.web.processes import serving
from tests.web.served import PATIENCE, Caller

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full
def test_the_setting_reaches_the_server_and_health_is_answered_beyond_it(tmp_path: Path) -> None:
    """Behind another request on the same connection the next one begins while that one is just being answered."""
    with serving(tmp_path, concurrent_requests="1") as running:
        port = int(running.base_url.rpartition(":")[2])
        for path, status in (("/", 503), ("/.well-known/keys", 503), ("/healthz", 200), ("/readyz", 200)):
            with Caller(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as caller:
                asked = [f"GET {each} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode() for each in ("/", path)]
                first, second = [caller.say(b"".join(asked)).answer(), caller.answer()]
                assert (first.status, second.status) == (200, status), path
                assert (second.headers.get("retry-after") == "5") == (status == 503)
                assert caller.say(asked[0]).answer().status == 200


def test_beyond_it_a_resource_still_asks_for_a_token_that_is_not_there(tmp_path: Path) -> None:
    """Spec 7.4 rule 2: no Authorization: the bare 401, whatever else is the matter."""
    with serving(tmp_path, concurrent_requests="1") as running:
        port = int(running.base_url.rpartition(":")[2])
        host = f"Host: localhost:{port}\r\n"
        for credentials, status in (
            ("", 401),
            ("Authorization: Basic eDp5\r\n", 401),
            ("Authorization: DPoP x\r\n", 503),
        ):
            with Caller(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as caller:
                caller.say(f"GET / HTTP/1.1\r\n{host}\r\nGET /userinfo HTTP/1.1\r\n{host}{credentials}\r\n".encode())
                first, second = caller.answer(), caller.answer()
                assert (first.status, second.status) == (200, status), credentials
                assert ("www-authenticate" in second.headers, second.body == b"") == ((status == 401),) * 2
