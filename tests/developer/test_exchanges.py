"""Exchanges of relying parties, which developer mode keeps (D66)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from corpid.web.http.server import bind
from corpid_dev.flows import exchanges as kept_exchanges
from corpid_dev.flows.exchanges import Answer, Exchange, Exchanges, Pairs
from corpid_dev.relying_party.verification import Callback
from tests.developer.scene import KEY, SIGN_INS, developer, order
from tests.sign_in.world import BASE, World, new_world, walk_to
from tests.world.provider import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from corpid.jose.key_ring import KeyRing
    from corpid_dev.flows.people import Developer

ALICE = {"user": "alice", "entity": "200000001A"}


@asynccontextmanager
async def watched_demo(**options: Any) -> AsyncIterator[tuple[World, Developer]]:
    """A demo, with its developer mode at hand."""
    mode = developer()
    async with new_world(developer=mode, **options) as made:
        yield made, mode


async def listed(made: World, query: str = "") -> list[dict[str, Any]]:
    answer = await (await made.http()).get(f"{BASE}/developer/exchanges{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["exchanges"]
    return found


async def whole_sign_in(made: World) -> Any:
    """A sign-in through pages, up to userinfo."""
    rp, browser = await made.relying_party(), await made.browser()
    await walk_to(made, browser, rp, ("password", "code", "entity"))
    assert browser.left is not None
    tokens = await rp.redeem(browser.left)
    await rp.userinfo()
    return tokens


async def test_the_exchanges_of_a_sign_in_are_linked() -> None:
    """D66: request_uri → sign-in → code → access token; documents belong to no sign-in."""
    async with watched_demo() as (made, _):
        await whole_sign_in(made)
        found = await listed(made)
        steps = [each for each in found if each["sign_in"]]
        assert [each["endpoint"] for each in steps] == ["par", "authorize", "callback", "token", "userinfo"]
        assert len({each["sign_in"] for each in steps}) == 1
        assert {each["client_id"] for each in steps} == {"rp1"}
        [request_uri] = {each["request_uri"] for each in steps}
        assert request_uri.startswith("urn:ietf:params:oauth:request_uri:")
        assert {each["endpoint"] for each in found if not each["sign_in"]} == {"discovery", "jwks"}
        assert [each["id"] for each in found] == sorted(each["id"] for each in found)


async def test_two_sign_ins_are_told_apart() -> None:
    """D66: each has its own number, also when they run at the same time."""
    async with watched_demo() as (made, _):
        one, other = await made.relying_party(), await made.relying_party()
        urls = [await one.begin(), await other.begin()]
        for url, rp in zip(reversed(urls), (other, one), strict=True):
            answer = await order(made, {"authorize_url": url, **ALICE})
            await rp.redeem(Callback(answer.json()["callback_url"]))
        of_sign_in: dict[str, list[str]] = {}
        for each in await listed(made, "?client_id=rp1"):
            of_sign_in.setdefault(each["sign_in"], []).append(each["endpoint"])
        assert list(of_sign_in.values()) == [["par", "callback", "token"]] * 2


async def test_requests_that_bring_nothing_are_not_of_one_sign_in() -> None:
    """D66: a code or a token that is missing is no link."""
    async with watched_demo() as (made, _):
        http = await made.http()
        for _number in range(2):
            await http.get(f"{BASE}/userinfo")
            await http.post(f"{BASE}/mga/sps/oauth/oauth20/token", data={"grant_type": "authorization_code"})
        found = [each["sign_in"] for each in await listed(made)]
        assert len(set(found)) == len(found) == 4


async def test_tokens_are_kept_as_they_were_signed() -> None:
    """D66: the ID token before its encryption, which only the relying party undoes."""
    async with watched_demo() as (made, _):
        tokens = await whole_sign_in(made)
        found = {each["endpoint"]: each for each in await listed(made)}
        access, identity = found["token"]["signed"]
        assert (access["typ"], identity["typ"]) == ("at+jwt", "JWT")
        assert identity["claims"] == tokens.id_token
        assert identity["header"]["alg"] == "ES256"
        [answer] = found["userinfo"]["signed"]
        assert answer["claims"]["sub"] == "id-alice"


async def test_the_request_that_reads_the_keys_shows_what_it_signs() -> None:
    """D42, D66: the first one of a process, and each that finds its keys older than five seconds."""
    async with watched_demo() as (made, _):
        rp, browser = await made.relying_party(), await made.browser()
        await walk_to(made, browser, rp, ("password", "code", "entity"))
        assert browser.left is not None
        made.provider.signing_keys.drop()
        await rp.redeem(browser.left)
        made.provider.signing_keys.drop()
        await rp.userinfo()
        found = {each["endpoint"]: each["signed"] for each in await listed(made)}
        assert [len(found["token"]), len(found["userinfo"])] == [2, 1]


async def test_what_is_a_persons_is_not_kept() -> None:
    """D48, D66: no password, factor, form, cookie or page; a relying party's own credentials are its own."""
    async with watched_demo() as (made, mode):
        await whole_sign_in(made)
        text = str(mode.exchanges.list_exchanges()).lower()
        for secret in ("cookie", "password", "form_token", "<html", "<form"):
            assert secret not in text
        token = next(each for each in mode.exchanges.list_exchanges() if each.endpoint == "token")
        assert token.first("client_assertion").count(".") == 2


