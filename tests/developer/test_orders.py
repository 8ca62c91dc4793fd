"""Orders of the sandbox: as they are placed by API, page and command, and who cannot (D66)."""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from corpid import cli
from corpid.flows.operations.signing_keys import SigningKeys
from corpid.flows.rate_limits import RateLimits
from corpid.flows.registry_cache import RegistryCache
from corpid.web.http.server import bind
from corpid.web.telemetry import access_log
from corpid_dev.flows.orders import MOST, Orders, RequestOrigin
from corpid_dev.rules.orders import BY_NAME, ERRORS, KINDS, InvalidOrder, document_from_texts, read
from tests.developer.ordering import ALICE, ORDERS, outcome, party, place, placed, sandbox_world
from tests.developer.scene import order
from tests.logs import log_left_alone
from tests.sign_in.world import BASE, new_world
from tests.world.provider import served

INVALID = {"order": "error", "endpoint": "token", "error": "invalid_grant"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "order: must be one of error, latency"),
        ({"order": "explode"}, "order: must be one of error, latency"),
        ({"order": "error", "error": "server_error"}, "endpoint: is missing; it must be one of par"),
        ({**INVALID, "endpoint": "nowhere"}, "endpoint: must be one of par"),
        ({**INVALID, "endpoint": "par"}, "error: par has no error invalid_grant; it has invalid_request"),
        ({**INVALID, "status": 200}, "status: must be a whole number from 400 to 599"),
        ({**INVALID, "status": "400"}, "status: must be a whole number"),
        ({**INVALID, "status": True}, "status: must be a whole number"),
        ({**INVALID, "status": 400.5}, "status: must be a whole number"),
        ({**INVALID, "times": 0}, "times: must be a whole number from 1 to 1000"),
        ({**INVALID, "seconds": 1}, "seconds: error has no such member; it has client_id, description"),
        ({**INVALID, "description": "é"}, "description: must be text of 1 to 200 printable ASCII"),
        (
            {"order": "error", "endpoint": "authorize", "error": "access_denied", "status": 400},
            "status: the error goes",
        ),
        ({"order": "latency", "endpoint": "token", "seconds": 61}, "seconds: must be a number from 0 to 60"),
        ({"order": "latency", "endpoint": "token", "seconds": float("nan")}, "seconds: must be a number"),
        ({"order": "latency", "endpoint": "jwks", "seconds": 1, "client_id": "rp1"}, "client_id: the endpoint jwks"),
        ({"order": "rotate-key", "client_id": "rp1"}, "client_id: rotate-key serves every client alike"),
        ({"order": "rotate-key", "times": 2}, "times: rotate-key is carried out once"),
        ({"order": "rotate-key", "withdraw": "yes"}, "withdraw: must be true or false"),
        ({"order": "latency", "endpoint": "par", "seconds": 1, "sign_in": "urn:x"}, "sign_in: the push comes before"),
        (
            {"order": "token", "token": "userinfo", "fault": "nonce"},
            "fault: nonce is a fault of id_token, not of userinfo",
        ),
        (
            {"order": "token", "token": "id_token", "fault": "missing-claim"},
            "claim: is missing: missing-claim needs it",
        ),
        ({"order": "token", "token": "id_token", "fault": "iss", "claim": "x"}, "claim: iss has no such member"),
        ({"order": "callback", "fault": "error"}, "error: is missing: error needs it"),
        ({"order": "callback", "fault": "state", "seconds": 3}, "seconds: state has no such member"),
    ],
)
def test_an_order_that_cannot_be_carried_out_names_member_and_remedy(document: dict[str, Any], problem: str) -> None:
    """D66: the error says what the member is, or what goes with what."""
    with pytest.raises(InvalidOrder) as refused:
        read(document)
    assert str(refused.value).startswith(problem)


def test_every_declared_order_is_read_and_written_again() -> None:
    """docs/architecture.md, "One declaration": JSON and texts of a form give the same order."""
    for kind in KINDS:
        for fault in kind.faults or (None,):
            members = {each.name: _example(each) for each in kind.members if each.required or each.default is not None}
            if fault is not None:
                members |= {"fault": fault.name} | ({"token": fault.tokens[0]} if fault.tokens else {})
                members |= {"claim": "sub"} if fault.needs == "claim" else {}
                members |= {"error": "access_denied"} if fault.needs == "error" else {}
            if kind.name == "error":
                members["error"] = next(iter(ERRORS[members["endpoint"]]))
            made = read({"order": kind.name, **members})
            assert read(made.document).document == made.document
            texts = {name: str(value).lower() if value is False else str(value) for name, value in members.items()}
            assert read(document_from_texts(kind.name, texts)) == made


