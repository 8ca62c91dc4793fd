"""Whether a POST to a page comes from our own pages (D35)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpid.protocol.errors import InvalidRequest
from corpid.web import errors
from corpid.web.requests import headers

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.web.endpoints import Desk


def refuse_forged(request: Request, desk: Desk) -> Response | None:
    """None for a POST of our own origin, else the page that refuses it.

    `Sec-Fetch-Site` decides where the browser sends it; an older browser's `Origin` must be base_url's. Source: D35
    """
    sites = headers(request, b"sec-fetch-site")
    if sites == [b"same-origin"]:
        return None
    parts = urlsplit(desk.provider.policy.base_url)
    own = f"{parts.scheme}://{parts.netloc}".encode()
    if not sites and headers(request, b"origin") == [own]:
        return None
    return errors.as_page(
        request,
        InvalidRequest(
            "Sec-Fetch-Site or Origin is not ours", sentence="This form was not sent from a page of this site."
        ),
        desk.renderer,
    )
