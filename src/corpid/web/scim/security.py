"""Admission to SCIM: limits, provisioning token, maintenance (D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import rate_limits
from corpid.flows.directory import provisioning_tokens
from corpid.rules.oauth import tokens
from corpid.rules.oauth.errors import InvalidToken
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.requests import client_request, headers

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import ProvisioningToken
    from corpid.web.context import WebContext

SCHEME: Final = "Bearer"


async def admit(request: Request, web: WebContext) -> tuple[RequestContext, ProvisioningToken]:
    """Admit a request, before any other part of it is read.

    Raises CredentialsRequired, InvalidRequest, InvalidToken, TooManyRequests, TemporarilyUnavailable, StoreUnavailable.
    Source: RFC 6750 §2.1, RFC 7644 §2, D24, D47, D60
    """
    context = await client_request(request, web.provider)
    provider = context.provider
    await provider.rate_limits.address(rate_limits.SCIM, context.address, context.now, context.counts)
    text = tokens.access_token(headers(request, b"authorization"), SCHEME)
    actor = await provisioning_tokens.authenticate_token(provider.registry, text, now=int(context.now))
    if actor is None:
        raise InvalidToken(Reason.PROVISIONING_TOKEN, "the provisioning token is unknown, was revoked or has expired")
    request.scope["state"]["log"]["client_id"] = actor.token_id
    await provider.rate_limits.client(rate_limits.SCIM, actor.token_id, context.address, context.now, context.counts)
    await provider.registry_cache.refuse_maintenance(context.now)
    return context, msgspec.structs.replace(actor, request=context.request_id, address=context.address)


async def refuse_ended(context: RequestContext, actor: ProvisioningToken) -> None:
    """Refuse a token that has ended since the request was admitted.

    Its body may have taken long, and so may what it changes. Raises InvalidToken, StoreUnavailable. Source: D50, D60
    """
    provider = context.provider
    if not await provisioning_tokens.is_valid_still(provider.registry, actor, now=provider.clock()):
        raise InvalidToken(Reason.PROVISIONING_TOKEN, "the provisioning token was revoked or has expired")


def challenge(web: WebContext) -> str:
    """The challenge to a caller without a valid token.

    Source: RFC 6750 §3, RFC 7644 §2
    """
    return f'{SCHEME} realm="{web.provider.policy.base_url}"'