def _example(member: Any) -> Any:
    if member.default is not None:
        return member.default
    return member.choices[0] if member.choices else int(member.least)


async def test_an_order_is_placed_listed_and_withdrawn() -> None:
    """D66: 201 with its id; a client's list has those of every client, too."""
    async with sandbox_world() as (made, _):
        await made.client("rp2")
        http = await made.http()
        own = await placed(made, "error", endpoint="token", error="server_error", times=2)
        of_all = await placed(made, "maintenance", None)
        assert own == {
            "id": own["id"], "client_id": "rp1", "order": "error", "endpoint": "token", "error": "server_error",
            "times": 2, "sign_in": None, "left": 2, "obeyed": 0,
        }  # fmt: skip
        assert (await http.get(ORDERS)).json() == {"orders": [own, of_all]}
        assert (await http.get(ORDERS, params={"client_id": "rp2"})).json() == {"orders": [of_all]}
        assert (await http.delete(f"{ORDERS}/{own['id']}")).json() == {"withdrawn": 1}
        assert (await http.delete(f"{ORDERS}/{own['id']}")).status_code == 404
        await placed(made, "maintenance", "rp2")
        assert (await http.delete(ORDERS, params={"client_id": "rp2"})).json() == {"withdrawn": 1}
        assert (await http.delete(ORDERS)).json() == {"withdrawn": 1}
        assert (await http.get(ORDERS)).json() == {"orders": []}


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({**INVALID, "client_id": "rp9"}, "client_id: is not an enabled client"),
        ({"order": "error", "endpoint": "authorization-info", "error": "server_error"}, "this issuer has no authoriz"),
        ({"order": "explode"}, "order: must be one of"),
        ([], "the body must be one JSON object"),
    ],
)
async def test_an_order_that_does_not_fit_this_issuer_is_refused(members: Any, problem: str) -> None:
    """D66: nothing is in force after it."""
    async with sandbox_world() as (made, mode):
        answer = await place(made, members)
        assert answer.status_code == 400
        assert problem in answer.json()["error_description"]
        assert mode.orders.list_orders(issuer_id="first") == []


async def test_orders_of_a_sign_in_are_placed_with_it() -> None:
    """D66: they are its own, and one that does not fit uses nothing up."""
    async with sandbox_world() as (made, mode):
        rp = await party(made)
        url = await rp.begin()
        for wrong in ({"order": "explode"}, {"order": "callback", "fault": "state", "client_id": "rp2"}):
            answer = await order(made, {"authorize_url": url, **ALICE, "orders": [wrong]})
            assert answer.status_code == 400
        assert mode.orders.list_orders(issuer_id="first") == []
        answer = await order(made, {"authorize_url": url, **ALICE, "orders": [{"order": "callback", "fault": "state"}]})
        assert "another-state" in answer.json()["callback_url"]
        assert answer.headers["corpid-sandbox"] == "callback"
        [left] = mode.orders.list_orders(issuer_id="first")
        assert (left.order.client_id, left.order.sign_in) == ("rp1", rp.sign_in.request_uri)


async def test_the_list_is_bounded() -> None:
    """D66: an order of a sign-in gives way, one that was placed by itself does not."""
    async with sandbox_world() as (made, mode):
        await placed(made, "token-type", sign_in="urn:old")
        for _ in range(MOST):
            await placed(made, "token-type")
        answer = await place(made, {"order": "token-type"})
        assert f"{MOST} orders are in force" in answer.json()["error_description"]
        listed = mode.orders.list_orders(issuer_id="first")
        assert len(listed) == MOST
        assert not any(each.order.sign_in for each in listed)


def test_the_narrowest_order_is_obeyed_first_and_at_its_issuer_alone() -> None:
    """D62, D66: of the sign-in, then of the client, then of every client; the older one first."""
    orders = Orders()
    documents = [{}, {"client_id": "rp1"}, {"client_id": "rp1"}, {"client_id": "rp1", "sign_in": "urn:1"}]
    wanted = [read({"order": "maintenance", "times": 1, **each}) for each in documents]
    placed_orders = orders.place(wanted, issuer_id="first", now=0.0)
    asked = RequestOrigin(issuer_id="first", client_id="rp1", sign_in=("urn:1",))
    assert orders.take("maintenance", replace(asked, issuer_id="legacy")) is None
    assert not orders.withdraw(placed_orders[0].order_id, issuer_id="legacy")
    taken = [orders.take("maintenance", asked) for _ in range(5)]
    assert taken == [wanted[3], wanted[1], wanted[2], wanted[0], None]
    assert orders.list_orders(issuer_id="first") == []


