"""The one outgoing client keeps the bounds of D27, whoever chose the URL and whatever stands there."""

from __future__ import annotations

import asyncio
import gzip
import threading
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from corpid.adapters.egress import DEVELOPER, INTERNET, Egress, EgressError, is_public, system_addresses
from tests.adapters.rp_server import (
    NAME,
    answer,
    client_context,
    drip,
    egress_to,
    flood,
    hang,
    relying_party,
)

if TYPE_CHECKING:
    from tests.adapters.rp_server import Answer

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


def strict(resolve: object = no_look_up) -> Egress:
    return Egress(own_url="https://id.example/op", resolve=resolve, ssl_context=client_context())  # type: ignore[arg-type]


def detail_of(egress: Egress, url: str) -> str:
    async def fetch() -> None:
        await egress.fetch(url)

    with pytest.raises(EgressError) as refused:
        asyncio.run(fetch())
    return refused.value.detail


def against(behave: Answer, seconds: float = 20.0) -> str:
    """What a fetch from a server with this behaviour is refused with."""

    async def fetch() -> str:
        async with relying_party(behave) as server:
            with pytest.raises(EgressError) as refused:
                await egress_to(server.port, seconds=seconds).fetch(server.url)
            return refused.value.detail

    return asyncio.run(fetch())


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


def test_the_body_of_a_200_answer_comes_back_whole() -> None:
    body = b'{"keys":[]}' + b" " * 60000

    async def fetch() -> bytes:
        async with relying_party(answer(body)) as server:
            return await egress_to(server.port).fetch(server.url)

    assert asyncio.run(fetch()) == body


def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """D27: a resolver that answers publicly once and privately afterwards (rebinding) is asked only once."""
    looked_up: list[tuple[str, int]] = []

    def rebinding(name: str, port: int) -> list[str]:
        looked_up.append((name, port))
        return ["127.0.0.1"] if len(looked_up) == 1 else ["10.0.0.1"]

    async def fetch() -> tuple[bytes, str, int]:
        async with relying_party(answer(b"first")) as server:
            body = await egress_to(server.port, resolve=rebinding).fetch(server.url)
            return body, server.requests[0], server.port

    body, request, port = asyncio.run(fetch())
    assert body == b"first"
    assert looked_up == [(NAME, port)]
    assert f"host: {NAME}:{port}\r\n" in request.lower()


def test_the_next_address_is_tried_where_nobody_listens() -> None:
    async def fetch() -> bytes:
        async with relying_party(answer(b"second")) as server:
            return await egress_to(server.port, resolve=lambda _n, _p: ["127.0.0.9", "127.0.0.1"]).fetch(server.url)

    assert asyncio.run(fetch()) == b"second"


def test_no_connection_is_refused_with_the_addresses_that_were_tried() -> None:
    async def fetch() -> str:
        async with relying_party(answer()) as server:
            egress = egress_to(server.port, resolve=lambda _n, _p: ["127.0.0.9", "127.0.0.8"])
            with pytest.raises(EgressError) as refused:
                await egress.fetch(server.url)
            return refused.value.detail

    detail = asyncio.run(fetch())
    assert "127.0.0.9" in detail
    assert "127.0.0.8" in detail


def test_a_certificate_of_another_name_is_refused() -> None:
    async def fetch() -> tuple[str, list[str]]:
        async with relying_party(answer(), name="other.example") as server:
            with pytest.raises(EgressError) as refused:
                await egress_to(server.port).fetch(server.url)
            return refused.value.detail, server.requests

    detail, requests = asyncio.run(fetch())
    assert "Hostname mismatch" in detail
    assert requests == []


def test_a_certificate_of_an_unknown_authority_is_refused() -> None:
    async def fetch() -> str:
        async with relying_party(answer()) as server:
            egress = Egress(own_url="https://id.example", rules=DEVELOPER, resolve=lambda _n, _p: ["127.0.0.1"])
            with pytest.raises(EgressError) as refused:
                await egress.fetch(server.url)
            return refused.value.detail

    assert "CERTIFICATE_VERIFY_FAILED" in asyncio.run(fetch())


def test_a_server_without_tls_is_refused() -> None:
    async def fetch() -> list[str]:
        async with relying_party(answer(), tls=False) as server:
            with pytest.raises(EgressError):
                await egress_to(server.port, seconds=1.0).fetch(server.url)
            return server.requests

    assert asyncio.run(fetch()) == []


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "304 Not Modified", "404 Not Found", "500 Oops"])
def test_another_status_than_200_is_refused(status: str) -> None:
    assert f"status {status[:3]}" in against(answer(b"", status))


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Again", "308 Forever"])
def test_a_redirect_is_not_followed(status: str) -> None:
    async def fetch() -> tuple[str, int]:
        async with relying_party(answer(b"", status, "Location: /elsewhere")) as server:
            with pytest.raises(EgressError) as refused:
                await egress_to(server.port).fetch(server.url)
            return refused.value.detail, len(server.requests)

    detail, requests = asyncio.run(fetch())
    assert f"status {status[:3]}" in detail
    assert requests == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "deflate, gzip"])
def test_a_compressed_answer_is_refused(encoding: str) -> None:
    """D27: 64 KiB of gzip would be 64 MiB of text."""
    packed = gzip.compress(b" " * 1_000_000)
    assert "compressed" in against(answer(packed, "200 OK", f"Content-Encoding: {encoding}"))


def test_an_answer_of_more_than_64_kib_is_refused() -> None:
    assert "larger than 65536 bytes" in against(answer(b" " * 65537))


