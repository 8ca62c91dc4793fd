"""Endpoints of developer mode for programs: JSON in, JSON out (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from corpid.flows import rate_limits
from corpid.jose.encoding import MalformedToken, json_object
from corpid.rules.oauth.client_registration import issuers_of
from corpid.rules.oauth.errors import InvalidRequest, UnsupportedContentCoding
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.requests import encoding_fault, headers, page_request
from corpid.web.pages.responses import NO_STORE
from corpid.web.routes import as_json
from corpid_dev.flows import clients, exchanges, orders, sign_ins
from corpid_dev.flows.clients import ClientRefused
from corpid_dev.flows.orders import MOST, ActiveOrder, TooManyOrders
from corpid_dev.flows.sign_ins import SimulatedSignIn
from corpid_dev.rules.orders import InvalidOrder
from corpid_dev.web.clients import proposed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.authorization_request import AuthorizationResponse
    from corpid.rules.oauth.records import Client
    from corpid.web.context import WebContext
    from corpid_dev.web.mode import Mode

JSON: Final = "application/json"


async def sign_in(request: Request, web: WebContext, mode: Mode) -> Response:
    """Sign a test person in without a browser; answer with the callback (D66)."""
    context = await _program(request, web)
    log = request.scope["state"]["log"]
    log["detail"] = "simulated"
    asked = await _asked(request)
    await place(context, mode, sign_ins.orders_of(asked))
    exchange, fault_injector = exchanges.current(), mode.developer.fault_injector
    if asked.orders and exchange is not None and fault_injector is not None:
        await fault_injector.intercept_request(exchange)  # it came before these orders
    response = await sign_ins.without_browser(context, mode.developer, asked)
    refused = sign_ins.refusal(response)
    if refused is not None:
        log["error"], log["reason"] = refused
    response = await mode.change_response(response)
    return Response(msgspec.json.encode(_callback(response)), 200, NO_STORE, JSON)


async def client(request: Request, web: WebContext, mode: Mode) -> Response:
    """Register a client, or replace the one of this identifier (D66)."""
    context = await _program(request, web)
    value = await json_members(request)
    try:
        saved = await clients.save(context, mode.developer, value, web.client_rules)
    except ClientRefused as refused:
        first = refused.faults[0]
        error = InvalidRequest(
            Reason.CLIENT_REFUSED, f"{first.member}: {first.reason}" if first.member else first.reason
        )
        answer = as_json(request, error, web)
        content = json_object(bytes(answer.body)) | {"faults": refused.faults}
        return Response(msgspec.json.encode(content), answer.status_code, NO_STORE, JSON)
    content = {
        "client_id": saved.client.client_id,
        "created": saved.created,
        "issuer": _issuer_of(saved.client, web),
        "advice": saved.advice,
    }
    return Response(msgspec.json.encode(content), 201 if saved.created else 200, NO_STORE, JSON)


def _issuer_of(client: Client, web: WebContext) -> str:
    """An issuer that knows the client, if possible this one."""
    policy, known = web.provider.policy, issuers_of(client, web.client_rules)
    if not known or policy.issuer_id in known:
        return policy.base_url
    return next(iter(known.values())).own_url


async def listed(request: Request, web: WebContext, mode: Mode) -> Response:
    """List the clients, and the members that a new one begins with (D66)."""
    context = await page_request(request, web.provider)
    found = [
        {
            "client_id": each.client_id,
            "name": each.name,
            "redirect_uris": each.redirect_uris,
            "own": each.client_id in mode.developer.own_clients,
        }
        for each in await clients.clients(context)
    ]
    content = {
        "issuer": web.provider.policy.base_url,
        "generations": [each.name for each in web.provider.policy.served],
        "clients": found,
        "new_client": await proposed(web, context),
    }
    return Response(msgspec.json.encode(content), 200, NO_STORE, JSON)


async def _program(request: Request, web: WebContext) -> RequestContext:
    """The context of a program's request."""
    refuse_other_sites(request, web)
    context = await page_request(request, web.provider)
    await web.provider.rate_limits.address(rate_limits.SIGN_IN, context.address, context.now, context.counts)
    return context


def _callback(response: AuthorizationResponse) -> dict[str, object]:
    """The answer's members: an address, and a form for `form_post`.

    A field that occurs twice has a list.
    """
    if not response.posted:
        return {"callback_url": response.url}
    form: dict[str, object] = {}
    for name, value in response.parameters:
        form[name] = [form[name], value] if name in form else value
    return {"callback_url": response.redirect_uri, "form": form}


async def place(context: RequestContext, mode: Mode, documents: Sequence[Mapping[str, object]]) -> list[ActiveOrder]:
    """Put orders of the sandbox in force. Raises InvalidRequest."""
    developer = mode.developer
    try:
        return await orders.place(context, developer.orders, developer.sandbox_keys, documents)
    except InvalidOrder as error:
        raise InvalidRequest(Reason.SIMULATION, f"orders: {error}") from None
    except TooManyOrders:
        raise InvalidRequest(Reason.SIMULATION, f"{MOST} orders are in force: withdraw some") from None


def refuse_other_sites(request: Request, web: WebContext) -> None:
    """Return for a program, and for a page of this origin.

    Raises InvalidRequest for any other page. Source: D35, D66
    """
    parts = urlsplit(web.provider.policy.base_url)
    own = f"{parts.scheme}://{parts.netloc}".encode()
    if headers(request, b"sec-fetch-site") in ([], [b"same-origin"], [b"none"]) and headers(request, b"origin") in (
        [],
        [own],
    ):
        return
    raise InvalidRequest(
        Reason.FORM_OF_ANOTHER_SITE,
        "this request was sent by a page of another site",
        detail="Sec-Fetch-Site or Origin",
    )


async def _asked(request: Request) -> SimulatedSignIn:
    try:
        return msgspec.convert(await json_members(request), SimulatedSignIn)
    except msgspec.ValidationError as error:
        description = str(error).replace("`", "'").replace('"', "'")
        raise InvalidRequest(Reason.SIMULATION, description) from None


async def json_members(request: Request) -> dict[str, Any]:
    """The members of a JSON object in the body.

    Raises InvalidRequest for any other body, and for another Content-Type. Source: D33, D66
    """
    sent = headers(request, b"content-type")
    if [each.decode("latin-1").partition(";")[0].strip().lower() for each in sent] != [JSON]:
        raise InvalidRequest(Reason.SIMULATION, f"Content-Type must be {JSON}")
    if fault := encoding_fault(request):
        raise UnsupportedContentCoding(Reason.BODY_ENCODED, fault)
    try:
        return json_object(await request.body())
    except ClientDisconnect:
        raise InvalidRequest(Reason.BODY_INCOMPLETE, "the request ended before its body was complete") from None
    except MalformedToken as error:
        raise InvalidRequest(Reason.SIMULATION, f"the body must be one JSON object: {error}") from None
