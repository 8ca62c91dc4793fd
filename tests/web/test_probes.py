"""Probes of `corpid doctor`: a report for who has the key, and nothing new for anybody else (D47, D49)."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

import httpx
import msgspec
import pytest

from corpid.rules import probes
from corpid.rules.probes import Probe
from corpid.stores.encryption_at_rest import SecretCipher
from corpid.web.http.middleware import Middleware, Probes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

NOW = 1_700_000_000.0
KEY = SecretCipher(bytes(range(32)))
PATH = "/corpid-doctor"


async def _ready() -> float:
    return 0.0


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    body = json.dumps({"error": "not_found"}).encode()
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


def asked(method: str = "GET", url: str = PATH, **options: Any) -> httpx.Response:
    async def request() -> httpx.Response:
        app = Middleware(
            _unknown,
            base_url="https://idp.example",
            ready=_ready,
            clock=lambda: NOW,
            trusted_proxies=[ip_network("10.0.0.10")],
            probes=Probes(partial(KEY.open, *probes.PLACE), clock=lambda: NOW),
        )
        transport = httpx.ASGITransport(app, client=("10.0.0.10", 1))
        async with httpx.AsyncClient(transport=transport, base_url="https://idp.example") as http:
            return await http.request(method, url, **options)

    return asyncio.run(request())


def token(*, place: tuple[str, str, str] = probes.PLACE, key: SecretCipher = KEY, **members: Any) -> str:
    probe = Probe(**{"id": "p", "at": int(NOW), **members})
    return key.seal(*place, msgspec.json.encode(probe).decode())


def test_a_probe_is_answered_with_what_arrived_and_with_no_secret() -> None:
    sent = {
        probes.HEADER: token(),
        "X-Forwarded-For": "198.51.100.77, 203.0.113.9",
        "Authorization": "DPoP topsecret",
        "Cookie": "__Host-corpid=topsecret",
    }
    answer = asked(url=f"{PATH}/a%2Fb//c?x=y", headers=sent)
    report = answer.json()
    assert (report["path"], report["query_bytes"], report["probe"]) == (f"{PATH}/a%2Fb//c", 3, "p")
    assert (report["peer"], report["is_trusted"], report["address"]) == ("10.0.0.10", True, "203.0.113.9")
    assert report["headers"]["x-forwarded-for"] == ["198.51.100.77, 203.0.113.9"]
    assert "topsecret" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


REFUSED: Final[Mapping[str, Any]] = {
    "empty": "",
    "no token": "x",
    "not ASCII": "\u00e9.\u00e9".encode("latin-1"),
    "too old": token(at=int(NOW) - probes.FRESH_SECONDS - 1),
    "of the future": token(at=int(NOW) + probes.FRESH_SECONDS + 1),
    "too long a wait": token(wait=probes.MOST_WAIT_SECONDS + 1),
    "a wait below zero": token(wait=-1),
    "too much padding": token(padding=probes.MOST_PADDING_BYTES + 1),
    "for another purpose": token(place=("signing_keys", "kid", "private_key")),
    "of another key": token(key=SecretCipher(bytes(32))),
    "too long": token() + "x" * probes.TOKEN_CHARACTERS,
    "no members": KEY.seal(*probes.PLACE, "{}"),
    "no moment": KEY.seal(*probes.PLACE, '{"id":"p","at":"now"}'),
    "more members": KEY.seal(*probes.PLACE, f'{{"id":"p","at":{int(NOW)},"more":1}}'),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_without_a_valid_token_the_address_is_as_any_unknown_one(value: Any) -> None:
    """Made with another key, for another purpose, too old, from the future, asking for too much, or no token at all."""
    answer, usual = asked(headers={probes.HEADER: value}), asked()
    assert (answer.status_code, answer.content) == (404, usual.content)
    assert answer.headers == usual.headers


def test_only_a_get_with_one_token_is_a_probe() -> None:
    assert asked("POST", headers={probes.HEADER: token()}).status_code == 404
    assert asked(headers=[(probes.HEADER, token()), (probes.HEADER, token())]).status_code == 404
    assert asked(headers={probes.HEADER: token()}).status_code == 200


def test_an_answer_is_no_longer_than_asked_for() -> None:
    answer = asked(headers={probes.HEADER: token(padding=5)})
    assert answer.headers[probes.PADDING] == "x" * 5
    assert probes.PADDING not in asked(headers={probes.HEADER: token()}).headers
