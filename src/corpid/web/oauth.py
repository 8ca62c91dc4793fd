"""OAuth endpoints, also for the admin API: request → flow → response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from corpid.flows import rate_limits
from corpid.flows.oauth import authorize, par, token, userinfo
from corpid.flows.oauth.authorize import AUTHORIZATION_PARAMETERS, ImmediateResponse
from corpid.rules.limits import HEAD_BYTES, METADATA_CACHE_SECONDS
from corpid.rules.oauth import api_client, parameters
from corpid.rules.oauth import discovery as discovery_rules
from corpid.rules.oauth.authorization_request import PUSHED_PARAMETERS, REQUEST_PARAMETERS
from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.token_request import TOKEN_PARAMETERS
from corpid.web.authentication.pages import final_frame
from corpid.web.http.requests import client_request, cookie, form_bytes, headers, may_complete, page_request
from corpid.web.pages import errors
from corpid.web.pages.components import BARE, Frame
from corpid.web.pages.errors import NOT_CACHED
from corpid.web.pages.responses import NO_STORE_HEADER, BytesResponse, enter, leave, see_other
from corpid.web.pages.translations import LANGUAGES

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid.rules.oauth.generations import Generation, ProtectedResource
    from corpid.web.context import WebContext

_PUBLIC: Final = {"Cache-Control": f"public, max-age={METADATA_CACHE_SECONDS}", "Access-Control-Allow-Origin": "*"}
_JSON: Final = (NO_STORE_HEADER, (b"pragma", b"no-cache"), (b"content-type", b"application/json"))
_JWT: Final = (NO_STORE_HEADER, (b"pragma", b"no-cache"), (b"content-type", b"application/jwt"))


async def discovery(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The discovery document (Spec 4.6)."""
    policy = web.provider.policy
    document = discovery_rules.discovery(
        policy.served,
        base_url=policy.base_url,
        name=policy.name,
        acr_prefix=policy.acr_prefix,
        returns_iss=policy.returns_iss,
        languages=[language.tag for language in LANGUAGES],
    )
    return Response(msgspec.json.encode(document), 200, _PUBLIC, "application/json; charset=utf-8")


async def jwks(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The public signing keys (Spec 4.7)."""
    ring = (await web.provider.signing_keys.keys_at(web.provider.clock())).ring
    return Response(ring.public_key_set, 200, _PUBLIC, "application/jwk-set+json; charset=utf-8")


async def pushed_authorization_request(request: Request, web: WebContext, generation: Generation) -> Response:
    """PAR (Spec 4.1).

    The body is read before maintenance refuses, since an error repeats its state (D4).
    """
    context = await client_request(request, web.provider)
    body = await form_bytes(request)
    await web.provider.registry_cache.refuse_maintenance(context.now)
    sent = request.scope["state"]["parameters"] = parameters.parse(body, PUSHED_PARAMETERS)
    pushed = await par.push(
        context,
        sent,
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
        generation=generation,
    )
    request.scope["state"]["log"]["client_id"] = pushed.client_id
    content = {"request_uri": pushed.request_uri, "expires_in": pushed.expires_in}
    return BytesResponse(msgspec.json.encode(content), 201, _JSON)


async def token_endpoint(request: Request, web: WebContext) -> Response:
    """The token endpoint, of every generation: the code names it (Spec 4.3)."""
    context = await client_request(request, web.provider)
    await web.provider.registry_cache.refuse_maintenance(context.now)
    issued = await token.exchange(
        context,
        parameters.parse(await form_bytes(request), TOKEN_PARAMETERS),
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
    )
    request.scope["state"]["log"]["client_id"] = issued.client_id
    content = {
        "access_token": issued.access_token,
        "id_token": issued.id_token,
        "token_type": issued.token_type,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
    }
    return BytesResponse(msgspec.json.encode(content), 200, _JSON)


async def resource_endpoint(
    request: Request, web: WebContext, generation: Generation, which: ProtectedResource
) -> Response:
    """A protected resource (Spec 4.4, 4.5, 4.8).

    It goes on during maintenance: Spec 7.4 has no 503 for that. Source: D72
    """
    context = await client_request(request, web.provider)
    # Refuses nothing in production; developer mode raises here what was ordered for this endpoint (D66).
    await web.provider.registry_cache.refuse_maintenance(context.now, in_maintenance=True)
    answer = await userinfo.read(
        context,
        generation,
        which,
        method=request.method,
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
    )
    request.scope["state"]["log"]["client_id"] = answer.client_id
    return BytesResponse(answer.content, 200, _JWT if answer.signed else _JSON)


async def authorization(request: Request, web: WebContext) -> Response:
    """The authorization endpoint (Spec 4.2).

    A POST is sent on to the GET (D40).
    """
    provider = web.provider
    context = await page_request(request, provider)
    await provider.rate_limits.address(rate_limits.SIGN_IN, context.address, context.now, context.counts)
    if request.method == "POST":
        await provider.registry_cache.refuse_maintenance(context.now)
        known = REQUEST_PARAMETERS if web.provider.policy.query is not None else AUTHORIZATION_PARAMETERS
        query = parameters.requote_known(await form_bytes(request), known)
        if len(query) > HEAD_BYTES // 2:
            raise InvalidRequest(Reason.QUERY_TOO_LONG, "the request is too long for a query string")
        if not query:
            raise InvalidRequest(Reason.QUERY_EMPTY, "the parameters of the authorization request are missing")
        return see_other(f"{web.base_path}{discovery_rules.AUTHORIZATION_PATH}?{query}")
    arrived = await authorize.arrive(
        context,
        request.scope["query_string"],
        cookie=cookie(request, web.cookie_name),
        held=cookie(request, web.arrival_cookie_name),
        may_complete=may_complete(request),
    )
    if isinstance(arrived, ImmediateResponse):
        if arrived.failure is not None:
            errors.record(request, errors.as_oauth_error(arrived.failure))
        around = await _around(web, context, arrived) if arrived.response.posted else BARE
        return await leave(request, web, arrived.response, around)
    return enter(request, web, arrived)


async def _around(web: WebContext, context: RequestContext, arrived: ImmediateResponse) -> Frame:
    client = arrived.requesting_client.client
    if arrived.interaction is not None:
        return await final_frame(web, context, client, arrived.interaction)
    return Frame(client_name=client.name, ui_locales=arrived.requesting_client.ui_locales)


# --- the admin API's authorization server (D59)


async def api_metadata(request: Request, web: WebContext) -> Response:  # noqa: ARG001 - every endpoint gets its request
    """The metadata document (RFC 8414 §3)."""
    policy = web.provider.policy
    document = api_client.metadata(policy.base_url, policy.api)
    cached = {"Cache-Control": f"public, max-age={METADATA_CACHE_SECONDS}"}
    return Response(msgspec.json.encode(document), 200, cached, "application/json; charset=utf-8")


async def api_token_endpoint(request: Request, web: WebContext) -> Response:
    """The token endpoint (RFC 6749 §4.4).

    It also answers during maintenance, which a client of the API may end.
    """
    context = await client_request(request, web.provider)
    issued = await token.issue(
        context,
        parameters.parse(await form_bytes(request), api_client.TOKEN_PARAMETERS),
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
