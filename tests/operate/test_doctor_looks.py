"""What a node receives through a proxy with one fault: `corpid doctor` on a node finds it, by probes (D47, D49)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from corpid.cli.doctor import deployment, request_checks
from corpid.cli.doctor.deployment import Origin
from corpid.rules.oauth.urls import DEFAULT_PORTS
from tests.machine import free_port
from tests.operate.nodes import Nodes, two_nodes
from tests.operate.proxies import SHIPPED, proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PROXY = "127.0.0.2"
"""where the proxy connects from, so that callers have another address"""
FROM_THERE = {
    "nginx": ("proxy_redirect off;", f"proxy_redirect off; proxy_bind {PROXY};"),
    "haproxy": ("default-server check", f"default-server source {PROXY} check"),
}

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with two_nodes(tmp_path_factory.mktemp("nodes"), trusted_proxies=PROXY) as running:
        yield running


class Fault(NamedTuple):
    """What is written in the place of what; what the finding is about, says and thinks of it."""

    proxy: str
    shipped: str
    written: str
    about: str
    says: str
    verdict: str = "problem"


OFF = "proxy_redirect off;"
FROM_CALLERS = "    http-request del-header Forwarded\n"
TO_CALLERS = "    default_backend corpid\n"
CALLER = "X-Forwarded-For $remote_addr"
ADDRESSES = "callers' addresses"
CALLER_OF_HAPROXY = "http-request set-header X-Forwarded-For %[src]"
BACKEND = "backend corpid\n    balance roundrobin\n"
CACHE = "proxy_cache kept;"
FAULTS = {
    "a slash": Fault("nginx", "proxy_pass http://corpid;", "proxy_pass http://corpid/;", "encoded paths", "a/b/c", "warning"),
    "normalised": Fault("haproxy", FROM_CALLERS, f"{FROM_CALLERS}    http-request set-path %[path,url_dec]\n",
        "encoded paths", "arrive", "warning"),
    "a caller's own address": Fault("nginx", CALLER, "X-Forwarded-For $http_x_forwarded_for", ADDRESSES, "can choose"),
    "appended": Fault("nginx", CALLER, "X-Forwarded-For $proxy_add_x_forwarded_for", ADDRESSES, "appended", "warning"),
    "no address": Fault("nginx", CALLER, 'X-Forwarded-For ""', ADDRESSES, "does not arrive"),
    "another header": Fault("nginx", f"proxy_set_header {CALLER};", "proxy_set_header X-Real-IP $remote_addr;", ADDRESSES, "can choose"),
    "the proxy's address": Fault("nginx", CALLER, f"X-Forwarded-For {PROXY}", ADDRESSES, "is a trusted proxy"),
    "another proxy's address": Fault("nginx", CALLER, "X-Forwarded-For 203.0.113.5", ADDRESSES, "as 203.0.113.5", "not_looked_at"),
    "nothing said": Fault("haproxy", f"    {CALLER_OF_HAPROXY}\n", "", ADDRESSES, "can choose"),
    "forwardfor": Fault("haproxy", CALLER_OF_HAPROXY, "option forwardfor", ADDRESSES, "appended", "warning"),
    "dropped": Fault("haproxy", CALLER_OF_HAPROXY, "http-request del-header X-Forwarded-For", ADDRESSES, "does not arrive"),
    "untrusted": Fault("nginx", f"proxy_bind {PROXY};", "proxy_bind 127.0.0.3;", ADDRESSES, "not in trusted_proxies"),
    "one Host": Fault("nginx", "Host $http_host", "Host $server_name:$server_port", "other names", "replaces Host", "warning"),
    "small answers": Fault("nginx", "proxy_buffer_size 16k", "proxy_buffer_size 4k", "response headers", "503"),
    "short queries": Fault("nginx", "header_buffers 4 32k", "header_buffers 8 5k", "long queries", "414"),
    "another type": Fault("haproxy", TO_CALLERS, f"    http-response set-header Content-Type text/plain\n{TO_CALLERS}",
        "media types", "text/plain"),
    "no nonce": Fault("nginx", OFF, f"{OFF} proxy_hide_header DPoP-Nonce;", "returned headers", "DPoP-Nonce"),
    "no cookies": Fault("nginx", OFF, f"{OFF} proxy_hide_header Set-Cookie;", "returned headers", "Set-Cookie"),
    "unsafe cookies": Fault("haproxy", TO_CALLERS,
        f"    http-response replace-header Set-Cookie (.*);\\ Secure(.*) \\1\\2\n{TO_CALLERS}", "returned headers", "Set-Cookie"),
    "a cache": Fault("nginx", OFF, f"{OFF} {CACHE}", "cached answers", "key is still published"),
    "a cache of all": Fault("nginx", OFF,
        f"{OFF} {CACHE} proxy_cache_valid any 9m; proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;",
        "cached answers", "page of another"),
    "a cache of HAProxy": Fault("haproxy", BACKEND,
        f"cache kept\n    total-max-size 4\n    max-age 600\n\n{BACKEND}    http-request cache-use kept\n"
        "    http-response cache-store kept\n", "cached answers", "published"),
    "traces": Fault("nginx", 'proxy_set_header traceparent "";', "", "trace context", "choose what is traced", "warning"),
    "traces of HAProxy": Fault("haproxy", "    http-request del-header traceparent\n", "", "trace context", "choose", "warning"),
    "no policy": Fault("nginx", OFF, f"{OFF} proxy_hide_header Content-Security-Policy;", "page headers", "content-security-policy"),
    "twice": Fault("nginx", OFF, f"{OFF} add_header X-Frame-Options SAMEORIGIN always;", "page headers", "x-frame-options"),
    "no HSTS": Fault("nginx", OFF, f"{OFF} proxy_hide_header Strict-Transport-Security;", "HSTS", "missing", "warning"),
    "one DPoP": Fault("nginx", OFF, f"{OFF} proxy_set_header DPoP $http_dpop;", "DPoP", "do not arrive"),
    "impatient": Fault("nginx", "proxy_read_timeout 30s", "proxy_read_timeout 3s", "slow responses", "503"),
    "impatient HAProxy": Fault("haproxy", "timeout server 30s", "timeout server 3s", "slow responses", "503"),
    "HTTP/1.0": Fault("nginx", "proxy_http_version 1.1;", "", "proxy's connections", "HTTP/1.0", "warning"),
    "closing": Fault("nginx", 'Connection ""', "Connection close", "proxy's connections", "after every", "warning"),
    "closing HAProxy": Fault("haproxy", "    balance roundrobin\n", "    balance roundrobin\n    option httpclose\n",
        "proxy's connections", "after every", "warning"),
    "long idle": Fault("nginx", "keepalive_timeout 60s", "keepalive_timeout 90s", "idle connections", "90 seconds", "warning"),
    "long idle HAProxy": Fault("haproxy", "purge-delay 60s", "purge-delay 90s", "idle connections", "90 seconds", "warning"),
}  # fmt: skip


def placed(name: str, text: str) -> str:
    """The configuration of a proxy that connects from an address of its own."""
    return text.replace(*FROM_THERE[name])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_only_a_node_can_see_is_named(nodes: Nodes, tmp_path: Path, name: str) -> None:
    wrong, directory = FAULTS[name], tmp_path / "proxy"

    def faulty(text: str) -> str:
        given = placed(wrong.proxy, text)
        assert wrong.shipped in given
        written = given.replace(wrong.shipped, wrong.written)
        zone = f"proxy_cache_path {directory}/kept keys_zone=kept:1m;\n"
        return zone + written if CACHE in written else written

    with proxy(
        wrong.proxy, directory, nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=faulty
    ) as told:
        status, found = nodes.doctor("--proxy", str(told))
    finding = found[wrong.about]
    assert finding["verdict"] == wrong.verdict, finding
    assert wrong.says in finding["seen"], finding
    assert finding["change"].startswith("Change: ") or wrong.verdict == "not_looked_at"
    assert status == (1 if "problem" in {each["verdict"] for each in found.values()} else 0)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_proxies_have_no_fault_at_an_address_of_their_own(nodes: Nodes, tmp_path: Path, name: str) -> None:
    def moved(text: str) -> str:
        return placed(name, text)

    directory = tmp_path / "proxy"
    with proxy(name, directory, nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=moved) as told:
        status, found = nodes.doctor("--proxy", str(told))
    amiss = {about: finding["seen"] for about, finding in found.items() if finding["verdict"] != "ok"}
    assert set(amiss) == {"base_url's host", "plain HTTP"}, amiss
    assert status == 0
    assert found[ADDRESSES]["seen"] == "They arrive, and forged ones do not: this machine is 127.0.0.1."


def test_metrics_behind_the_proxy_are_named(nodes: Nodes, tmp_path: Path) -> None:
    """D48: they are for Prometheus."""
    address = f"127.0.0.1:{free_port()}"
    reached = (
        f"location = /metrics {{ proxy_pass http://{address}; proxy_set_header Host {address}; }}\n    location / {{"
    )

    def leading(text: str) -> str:
        return placed("nginx", text).replace("location / {", reached)

    nodes.stop(0)
    nodes.settings["metrics_address"] = address
    nodes.start(0)
    try:
        with proxy(
            "nginx", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=leading
        ):
            status, found = nodes.doctor(nodes.issuer)
    finally:
        nodes.stop(0)
        del nodes.settings["metrics_address"]
        nodes.start(0)
    assert (status, found["metrics"]["verdict"]) == (1, "problem")


def test_one_node_of_two_that_does_not_trust_the_proxy_is_named(nodes: Nodes, tmp_path: Path) -> None:
    """D47: the doctor runs on the other one, whose settings are right."""

    def moved(text: str) -> str:
        return placed("haproxy", text)

    nodes.stop(1)
    nodes.settings["trusted_proxies"] = "192.0.2.1"
    nodes.start(1)
    nodes.settings["trusted_proxies"] = PROXY
    try:
        with proxy(
            "haproxy", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=moved
        ):
            status, found = nodes.doctor()
    finally:
        nodes.stop(1)
        nodes.start(1)
    assert (status, found[ADDRESSES]["verdict"]) == (1, "problem")
    assert f"{PROXY}, which is not in trusted_proxies" in found[ADDRESSES]["seen"]


PLAIN = {
    "shipped": ("", "", "ok", "redirects"),
    "caller's host": ("https://$server_name", "https://$host", "warning", "a caller names"),
    "no TLS": (
        "return 301 https://$server_name$request_uri;",
        "location / { proxy_pass http://corpid; proxy_set_header Host $http_host; }",
        "problem",
        "without TLS",
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_port_80_redirects_to_the_configured_name(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On other ports than 80 and 443, which are not ours to take."""
    shipped, written, verdict, says = PLAIN[name]
    secure, plain = nodes.ports

    def changed(text: str) -> str:
        own = placed("nginx", text)
        return own.replace(shipped, written) if shipped else own

    with proxy("nginx", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=changed):
        monkeypatch.setitem(DEFAULT_PORTS, "https", secure)
        monkeypatch.setitem(DEFAULT_PORTS, "http", plain)
        trusted = deployment.create_tls_context(nodes.certified.authority)
        _, there = deployment.reach_deployment(Origin(nodes.issuer, trusted))
        assert there is not None
        found = request_checks.check_plain_http(there)
    assert found is not None
    assert (found.verdict, says in found.seen) == (verdict, True), found


def test_without_settings_of_a_node_it_says_what_it_did_not_look_at(nodes: Nodes, tmp_path: Path) -> None:
    """Neither is ok: requests alone show nothing of what a node receives."""

    def moved(text: str) -> str:
        return placed("nginx", text)

    with proxy("nginx", tmp_path / "proxy", nodes.certified, ports=nodes.ports, nodes=nodes.node_ports, change=moved):
        status, found = nodes.doctor(nodes.issuer)
        other = tmp_path / "other.key"
        shutil.copy(nodes.settings["key_encryption_key_file"], other)
        other.write_text("A" * 43 + "=\n")
        _, stranger = nodes.doctor(key_encryption_key_file=str(other))
    unseen = {about for about, finding in found.items() if finding["verdict"] == "not_looked_at"}
    assert status == 0
    assert {ADDRESSES, "trace context", "cached answers", "slow responses", "retries", "access log"} <= unseen
    assert stranger[ADDRESSES]["verdict"] == "not_looked_at"
    assert "No node knows this machine's probes" in stranger[ADDRESSES]["seen"]
