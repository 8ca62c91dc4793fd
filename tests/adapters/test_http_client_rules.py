"""Where the one outgoing client goes and where it never goes, whoever chose the URL (D27)."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

import pytest

from corpid.outbound.client_keys import Egress
from corpid.outbound.destinations import DEVELOPER, INTERNET, HttpClientError, is_public
from corpid.outbound.http_client import HttpClient, system_addresses
from tests.adapters.rp_server import (
    answer,
    client_context,
    relying_party,
)
from tests.logs import capture_logs

PUBLIC = (
    "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.88.98.1",
    "192.88.100.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "11.0.0.1",
    "2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2001:4860:4860::8888", "2003::1", "3ffe::1", "3fff:1000::1",
)  # fmt: skip
NOT_PUBLIC = (
    # this network, private, shared (CGNAT), loopback, link-local
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
    # special purpose, documentation, benchmarks, multicast, reserved, broadcast
    "192.0.0.0", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.255", "192.0.2.1", "192.88.99.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "233.252.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.254", "255.255.255.255",
    # unspecified, loopback, link-local, unique local, multicast, site-local, discard
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1", "ff0e::1", "fec0::1", "100::1",
    # forms that carry an IPv4 address: compatible, mapped, translated, NAT64, local NAT64, Teredo, 6to4
    "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::a00:1",
    "64:ff9b:1::1", "2001:0:4136:e378::1", "2002:808:808::1", "2002:7f00:1::1",
    # protocol assignments, ORCHID, benchmarks, documentation, segment routing, not allocated, scoped
    "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1", "2001:db8::1", "3fff::1", "3fff:fff::1",
    "5f00::1", "4000::1", "1fff::1", "2606:4700::1111%eth0",
)  # fmt: skip


def no_look_up(name: str, port: int) -> list[str]:
    raise AssertionError(f"{name}:{port} was looked up")


def strict(resolve: object = no_look_up) -> HttpClient:
    return HttpClient(own_url="https://id.example/op", resolve=resolve, ssl_context=client_context())  # type: ignore[arg-type]


def detail_of(egress: HttpClient, url: str) -> str:
    async def fetch() -> None:
        await egress.fetch(url)

    with pytest.raises(HttpClientError) as refused:
        asyncio.run(fetch())
    return refused.value.detail


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_of_any_other_range_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://rp.example/jwks", "https://"),
        ("ftp://rp.example/jwks", "https://"),
        ("file:///etc/passwd", "https://"),
        ("//rp.example/jwks", "https://"),
        ("https://rp.example:8443/jwks", "the port is 443"),
        ("https://rp.example:80/jwks", "the port is 443"),
        ("https://8.8.8.8/jwks", "a name, not an address"),
        ("https://[2606:4700::1111]/jwks", "a name, not an address"),
        ("https://134744072/jwks", "a name, not an address"),
        ("https://0x08080808/jwks", "a name, not an address"),
        ("https://127.1/jwks", "a name, not an address"),
        ("https://rp.example.0x7f/jwks", "a name, not an address"),
        ("https:///jwks", "a name, not an address"),
        ("https://rp..example/jwks", "a name, not an address"),
        ("https://rp.example./jwks", "a name, not an address"),
        ("https://rp%2eexample/jwks", "a name, not an address"),
        ("https://id.example/jwks", "not one of this provider"),
        ("https://ID.Example/jwks", "not one of this provider"),
        ("https://user:secret@rp.example/jwks", "no user name or password"),
        ("https://rp.example:port/jwks", "malformed"),
        ("https://rp.example\n/jwks", "malformed"),
        ("not a url", "https://"),
    ],
)
def test_a_url_that_is_not_allowed_is_refused_before_anything_is_looked_up(url: str, rule: str) -> None:
    """D27: https, port 443, a host name, not our own."""
    assert rule in detail_of(strict(), url)


def test_port_443_may_be_written_out() -> None:
    assert "10.0.0.1" in detail_of(strict(lambda _name, _port: ["10.0.0.1"]), "https://rp.example:443/jwks")


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "64:ff9b::a9fe:a9fe"])
def test_a_name_with_one_private_address_among_public_ones_is_refused(address: str) -> None:
    """D27: every resolved address must be public."""
    detail = detail_of(strict(lambda _name, _port: ["8.8.8.8", address]), "https://rp.example/jwks")
    assert address in detail
    assert "not public" in detail


def test_a_name_without_an_address_is_refused() -> None:
    assert "none at all" in detail_of(strict(lambda _name, _port: []), "https://rp.example/jwks")


def test_an_unknown_name_is_refused_with_the_reason() -> None:
    def unknown(name: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    assert "rp.example was not found" in detail_of(strict(unknown), "https://rp.example/jwks")


async def test_developer_mode_lifts_https_port_and_address_rules_visibly() -> None:
    """D27."""

    async def fetch() -> bytes:
        async with relying_party(answer(b"local"), tls=False) as server:
            with capture_logs() as logged:
                Egress(own_url="http://localhost:8000", rules=DEVELOPER)
            egress = HttpClient(own_url="http://localhost:8000", rules=DEVELOPER, ssl_context=client_context())
            assert [(line["event"], line["log_level"]) for line in logged] == [("egress_rules_lifted", "warning")]
            assert egress.rules is DEVELOPER
            return await egress.fetch(f"http://127.0.0.1:{server.port}/jwks")

    assert await fetch() == b"local"


def test_developer_mode_still_refuses_the_providers_own_address() -> None:
    egress = HttpClient(
        own_url="http://localhost:8000", rules=DEVELOPER, resolve=no_look_up, ssl_context=client_context()
    )
    assert "not one of this provider" in detail_of(egress, "http://localhost:8000/.well-known/keys")


def test_nothing_is_logged_and_nothing_lifted_by_default() -> None:
    with capture_logs() as logged:
        Egress(own_url="https://op.example")
    assert logged == []
    assert strict().rules is INTERNET


def test_the_system_looks_names_up() -> None:
    assert "127.0.0.1" in system_addresses("127.0.0.1", 443)
