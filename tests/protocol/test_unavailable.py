"""temporarily_unavailable: maintenance, and a store that is busy for real (Spec 7.1-7.4)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from corpid.stores.sql import sqlite
from corpid_dev.relying_party.browser import parse
from tests.protocol.deployment import AUTHORIZE, ISSUER, LIVE, PAR, TOKEN
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import is_public, json_refusal, resource_refusal
from tests.world.provider import EVENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

pytestmark = pytest.mark.generations(*EVERY)


@pytest.fixture
def world(worlds: Worlds) -> World:
    """Alice is signed in."""
    made = worlds.fresh()
    made.sign_in()
    return made


def maintenance(world: World, on: bool) -> None:
    """An operator switches it in another process."""
    world.run(world.provider.registry.deployment.set_maintenance(on, EVENT))
    world.clock.now += LIVE


@contextmanager
def locked(world: World) -> Iterator[None]:
    """Another connection holds the write lock of the database, for longer than a request waits."""
    other = sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def page(answer: httpx.Response, seconds: str) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert answer.headers["retry-after"] == seconds
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert "try again" in answer.text.lower()


def callback(world: World, answer: httpx.Response) -> None:
    """Spec 7.2: the client is told."""
    assert answer.status_code == 302
    told = query(answer.headers["location"])
    assert told.get("iss") == (ISSUER if world.expected.iss else None)
    assert (told["error"], told["state"]) == ("temporarily_unavailable", "st4te")
    is_public(told["error_description"], "temporarily_unavailable")


def begun(world: World) -> str:
    """The URL of an authorization request, which may come as a query."""
    world.rp.sign_in.state = "st4te"
    return world.run(world.rp.begin())


def test_under_maintenance_who_redeems_a_code_is_told_when_to_come_again_and_nothing_is_spent(world: World) -> None:
    """Spec 7.3: 503."""
    code = world.code()
    maintenance(world, on=True)
    honest = {"client_assertion": world.rp.assertion()}
    proof = {"DPoP": world.rp.proof("POST", TOKEN)} if world.interface.bound else {}
    with world.nothing_spent():
        exchange = world.redeem(code, headers=proof, **honest)
        assert exchange.headers["retry-after"] == "60"
        json_refusal(exchange, 503, "temporarily_unavailable")
    maintenance(world, on=False)
    assert world.redeem(code, headers=proof, **honest).status_code == 200


@pytest.mark.generations(*EVERY, differ=True)
def test_under_maintenance_resources_go_on(world: World) -> None:
    """Spec 7.4 knows no 503 there, D72: with a token what it stands for, without one the bare 401 (rule 2)."""
    token = world.tokens().access_token

    def read() -> list[int]:
        return [
            world.run(world.rp.resource(access_token=token, endpoint=reading.endpoint)).status_code
            for reading in world.interface.readings
        ]

    before = read()
    maintenance(world, on=True)
    assert read() == before
    assert before[0] == 200
    for resource in (reading.name for reading in world.interface.readings):
        url = f"{ISSUER}/{resource}"
        for headers in ({}, {"Authorization": "Basic cnAtMTp4"}, {"DPoP": "x"}):
            for method in ("GET", "POST"):
                answer = world.run(world.http.request(method, url, headers=headers))
                assert (answer.status_code, answer.content) == (401, b"")
                challenge = answer.headers["www-authenticate"]
                assert "error" not in challenge
                assert challenge.startswith("DPoP algs=" if world.interface.bound else "Bearer realm=")
        known = {"Authorization": f"{'DPoP' if world.interface.bound else 'Bearer'} x"}
        assert world.run(world.http.get(url, headers=known)).status_code in {400, 401}


@pytest.mark.generations(*PUSHED)
def test_under_maintenance_so_is_who_pushes(world: World) -> None:
    """Spec 7.1: 503, with the state."""
    honest = {"client_assertion": world.rp.assertion(), "state": "s"}
    headers = {"DPoP": world.rp.proof("POST", PAR)}
    maintenance(world, on=True)
    with world.nothing_spent():
        answer = world.push(headers=headers, **honest)
        json_refusal(answer, 503, "temporarily_unavailable", state="s")
        assert answer.headers["retry-after"] == "60"
    maintenance(world, on=False)
    assert world.push(headers=headers, **honest).status_code == 201


def test_under_maintenance_a_request_whose_client_is_known_is_answered_to_the_client(world: World) -> None:
    """Spec 7.2: maintenance is a callback error; D16: once the redirect URI is proven."""
    url = begun(world)
    maintenance(world, on=True)
    with world.nothing_spent():
        callback(world, world.get(url))
        callback(world, world.get(url, world.new_browser()))
    maintenance(world, on=False)
    assert "code" in query(world.get(url).headers["location"])


def test_under_maintenance_pages_say_so(world: World) -> None:
    """Spec 7: whoever is in the middle of a sign-in, in the language of it, and a POST at authorize."""
    world.rp = world.party(parameters={"ui_locales": "en"})
    url = begun(world)
    browser = world.new_browser()
    at = f"{ISSUER}{world.get(url, browser).headers['location']}"
    maintenance(world, on=True)
    with world.nothing_spent():
        answer = world.get(at, browser, accept_language="ms")
        page(answer, "60")
        assert answer.headers["content-language"] == "en"
        assert "Your sign-in is not lost." in answer.text
        assert "start again" not in answer.text
        assert (urlsplit(at).path, "Open the page again") in parse(answer.text).links
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        page(world.run(world.http.post(AUTHORIZE, content="client_id=rp-1", headers=form)), "60")
    maintenance(world, on=False)
    assert world.get(at, browser).status_code == 200


def test_under_maintenance_metadata_and_health_are_answered(world: World) -> None:
    """Spec 4.6, 4.7: cached documents stay true; a load balancer must not take the process away."""
    maintenance(world, on=True)
    for path in ("/.well-known/openid-configuration", "/.well-known/keys", "/healthz", "/readyz"):
        assert world.run(world.http.get(f"{ISSUER}{path}")).status_code == 200


async def everything(
    world: Any, fields: Any, token: Any, browser: Any, at: Any, key: Any, code: Any, url: Any
) -> list[Any]:
    rp, http = world.rp, world.http
    proof = {"DPoP": rp.proof("GET", f"{ISSUER}/userinfo", token, key=key)} if world.interface.bound else {}
    page_post = browser.http.post(f"{at}/password", data=fields, headers={"Sec-Fetch-Site": "same-origin"})
    return list(
        await asyncio.gather(
            *([rp.push()] if world.interface.pushed else []),
            rp.token(code),
            rp.resource("GET", proof, access_token=token),
            http.get(url, follow_redirects=False),
            world.browser.http.get(url, follow_redirects=False),
            page_post,
            http.get(f"{ISSUER}/.well-known/keys"),
        )
    )


def test_while_another_process_keeps_the_database_locked_everybody_is_told_to_try_again(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spec 7: high load. In JSON, as a challenge's body, in the callback and on the page, with nothing spent."""
    world = worlds.fresh(one_database=True)
    world.sign_in()
    token, key = world.tokens().access_token, world.rp.sign_in.dpop_key
    code = world.code()
    url = begun(world)
    browser = world.new_browser()
    at = f"{ISSUER}{world.get(url, browser).headers['location']}"
    world.run(browser.open(at))
    form = browser.page.form_with("user_name", "password")
    assert form is not None
    fields = {control.name: control.value for control in form.controls} | {"user_name": "alice", "password": "wrong"}

    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    with locked(world), world.nothing_spent():
        *pushes, exchange, resource, fresh, known, posted, keys = world.run(
            everything(world, fields, token, browser, at, key, code, url)
        )
    for push in pushes:
        json_refusal(push, 503, "temporarily_unavailable", state="st4te")
    json_refusal(exchange, 503, "temporarily_unavailable")
    resource_refusal(resource, 503, "temporarily_unavailable")
    if world.interface.pushed:
        callback(world, fresh)
    else:
        assert fresh.status_code == 303, "nothing is stored for a browser that has shown no cookie (D34)"
    callback(world, known)
    page(posted, "5")
    assert "Your sign-in is not lost." in posted.text
    assert [answer.headers["retry-after"] for answer in (*pushes, exchange, resource)] == ["5"] * (len(pushes) + 2)
    assert keys.status_code == 200
    assert world.redeem(code).status_code == 200
    assert "code" in query(world.get(url).headers["location"])
