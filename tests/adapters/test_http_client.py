"""The one outgoing client keeps the bounds of D27, whoever chose the URL and whatever stands there."""

from __future__ import annotations

import asyncio
import gzip
import threading
from typing import TYPE_CHECKING

import pytest

from corpid.outbound.destinations import DEVELOPER, HttpClientError
from corpid.outbound.http_client import HttpClient
from tests.adapters.rp_server import (
    NAME,
    answer,
    drip,
    egress_to,
    flood,
    hang,
    relying_party,
)

if TYPE_CHECKING:
    from tests.adapters.rp_server import Answer


def against(behave: Answer, seconds: float = 20.0) -> str:
    """What a fetch from a server with this behaviour is refused with."""

    async def fetch() -> str:
        async with relying_party(behave) as server:
            with pytest.raises(HttpClientError) as refused:
                await egress_to(server.port, seconds=seconds).fetch(server.url)
            return refused.value.detail

    return asyncio.run(fetch())


async def test_the_body_of_a_200_answer_comes_back_whole() -> None:
    body = b'{"keys":[]}' + b" " * 60000

    async def fetch() -> bytes:
        async with relying_party(answer(body)) as server:
            return await egress_to(server.port).fetch(server.url)

    assert await fetch() == body


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """D27: a resolver that answers publicly once and privately afterwards (rebinding) is asked only once."""
    looked_up: list[tuple[str, int]] = []

    def rebinding(name: str, port: int) -> list[str]:
        looked_up.append((name, port))
        return ["127.0.0.1"] if len(looked_up) == 1 else ["10.0.0.1"]

    async def fetch() -> tuple[bytes, str, int]:
        async with relying_party(answer(b"first")) as server:
            body = await egress_to(server.port, resolve=rebinding).fetch(server.url)
            return body, server.requests[0], server.port

    body, request, port = await fetch()
    assert body == b"first"
    assert looked_up == [(NAME, port)]
    assert f"host: {NAME}:{port}\r\n" in request.lower()


async def test_the_next_address_is_tried_where_nobody_listens() -> None:
    async def fetch() -> bytes:
        async with relying_party(answer(b"second")) as server:
            return await egress_to(server.port, resolve=lambda _n, _p: ["127.0.0.9", "127.0.0.1"]).fetch(server.url)

    assert await fetch() == b"second"


async def test_no_connection_is_refused_with_the_addresses_that_were_tried() -> None:
    async def fetch() -> str:
        async with relying_party(answer()) as server:
            egress = egress_to(server.port, resolve=lambda _n, _p: ["127.0.0.9", "127.0.0.8"])
            with pytest.raises(HttpClientError) as refused:
                await egress.fetch(server.url)
            return refused.value.detail

    detail = await fetch()
    assert "127.0.0.9" in detail
    assert "127.0.0.8" in detail


async def test_a_certificate_of_another_name_is_refused() -> None:
    async def fetch() -> tuple[str, list[str]]:
        async with relying_party(answer(), name="other.example") as server:
            with pytest.raises(HttpClientError) as refused:
                await egress_to(server.port).fetch(server.url)
            return refused.value.detail, server.requests

    detail, requests = await fetch()
    assert "Hostname mismatch" in detail
    assert requests == []


async def test_a_certificate_of_an_unknown_authority_is_refused() -> None:
    async def fetch() -> str:
        async with relying_party(answer()) as server:
            egress = HttpClient(own_url="https://id.example", rules=DEVELOPER, resolve=lambda _n, _p: ["127.0.0.1"])
            with pytest.raises(HttpClientError) as refused:
                await egress.fetch(server.url)
            return refused.value.detail

    assert "CERTIFICATE_VERIFY_FAILED" in await fetch()


async def test_a_server_without_tls_is_refused() -> None:
    async def fetch() -> list[str]:
        async with relying_party(answer(), tls=False) as server:
            with pytest.raises(HttpClientError):
                await egress_to(server.port, seconds=1.0).fetch(server.url)
            return server.requests

    assert await fetch() == []


