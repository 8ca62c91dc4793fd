"""Orders of the sandbox, for programs: JSON in, JSON out (D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from corpid.web.http.requests import client_request, headers
from corpid.web.pages.public_pages import not_found
from corpid.web.pages.responses import NO_STORE
from corpid.web.routes import as_json, as_page
from corpid_dev.web import endpoints, orders_page
from corpid_dev.web.endpoints import JSON, json_members, refuse_other_sites

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext
    from corpid_dev.web.mode import Mode


def for_a_page(request: Request) -> bool:
    """Return whether a browser asks for the page, or sends its form."""
    if request.method == "POST":
        sent = headers(request, b"content-type")
        return bool(sent) and sent[0].startswith(b"application/x-www-form-urlencoded")
    return request.method != "DELETE" and any(b"text/html" in each for each in headers(request, b"accept"))


async def orders(request: Request, web: WebContext, mode: Mode) -> Response:
    """Place an order, list those in force, or withdraw them."""
    if for_a_page(request):
        return await orders_page.page(request, web, mode)
    placed, issuer_id = mode.developer.orders, web.provider.policy.issuer_id
    client_id = request.query_params.get("client_id")
    if request.method == "POST":
        refuse_other_sites(request, web)
        context = await client_request(request, web.provider)
        [made] = await endpoints.place(context, mode, [await json_members(request)])
        request.scope["state"]["log"]["detail"] = f"sandbox: {made.order.name} placed"
        return _json(made.document, status=201)
    if request.method == "DELETE":
        refuse_other_sites(request, web)
        return _json({"withdrawn": placed.withdraw_all(issuer_id=issuer_id, client_id=client_id)})
    found = placed.list_orders(issuer_id=issuer_id, client_id=client_id)
    return _json({"orders": [each.document for each in found]})


async def order(request: Request, web: WebContext, mode: Mode) -> Response:
    """Withdraw one order."""
    refuse_other_sites(request, web)
    issuer_id = web.provider.policy.issuer_id
    if not mode.developer.orders.withdraw(request.path_params["rest"], issuer_id=issuer_id):
        return await not_found(request, web)
    return _json({"withdrawn": 1})


def fails(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error as a page, or as JSON for a program."""
    return as_page(request, error, web) if for_a_page(request) else as_json(request, error, web)


def _json(content: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, NO_STORE, JSON)
