"""Endpoints that few processes need, loaded at their first request (docs/decisions/0036)."""

from __future__ import annotations

import asyncio
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import _lru_cache_wrapper

    from starlette.requests import Request
    from starlette.responses import Response

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


def _answering(load: _lru_cache_wrapper[Endpoint]) -> Endpoint:
    """An endpoint that is loaded on first use."""

    async def answer(request: Request, web: WebContext) -> Response:
        endpoint = await _on_first_use(load)
        return await endpoint(request, web)

    return answer


@cache
def _admin_api() -> Endpoint:
    from corpid.web.api.application import answer  # noqa: PLC0415

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


admin_api: Final = _answering(_admin_api)
scim: Final = _answering(_scim)
portal: Final = _answering(_portal)
console: Final = _answering(_console)


def load_rare_pages() -> None:
    """Load the portal and the console, before a server forks its workers."""
    _portal()
    _console()