async def test_what_was_ordered_is_marked_in_the_log() -> None:
    """D66, D48."""
    stream = io.BytesIO()
    with log_left_alone():
        access_log.configure(clock=time.time, stream=stream)
        async with sandbox_world() as (made, _):
            await placed(made, "error", endpoint="token", error="invalid_grant", times=1)
            assert await outcome(made, await party(made)) == "token: invalid_grant"
    lines = {line["path"]: line for line in map(json.loads, stream.getvalue().splitlines()) if "path" in line}
    assert lines["/developer/orders"]["detail"] == "sandbox: error placed"
    token = lines["/mga/sps/oauth/oauth20/token"]
    assert (token["error"], token["reason"]) == ("invalid_grant", "sandbox_order")
    assert token["detail"].startswith("sandbox error; ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://rp.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8081"},
    ],
)
async def test_another_sites_page_neither_places_nor_withdraws(headers: dict[str, str]) -> None:
    """D35, D66: as JSON, as plain text, and as a form."""
    async with sandbox_world() as (made, mode):
        kept = await placed(made, "token-type")
        http = await made.http()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        text = {"Content-Type": "text/plain"}
        answers = [
            await http.post(ORDERS, json=INVALID, headers=headers),
            await http.post(ORDERS, content=json.dumps(INVALID), headers={**headers, **text}),
            await http.post(ORDERS, content="step=place&order=maintenance", headers={**headers, **form}),
            await http.post(ORDERS, content="step=withdraw-all", headers={**headers, **form}),
            await http.delete(ORDERS, headers=headers),
            await http.delete(f"{ORDERS}/{kept['id']}", headers=headers),
        ]
        assert {each.status_code for each in answers} == {400}
        assert [each.order_id for each in mode.orders.list_orders(issuer_id="first")] == [kept["id"]]


async def test_a_form_without_the_token_of_its_page_is_refused() -> None:
    """D35: as one from this site."""
    async with sandbox_world() as (made, mode):
        http = await made.http()
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        answer = await http.post(ORDERS, content="step=place&order=maintenance&form_token=x.y", headers=sent)
        assert answer.status_code == 400
        assert mode.orders.list_orders(issuer_id="first") == []


async def test_the_page_places_and_withdraws() -> None:
    """D66: a form for each order; what cannot be used is said at its field, and what was typed is kept."""
    async with sandbox_world() as (made, mode):
        http = await made.http()
        page = (await http.get(ORDERS, headers={"Accept": "text/html"})).text
        assert all(f"<h3>{kind.name}</h3>" in page for kind in KINDS)
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token is not None

        async def send(**fields: str) -> Any:
            sent = {"Sec-Fetch-Site": "same-origin"}
            return await http.post(ORDERS, data={"form_token": token[1], **fields}, headers=sent)

        answer = await send(step="place", order="token", **{"token-token": "userinfo", "token-fault": "nonce"})
        assert answer.status_code == 303
        for _ in range(2):
            page = (await http.get(answer.headers["location"], headers={"Accept": "text/html"})).text
            assert "nonce is a fault of id_token, not of userinfo" in page
            assert re.search(r'<option value="nonce" selected>', page)
        good = {"error-endpoint": "token", "error-error": "invalid_grant", "error-client_id": "rp1", "error-times": "3"}
        answer = await send(step="place", order="error", **good)
        assert answer.status_code == 303
        [made_order] = mode.orders.list_orders(issuer_id="first")
        assert (made_order.order.client_id, made_order.left) == ("rp1", 3)
        page = (await http.get(answer.headers["location"], headers={"Accept": "text/html"})).text
        assert "In force: error." in page
        assert "error=invalid_grant" in page
        assert (await send(step="withdraw", id=made_order.order_id)).status_code == 303
        assert mode.orders.list_orders(issuer_id="first") == []
        assert (await send(step="place", order="no-such")).headers["location"].endswith("?entered=1")


