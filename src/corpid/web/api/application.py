"""The admin API: from a request to its operation, with its admission (D59)."""

from __future__ import annotations

import asyncio
from functools import cache
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec
from pydantic import Field, TypeAdapter, ValidationError
from starlette.routing import compile_path

from corpid.flows import rate_limits
from corpid.flows.oauth import token
from corpid.rules.directory.access import ApiClient
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.nodes import SHOWN
from corpid.rules.oauth.api_client import API_PATH
from corpid.rules.oauth.errors import InsufficientScope
from corpid.rules.oauth.refusals import Reason
from corpid.rules.readers import suggestion
from corpid.web.api.calls import CHANGE_REASON, Call, Problem
from corpid.web.api.openapi import MOST_ID_CHARACTERS, build_document
from corpid.web.api.operations import OPERATIONS, Operation, Query
from corpid.web.http.documents import PublicDocument
from corpid.web.http.requests import client_request, headers

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from corpid.flows.request_context import RequestContext
    from corpid.web.context import WebContext

_NOBODY: Final = ApiClient(client_id="", scopes=frozenset())
"""the caller of an operation without a token: no rule allows it anything"""
_DOCUMENT_PATH: Final = f"{API_PATH}/openapi.json"
_CACHED_SECONDS: Final = 300
_MAKING: Final = Lock()
_DOCUMENTS: Final[dict[str, PublicDocument]] = {}
"""by base_url"""


class _Path(NamedTuple):
    """A path and the operations on it, by their methods."""

    path: str
    """for log and metrics (D48)"""
    pattern: re.Pattern[str]
    operations: dict[str, Operation]


def _paths() -> Iterator[_Path]:
    found: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        found.setdefault(API_PATH + operation.path, {})[operation.method] = operation
    for path, operations in found.items():
        yield _Path(path, compile_path(path)[0], operations)


_PATHS: Final = tuple(_paths())


async def answer(request: Request, web: WebContext) -> Response:
    """Answer one request; admission comes before anything of it is looked at.

    Raises Problem, the errors of OAuth, and what the flows raise. Source: D32, D59
    """
    path = request.scope["path"].removeprefix(web.base_path)
    method = "GET" if request.method == "HEAD" else request.method
    if path == _DOCUMENT_PATH and method == "GET":
        return await _openapi(request, web.provider.policy.base_url)
    found = next(((each, match) for each in _PATHS if (match := each.pattern.fullmatch(path))), None)
    if found is None:
        raise Problem(404, "Nothing is served at this path")
    request.scope["route"], named = found[0], found[1].groupdict()
    operation = found[0].operations.get(method)
    if operation is None:
        allowed = sorted(found[0].operations)
        methods = ", ".join((*allowed, "HEAD") if "GET" in allowed else allowed)
        raise Problem(405, f"Use {methods}", headers={"Allow": methods})
    call = await _admit(request, web, operation)
    _check_query(request, operation)
    if len(named.get("id", "")) > MOST_ID_CHARACTERS:
        raise Problem(404, "There is no such object")
    call.given = named | _queries(request, operation)
    return await operation.run(call)


@cache
def document(base_url: str) -> bytes:
    """The OpenAPI document of a deployment, as JSON. Source: OpenAPI 3.1, D59"""
    return msgspec.json.format(msgspec.json.encode(build_document(OPERATIONS, base_url)), indent=2)


async def _admit(request: Request, web: WebContext, operation: Operation) -> Call:
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
        actor, request_id=context.request_id, address=context.address, reason=_read_reason(request)
    )
    return Call(request=request, web=web, context=context, actor=actor)


async def _actor(request: Request, context: RequestContext) -> ApiClient:
    """The client of the access token and its proof."""
    target = request.scope.get("raw_path") or request.scope["path"].encode()
    return await token.verify(
        context,
        method=request.method,
        path=target.partition(b"?")[0].decode("latin-1"),
        authorization=headers(request, b"authorization"),
        proofs=headers(request, b"dpop"),
    )


def _read_reason(request: Request) -> str:
    """The text of the header Change-Reason; empty if there is none.

    Printable ASCII with UTF-8 in percent-encoding, since not all of HTTP carries more. Raises Problem. Source: D55, RFC
    9110 §5.5
    """
    sent = headers(request, CHANGE_REASON.encode().lower())
    try:
        reason = unquote_to_bytes(b"".join(sent).decode("ascii")).decode().strip(" ")
    except UnicodeDecodeError:
        reason = "\0"
    if len(sent) > 1 or len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise Problem(
            400,
            f"{CHANGE_REASON} must be one line of at most {MOST_REASON_CHARACTERS} characters, sent once: ASCII, and "
            "other characters as UTF-8 in percent-encoding",
        )
    return reason


def _check_query(request: Request, operation: Operation) -> None:
    """Refuse unknown and repeated query parameters: a misspelt filter would show everything."""
    known = {query.name for query in operation.queries}
    sent = request.query_params.multi_items()
    unknown = dict.fromkeys(name for name, _ in sent if name not in known)
    faults = [
        {"parameter": name[:80], "detail": f"unknown query parameter{suggestion(name, known)}"}
        for name in islice(unknown, SHOWN)
    ]
    names = [name for name, _ in sent]
    faults += [
        {"parameter": name, "detail": "it can be sent only once"} for name in sorted(known) if names.count(name) > 1
    ]
    faults += [
        {"parameter": name, "detail": "it contains the character U+0000"}
        for name, value in sent
        if "\0" in name + value
    ]
    if faults:
        raise Problem(400, "A query parameter is not valid", faults=faults)


def _queries(request: Request, operation: Operation) -> dict[str, Any]:
    """The values of the query parameters, by their names."""
    given, faults = dict[str, Any](), list[dict[str, str]]()
    for query in operation.queries:
        sent = request.query_params.get(query.name)
        if sent is None:
            given[query.name] = query.default
            if query.needed:
                faults.append({"parameter": query.name, "detail": "Field required"})
            continue
        try:
            given[query.name] = _reader(query).validate_python(sent)
        except ValidationError as error:
            faults += [{"parameter": query.name, "detail": fault["msg"]} for fault in error.errors()]
    if faults:
        raise Problem(400, "A query parameter is not valid", faults=faults)
    return given


@cache
def _reader(query: Query) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[query.kind, Field(ge=query.least, le=query.most)])  # type: ignore[arg-type]


async def _openapi(request: Request, base_url: str) -> Response:
    found = _DOCUMENTS.get(base_url)
    if found is None:
        found = await asyncio.to_thread(_made, base_url)
    return found.response(request, cache_seconds=_CACHED_SECONDS)


def _made(base_url: str) -> PublicDocument:
    """The document, made and compressed once even if several callers ask together.

    Call it in a thread: it takes as long as several requests.
    """
    with _MAKING:
        if base_url not in _DOCUMENTS:
            _DOCUMENTS[base_url] = PublicDocument(document(base_url), "application/json")
    return _DOCUMENTS[base_url]
