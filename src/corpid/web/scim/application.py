"""SCIM over HTTP: requests are admitted, read and answered (D60)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from scim2_models import InvalidValueException, NotFoundException, PayloadTooLargeException
from scim2_server.errors import UnsupportedMediaTypeException
from scim2_server.requests import ScimRequest
from scim2_server.routing import ROUTES, match_pattern
from starlette.responses import Response

from corpid.flows import rate_limits
from corpid.flows.directory import provisioning_tokens
from corpid.rules.limits import BODY_BYTES
from corpid.rules.oauth import tokens
from corpid.rules.oauth.errors import InvalidToken
from corpid.rules.oauth.refusals import Reason
from corpid.web.http.requests import client_request, encoding_fault, headers
from corpid.web.scim import PATH
from corpid.web.scim.errors import SCHEME
from corpid.web.scim.service import SERVICE, Handler
from corpid.web.scim.storage import Storage, refuse_ended

if TYPE_CHECKING:
    from scim2_server.responses import ScimResponse
    from starlette.requests import Request

    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import ProvisioningToken
    from corpid.web.context import WebContext

_SEARCH: Final = ("filter", "sortBy", "sortOrder", "startIndex", "count", "attributes", "excludedAttributes")
_QUERY_FIELDS: Final = 100
_FILTER: Final = re.compile(r"(?<![^&])filter=[^&]*")


class _Path(NamedTuple):
    """The path of a route, without identifiers, for log and metrics (D48)."""

    path: str


async def answer(request: Request, web: WebContext) -> Response:
    """Answer one request.

    Raises SCIMException, and what admission and the flows raise. Source: RFC 7644 §3, D60
    """
    below = request.scope["path"].removeprefix(web.base_path + PATH)
    request.scope["route"] = _Path(_pattern(below))
    context, actor = await _admit(request, web)
    if not below:
        raise NotFoundException(detail="There is no resource at the base URL itself: use /Users, /Groups or /Schemas")
    if "//" in below:
        raise NotFoundException(
            detail="There is no resource at a path with //: remove the slash at the end of the base URL"
        )
    if b"%2f" in request.scope.get("raw_path", b"").lower():
        raise NotFoundException(detail="There is no resource at a path with %2F")
    asked = ScimRequest(
        method="GET" if request.method == "HEAD" else request.method,
        base_url=web.provider.policy.base_url + PATH,
        path=below,
        query=_query(request),
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]],
        body=await _body(request),
    )
    if asked.body:
        await refuse_ended(context, actor)
    found = await Handler(SERVICE, Storage(context, actor, web)).handle(asked)
    return _response(found)


async def _admit(request: Request, web: WebContext) -> tuple[RequestContext, ProvisioningToken]:
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


def _response(found: ScimResponse) -> Response:
    """The answer, which no cache may store."""
    content = b"" if found.body is None else msgspec.json.encode(found.body)
    headers = {**found.headers, "Cache-Control": "no-store"}
    media_type = headers.pop("Content-Type", None)
    return Response(content, int(found.status), headers, media_type if content else None)


def _pattern(below: str) -> str:
    segments = below.strip("/").split("/")
    known = (route.pattern for route in ROUTES if match_pattern(route.pattern, segments) is not None)
    pattern = next(known, "/...")
    for endpoint in ("Users", "Groups"):
        if segments[0] == endpoint:
            pattern = pattern.replace("{endpoint}", endpoint)
    return f"{PATH}{pattern if '{endpoint}' not in pattern else '/...'}"


def _escape_plus(found: re.Match[str]) -> str:
    return found[0].replace("+", "%2B") if "%20" in found[0] else found[0]


def _query(request: Request) -> dict[str, str]:
    """The query parameters.

    A plus is a space, as in forms; in a filter whose spaces are %20 it is a plus (RFC 3986 §3.4). Raises
    InvalidValueException if a parameter is sent twice, since it is unknown which of the two was meant.
    """
    text = _FILTER.sub(_escape_plus, request.scope["query_string"].decode("latin-1"))
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_FIELDS, errors="strict")
    except ValueError:
        raise InvalidValueException(detail="The query is not UTF-8, or has too many parameters") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found and name in _SEARCH:
            raise InvalidValueException(detail=f"The query parameter {name} can be sent only once")
        found[name] = value
    return found


async def _body(request: Request) -> bytes:
    whole = bytearray()
    async for piece in request.stream():
        whole += piece
        if len(whole) > BODY_BYTES:
            raise PayloadTooLargeException(
                detail=f"A body can have at most {BODY_BYTES:,} bytes here: send several requests"
            )
    if whole and (fault := encoding_fault(request)):
        raise UnsupportedMediaTypeException(detail=fault)
    return bytes(whole)