def test_headers_count_towards_the_64_kib() -> None:
    assert "larger than 65536 bytes" in against(answer(b" " * 35000, "200 OK", f"X-Filler: {'x' * 35000}"))


def test_endless_headers_are_refused() -> None:
    assert against(answer(b"", "200 OK", *[f"X-Filler-{number}: {'x' * 1000}" for number in range(200)]))


def test_an_endless_answer_is_refused() -> None:
    assert "larger than 65536 bytes" in against(flood)


def test_a_server_that_never_answers_is_given_up() -> None:
    assert "within 0.3 s" in against(hang, seconds=0.3)


def test_a_server_that_drips_is_given_up_although_something_arrives_all_the_time() -> None:
    """D27: the seconds are for all of it."""
    assert "within 0.3 s" in against(drip, seconds=0.3)


def test_a_server_that_closes_early_is_refused() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await writer.drain()

    assert "RemoteProtocolError" in against(half) or "ReadError" in against(half)


def test_a_server_that_does_not_speak_http_is_refused() -> None:
    async def babble(writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()

    assert "RemoteProtocolError" in against(babble)


def test_neither_proxies_nor_cookies_play_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """D27: no environment proxy, no cookies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def fetch() -> list[str]:
        async with relying_party(answer(b"{}", "200 OK", "Set-Cookie: tracked=1")) as server:
            egress = egress_to(server.port)
            await egress.fetch(server.url)
            await egress.fetch(server.url)
            return server.requests

    requests = asyncio.run(fetch())
    assert len(requests) == 2
    assert "cookie" not in "".join(requests).lower()
    assert all("accept-encoding: identity\r\n" in request.lower() for request in requests)


def test_at_most_so_many_fetches_run_at_the_same_time() -> None:
    running, most = 0, 0

    async def slow(writer: asyncio.StreamWriter) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        await answer()(writer)

    async def fetch() -> int:
        async with relying_party(slow) as server:
            egress = egress_to(server.port, fetches=3)
            return len(await asyncio.gather(*(egress.fetch(server.url) for _ in range(12))))

    assert asyncio.run(fetch()) == 12
    assert most == 3


def test_whoever_gets_no_turn_is_refused_and_not_queued_for_ever() -> None:
    async def fetch() -> list[object]:
        async with relying_party(hang) as server:
            egress = egress_to(server.port, fetches=1, seconds=0.2)
            return await asyncio.gather(*(egress.fetch(server.url) for _ in range(8)), return_exceptions=True)

    details = [str(refused) for refused in asyncio.run(fetch())]
    assert len(details) == 8
    assert any("other fetches are under way" in detail for detail in details)


def test_a_resolver_that_hangs_holds_one_thread_per_name_and_fails_the_rest_at_once() -> None:
    """D27: name look-ups have their own bounded threads."""
    release, asked = threading.Event(), []

    def hanging(name: str, port: int) -> list[str]:
        asked.append(name)
        release.wait(60)
        return ["127.0.0.1"]

    async def fetch() -> list[str]:
        egress = egress_to(443, resolve=hanging, look_ups=2, seconds=0.2)
        urls = [f"https://{name}.example/" for name in ("a", "a", "b", "a", "c")]
        refused = [await asyncio.gather(egress.fetch(url), return_exceptions=True) for url in urls]
        release.set()
        return [str(failure) for (failure,) in refused]

    details = asyncio.run(fetch())
    assert asked == ["a.example", "b.example"]
    assert all("within 0.2 s" in detail for detail in details[:4])
    assert "2 other name look-ups hang" in details[4]


def test_threads_of_look_ups_that_ended_are_free_again() -> None:
    release = threading.Event()

    def hanging_at_first(name: str, port: int) -> list[str]:
        if name != NAME:
            release.wait(60)
        return ["127.0.0.1"]

    async def fetch() -> bytes:
        async with relying_party(answer(b"free")) as server:
            egress = egress_to(server.port, resolve=hanging_at_first, look_ups=1, seconds=5)
            slow = asyncio.create_task(egress.fetch(f"https://slow.example:{server.port}/"))
            await asyncio.sleep(0)
            with pytest.raises(EgressError, match="look-ups hang"):
                await egress.fetch(server.url)
            release.set()
            with pytest.raises(EgressError, match="mismatch"):
                await slow
            return await egress.fetch(server.url)

    assert asyncio.run(fetch()) == b"free"


def test_developer_mode_lifts_https_port_and_address_rules_visibly() -> None:
    """D27."""

    async def fetch() -> bytes:
        async with relying_party(answer(b"local"), tls=False) as server:
            with capture_logs() as logged:
                egress = Egress(own_url="http://localhost:8000", rules=DEVELOPER, ssl_context=client_context())
            assert [(line["event"], line["log_level"]) for line in logged] == [("egress_rules_lifted", "warning")]
            assert egress.rules is DEVELOPER
            return await egress.fetch(f"http://127.0.0.1:{server.port}/jwks")

    assert asyncio.run(fetch()) == b"local"


def test_developer_mode_still_refuses_the_providers_own_address() -> None:
    egress = Egress(own_url="http://localhost:8000", rules=DEVELOPER, resolve=no_look_up, ssl_context=client_context())
    assert "not one of this provider" in detail_of(egress, "http://localhost:8000/.well-known/keys")


def test_nothing_is_logged_and_nothing_lifted_by_default() -> None:
    with capture_logs() as logged:
        egress = strict()
    assert logged == []
    assert egress.rules is INTERNET


def test_the_system_looks_names_up() -> None:
    assert "127.0.0.1" in system_addresses("127.0.0.1", 443)
