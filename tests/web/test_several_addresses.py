"""Several addresses, and IPv4 and IPv6 at one (D76)."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid.web.http.server import ListenError, bind
from tests.machine import free_port
from tests.web.processes import command, serving

if TYPE_CHECKING:
    from collections.abc import Sequence


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")


def bound(hosts: str | Sequence[str], port: int = 0, *, ipv6_only: bool = False) -> list[tuple[str, int]]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(each)) for each in bind(hosts, port, ipv6_only=ipv6_only)]
        return [each.getsockname()[:2] for each in sockets]


def status(port: int, host: str, path: str = "/healthz") -> int:
    return httpx.get(f"http://{host}:{port}{path}", trust_env=False).status_code


def free_port_of_both() -> int:
    """Free for IPv6, too."""
    while True:
        port = free_port()
        try:
            bound("::", port)
        except ListenError:
            continue
        return port


@pytest.mark.parametrize(
    ("hosts", "ipv6_only", "expected"),
    [
        (["127.0.0.1", "::1"], False, ["127.0.0.1", "::1"]),
        ("::", False, ["::", "0.0.0.0"]),
        ("::", True, ["::"]),
        (["::", "0.0.0.0"], False, ["::", "0.0.0.0"]),
        (["127.0.0.1", "::", "::1"], False, ["::", "0.0.0.0"]),
        (["127.0.0.1", "::", "::1"], True, ["127.0.0.1", "::"]),
        (["0.0.0.0", "127.0.0.1", "::1"], False, ["0.0.0.0", "::1"]),
        (["127.0.0.1", "127.0.0.1"], False, ["127.0.0.1"]),
    ],
)
def test_each_address_is_bound_once_at_one_port(hosts: Sequence[str], ipv6_only: bool, expected: list[str]) -> None:
    """D76."""
    found = bound(hosts, free_port_of_both(), ipv6_only=ipv6_only)
    assert [host for host, _ in found] == expected
    assert len({port for _, port in found}) == 1


def test_the_first_address_chooses_a_port_for_all() -> None:
    assert len({port for _, port in bound(["127.0.0.1", "::1", "127.0.0.2"])}) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("taken", "hosts", "named"),
    [
        ("::1", "127.0.0.1, ::1", "::1"),
        ("127.0.0.1", "::1, 127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "::", "0.0.0.0 (::)"),
    ],
)
def test_an_address_that_is_taken_is_named_and_none_is_kept(tmp_path: Path, taken: str, hosts: str, named: str) -> None:
    """D76."""
    family = socket.AF_INET6 if ":" in taken else socket.AF_INET
    port = free_port_of_both()
    with socket.create_server((taken, port), family=family):
        refused = command(tmp_path, "serve", port=str(port), host=hosts)
    assert refused.returncode == 1
    assert f"port {port} on {named} is taken by another program" in refused.stderr
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1"):
        bind(["127.0.0.1", "192.0.2.1"], port)
    assert bound("127.0.0.1", port)


@pytest.mark.full
def test_workers_answer_at_every_address_also_after_one_was_replaced(tmp_path: Path) -> None:
    """D76: so do the metrics, and the log says where."""
    port, metrics = free_port_of_both(), free_port_of_both()
    chosen = {"host": "127.0.0.1, ::1", "port": str(port), "metrics_address": f"[::]:{metrics}", "workers": "2"}

    def answered() -> set[int]:
        return {
            *(status(port, host, "/readyz") for host in ("127.0.0.1", "[::1]")),
            *(status(metrics, host, "/metrics") for host in ("127.0.0.1", "[::1]")),
        }

    with serving(tmp_path, **chosen) as running:
        assert answered() == {200}
        children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
        first = children.read_text(encoding="ascii").split()
        for worker in first:
            os.kill(int(worker), signal.SIGKILL)
            while worker in children.read_text(encoding="ascii").split() or len(children.read_text().split()) < 2:
                time.sleep(0.05)
        assert answered() == {200}
        refused = command(tmp_path, "doctor", "--json", **chosen)
        found = {each["about"]: each for each in json.loads(refused.stdout)["findings"]}
        assert found["this node"]["verdict"] == "ok"
        lines = running.lines()
    listening = {line["address"] for line in lines if line["event"] == "listening"}
    assert listening == {f"127.0.0.1:{port}, [::1]:{port}"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("host", "ipv6_only", "listening"),
    [("::", "false", "[::]:{0}, 0.0.0.0:{0}"), ("127.0.0.1, ::", "true", "127.0.0.1:{0}, [::]:{0}")],
)
def test_every_address_of_ipv6_is_every_one_of_ipv4_unless_that_is_turned_off(
    tmp_path: Path, host: str, ipv6_only: str, listening: str
) -> None:
    """D76; and a caller's IPv4 address is logged as one."""
    port = free_port_of_both()
    with serving(tmp_path, host=host, ipv6_only=ipv6_only, port=str(port)) as running:
        assert status(port, "[::1]", "/readyz") == 200
        if ipv6_only == "true":
            with pytest.raises(httpx.ConnectError):
                status(port, "127.0.0.2")
        else:
            assert status(port, "127.0.0.2", "/readyz") == 200
        lines = running.lines()
    [address] = [line["address"] for line in lines if line["event"] == "listening"]
    assert address == listening.format(port)
    assert {line["address"] for line in lines if line["event"] == "request"} <= {"::1", "127.0.0.1"}
