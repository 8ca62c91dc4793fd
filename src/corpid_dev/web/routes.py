"""The routes of the demo's developer mode, declared once (D66)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from corpid.web.routes import Route, as_json, as_page
from corpid_dev.web import clients, endpoints, exchanges, index, orders, pages, readiness, traffic
from corpid_dev.web.paths import (
    ANYBODY_PATH,
    CLIENTS_PATH,
    DEVELOPER_PATH,
    EVENTS_PATH,
    EXCHANGES_PATH,
    ORDERS_PATH,
    READINESS_PATH,
    SIGN_INS_PATH,
    TRAFFIC_PATH,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.web.context import WebContext
    from corpid_dev.web.mode import Mode


def routes(mode: Mode) -> tuple[Route, ...]:
    """Routes for programs and of pages, with developer mode at hand.

    Forms of pages must come from our own (D35).
    """
    anybody = partial(pages.anybody, mode=mode)
    both = ("GET", "POST")
    return (
        Route(
            path=SIGN_INS_PATH,
            methods=("POST",),
            endpoint=partial(endpoints.sign_in, mode=mode),
            fails=as_json,
            developer=True,
        ),
        *_of_exchanges(mode),
        *_of_orders(mode),
        *_of_readiness(mode),
        Route(path=DEVELOPER_PATH, methods=("GET",), endpoint=index.page, fails=as_page, developer=True),
        Route(path=ANYBODY_PATH, methods=both, endpoint=anybody, fails=as_page, own_forms=True, developer=True),
        Route(
            path=CLIENTS_PATH,
            methods=both,
            endpoint=partial(_clients, mode=mode),
            fails=_as_page_or_json,
            developer=True,
        ),
        Route(
            path=f"{CLIENTS_PATH}/{{rest}}",
            methods=both,
            endpoint=partial(clients.pages, mode=mode),
            fails=as_page,
            own_forms=True,
            developer=True,
        ),
    )


async def _clients(request: Request, web: WebContext, mode: Mode) -> Response:
    """The list of clients for people, list and registration for programs."""
    if request.method == "POST":
        return await endpoints.client(request, web, mode)
    answer = clients.clients if orders.for_a_page(request) else endpoints.listed
    return await answer(request, web, mode)


def _as_page_or_json(request: Request, error: Exception, web: WebContext) -> Response:
    page = request.method != "POST" and orders.for_a_page(request)
    return (as_page if page else as_json)(request, error, web)


def _of_exchanges(mode: Mode) -> tuple[Route, ...]:
    """The routes of exchanges, for programs and as pages."""
    named = {
        EXCHANGES_PATH: exchanges.listed,
        f"{EXCHANGES_PATH}/{{rest}}": exchanges.one,
        EVENTS_PATH: exchanges.events,
    }
    shown = {
        TRAFFIC_PATH: traffic.listed,
        f"{TRAFFIC_PATH}/sign-ins/{{rest}}": traffic.sign_in,
        f"{TRAFFIC_PATH}/{{rest}}": traffic.one,
    }
    return tuple(
        Route(path=path, methods=("GET",), endpoint=partial(endpoint, mode=mode), fails=fails, developer=True)
        for fails, endpoints_of in ((as_json, named), (as_page, shown))
        for path, endpoint in endpoints_of.items()
    )


def _of_orders(mode: Mode) -> tuple[Route, ...]:
    """The routes of the sandbox's orders, for programs and of their page."""
    return (
        Route(
            path=ORDERS_PATH,
            methods=("GET", "POST", "DELETE"),
            endpoint=partial(orders.orders, mode=mode),
            fails=orders.fails,
            developer=True,
        ),
        Route(
            path=f"{ORDERS_PATH}/{{rest}}",
            methods=("DELETE",),
            endpoint=partial(orders.order, mode=mode),
            fails=as_json,
            developer=True,
        ),
    )


def _of_readiness(mode: Mode) -> tuple[Route, ...]:
    """The routes of the readiness report: its page, and its files."""
    return (
        Route(
            path=READINESS_PATH,
            methods=("GET", "POST"),
            endpoint=partial(readiness.page, mode=mode),
            fails=as_page,
            own_forms=True,
            developer=True,
        ),
        Route(
            path=f"{READINESS_PATH}/{{rest}}",
            methods=("GET",),
            endpoint=partial(readiness.file, mode=mode),
            fails=as_page,
            developer=True,
        ),
    )
