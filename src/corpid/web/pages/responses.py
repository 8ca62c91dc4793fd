"""Responses: pages, redirects, cookies, and the return to the relying party.

Also the two checks of a form before it is answered: that a page of ours sent it, and that this browser was shown it;
and tables for spreadsheets, in which no cell is a formula.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace
from starlette.responses import Response

from corpid.flows.authentication import browsers, interactions
from corpid.rules.directory.tables import CsvRows
from corpid.rules.limits import INTERACTION_SECONDS
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase
from corpid.web.context import ARRIVE, SIGN_IN, SIGN_IN_PATH, WebContext, interaction_path
from corpid.web.http.middleware import FORM_POST_POLICY
from corpid.web.http.requests import cookies, headers
from corpid.web.pages.components import BARE, Frame, View
from corpid.web.pages.translations import LANGUAGES, Language, Pick, choose, lookup
from corpid.web.pages.views import ONE_MOMENT, FormPost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.authentication.throttle import Throttled
    from corpid.flows.oauth.authorize import InteractionRedirect
    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.authorization_request import AuthorizationResponse
    from corpid.web.pages.rendering import Renderer

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""names in lower case"""
NO_STORE_HEADER: Final = (b"cache-control", b"no-store")
LANGUAGE_COOKIES: Final = ("__Host-corpid_language", "corpid_language")
"""on https; and on plain http, since browsers refuse that prefix there"""
_WHERE: Final = re.compile(rf"(?:{SIGN_IN_PATH}|\?{SIGN_IN}=)([A-Za-z0-9_-]{{1,8}})")
"""it is in a cookie, and its path may be any caller's text (RFC 6265 §4.1.1)"""
NO_STORE: Final = {"Cache-Control": "no-store"}
COOKIE_SECONDS: Final = 90 * 86400
"""of a browser, from its last sign-in on"""
_HELD_CHARACTERS: Final = 2048
"""of a sign-in that a browser holds in a cookie: browsers keep 4096, but proxies take as much for all headers of an
answer"""


class BytesResponse(Response):
    """A response whose headers are bytes already."""

    def __init__(self, content: bytes, status: int, headers: Headers) -> None:
        self.status_code = status
        self.body = content
        self.background = None
        self.raw_headers = [*headers, (b"content-length", b"%d" % len(content))]


class CsvFile(CsvRows):
    """Rows of CSV as a download."""

    def response(self, name: str) -> Response:
        """The file as a download called `name`.csv."""
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"}
        # The mark tells spreadsheets that it is UTF-8.
        return Response(("\ufeff" + self._text.getvalue()).encode(), 200, headers, "text/csv; charset=utf-8")


def where_of(page: str) -> str:
    """The start of the interaction identifier in a page's address.

    Empty if the page belongs to no sign-in.
    """
    found = _WHERE.search(page)
    return found[1] if found else ""


def reader_language(
    request: Request, renderer: Renderer, *, ui_locales: tuple[str, ...] = (), here: str = ""
) -> Language:
    """The language in which a page answers this request.

    `here` is its address, if another than the request's. Source: RFC 9110 §12.5.4, OpenID Connect Core §3.1.2.1
    """
    return choose(
        renderer.languages,
        pick=_pick(request),
        where=where_of(here or request.scope["path"]),
        ui_locales=ui_locales,
        accept_language=b",".join(headers(request, b"accept-language")).decode("latin-1"),
    )


def picked_language(request: Request) -> str:
    """Return the tag of the language picked in this sign-in.

    Empty if none was picked on a page of it.
    """
    pick, where = _pick(request), where_of(request.scope["path"])
    found = lookup((pick.tag,), LANGUAGES)
    return found.tag if found is not None and where and pick.where == where else ""


