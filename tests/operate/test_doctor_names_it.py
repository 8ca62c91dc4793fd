"""One mistake at a time in a proxy or a node, made in earnest: `corpid doctor` names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.operate.certificates import certified
from tests.operate.nodes import Nodes, two_nodes
from tests.operate.proxies import proxy

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


class Mistake(NamedTuple):
    """What is written in the place of what, and what the finding is about, says and thinks of it."""

    proxy: str
    shipped: str
    written: str
    about: str
    says: str
    verdict: str = "problem"


TO_NODES = "proxy_redirect off;"
FROM_CALLERS = "    http-request del-header Forwarded\n"
MISTAKES = {
    "prefix": Mistake("nginx", "proxy_pass http://corpid;", "proxy_pass http://corpid/sso/;", "reachable", "prefix"),
    "Host": Mistake("nginx", "Host $http_host", "Host corpid", "reachable", "proxy_set_header Host"),
    "no DPoP": Mistake("nginx", TO_NODES, 'proxy_set_header DPoP "";', "DPoP", "do not arrive"),
    "no Authorization": Mistake("nginx", TO_NODES, 'proxy_set_header Authorization "";', "Authorization", "none arrived"),
    "no challenge": Mistake("nginx", TO_NODES, "proxy_hide_header WWW-Authenticate;", "Authorization", "challenge"),
    "small heads": Mistake("nginx", "header_buffers 4 32k", "header_buffers 2 2k", "header sizes", "3 KiB are refused"),
    "usual heads": Mistake("nginx", "header_buffers 4 32k", "header_buffers 4 8k", "header sizes", "9 KiB", "warning"),
    "small bodies": Mistake("nginx", "body_size 128k", "body_size 16k", "body sizes", "60 KiB is refused: 413"),
    "retries": Mistake("nginx", "error timeout;", "error timeout non_idempotent;", "retries", "sent again"),
    "gzip": Mistake("nginx", "gzip off;", "gzip on;", "compression", "gzip", "warning"),
    "no cache header": Mistake("nginx", TO_NODES, "proxy_hide_header Cache-Control;", "caching", "missing"),
    "HSTS twice": Mistake(
        "nginx", TO_NODES, 'add_header Strict-Transport-Security "max-age=60" always;', "HSTS", "max-age=60", "warning"
    ),
    "case": Mistake("nginx", "location / {", "location = /MGA/SPS/OAUTH/OAUTH20/TOKEN { return 301 /; }\nlocation / {",
        "paths", "in capitals", "warning"),
    "old TLS": Mistake("nginx", "TLSv1.2 TLSv1.3;\n    ssl_ciphers ECDHE+AESGCM",
        "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;\n    ssl_ciphers ALL:@SECLEVEL=0", "TLS", "before 1.2"),
    "set-path": Mistake("haproxy", FROM_CALLERS, "    http-request set-path /sso%[path]\n", "reachable", "prefix"),
    "set Host": Mistake("haproxy", FROM_CALLERS, "    http-request set-header Host corpid\n", "reachable", "Host"),
    "del DPoP": Mistake("haproxy", FROM_CALLERS, "    http-request del-header DPoP\n", "DPoP", "do not arrive"),
    "small buffers": Mistake("haproxy", "bufsize 65536", "bufsize 16384", "header sizes", "9 KiB", "warning"),
    "few fields": Mistake("haproxy", "bufsize 65536\n    tune.http.maxhdr 256", "bufsize 16384", "DPoP", "unknown", "warning"),
    "queries": Mistake("nginx", "method $logged_path", "method $request_uri", "access log", "Query strings"),
    "usual log": Mistake("nginx", "access.log corpid;\n    # the", "access.log;\n    # the", "access log", "Query strings"),
    "whole paths": Mistake("nginx", "method $logged_path", "method $uri", "access log", "Whole paths", "warning"),
    "queries of HAProxy": Mistake("haproxy", "%[var(txn.logged_path)]", "%HU", "access log", "Query strings"),
    "all errors": Mistake("haproxy", "retry-on conn-failure", "retry-on all-retryable-errors", "retries", "sent again"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_proxy_is_named(nodes: Nodes, tmp_path: Path, name: str) -> None:
    wrong = MISTAKES[name]

    def mistaken(text: str) -> str:
        return text.replace(wrong.shipped, wrong.written)

    own, directory = nodes.certified, tmp_path / "proxy"
    with proxy(wrong.proxy, directory, own, ports=nodes.ports, nodes=nodes.node_ports, change=mistaken) as told:
        status, found = nodes.doctor(nodes.issuer, "--proxy", str(told))
    finding = found[wrong.about]
    assert finding["verdict"] == wrong.verdict, finding
    assert wrong.says in finding["seen"] + finding["change"]
    assert status == (1 if "problem" in {each["verdict"] for each in found.values()} else 0)


def test_a_chain_with_a_gap_is_named_and_the_rest_is_looked_at(nodes: Nodes, tmp_path: Path) -> None:
    short = certified(tmp_path / "tls", whole=False)
    with proxy("nginx", tmp_path / "proxy", short, ports=nodes.ports, nodes=nodes.node_ports):
        status, found = nodes.trusting(short).doctor(nodes.issuer)
    assert status == 1
    assert "whole chain" in found["certificate"]["change"]
    assert found["reachable"]["verdict"] == "ok"


def test_a_certificate_that_ends_soon_and_one_of_another_host_are_named(nodes: Nodes, tmp_path: Path) -> None:
    for name, days, verdict in (("localhost", 5, "warning"), ("login.example.org", 60, "problem")):
        own = certified(tmp_path / name, name=name, days=days)
        with proxy("nginx", tmp_path / f"proxy-{days}", own, ports=nodes.ports, nodes=nodes.node_ports):
            _, found = nodes.trusting(own).doctor(nodes.issuer)
        assert found["certificate"]["verdict"] == verdict, found["certificate"]


def test_another_base_url_and_an_untrusted_proxy_are_named(tmp_path: Path) -> None:
    """D7, D47: a proof's htu names base_url, and every caller has the proxy's address."""
    wrong = {"base_url": "https://login.example.org", "allowed_hosts": "localhost", "trusted_proxies": "192.0.2.1"}
    with (
        two_nodes(tmp_path, **wrong) as nodes,
        proxy("haproxy", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports),
    ):
        status, found = nodes.doctor(f"https://localhost:{nodes.ports[0]}", "--node")
    assert status == 1
    assert "https://login.example.org" in found["base_url"]["seen"]
    assert found["base_url"]["verdict"] == "problem"
    assert "127.0.0.1, which is not trusted" in found["connecting addresses"]["seen"]
    assert "127.0.0.1, which is not in trusted_proxies" in found["callers' addresses"]["seen"]
