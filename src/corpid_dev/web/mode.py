"""Developer mode at an issuer: visibility, and sign-ins at once (D66)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from msgspec.structs import replace

from corpid.texts import phrase
from corpid.web.http.addresses import is_from_this_machine
from corpid.web.http.middleware import named_hosts
from corpid.web.http.requests import cookie
from corpid.web.pages.components import Link
from corpid.web.pages.responses import see_other
from corpid_dev.flows import exchanges, sign_ins
from corpid_dev.web.paths import ANYBODY_PATH, DEVELOPER_PATH, TRAFFIC_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.authentication.interaction_context import InteractionContext
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.records import ListedTestPerson
    from corpid.rules.oauth.authorization_request import AuthorizationResponse
    from corpid_dev.flows.people import Developer

TITLE: Final = phrase("Developer mode")
KEY: Final = "key"
"""the parameter with which a link from another machine shows the key of this start"""
KEY_COOKIE: Final = "corpid_developer"
"""on plain http; ports do not separate cookies, so that the demo RP gets the one of https, too (D34)"""
KEY_SECONDS: Final = 86400


def key_cookie(base_url: str) -> str:
    """The name of the cookie that shows the key of a start."""
    return f"__Host-{KEY_COOKIE}" if base_url.startswith("https:") else KEY_COOKIE


class Mode:
    """A web.context.DeveloperMode: developer mode at one issuer.

    The demo RP has one of its own, with its own base URL: it shows live secrets, too.
    """

    def __init__(self, developer: Developer, *, base_url: str) -> None:
        self.developer: Final = developer
        self._base_url: Final = base_url
        self._host: Final = urlsplit(base_url).netloc.encode()
        self._secure: Final = base_url.startswith("https:")
        self.cookie_name: Final = key_cookie(base_url)

    @property
    def anybody_path(self) -> str:
        """The path of the page that makes a test person, under base_url."""
        return ANYBODY_PATH

    @property
    def up(self) -> Link:
        """The link to the first page of developer mode."""
        return Link(url=urlsplit(self._base_url).path.rstrip("/") + DEVELOPER_PATH, text=TITLE)

    def inspector(self, request: Request) -> str:
        """The address of this request in the inspector.

        Empty if the inspector does not keep it, or if this request does not see developer mode. Source: D66
        """
        exchange = exchanges.current()
        if exchange is None or exchange.endpoint == "callback" or not self.opens(request):
            return ""
        return f"{self._base_url}{TRAFFIC_PATH}?{urlencode({'reference': exchange.request_id})}"

    def opens(self, request: Request) -> bool:
        """Return whether this request sees developer mode.

        It does from this machine and under the issuer's own name, or with the key; with the key alone if the start does
        not spare loopback. A header can only take that away.
        Source: D66
        """
        state = request.scope["state"]
        if named_hosts(state["headers"]) != [self._host]:
            return False
        if self.developer.spares_loopback and is_from_this_machine(request.scope.get("client"), state["headers"]):
            return True
        return self._shows_key(request)

    def people(self, request: Request) -> Sequence[ListedTestPerson]:
        """The test people whom a page offers.

        There are none for a request that does not see developer mode. Source: D66
        """
        return tuple(self.developer.people.values()) if self.opens(request) else ()

    async def change_response(self, response: AuthorizationResponse) -> AuthorizationResponse:
        """The response to the relying party, as an order changes it.

        Source: D66
        """
        exchange, fault_injector = exchanges.current(), self.developer.fault_injector
        if exchange is None:
            return response
        exchange.callback = response.parameters
        if fault_injector is not None and exchange.callback:
            exchange.callback = await fault_injector.change_callback(exchange)
        return replace(response, parameters=exchange.callback)

    async def sign_in_at_once(
        self, context: RequestContext, loaded: InteractionContext, form: Mapping[str, str]
    ) -> InteractionContext:
        """The step of the sign-in that asks for no factor.

        Raises the errors of `corpid_dev.flows.sign_ins.at_once`. Source: D66
        """
        way = form.get("way") or sign_ins.DEFAULT_WAY
        return await sign_ins.at_once(context, loaded, self.developer, user_name=form.get("person", ""), way=way)

    def without_key(self, request: Request) -> Response | None:
        """A redirect to the same address without the key.

        A cookie keeps the key. None if the address does not have it. Source: D66
        """
        if request.method not in {"GET", "HEAD"} or not self._is_key(self._in_query(request)):
            return None
        query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in query if name != KEY])
        answer = see_other(quote(request.scope["path"]) + (f"?{rest}" if rest else ""))
        attributes = f"Path=/; Max-Age={KEY_SECONDS}; HttpOnly; SameSite=Lax{'; Secure' if self._secure else ''}"
        answer.headers["Set-Cookie"] = f"{self.cookie_name}={self.developer.key}; {attributes}"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer

    def _shows_key(self, request: Request) -> bool:
        sent = self._in_query(request)
        return self._is_key(cookie(request, self.cookie_name) if sent is None else sent)

    def _is_key(self, value: str | None) -> bool:
        return value is not None and hmac.compare_digest(value.encode(), self.developer.key.encode())

    @staticmethod
    def _in_query(request: Request) -> str | None:
        sent = request.query_params.getlist(KEY)
        return sent[0] if len(sent) == 1 else None
