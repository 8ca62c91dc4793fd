"""The route table: path, methods, endpoint, and how a refusal of the route itself looks. The table of contents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from corpid.protocol import metadata
from corpid.web import endpoints, errors, pages
from corpid.web.forgery import refuse_forged
from corpid.web.signin.endpoints import interaction
from corpid.web.signin.sign_out import SIGN_OUT_PATH, sign_out

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from corpid.web.endpoints import Desk

    Endpoint = Callable[[Request, Desk], Awaitable[Response]]

CORS_PATHS: Final = (metadata.DISCOVERY_PATH, metadata.JWKS_PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path under base_url. HEAD is answered wherever GET is (D32)."""

    path: str
    methods: tuple[str, ...]
    endpoint: Endpoint
    page: bool = False
    """read by people: 404 and 405 are pages, a POST must come from our own page (D35)"""


def table(desk: Desk) -> tuple[Route, ...]:
    """Every route with a fixed path; resources come from the generation's record (Spec 2.1)."""
    generation = desk.provider.policy.pushed
    return (
        Route(path=metadata.PAR_PATH, methods=("POST",), endpoint=endpoints.pushed_authorization_request),
        Route(path=metadata.AUTHORIZATION_PATH, methods=("GET", "POST"), endpoint=endpoints.authorization),
        Route(path=metadata.TOKEN_PATH, methods=("POST",), endpoint=endpoints.token_endpoint),
        *(
            Route(
                path=resource.path,
                methods=("GET", "POST"),
                endpoint=partial(endpoints.resource_endpoint, generation=generation, which=resource),
            )
            for resource in generation.resources
        ),
        Route(path=metadata.DISCOVERY_PATH, methods=("GET",), endpoint=endpoints.discovery),
        Route(path=metadata.JWKS_PATH, methods=("GET",), endpoint=endpoints.jwks),
        Route(path="/", methods=("GET",), endpoint=pages.home, page=True),
        Route(path=SIGN_OUT_PATH, methods=("GET", "POST"), endpoint=sign_out, page=True),
    )


SIGN_IN: Final = "/sign-in/"
_SIGN_IN_ROUTE: Final = Route(
    path="/sign-in/{interaction}/{action}", methods=("GET", "POST"), endpoint=pages.home, page=True
)
_STATIC_ROUTE: Final = Route(path="/static/{file}", methods=("GET",), endpoint=pages.static_file)


class Router:
    """The ASGI application below the shell: finds the route and calls its endpoint."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._routes: Mapping[str, Route] = {desk.base_path + route.path: route for route in table(desk)}
        self._sign_in = desk.base_path + SIGN_IN
        self._static = desk.base_path + "/static/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (Spec 2.1, D32)."""
        request = Request(scope, receive)
        path: str = scope["path"]
        route = self._routes.get(path)
        endpoint: Endpoint | None = route.endpoint if route else None
        if path.startswith(self._sign_in):
            route, endpoint = _SIGN_IN_ROUTE, self._interaction(path.removeprefix(self._sign_in))
        elif path.startswith(self._static):
            route, endpoint = _STATIC_ROUTE, _STATIC_ROUTE.endpoint
        answer = await self._answer(request, route, endpoint)
        await answer(scope, receive, send)

    def _interaction(self, rest: str) -> Endpoint:
        interaction_id, _, action = rest.partition("/")
        return partial(interaction, interaction_id=interaction_id, action=action)

    async def _answer(self, request: Request, route: Route | None, endpoint: Endpoint | None) -> Response:
        if route is None or endpoint is None:
            return await pages.not_found(request, self._desk)
        request.scope["route"] = route
        method = request.method
        if method == "OPTIONS" and route.path in CORS_PATHS:
            return Response(b"", 204, {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET"})
        if method not in route.methods and not (method == "HEAD" and "GET" in route.methods):
            allowed = ", ".join((*route.methods, *(("HEAD",) if "GET" in route.methods else ())))
            return errors.machine_error(request, 405, "invalid_request", f"use {allowed}", {"Allow": allowed})
        if route.page and method == "POST":
            refusal = refuse_forged(request, self._desk)
            if refusal is not None:
                return refusal
        return await endpoint(request, self._desk)
