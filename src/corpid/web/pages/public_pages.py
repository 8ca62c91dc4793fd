"""Pages outside a sign-in: home, static files, well-known addresses, not found.

Well-known addresses, for password managers, browsers and security researchers, stand at the root of the host, whatever
the path of base_url: a proxy passes them on. Source: RFC 8615 §3
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec
from starlette.responses import Response

from corpid.flows.authentication.own_pages import ACCOUNT_PATH
from corpid.rules.oauth import discovery, parameters
from corpid.rules.oauth.refusals import Reason
from corpid.texts import phrase
from corpid.web.http.documents import compress_content, takes_gzip
from corpid.web.http.requests import headers
from corpid.web.pages import errors, views
from corpid.web.pages.components import BARE, Frame, Heading, Link, Links, Page
from corpid.web.pages.rendering import MEDIA_TYPES
from corpid.web.pages.responses import LANGUAGE_COOKIES, NO_STORE, page_response, see_other, where_of
from corpid.web.pages.translations import Pick, lookup

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext

_PATH_CHARACTERS: Final = 2000
_PAIR: Final = r"[A-Za-z0-9_-]+=[A-Za-z0-9_.~+%*-]*"
_OWN_PATH: Final = re.compile(rf"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.:~-]*)+(?:\?{_PAIR}(?:&{_PAIR})*)?")
_A_YEAR: Final = 365 * 86400
"""seconds"""
_IMMUTABLE: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_OPENED_ALONE: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
CHANGE_PASSWORD_PATH: Final = "/.well-known/change-password"
PASSKEY_ENDPOINTS_PATH: Final = "/.well-known/passkey-endpoints"
SECURITY_PATH: Final = "/.well-known/security.txt"
_SECURITY_DAYS: Final = 180
"""less than the year that RFC 9116 §2.5.5 recommends as the most"""


async def home(request: Request, web: WebContext) -> Response:
    """The home page, for people who open the server's address."""
    policy = web.provider.policy
    signs_in = phrase(
        "{provider_name} signs people in to online services on behalf of the organisations that they act for.",
        provider_name=policy.name,
    )
    document = Link(url=policy.base_url + discovery.DISCOVERY_PATH, text=phrase("Discovery document"))
    keys = Link(url=policy.base_url + discovery.JWKS_PATH, text=phrase("Signing keys"))
    view = Page(
        frame=BARE,
        heading=phrase("Sign-in for organisations"),
        parts=(
            signs_in,
            phrase(
                "You cannot sign in from this page. Go to the service that you want to use, and it will send you here."
            ),
            Heading(phrase("For developers")),
            Links((document, keys)),
        ),
    )
    return page_response(request, web.renderer, view)


async def language(request: Request, web: WebContext) -> Response:
    """Remember a picked language and return to the page.

    The link names that page, or else the browser does, and only a page of this site is returned to. A stranger who
    sends a person here changes the language of their pages, until they pick one again.
    """
    wanted = lookup((request.path_params["rest"],), web.renderer.languages)
    if wanted is None:
        return await not_found(request, web)
    page = _named(request, web) or _came_from(request, web)
    answer = see_other(urlunsplit(page))
    remember_language(answer, web, Pick(tag=wanted.tag, where=where_of(urlunsplit(page))))
    return answer


def remember_language(answer: Response, web: WebContext, pick: Pick) -> None:
    """Set the language cookie, for a year."""
    secure = web.provider.policy.base_url.startswith("https:")
    name, attributes = (LANGUAGE_COOKIES[0], "; Secure") if secure else (LANGUAGE_COOKIES[1], "")
    value = f"{name}={pick.written()}; Path=/; Max-Age={_A_YEAR}; HttpOnly; SameSite=Lax{attributes}"
    answer.headers.append("Set-Cookie", value)


