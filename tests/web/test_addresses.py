"""Whose address counts (D47), and which Host headers are answered (D35)."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.web.http.addresses import ClientAddresses, ForwardingHeader, Hosts

TRUSTED = tuple(map(ip_network, ("10.0.0.0/8", "2001:db8::/32", "127.0.0.1")))
PROXY, CALLER = "10.0.0.1", "198.51.100.7"


def xff(*values: str) -> list[tuple[bytes, bytes]]:
    return [(b"x-forwarded-for", value.encode()) for value in values]


def forwarded(*values: str) -> list[tuple[bytes, bytes]]:
    return [(b"forwarded", value.encode()) for value in values]


@pytest.mark.parametrize(
    ("why", "peer", "headers", "address"),
    [
        ("no header", PROXY, [], PROXY),
        ("an untrusted peer says what it likes", CALLER, xff("192.0.2.1"), CALLER),
        ("an untrusted peer, the other header", CALLER, forwarded("for=192.0.2.1"), CALLER),
        ("no peer address (a UNIX socket)", "", xff("192.0.2.1"), ""),
        ("one proxy", PROXY, xff(CALLER), CALLER),
        ("what the caller wrote stands left", PROXY, xff(f"192.0.2.1, {CALLER}"), CALLER),
        ("two proxies", PROXY, xff(f"192.0.2.1, {CALLER}, 10.0.0.9"), CALLER),
        ("header lines are one list", PROXY, xff("192.0.2.1", CALLER, "10.0.0.9"), CALLER),
        ("only trusted ones: the farthest", PROXY, xff("10.0.0.8, 10.0.0.9"), "10.0.0.8"),
        ("with a port", PROXY, xff(f"{CALLER}:4711"), CALLER),
        ("IPv6", PROXY, xff("2a00::7"), "2a00::7"),
        ("IPv6 in brackets with a port", PROXY, xff("[2A00:0::7]:4711"), "2a00::7"),
        ("IPv6 peer", "2001:db8::1", xff(CALLER), CALLER),
        ("a peer mapped into IPv6", "::ffff:127.0.0.1", xff(CALLER), CALLER),
        ("a hop mapped into IPv6", PROXY, xff("192.0.2.1, ::ffff:10.0.0.9"), "192.0.2.1"),
        ("unknown: the hop that said so", PROXY, xff("192.0.2.1, unknown, 10.0.0.9"), "10.0.0.9"),
        ("rubbish: the peer", PROXY, xff("192.0.2.1, <script>"), PROXY),
        ("empty", PROXY, xff(""), PROXY),
        ("empty entries", PROXY, xff(", ,"), PROXY),
        ("a caller's own Forwarded", PROXY, xff(CALLER) + forwarded("for=192.0.2.1"), CALLER),
        ("a caller's own Forwarded, obfuscated", PROXY, xff(CALLER) + forwarded("for=_x"), CALLER),
        ("a caller's own Forwarded, and none of the proxy's", PROXY, forwarded(f"for={CALLER}"), PROXY),
    ],
)
def test_the_address_is_the_nearest_one_that_no_trusted_proxy_has(
    why: str, peer: str, headers: list[tuple[bytes, bytes]], address: str
) -> None:
    assert ClientAddresses(TRUSTED).caller_address(peer, headers) == address, why


@pytest.mark.parametrize(
    ("why", "headers", "address"),
    [
        ("one proxy", forwarded(f"for={CALLER};proto=https;by=10.0.0.1"), CALLER),
        ("quoted IPv6", forwarded('For="[2a00::7]:4711"'), "2a00::7"),
        ("two elements", forwarded(f"for=192.0.2.1, for={CALLER};by=x, for=10.0.0.9"), CALLER),
        ("obfuscated", forwarded("for=192.0.2.1, for=_hidden"), PROXY),
        ("without for", forwarded("proto=https"), PROXY),
        ("a caller's own X-Forwarded-For", xff("192.0.2.1") + forwarded(f"for={CALLER}"), CALLER),
        ("a caller's own X-Forwarded-For, and nothing of the proxy's", xff("192.0.2.1"), PROXY),
    ],
)
def test_where_proxies_set_forwarded_it_alone_counts(
    why: str, headers: list[tuple[bytes, bytes]], address: str
) -> None:
    """RFC 7239 §4"""
    assert ClientAddresses(TRUSTED, ForwardingHeader.FORWARDED).caller_address(PROXY, headers) == address, why


def test_without_declared_proxies_only_the_connection_counts() -> None:
    assert ClientAddresses().caller_address("127.0.0.1", xff(CALLER) + forwarded(f"for={CALLER}")) == "127.0.0.1"


@given(st.binary(max_size=200), st.sampled_from(ForwardingHeader))
def test_any_header_gives_an_address_without_an_error(value: bytes, name: str) -> None:
    assert ClientAddresses(TRUSTED, name).caller_address(PROXY, [(name.lower().encode(), value)])


def test_a_very_long_list_of_hops_is_cut() -> None:
    hops = ", ".join(["192.0.2.1"] + ["10.0.0.9"] * 100)
    assert ClientAddresses(TRUSTED).caller_address(PROXY, xff(hops)) == "10.0.0.9"


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        (b"idp.example", True),
        (b"IDP.example", True),
        (b"idp.example:443", True),
        (b"idp.example:80", False),
        (b"idp.example.evil.example", False),
        (b"evil.example", False),
        (b"idp.example@evil.example", False),
        (b"", False),
        (b"internal", True),
        (b"internal:9000", True),
        (b"10.1.2.3:8080", True),
        (b"10.1.2.3", False),
        (b"[::1]", True),
        (b"[::1]:8080", True),
        (b"[::2]:8080", False),
        (b"\xff", False),
        (b"a" * 5000, False),
    ],
)
def test_base_urls_host_and_allowed_ones_are_answered(host: bytes, is_answered: bool) -> None:
    hosts = Hosts("https://idp.example/sso", ["internal", "10.1.2.3:8080", "[::1]"])
    assert hosts.allows(host) is is_answered


def test_a_port_of_base_url_belongs_to_its_host() -> None:
    hosts = Hosts("http://localhost:8080")
    assert hosts.allows(b"localhost:8080")
    assert not hosts.allows(b"localhost")
    assert not hosts.allows(b"127.0.0.1:8080")
