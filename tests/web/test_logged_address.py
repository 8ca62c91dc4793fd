"""Whose address a log's line holds: the caller's, told by a declared proxy and by nobody else (D47, D48)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.web.processes import serving
from tests.web.served import PATIENCE, Caller

if TYPE_CHECKING:
    from pathlib import Path

CALLER, SPOOFED = b"198.51.100.7", b"192.0.2.1"
HEADS = (
    b"GET / HTTP/1.1\r\nHost: localhost:%(port)d\r\nX-Forwarded-For: %(hops)s\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: elsewhere\r\nX-Forwarded-For: %(caller)s\r\nForwarded: for=_x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: %(hops)s\r\nContent-Length: 70000\r\n\r\n",
    b"GET / HTTP/1.1\r\nX-Forwarded-For: %(hops)s\r\n" + b"a:\r\n" * 200 + b"\r\n",
)


@pytest.mark.full
@pytest.mark.parametrize(("proxies", "logged"), [("127.0.0.1", CALLER.decode()), ("10.0.0.0/8", "127.0.0.1")])
def test_behind_a_declared_proxy_it_is_the_callers_and_else_the_peers(
    tmp_path: Path, proxies: str, logged: str
) -> None:
    """D47: also of a request that is refused for its size; what the caller wrote itself stands left."""
    with serving(tmp_path, trusted_proxies=proxies) as running:
        port = int(running.base_url.rpartition(":")[2])
        filled = {b"port": port, b"hops": SPOOFED + b", " + CALLER, b"caller": CALLER}
        statuses = []
        for head in HEADS:
            with Caller(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) as caller:
                statuses.append(caller.say(head % filled).answer().status)
        assert statuses == [200, 421, 413, 431]
        lines = [line for line in running.lines() if line["event"] == "request"]
        assert [line["address"] for line in lines] == [logged] * len(HEADS)
        reasons = [None, "host_unknown", "http_body_too_large", "http_head_too_large"]
        assert [line.get("reason") for line in lines] == reasons
