"""Clients registered by a program: `POST /developer/clients` (D66)."""

from __future__ import annotations

import asyncio
import io
import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from joserfc.jwk import ECKey

from corpid.rules.oauth.api_client import RegisteredApiClient
from corpid.web.telemetry import access_log
from tests.developer.scene import demo_world, developer
from tests.logs import log_left_alone
from tests.sign_in.world import BASE, KEYS, World, new_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx


CLIENTS: Final = f"{BASE}/developer/clients"


def key(use: str, *, private: bool = False) -> dict[str, Any]:
    return {**ECKey.generate_key("P-256").as_dict(private=private), "use": use, "kid": use}


SHOP: Final[dict[str, Any]] = {
    "client_id": "shop",
    "name": "Shop",
    "redirect_uris": ["http://127.0.0.1:8410/callback"],
    "jwks": {"keys": [key("sig"), key("enc")]},
    "scopes": ["openid", "authinfo"],
    "services": ["PERMITS"],
}


async def sent(made: World, members: object, **headers: str) -> httpx.Response:
    http = await made.http()
    return await http.post(
        CLIENTS, json=members, headers={each.replace("_", "-"): value for each, value in headers.items()}
    )


async def faults(made: World, members: object) -> list[tuple[str, str]]:
    answer = await sent(made, members)
    assert answer.status_code == 400, answer.text
    return [(each["member"], each["reason"]) for each in answer.json()["faults"]]


async def test_a_program_registers_a_client_and_signs_in_with_it() -> None:
    """D66: it can be used at once; the audit names developer mode."""
    async with demo_world() as made:
        answer = await sent(made, {**SHOP, "jwks": KEYS.public()})
        assert (answer.status_code, answer.json()) == (
            201,
            {"client_id": "shop", "created": True, "issuer": BASE, "advice": []},
        )
        party = made.party("shop", made.connect("192.0.2.1"), keys=KEYS, scope="openid authinfo", parameters={
            "redirect_uri": SHOP["redirect_uris"][0]})  # fmt: skip
        assert "request_uri=" in await party.begin()
        (added,) = await made.audit("client.add")
        assert (added.actor, added.detail["by"]) == ("file:developer mode", "developer mode")


async def test_a_program_lists_the_clients_and_what_a_new_one_begins_with() -> None:
    """D66: as the form does; a browser gets the page."""
    async with demo_world() as made:
        await sent(made, SHOP)
        http = await made.http()
        found = (await http.get(CLIENTS)).json()
        assert (found["issuer"], found["generations"]) == (BASE, ["current"])
        listed = {each["client_id"]: each for each in found["clients"]}
        assert listed["shop"] == {
            "client_id": "shop", "name": "Shop", "redirect_uris": SHOP["redirect_uris"], "own": False,
        }  # fmt: skip
        assert {"openid", "authinfo"} <= set(found["new_client"]["scopes"])
        assert "PERMITS" in found["new_client"]["services"]
        answer = await sent(made, {**found["new_client"], **SHOP, "client_id": "further"})
        assert answer.status_code == 201, answer.text
        page = await http.get(CLIENTS, headers={"Accept": "text/html"})
        assert page.headers["content-type"].startswith("text/html")


async def test_the_same_order_replaces_the_whole_client() -> None:
    """D66: what it no longer names has its default again, so that the order alone says what a client is."""
    async with demo_world() as made:
        await sent(made, {**SHOP, "subject": "entity", "sector": "government"})
        answer = await sent(made, {**{name: SHOP[name] for name in SHOP if name != "services"}, "name": "Kiosk"})
        assert (answer.status_code, answer.json()["created"]) == (200, False)
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert (found.name, found.subject, found.sector, found.services) == ("Kiosk", "user", "private", ())
        assert (await sent(made, {**SHOP, "name": "Kiosk"})).status_code == 200


async def test_an_address_replaces_the_keys() -> None:
    """D27: a client has one source of keys; one that does not answer yet is said, and allowed."""
    async with demo_world() as made:
        await sent(made, SHOP)
        order = {name: SHOP[name] for name in SHOP if name != "jwks"} | {"jwks_uri": "http://127.0.0.1:9/jwks"}
        answer = await sent(made, order)
        assert any("no key set was fetched" in each["reason"] for each in answer.json()["advice"])
        found = await made.provider.registry.clients.get("shop")
        assert found is not None
        assert (found.jwks, found.jwks_uri) == (None, "http://127.0.0.1:9/jwks")


PUBLISHED: Final[list[tuple[str, str]]] = [
    ("<html><title>Log in</title></html>", "no key set came: the key set is not JSON in UTF-8. Received: <html>"),
    ('{"error": "none"}', 'has no array named keys: write {"keys": [ ]} around the keys. Received: {"error": "none"}'),
    (json.dumps({"keys": [key("sig")]}), "no usable encryption key for ID tokens"),
    (json.dumps({"keys": [key("sig"), {**key("enc"), "kid": "sig"}]}), "the kid 'sig' is there 2 times"),
    (json.dumps({"keys": [key("sig", private=True), key("enc")]}), "this address publishes private keys"),
]


