"""Pages that belong to no sign-in: the plain page at /, static files, what is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.protocol import metadata
from corpid.web import errors, views

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.endpoints import Desk

_IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


async def home(request: Request, desk: Desk) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """What this server is, for people who open its address."""
    base_url = desk.provider.policy.base_url
    view = views.Home(discovery=base_url + metadata.DISCOVERY_PATH, keys=base_url + metadata.JWKS_PATH)
    return Response(desk.renderer.render(view), 200, errors.NO_STORE, "text/html")


async def static_file(request: Request, desk: Desk) -> Response:
    """A file whose name carries the hash of its content (D31)."""
    name = request.scope["path"].rpartition("/")[2]
    try:
        content, media_type = desk.renderer.static_file(name)
    except KeyError:
        return await not_found(request, desk)
    return Response(content, 200, _IMMUTABLE, media_type)


async def not_found(request: Request, desk: Desk) -> Response:
    """404: a page for a browser that navigates, JSON for everybody else (D32)."""
    accept = request.headers.get("accept", "")
    if "text/html" not in accept:
        return errors.machine_error(request, 404, "invalid_request", "there is nothing at this path", {})
    view = views.Problem(
        frame=views.Frame(),
        heading="There is no page here",
        paragraphs=("The address is not one of this site. Check it, or go back to where you came from.",),
    )
    return Response(desk.renderer.render(view), 404, errors.NO_STORE, "text/html")