@pytest.mark.parametrize("status", ["201 Created", "204 No Content", "304 Not Modified", "404 Not Found", "500 Oops"])
def test_another_status_than_200_is_refused(status: str) -> None:
    assert f"status {status[:3]}" in against(answer(b"", status))


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Again", "308 Forever"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async def fetch() -> tuple[str, int]:
        async with relying_party(answer(b"", status, "Location: /elsewhere")) as server:
            with pytest.raises(HttpClientError) as refused:
                await egress_to(server.port).fetch(server.url)
            return refused.value.detail, len(server.requests)

    detail, requests = await fetch()
    assert f"status {status[:3]}" in detail
    assert requests == 1


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "deflate, gzip"])
def test_a_compressed_answer_is_refused(encoding: str) -> None:
    """D27: 64 KiB of gzip would be 64 MiB of text."""
    packed = gzip.compress(b" " * 1_000_000)
    assert f"compressed or encoded ({' '.join(sorted(encoding.lower().split(', ')))})" in against(
        answer(packed, "200 OK", f"Content-Encoding: {encoding}")
    )


def test_an_unknown_content_coding_is_named() -> None:
    """RFC 9110 §8.4."""
    assert "compressed or encoded (utf-8)" in against(answer(b"{}", "200 OK", "Content-Encoding: UTF-8"))


@pytest.mark.parametrize(
    "fields", [["Content-Encoding:"], ["Content-Encoding: identity, "], ["Content-Encoding: Identity"] * 2]
)
async def test_an_answer_without_a_content_coding_is_taken(fields: list[str]) -> None:
    """RFC 9110 §5.6.1.2, §8.4.1: an empty element of a list is ignored."""
    async with relying_party(answer(b"{}", "200 OK", *fields)) as server:
        assert await egress_to(server.port).fetch(server.url) == b"{}"


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


async def half(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()


def test_a_server_that_closes_early_is_refused() -> None:
    assert "RemoteProtocolError" in against(half) or "ReadError" in against(half)


async def babble(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n\r\n")
    await writer.drain()


def test_a_server_that_does_not_speak_http_is_refused() -> None:
    assert "RemoteProtocolError" in against(babble)


async def test_neither_proxies_nor_cookies_play_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """D27: no environment proxy, no cookies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def fetch() -> list[str]:
        async with relying_party(answer(b"{}", "200 OK", "Set-Cookie: tracked=1")) as server:
            egress = egress_to(server.port)
            await egress.fetch(server.url)
            await egress.fetch(server.url)
            return server.requests

    requests = await fetch()
    assert len(requests) == 2
    assert "cookie" not in "".join(requests).lower()
    assert all("accept-encoding: identity\r\n" in request.lower() for request in requests)


async def test_at_most_so_many_fetches_run_at_the_same_time() -> None:
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

    assert await fetch() == 12
    assert most == 3


async def test_whoever_gets_no_turn_is_refused_and_not_queued_for_ever() -> None:
    async def fetch() -> list[object]:
        async with relying_party(hang) as server:
            egress = egress_to(server.port, fetches=1, seconds=0.2)
            return await asyncio.gather(*(egress.fetch(server.url) for _ in range(8)), return_exceptions=True)

    details = [str(refused) for refused in await fetch()]
    assert len(details) == 8
    assert any("other fetches are under way" in detail for detail in details)


async def test_a_resolver_that_hangs_holds_one_thread_per_name_and_fails_the_rest_at_once() -> None:
    """D27: name look-ups have their own bounded threads."""
    release, asked = threading.Event(), []

    def hanging(name: str, port: int) -> list[str]:
        asked.append(name)
        release.wait(60)
        return ["127.0.0.1"]

    egress = egress_to(443, resolve=hanging, look_ups=2, seconds=0.2)
    urls = [f"https://{name}.example/" for name in ("a", "a", "b", "a", "c")]
    refused = [await asyncio.gather(egress.fetch(url), return_exceptions=True) for url in urls]
    release.set()
    details = [str(failure) for (failure,) in refused]
    assert asked == ["a.example", "b.example"]
    assert all("within 0.2 s" in detail for detail in details[:4])
    assert "2 other name look-ups hang" in details[4]


async def test_threads_of_look_ups_that_ended_are_free_again() -> None:
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
            with pytest.raises(HttpClientError, match="look-ups hang"):
                await egress.fetch(server.url)
            release.set()
            with pytest.raises(HttpClientError, match="mismatch"):
                await slow
            return await egress.fetch(server.url)

    assert await fetch() == b"free"