async def test_a_refusal_is_kept_with_its_reason_and_values() -> None:
    """D28, D66: the reason of the catalogue, and what was received and expected."""
    async with watched_demo() as (made, _):
        rp = await made.relying_party()
        await rp.push({"redirect_uri": "https://elsewhere.example/callback?secret=1"})
        [refused] = [each for each in await listed(made) if each["endpoint"] == "par"]
        assert (refused["status"], refused["reason"]) == (400, "redirect_uri_not_registered")
        assert refused["explanation"]["received"] == "https://elsewhere.example/callback"
        assert refused["reference"] in refused["response_body"]
        assert refused["authenticated"]


class Recording:
    """A fault injector that answers, changes and signs once each."""

    async def intercept_request(self, exchange: Exchange) -> Answer | None:
        if exchange.endpoint != "jwks":
            return None
        exchange.orders.append("error")
        return Answer(status=503, headers=(("retry-after", "7"),), body=b'{"error": "temporarily_unavailable"}')

    async def alter_answer(self, exchange: Exchange) -> None:
        if exchange.endpoint == "discovery":
            exchange.status, exchange.response_body = 200, b"{}"
            exchange.orders.append("changed")

    async def change_callback(self, exchange: Exchange) -> Pairs:
        return exchange.callback

    def refusing(self, exchange: Exchange) -> None:
        """Refuse nothing."""

    def signing(self, exchange: Exchange, ring: KeyRing, payload: bytes, typ: str) -> str | None:
        return None


async def test_orders_answer_change_and_are_marked() -> None:
    """D66: an order is named in the answer's header and in the exchange."""
    async with watched_demo() as (made, mode):
        mode.fault_injector = Recording()
        http = await made.http()
        keys = await http.get(f"{BASE}/.well-known/keys")
        assert (keys.status_code, keys.headers["corpid-sandbox"], keys.headers["retry-after"]) == (503, "error", "7")
        document = await http.get(f"{BASE}/.well-known/openid-configuration")
        assert (document.text, document.headers["corpid-sandbox"]) == ("{}", "changed")
        assert [each["orders"] for each in await listed(made)] == [["error"], ["changed"]]


async def test_without_orders_answers_are_the_providers_own() -> None:
    """D66: the layer changes nothing: same status, headers and body as without it."""

    async def asked(made: World) -> list[Any]:
        http, found = await made.http(), []
        for path in ("/.well-known/openid-configuration", "/.well-known/keys", "/userinfo", "/request"):
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                answer = await http.request(method, BASE + path)
                headers = {name: value for name, value in answer.headers.items() if name != "link"}
                body = answer.json().get("error") if answer.content else ""
                found.append((method, path, answer.status_code, sorted(headers), body))
        return found

    each: list[list[Any]] = []

    async def story(made: World) -> None:
        each.append(await asked(made))

    async with new_world(developer_mode=True) as made:
        await story(made)
    async with new_world(developer=developer()) as made:
        await story(made)
    assert each[0] == each[1]


def exchange(client_id: str, *, body: bytes = b"") -> Exchange:
    return Exchange(
        request_id="0" * 16, at=0.0, issuer_id="default", issuer=BASE, endpoint="token", method="POST", path="/token",
        query="", headers=(), client_id=client_id, response_body=body,
    )  # fmt: skip


