"""Endpoints that few processes need, loaded at their first request (docs/decisions/0036)."""

from __future__ import annotations

import asyncio
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import _lru_cache_wrapper

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from corpid.web.context import WebContext
    from corpid.web.route import Endpoint

T = TypeVar("T")
_MAKING: Final = Lock()


async def _on_first_use(make: _lru_cache_wrapper[T]) -> T:
    """The result of a cached function, which a thread calls first.

    That keeps no other request waiting, but for those that need it, too: made by two at once it may be broken.
    """
    if not make.cache_info().currsize:
        await asyncio.to_thread(_make_alone, make)
    return make()


def _make_alone(make: Callable[[], object]) -> None:
    with _MAKING:
        make()


@cache
def _api_application() -> ASGIApp:
    """The admin API's application.

    Most processes need none of it, and loading it takes as long as a start.
    """
    from corpid.web.api.application import application  # noqa: PLC0415

    return application()


class _AdminApi(Response):
    """An answer that the admin API gives, which is an ASGI application."""

    def __init__(self, web: WebContext) -> None:
        self._web: Final = web

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await _on_first_use(_api_application)
        inner = {**scope, "path": scope["path"].removeprefix(self._web.base_path), "corpid.web": self._web}
        try:
            await answer(inner, receive, send)
        finally:
            scope["route"] = inner.get("route", scope["route"])


async def admin_api(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """Answer a request to the admin API."""
    return _AdminApi(web)


def _answering(load: _lru_cache_wrapper[Endpoint]) -> Endpoint:
    """An endpoint that is loaded on first use, as the admin API."""

    async def answer(request: Request, web: WebContext) -> Response:
        endpoint = await _on_first_use(load)
        return await endpoint(request, web)

    return answer


@cache
def _scim() -> Endpoint:
    from corpid.web.scim.application import answer  # noqa: PLC0415

    return answer


@cache
def _portal() -> Endpoint:
    from corpid.web.directory.endpoints import manage  # noqa: PLC0415

    return manage


@cache
def _console() -> Endpoint:
    from corpid.web.operations.endpoints import console as answer  # noqa: PLC0415

    return answer


scim: Final = _answering(_scim)
portal: Final = _answering(_portal)
console: Final = _answering(_console)


def load_rare_pages() -> None:
    """Load the portal and the console, before a server forks its workers."""
    _portal()
    _console()
