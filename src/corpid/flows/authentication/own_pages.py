"""The provider's own pages as the requesting client (D30, D53).

The account, the portal and the console take the place of a client, with an empty client_id, which no registered client
can have. A person signs in there in the same steps, but no entity is chosen, no consent is asked for, and no code is
written: the portal asks for the entity itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.rules.limits import ACCOUNT_FRESH_SECONDS
from corpid.rules.oauth import acr
from corpid.rules.oauth.authorization_request import AuthorizationRequest, AuthorizationResponse
from corpid.rules.oauth.records import Client

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import RequestContext
    from corpid.rules.authentication.records import SessionPurpose

PATHS: Final[Mapping[SessionPurpose, str]] = {"account": "/account", "manage": "/manage", "console": "/console"}
"""the path of the pages of each purpose, below base_url"""
ACCOUNT_PATH: Final = PATHS["account"]
PORTAL_PATH: Final = PATHS["manage"]
CONSOLE_PATH: Final = PATHS["console"]
SIGN_OUT_PATH: Final = "/sign-out"
RECOVERY_PATH: Final = "/recover"
"""the page to request a link for a forgotten password"""
AGAIN: Final = "again"
"""in the query of a page that requires a new sign-in for a change, after that sign-in"""
CANCELLED: Final = "cancelled"
"""in the query of a page whose form came too late, after the sign-in was cancelled"""
_CLIENT_ID: Final = ""
_PURPOSES: Final[Mapping[str, SessionPurpose]] = {path: purpose for purpose, path in PATHS.items()}


def purpose(request: AuthorizationRequest) -> SessionPurpose:
    """Return the purpose of a sign-in for this request.

    Source: D30
    """
    if request.client_id != _CLIENT_ID:
        return "sign_in"
    return _PURPOSES[f"/{request.redirect_uri.rpartition('/')[2]}"]


async def refuse_maintenance(context: RequestContext, request: AuthorizationRequest) -> None:
    """Raise TemporarilyUnavailable in maintenance, except for the console.

    An operator ends maintenance there. Source: Spec 7
    """
    if request.client_id or purpose(request) != "console":
        await context.provider.registry_cache.refuse_maintenance(context.now)


def is_reauthentication(request: AuthorizationRequest) -> bool:
    """Return whether the request asks for a recent sign-in.

    It does if the previous one is too old for a change. Source: D30, D54
    """
    return request.client_id == _CLIENT_ID and request.max_age is not None


async def requesting_client(context: RequestContext, client_id: str) -> Client | None:
    """Return the client that requests a sign-in.

    It is an enabled client or the built-in client of the own pages; None if there is no such client. Source: D50
    """
    if client_id != _CLIENT_ID:
        return await context.provider.registry_cache.client(client_id, context.now)
    addresses = tuple(_address(context, purpose) for purpose in PATHS)
    return Client(client_id=_CLIENT_ID, name=context.provider.policy.name, redirect_uris=addresses)


def request(
    context: RequestContext, page: str, *, fresh: bool = False, purpose: SessionPurpose = "account"
) -> AuthorizationRequest:
    """Return the authorization request for one of the own pages.

    `page` is the part of its path after the path of `purpose`. `fresh` asks for a new sign-in, for a change that an
    earlier sign-in is too old for. Source: D10, D40
    """
    return AuthorizationRequest(
        client_id=_CLIENT_ID,
        generation=context.provider.policy.served[0].name,
        redirect_uri=_address(context, purpose),
        scopes=(),
        code_challenge="",
        state=page or None,
        acr=acr.urn(context.provider.policy.acr_prefix, acr.TWO_FACTORS),
        prompt=("login", "select_account"),
        max_age=ACCOUNT_FRESH_SECONDS if fresh else None,
    )


def plain(asked: AuthorizationRequest) -> AuthorizationRequest:
    """Return the request for somebody else's sign-in to the same pages.

    It leads to the first of them: the page that was asked for is the other person's. Source: D30
    """
    return replace(asked, state=None, max_age=None)


def way_on(
    context: RequestContext, asked: AuthorizationRequest, *, cancelled: bool, back: str | None
) -> AuthorizationResponse:
    """Return the redirect after a finished sign-in.

    It leads to the requested page; if cancelled, to the page `back`, or to the home page without one. Source: D15, D17
    """
    page = back if cancelled else asked.state
    where = f"{asked.redirect_uri}/{page}" if page else asked.redirect_uri
    if cancelled:
        where = where if back is not None else f"{context.provider.policy.base_url}/"
    elif is_reauthentication(asked):
        where += f"{'&' if page and '?' in page else '?'}{AGAIN}"
    return AuthorizationResponse(redirect_uri=where, mode="query", parameters=())


def _address(context: RequestContext, purpose: SessionPurpose) -> str:
    return f"{context.provider.policy.base_url}{PATHS[purpose]}"