async def static_file(request: Request, web: WebContext) -> Response:
    """A file whose name carries the hash of its content (D31)."""
    name = request.scope["path"].rpartition("/")[2]
    try:
        content, media_type = web.renderer.static_file(name)
    except KeyError:
        return await not_found(request, web)
    # A picture that is opened by itself could otherwise run what an editor left in it.
    sent = {**_IMMUTABLE, "Content-Security-Policy": _OPENED_ALONE}
    if media_type != MEDIA_TYPES["png"]:
        sent["Vary"] = "Accept-Encoding"
        if takes_gzip(request):
            content, sent["Content-Encoding"] = compress_content(content), "gzip"
    return Response(content, 200, sent, media_type)


async def change_password(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """Send the browser to the account's page for passwords.

    Source: W3C, A Well-Known URL for Changing Passwords
    """
    return see_other(f"{web.base_path}{ACCOUNT_PATH}/password")


async def passkey_endpoints(request: Request, web: WebContext) -> Response:
    """The addresses at which a person creates and manages passkeys.

    404 if passkeys do not work here. Source: W3C, Passkey Endpoints
    """
    policy = web.provider.policy
    if not policy.takes_passkeys:
        return await not_found(request, web)
    account = policy.base_url + ACCOUNT_PATH
    document = {"enroll": f"{account}/new-passkey", "manage": f"{account}/passkeys"}
    return Response(msgspec.json.encode(document), 200, NO_STORE, "application/json; charset=utf-8")


async def security(request: Request, web: WebContext) -> Response:
    """The operator's contacts for vulnerability reports.

    404 if the operator names none. Source: RFC 9116
    """
    if not web.security_contact:
        return await not_found(request, web)
    parts = urlsplit(web.provider.policy.base_url)
    today = datetime.fromtimestamp(web.provider.clock(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = (
        *(f"Contact: {contact}" for contact in web.security_contact),
        f"Expires: {today + timedelta(days=_SECURITY_DAYS):%Y-%m-%dT%H:%M:%SZ}",
        f"Canonical: {parts.scheme}://{parts.netloc}{SECURITY_PATH}",
    )
    return Response("\n".join((*lines, "")), 200, NO_STORE, "text/plain; charset=utf-8")


async def not_found(request: Request, web: WebContext, back: Link | None = None) -> Response:
    """404: a page for a navigating browser, otherwise JSON.

    Both name the discovery document, whatever the path; a page of a site has `back` to its first page instead.
    Source: D32
    """
    policy = web.provider.policy
    document = policy.base_url + discovery.DISCOVERY_PATH
    accept = request.headers.get("accept", "")
    if "text/html" not in accept:
        description = f"there is nothing at this path: the endpoints are in {document}"
        catalogue = policy.error_catalogue
        return errors.machine_error(request, 404, Reason.PATH_UNKNOWN, description, {}, catalogue=catalogue)
    request.scope["state"]["log"].update(error=Reason.PATH_UNKNOWN.value.errors[0], reason=Reason.PATH_UNKNOWN.code)
    view = views.Problem(
        frame=Frame(),
        heading=phrase("Page not found"),
        paragraphs=(phrase("This site has no page at this address. Check it, or go back to where you came from."),),
        back=back,
        discovery="" if back else document,
    )
    return page_response(request, web.renderer, view, status=404)


def _named(request: Request, web: WebContext) -> SplitResult | None:
    """The page named by the link, if it is one of ours.

    A path below ours, of harmless characters, perhaps with a query.
    """
    base = urlsplit(web.provider.policy.base_url)
    path = parameters.lone(request.scope["query_string"], "page", longest=_PATH_CHARACTERS) or ""
    if not path.startswith(f"{web.base_path}/") or not _OWN_PATH.fullmatch(path):
        return None
    return urlsplit(f"{base.scheme}://{base.netloc}{path}")


def _came_from(request: Request, web: WebContext) -> SplitResult:
    """The page of ours that the browser came from, else /."""
    home = urlsplit(f"{web.provider.policy.base_url}/")
    sent = [value.decode("latin-1") for value in headers(request, b"referer")]
    try:
        page = urlsplit(sent[0] if len(sent) == 1 else "")
    except ValueError:
        return home
    own = (page.scheme, page.netloc) == (home.scheme, home.netloc) and page.path.startswith(home.path)
    return page if own else home
