"""One route: a path, its endpoint, and how its errors are rendered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.web.pages import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.web.context import Part, WebContext

    Endpoint = Callable[[Request, WebContext], Awaitable[Response]]
    Fails = Callable[[Request, Exception, WebContext], Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path under base_url.

    `{rest}` at its end stands for whatever follows. HEAD is answered wherever GET is (D32).
    """

    path: str
    methods: tuple[str, ...] = ()
    """without any, the endpoint gets every request and answers 405 itself: what is allowed differs below its path"""
    endpoint: Endpoint
    fails: Fails
    own_forms: bool = False
    """a POST must come from our own page (D35)"""
    scheme: str = ""
    """of the credentials without which nothing else is looked at: no body, nothing that might be busy (Spec 7.4)"""
    suffix: str | None = None
    """the end of `path`, perhaps empty, before which the path of base_url stands (RFC 8414 §3.1); None: before the
    whole"""
    part: Part | None = None
    """the part of the provider that it belongs to, if the operator can switch that off"""
    developer: bool = False
    """whether it is developer mode's: whoever does not see that gets 404 (D66)"""
    at_root: bool = False
    """whether `path` is of the host as a whole, and the path of base_url does not count (RFC 8615 §3)"""

    def at(self, base_path: str) -> str:
        """The path under the path of base_url."""
        if self.at_root:
            return self.path
        if self.suffix is None:
            return base_path + self.path
        return f"{self.path.removesuffix(self.suffix)}{base_path}{self.suffix}"


def as_json(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error for a program, as JSON."""
    policy = web.provider.policy
    return errors.as_json(request, error, policy.served[0], catalogue=policy.error_catalogue)


def as_page(request: Request, error: Exception, web: WebContext) -> Response:
    """Render an error for a person, as a page."""
    return errors.as_page(request, error, web.renderer)
