"""Admission to the admin API: limits, access token, scope, maintenance (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows import rate_limits
from corpid.flows.oauth import api_tokens
from corpid.rules.directory.actors import ApiClient
from corpid.rules.oauth.errors import InsufficientScope
from corpid.rules.oauth.refusals import Reason
from corpid.web.api.calls import Call, reason_of
from corpid.web.api.problems import Problem
from corpid.web.http.requests import client_request, headers

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid.web.api.operation import Operation
    from corpid.web.context import WebContext

WEB: Final = "corpid.web"
"""in a request's scope: the WebContext"""
METHOD: Final = "corpid.method"
"""in a request's scope: the method as it was sent, which a proof names"""


_NOBODY: Final = ApiClient(client_id="", scopes=frozenset())
"""the caller of an operation without a token: no rule allows it anything"""


async def admit(request: Request, web: WebContext, operation: Operation) -> Call:
    """Admit a request, before its parameters or its body are read.

    Raises Problem and the errors of OAuth (D24, D47, D59).
    """
    context = await client_request(request, web.provider)
    await web.provider.rate_limits.address(rate_limits.API, context.address, context.now, context.counts)
    if not operation.scope:
        return Call(request=request, web=web, context=context, actor=_NOBODY)
    actor = await _actor(request, context)
    request.scope["state"]["log"]["client_id"] = actor.client_id
    await web.provider.rate_limits.client(
        rate_limits.API, actor.client_id, context.address, context.now, context.counts
    )
    if operation.scope not in actor.scopes:
        raise InsufficientScope(
            Reason.ACCESS_TOKEN_SCOPE, f"the token lacks the scope {operation.scope}", scope=operation.scope
        )
    if actor.entity_id and not operation.bound:
        raise Problem(403, "Clients bound to an entity cannot use this")
    if not operation.in_maintenance:
        await web.provider.registry_cache.refuse_maintenance(context.now)
    if operation.conditional and not headers(request, b"if-match"):
        raise Problem(428, "If-Match is required: the entity tag of the object that you have read")
    actor = msgspec.structs.replace(
        actor, request=context.request_id, address=context.address, reason=reason_of(request)
    )
    return Call(request=request, web=web, context=context, actor=actor)


async def _actor(request: Request, context: RequestContext) -> ApiClient:
    """The client of the access token and its proof."""
    target = request.scope.get("raw_path") or request.scope["path"].encode()
    return await api_tokens.verify(
        context,
        method=request.scope[METHOD],
        path=target.partition(b"?")[0].decode("latin-1"),
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
    )


def challenge(web: WebContext) -> str:
    """The challenge to a caller without a valid access token.

    Source: RFC 9449 §7.1
    """
    rules = web.provider.policy.api
    return f'{rules.scheme} algs="{" ".join(rules.proof_algorithms)}"'
