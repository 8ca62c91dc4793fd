"""Endpoints of the admin API's authorization server (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from corpid.flows.oauth import api_tokens
from corpid.rules.limits import METADATA_CACHE_SECONDS
from corpid.rules.oauth import api_server, parameters
from corpid.web.http.requests import client_request, form_bytes, headers
from corpid.web.pages.errors import NOT_CACHED

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.context import WebContext


async def metadata(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The metadata document (RFC 8414 §3)."""
    policy = web.provider.policy
    document = api_server.metadata(policy.base_url, policy.api)
    cached = {"Cache-Control": f"public, max-age={METADATA_CACHE_SECONDS}"}
    return Response(msgspec.json.encode(document), 200, cached, "application/json; charset=utf-8")


async def token_endpoint(request: Request, web: WebContext) -> Response:
    """The token endpoint (RFC 6749 §4.4).

    It also answers during maintenance, which a client of the API may end.
    """
    context = await client_request(request, web.provider)
    issued = await api_tokens.issue(
        context,
        parameters.parse(await form_bytes(request), api_server.TOKEN_PARAMETERS),
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
    )
    request.scope["state"]["log"]["client_id"] = issued.client_id
    content = {
        "access_token": issued.access_token,
        "token_type": issued.token_type,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
    }
    return Response(msgspec.json.encode(content), 200, NOT_CACHED, "application/json")