async def test_the_command_places_lists_and_withdraws() -> None:
    """docs/sandbox.md: `corpid sandbox` speaks to a running demo."""

    def ran(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli.app, ["sandbox", *arguments], env={"COLUMNS": "200"})
        return done.exit_code, done.output

    with log_left_alone():
        access_log.configure(clock=time.time, stream=io.BytesIO())
        async with sandbox_world() as (made, mode):
            sockets = bind("127.0.0.1", 0)
            url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/developer"
            async with served(_WithHost(made.application.asgi), sockets):

                async def told(*arguments: str) -> tuple[int, str]:
                    return await asyncio.to_thread(ran, *arguments, "--developer", url)

                code, text = await told("order", "error", "endpoint=token", "error=invalid_grant", "--client", "rp1")
                assert code == 0, text
                [made_order] = mode.orders.list_orders(issuer_id="first")
                assert f"corpid sandbox withdraw {made_order.order_id}" in text
                code, text = await told("list", "--json")
                assert json.loads(text)["orders"][0]["error"] == "invalid_grant"
                assert "endpoint=token" in (await told("list"))[1]
                code, text = await asyncio.to_thread(ran, "list", "--developer", f"{url}?key={mode.key}")
                assert (code, "endpoint=token" in text) == (0, True), text
                assert await told("order", "latency", "endpoint=token", "seconds=x") == (
                    1, "Error: seconds: must be a number from 0 to 60\n",
                )  # fmt: skip
                assert await told("withdraw", made_order.order_id) == (0, "1 order withdrawn.\n")
                assert (await told("withdraw", made_order.order_id))[0] == 1
                assert await told("withdraw", "--all") == (0, "0 orders withdrawn.\n")
                assert (await told("order", "rotate-key")) == (0, "Done: rotate-key.\n")
            assert ran("orders")[0] == 0
            assert all(fault.name in ran("orders", "token")[1] for fault in BY_NAME["token"].faults)
            code, text = await asyncio.to_thread(ran, "list", "--developer", "http://127.0.0.1:9/developer")
            assert (code, "start `corpid demo`" in text) == (1, True)


class _WithHost:
    """The application behind a port that it does not know."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        host = (b"host", BASE.removeprefix("http://").encode())
        headers = [host if name == b"host" else (name, value) for name, value in scope["headers"]]
        await self._app({**scope, "headers": headers}, receive, send)


@pytest.mark.parametrize("options", [{}, {"developer_mode": False}, {"base": "https://op.example"}])
async def test_a_production_provider_obeys_nothing(options: dict[str, Any]) -> None:
    """D66: no path, parameter or header; its parts are the plain ones, and a sign-in is as it is."""
    async with new_world(**options) as made:
        provider = made.provider
        kinds = (type(provider.registry_cache), type(provider.signing_keys), type(provider.rate_limits))
        assert kinds == (RegistryCache, SigningKeys, RateLimits)
        rp = await made.relying_party()
        ordered = {"order": "error", "endpoint": "par", "error": "server_error", "sandbox": "error"}
        headers = {"CorpID-Sandbox": "error", "X-CorpID-Order": "error", "X-Developer-Mode": "true"}
        for path in ("/developer/orders", "/developer/orders/1", "/request/developer/orders"):
            for method in ("GET", "POST", "DELETE"):
                answer = await rp.http.request(method, made.base + path, json=ordered, headers=headers)
                assert answer.status_code == 404
        assert (await rp.push(ordered, headers)).status_code == 201
        document = await rp.http.get(f"{made.base}/.well-known/keys", params=ordered, headers=headers)
        assert document.status_code == 200
        assert not any("sandbox" in name for name in document.headers)


@pytest.mark.full
def test_developer_mode_of_a_server_loads_no_sandbox() -> None:
    """D66: `developer_mode` alone has the documents, and nothing that obeys."""
    program = (
        "import sys, corpid.app, corpid.cli.serve\n"
        "from corpid.web.routes import table\n"
        "from corpid.rules.oauth.generations import GENERATIONS\n"
        "table([GENERATIONS['current']], further=corpid.app.extension_of_developer_mode().routes('http://localhost'))\n"
        "assert 'corpid_dev.web.documents' in sys.modules\n"
        "print([name for name in sys.modules if any(part in name for part in ('corpid_dev.flows', 'corpid_dev.rules', "
        "'fault_injection', 'recording_keys', 'orders', 'observer', 'corpid_dev.demo'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
