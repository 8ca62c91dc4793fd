"""The routes of developer mode, declared once (D66)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.web.developer import endpoints, pages
from corpid.web.developer.mode import ANYBODY_PATH, DEVELOPER_PATH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class DeveloperRoute:
    """A path of developer mode, under base_url."""

    path: str
    methods: tuple[str, ...]
    endpoint: Callable[..., Awaitable[Response]]
    """takes the request, the web context, and developer mode as `mode`"""
    page: bool = False
    """whether people see it, and its forms must come from our own pages (D35); else it is for programs"""


ROUTES: Final = (
    DeveloperRoute(path=f"{DEVELOPER_PATH}/sign-ins", methods=("POST",), endpoint=endpoints.sign_in),
    DeveloperRoute(path=DEVELOPER_PATH, methods=("GET",), endpoint=pages.enter, page=True),
    DeveloperRoute(path=ANYBODY_PATH, methods=("GET", "POST"), endpoint=pages.anybody, page=True),
)