def test_memory_is_bounded_by_number_and_bytes() -> None:
    """D66: the oldest of the busiest client goes first, and nothing is left of what is dropped."""
    kept = Exchanges()
    kept.add(exchange("quiet"))
    for _ in range(kept_exchanges.EXCHANGES_OF_CLIENT + 50):
        kept.add(exchange("busy"))
    assert len(kept.list_exchanges(client_id="busy")) == kept_exchanges.EXCHANGES_OF_CLIENT
    assert len(kept.list_exchanges(client_id="quiet")) == 1
    for _ in range(100):
        kept.add(exchange("large", body=b"x" * 1_000_000))
    large = kept.list_exchanges(client_id="large")
    assert sum(each.size for each in large) <= kept_exchanges.BYTES_OF_CLIENT
    assert all(each.clipped for each in large)
    for number in range(3 * kept_exchanges.EXCHANGES):
        kept.add(exchange(f"rp-{number}"))
        kept.begin(exchange(f"rp-{number}"))
    assert len(kept.list_exchanges()) == kept_exchanges.EXCHANGES
    kept.clear()
    assert (kept._bytes, kept._of_client, kept._bytes_of) == (0, {}, {})
    assert len(kept._links) <= kept_exchanges.LINKS


async def lines_of(answer: httpx.Response, *, until: str) -> list[str]:
    found: list[str] = []
    async for line in answer.aiter_lines():
        found.append(line)
        if line.startswith(until):
            break
    return found


@asynccontextmanager
async def _when_free(http: httpx.AsyncClient, url: str) -> AsyncIterator[httpx.Response]:
    """A subscription, once the server has noticed that another caller has left."""
    while True:
        async with http.stream("GET", url) as answer:
            if answer.status_code != 503:
                yield answer
                return
        await asyncio.sleep(0.05)


async def test_events_are_sent_as_they_come_and_end_with_the_server() -> None:
    """D66: bounded in number; one that was closed makes room; a stop ends them at once."""
    async with watched_demo() as (made, mode):
        sockets = bind("127.0.0.1", 0)
        url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        headers = {"Host": BASE.removeprefix("http://")}
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=10, trust_env=False))
            serving = served(made.application.asgi, sockets, drain_seconds=30.0, on_draining=mode.exchanges.close)
            server = await serving.__aenter__()
            opened = []
            for _ in range(kept_exchanges.SUBSCRIBERS):
                opened.append(await stack.enter_async_context(http.stream("GET", f"{url}/developer/events")))
            assert {each.headers["content-type"] for each in opened} == {"text/event-stream"}
            assert (await http.get(f"{url}/developer/events")).status_code == 503
            await http.get(f"{url}/.well-known/keys")
            lines = await lines_of(opened[0], until="data:")
            assert "event: exchange" in lines
            assert '"endpoint":"jwks"' in lines[-1]
            await opened.pop().aclose()
            again = await stack.enter_async_context(_when_free(http, f"{url}/developer/events"))
            assert again.status_code == 200
            await asyncio.wait_for(server.stop(), 20)
            assert [line async for line in opened[1].aiter_lines()][-1] == ""


async def test_the_key_of_this_start_is_in_no_exchange() -> None:
    """D66: it is in the address of a sign-in without a browser, and may be in any other, or in a Referer."""
    async with watched_demo() as (made, mode):
        http = await made.http()
        rp = await made.relying_party()
        await http.post(f"{SIGN_INS}?key={KEY}", json={**ALICE, "authorize_url": await rp.begin()})
        escaped = f"%{ord(KEY[0]):x}{KEY[1:]}"
        for key in (KEY, escaped):
            await http.get(f"{BASE}/.well-known/keys?key={key}", headers={"Referer": f"{BASE}/developer?key={key}"})
        await http.post(f"{BASE}/request", data={"state": KEY, "client_id": "rp1"})
        kept = mode.exchanges.list_exchanges()
        assert [each.endpoint for each in kept] == ["discovery", "par", "callback", "jwks", "jwks", "par"]
        assert not [each for each in kept if KEY in repr(each) or escaped in repr(each)]


async def test_a_page_of_another_site_cannot_take_the_places_of_those_who_follow() -> None:
    """D66: it could not read an event, but keep others from it."""
    async with watched_demo() as (made, _):
        http = await made.http()
        for site in ("cross-site", "same-site"):
            answer = await http.get(f"{BASE}/developer/events", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 400
