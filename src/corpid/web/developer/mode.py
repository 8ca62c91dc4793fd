"""Developer mode at an issuer: visibility, and sign-ins at once (D66)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corpid.flows.developer import sign_ins
from corpid.web.http.addresses import is_from_this_machine
from corpid.web.http.middleware import named_hosts
from corpid.web.http.requests import cookie

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from corpid.flows.authentication.visits import Visit
    from corpid.flows.developer.people import Developer, Listed
    from corpid.flows.request_context import RequestContext

DEVELOPER_PATH: Final = "/developer"
ANYBODY_PATH: Final = f"{DEVELOPER_PATH}/anybody"
SIGN_INS_PATH: Final = f"{DEVELOPER_PATH}/sign-ins"
EXCHANGES_PATH: Final = f"{DEVELOPER_PATH}/exchanges"
EVENTS_PATH: Final = f"{DEVELOPER_PATH}/events"
TRAFFIC_PATH: Final = f"{DEVELOPER_PATH}/traffic"
ORDERS_PATH: Final = f"{DEVELOPER_PATH}/orders"
KEY: Final = "key"
"""the parameter with which a link from another machine shows the key of this start"""
KEY_COOKIE: Final = "corpid_developer"


class Mode:
    """A web.context.DeveloperMode: developer mode at one issuer."""

    def __init__(self, developer: Developer, *, base_url: str) -> None:
        self.developer: Final = developer
        self._host: Final = urlsplit(base_url).netloc.encode()

    @property
    def anybody_path(self) -> str:
        """The path of the page that makes a test person, under base_url."""
        return ANYBODY_PATH

    def opens(self, request: Request) -> bool:
        """Return whether this request sees developer mode.

        It does from this machine and under the issuer's own name, or with the key. A header can only take that away.
        Source: D66
        """
        state = request.scope["state"]
        if named_hosts(state["headers"]) != [self._host]:
            return False
        return is_from_this_machine(request.scope.get("client"), state["headers"]) or self._shows_key(request)

    def people(self, request: Request) -> Sequence[Listed]:
        """The test people whom a page offers.

        There are none for a request that does not see developer mode. Source: D66
        """
        return tuple(self.developer.people.values()) if self.opens(request) else ()

    async def sign_in_at_once(self, context: RequestContext, visit: Visit, form: Mapping[str, str]) -> Visit:
        """The step of the sign-in that asks for no factor.

        Raises the errors of `flows.developer.sign_ins.at_once`. Source: D66
        """
        way = form.get("way") or sign_ins.DEFAULT_WAY
        return await sign_ins.at_once(context, visit, self.developer, user_name=form.get("person", ""), way=way)

    def is_key(self, value: str | None) -> bool:
        """Return whether this is the key of this start."""
        return value is not None and hmac.compare_digest(value.encode(), self.developer.key.encode())

    def _shows_key(self, request: Request) -> bool:
        sent = request.query_params.getlist(KEY)
        return self.is_key(sent[0] if len(sent) == 1 else cookie(request, KEY_COOKIE))