@asynccontextmanager
async def publishing(content: str) -> AsyncIterator[str]:
    """The address of this content, until the context is left."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n{content}".encode()
        )
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"


async def test_the_keys_that_were_fetched_at_registration_are_used() -> None:
    """D27: a server with one thread cannot serve its keys while it waits for its push."""
    async with demo_world() as made:
        async with publishing(json.dumps(KEYS.public())) as address:
            answered = await sent(made, {**{n: SHOP[n] for n in SHOP if n != "jwks"}, "jwks_uri": address})
            assert answered.status_code == 201, answered.text
        party = made.party("shop", made.connect("192.0.2.1"), keys=KEYS, scope="openid authinfo", parameters={
            "redirect_uri": SHOP["redirect_uris"][0]})  # fmt: skip
        assert "request_uri=" in await party.begin()


@pytest.mark.parametrize(("content", "said"), PUBLISHED)
async def test_what_an_address_publishes_is_looked_at(content: str, said: str) -> None:
    """D27, D66: what came, in short, and never a private key."""
    async with demo_world() as made:
        async with publishing(content) as address:
            order = {name: SHOP[name] for name in SHOP if name != "jwks"}
            answered = await sent(made, {**order, "jwks_uri": address})
        assert answered.status_code == 201, answered.text
        assert any(said in each["reason"] for each in answered.json()["advice"]), answered.text
        assert '"d"' not in answered.text


async def test_every_fault_is_named_with_its_member() -> None:
    """D66: and nothing is written."""
    async with demo_world() as made:
        uris = ["http://rp.example/cb", "http://127.0.0.1/cb#top"]
        found = await faults(made, {**SHOP, "redirect_uris": uris, "jwks": {"keys": [key("sig")]}})
        assert [member for member, _ in found].count("redirect_uris") == 2
        assert any(member == "jwks" and "no usable encryption key" in reason for member, reason in found)
        assert await made.audit("client.add") == []


@pytest.mark.parametrize(
    ("changed", "member", "said"),
    [
        ({"scope": "openid"}, "scope", "scopes"),
        ({"scopes": "openid"}, "scopes", "a list is expected"),
        ({"jwks": {"keys": [key("sig"), {**key("enc"), "crv": "secp256k1"}]}}, "jwks", "curve"),
        ({"jwks": "hello"}, "jwks", "neither a PEM public key nor a JSON key set"),
        ({"jwks": None}, "jwks", "expected"),
        ({"generations": ["legacy"]}, "legacy_until", "name its last day"),
        ({"jwks": "[" * 20000}, "jwks", "neither a PEM public key nor a JSON key set"),
        ({"jwks": {"keys": [1, None, {"kid": {}, "crv": [1]}]}}, "jwks", "kid is not a string"),
        ({"redirect_uris": ["http://[::1"]}, "redirect_uris", "this is no URL"),
        ({"client_id": ""}, "client_id", ""),
        ({"client_id": "api"}, "client_id", "admin API"),
        ({"client_id": "rp1"}, "client_id", "the demo's own client"),
    ],
)
async def test_mistakes_of_an_order(changed: dict[str, Any], member: str, said: str) -> None:
    """D66, D27: the demo's own client cannot be replaced either."""
    async with new_world(developer=developer(own_clients={"rp1"})) as made:
        if changed.get("client_id") == "api":
            await made.write(RegisteredApiClient(client_id="api", name="API", scopes=(), jwks="{}"))
        before = await made.provider.registry.clients.get("rp1")
        found = await faults(made, {**SHOP, **changed})
        assert any(each == member and said in reason for each, reason in found), found
        assert await made.provider.registry.clients.get("rp1") == before
        assert await made.audit("client.update") == []


async def test_a_private_key_is_neither_stored_nor_repeated() -> None:
    """RFC 7517 §9.3, D48, D57: not in the store, the audit, the log or the answer."""
    one = key("sig", private=True)
    secrets: list[str] = [one["d"]]

    stream = io.BytesIO()
    with log_left_alone():
        access_log.configure(clock=time.time, stream=stream)
        async with demo_world() as made:
            for jwks in (
                {"keys": [one, key("enc")]},
                json.dumps({"keys": [one]}),
                one,
                f"-----BEGIN PRIVATE KEY-----{one['d']}",
            ):
                answer = await sent(made, {**SHOP, "jwks": jwks})
                assert answer.status_code == 400
                assert "private key" in answer.json()["error_description"]
                assert one["d"] not in answer.text
            assert await made.provider.registry.clients.get("shop") is None
            assert one["d"] not in repr(await made.provider.registry.audit.entries(limit=1000))
    assert stream.getvalue().count(b"client_refused") == 4
    assert not any(each.encode() in stream.getvalue() for each in secrets)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://rp.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://rp.example"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)
async def test_a_page_of_another_site_registers_nothing(headers: dict[str, str]) -> None:
    """D35, D66."""
    async with demo_world() as made:
        assert (await sent(made, SHOP, **headers)).status_code == 400
        assert await made.audit("client.add") == []


async def test_outside_a_demo_and_on_another_machine_there_is_nothing() -> None:
    """D66."""
    async with new_world(developer_mode=True) as made:
        assert (await sent(made, SHOP)).status_code == 404

    async with demo_world() as made:
        http = await made.http("192.0.2.7")
        assert (await http.post(CLIENTS, json=SHOP)).status_code == 404
        assert (await http.get(f"{CLIENTS}/new")).status_code == 404
        assert await made.audit("client.add") == []
