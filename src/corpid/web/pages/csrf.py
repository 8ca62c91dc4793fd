"""Protection against cross-site request forgery (D35)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.requests import headers

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext


def refuse_forged(request: Request, web: WebContext) -> None:
    """Return for a POST of our own origin.

    Raises InvalidRequest for any other.

    `Sec-Fetch-Site` decides where the browser sends it; an older browser's `Origin` must be base_url's. Source: D35
    """
    sites = headers(request, b"sec-fetch-site")
    parts = urlsplit(web.provider.policy.base_url)
    own = f"{parts.scheme}://{parts.netloc}".encode()
    if sites == [b"same-origin"] or (not sites and headers(request, b"origin") == [own]):
        return
    raise InvalidRequest(
        Reason.FORM_OF_ANOTHER_SITE,
        "this form was not sent from a page of this site",
        detail="Sec-Fetch-Site or Origin",
    )