def page_response(
    request: Request,
    renderer: Renderer,
    view: View,
    *,
    status: int = 200,
    more: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a page, and with `more` headers.

    Source: RFC 9110 §8.5, §12.5.5
    """
    language = reader_language(request, renderer, ui_locales=view.frame.ui_locales, here=view.frame.here)
    offered = _account_language(request, view.frame, language)
    answer = BytesResponse(renderer.render(view, language, offered=offered), status, _page_headers(language))
    if more is not None:
        answer.headers.update(more)
    return answer


async def page_for_browser(
    request: Request, web: WebContext, context: RequestContext, known: Browser | None, view_for: Callable[[str], View]
) -> Response:
    """A page whose form is bound to the browser.

    A browser that is not `known` gets a cookie. `view_for` is given the browser id. Source: D34, D35
    """
    browser, new_cookie = (known, None) if known else await browsers.issue_cookie(context)
    answer = page_response(request, web.renderer, view_for(browser.browser_id))
    if new_cookie is not None:
        set_cookie(answer, web, new_cookie)
    return answer


def see_other(where: str) -> Response:
    """A redirect (303) to another page of ours.

    Source: RFC 9110 §15.4.4
    """
    return BytesResponse(b"", 303, (NO_STORE_HEADER, (b"location", where.encode("latin-1"))))


def throttled_page(page: Response, slowed: Throttled) -> Response:
    """A page that asks its reader to wait, with Retry-After.

    Source: RFC 6585 §4, D47
    """
    page.status_code = 429
    page.headers["Retry-After"] = str(slowed.seconds)
    return page


def is_from_own_page(request: Request) -> bool:
    """Return whether a page of our own may have led here.

    A browser that does not say where from may have been. Source: D35
    """
    return headers(request, b"sec-fetch-site") in ([], [b"same-origin"])


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


def require_own_form(context: RequestContext, form: Mapping[str, str], browser_id: str, subject: str) -> None:
    """Verify that a form was shown to this browser for this subject.

    Raises InvalidRequest. Source: D35
    """
    if not interactions.is_form_token(context, form.get("form_token", ""), browser_id, subject):
        raise InvalidRequest(
            Reason.FORM_OF_ANOTHER_BROWSER,
            "form_token is missing, or another browser's",
            sentence=phrase("This form was not opened in this browser. Open the page again."),
        )


def enter(request: Request, web: WebContext, entered: InteractionRedirect) -> Response:
    """A redirect to the page of an interaction.

    What is not stored goes with the browser: in a cookie, else in a form. Source: D15, D34
    """
    held = entered.held
    where = interaction_path(web, entered.interaction_id)
    if len(held) <= _HELD_CHARACTERS:
        answer = see_other(where)
    else:
        requesting = entered.requesting_client
        frame = (
            Frame(client_name=requesting.client.name, ui_locales=requesting.ui_locales, under_way=True)
            if requesting
            else BARE
        )
        view = FormPost(frame=frame, heading=ONE_MOMENT, action=f"{where}/{ARRIVE}", fields=((ARRIVE, held),))
        answer = page_response(request, web.renderer, view)
        held = ""
    if entered.cookie is not None:
        set_cookie(answer, web, entered.cookie)
    if held:
        add_cookie(answer, web, web.arrival_cookie_name, held, seconds=INTERACTION_SECONDS)
    return answer


async def leave(request: Request, web: WebContext, response: AuthorizationResponse, around: Frame) -> Response:
    """The return to the relying party: a redirect or a form.

    Source: D37, D38
    """
    if web.developer is not None:
        response = await web.developer.change_response(response)
    if not response.posted:
        return BytesResponse(b"", 302, (NO_STORE_HEADER, (b"location", response.url.encode("latin-1"))))
    view = FormPost(
        frame=replace(around, under_way=True, here=""),
        action=response.redirect_uri,
        fields=response.parameters,
    )
    return page_response(request, web.renderer, view, more={"Content-Security-Policy": FORM_POST_POLICY})


def set_cookie(answer: Response, web: WebContext, value: str) -> None:
    """Set the browser cookie, with the attributes of D34."""
    add_cookie(answer, web, web.cookie_name, value, seconds=COOKIE_SECONDS)


def add_cookie(answer: Response, web: WebContext, name: str, value: str, *, seconds: int) -> None:
    """Set a cookie with the attributes of D34.

    0 seconds: the browser forgets it.
    """
    secure = "; Secure" if web.provider.policy.base_url.startswith("https:") else ""
    answer.headers.append("Set-Cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")


def _pick(request: Request) -> Pick:
    picked = [value for name in LANGUAGE_COOKIES for value in cookies(request, name)]
    return Pick.read(picked[0] if picked else "")


def _account_language(request: Request, frame: Frame, language: Language) -> Language | None:
    """Return the language of the account, if the page offers it.

    It does not if the person picked the one that it is shown in.
    """
    found = lookup((frame.account_language,), LANGUAGES) if frame.account_language else None
    if found is None or found is language or lookup((_pick(request).tag,), LANGUAGES) is language:
        return None
    return found


@cache
def _page_headers(language: Language) -> Headers:
    return (
        NO_STORE_HEADER,
        (b"content-language", language.tag.encode()),
        (b"vary", b"Accept-Language, Cookie"),
        (b"content-type", b"text/html; charset=utf-8"),
    )
