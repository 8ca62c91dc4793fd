"""The one place where a view becomes an answer: in the language of its reader, and kept by nobody."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from corpid.web.languages import Pick, choose
from corpid.web.requests import cookies, headers
from corpid.web.signin.place import SIGN_IN_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from corpid.web.rendering import Renderer
    from corpid.web.views import View

LANGUAGE_COOKIES: Final = ("__Host-corpid_language", "corpid_language")
"""on https, and on plain http, where browsers refuse that prefix"""
_WHERE: Final = re.compile(r"[A-Za-z0-9_-]{0,8}")
"""it stands in a cookie, and its path may be anybody's words (RFC 6265 §4.1.1)"""


def where_of(path: str) -> str:
    """Which sign-in a page belongs to: the beginning of its identifier, empty for a page of none."""
    found = _WHERE.match(path.partition(SIGN_IN_PATH)[2])
    return found[0] if found else ""


def show(
    request: Request,
    renderer: Renderer,
    view: View,
    *,
    status: int = 200,
    more: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a page, and with `more` headers. Source: RFC 9110 §8.5, §12.5.5"""
    picked = [value for name in LANGUAGE_COOKIES for value in cookies(request, name)]
    language = choose(
        renderer.languages,
        pick=Pick.read(picked[0] if picked else ""),
        where=where_of(request.scope["path"]),
        ui_locales=view.frame.ui_locales,
        accept_language=b",".join(headers(request, b"accept-language")).decode("latin-1"),
    )
    own = {
        "Cache-Control": "no-store",
        "Content-Language": language.tag,
        "Vary": "Accept-Language, Cookie",
        **(more or {}),
    }
    return Response(renderer.render(view, language), status, own, "text/html")
