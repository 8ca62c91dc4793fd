"""The routes of developer mode, declared once (D66)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpid.web.developer import endpoints

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response

DEVELOPER_PATH: Final = "/developer"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeveloperRoute:
    """A path of developer mode, under base_url."""

    path: str
    methods: tuple[str, ...]
    endpoint: Callable[..., Awaitable[Response]]
    """takes the request, the web context, and developer mode as `mode`"""
    page: bool = False
    """whether people see it, and its forms must come from our own pages (D35); else it is for programs"""


ROUTES: Final = (DeveloperRoute(path=f"{DEVELOPER_PATH}/sign-ins", methods=("POST",), endpoint=endpoints.sign_in),)
