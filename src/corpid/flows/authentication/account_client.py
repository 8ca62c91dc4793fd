"""The built-in account client: the provider's own pages (D30).

These pages take the place of a client, with an empty client_id, which no registered client can have. A person signs in
there in the same steps, but no entity is chosen, no consent is asked for, and no code is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.limits import ACCOUNT_FRESH_SECONDS
from corpid.rules.oauth import acr
from corpid.rules.oauth.authorization_response import AuthorizationResponse
from corpid.rules.oauth.records import AuthorizationRequest, Client

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.ports import SessionPurpose

PATH: Final = "/account"
RECOVERY_PATH: Final = "/recover"
"""the page to request a link for a forgotten password"""
AGAIN: Final = "again"
"""in the query of a page that requires a new sign-in for a change of factors, after that sign-in"""
_CLIENT_ID: Final = ""


def purpose(request: AuthorizationRequest) -> SessionPurpose:
    """Return the purpose of a sign-in for this request.

    Source: DESIGN "Pages", D30
    """
    return "account" if request.client_id == _CLIENT_ID else "sign_in"


def is_reauthentication(request: AuthorizationRequest) -> bool:
    """Return whether the request asks for a recent sign-in.

    It does if the previous one is too old for a change of factors. Source: D30
    """
    return purpose(request) == "account" and request.max_age is not None


async def requesting_client(context: RequestContext, client_id: str) -> Client | None:
    """Return the client that requests a sign-in.

    It is an enabled client or the built-in account client; None if there is no such client. Source: D50
    """
    return (
        _client(context)
        if client_id == _CLIENT_ID
        else await context.provider.registry_cache.client(client_id, context.now)
    )


def _client(context: RequestContext) -> Client:
    return Client(client_id=_CLIENT_ID, name=context.provider.policy.name, redirect_uris=(_address(context),))


def request(context: RequestContext, page: str, *, fresh: bool = False) -> AuthorizationRequest:
    """Return the authorization request for a page of the account.

    `page` is the part of its path after `/account/`. `fresh` asks for a new sign-in, for a change of factors that an
    earlier sign-in is too old for. Source: D10, D40
    """
    return AuthorizationRequest(
        client_id=_CLIENT_ID,
        generation=context.provider.policy.served[0].name,
        redirect_uri=_address(context),
        scopes=(),
        code_challenge="",
        state=page or None,
        acr=acr.urn(context.provider.policy.acr_prefix, acr.TWO_FACTORS),
        prompt=("login", "select_account"),
        max_age=ACCOUNT_FRESH_SECONDS if fresh else None,
    )


def way_on(context: RequestContext, asked: AuthorizationRequest, *, cancelled: bool) -> AuthorizationResponse:
    """Return the redirect after a finished sign-in.

    It leads to the requested page, or out of the account if cancelled. Source: D15, D17
    """
    page = (f"/{asked.state}" if asked.state else "") + (f"?{AGAIN}" if is_reauthentication(asked) else "")
    where = f"{context.provider.policy.base_url}/" if cancelled else f"{_address(context)}{page}"
    return AuthorizationResponse(redirect_uri=where, mode="query", parameters={})


def _address(context: RequestContext) -> str:
    return f"{context.provider.policy.base_url}{PATH}"
