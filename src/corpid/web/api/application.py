"""The admin API as an ASGI application, made once in a process (D59).

It is made when it is first needed: what it costs is no part of a start. The provider of a request travels in its scope.
"""

from __future__ import annotations

import asyncio
import re
from functools import cache
from inspect import Parameter, Signature
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import FastAPI, Path
from fastapi import Query as QueryParameter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response  # noqa: TC002 - FastAPI reads the annotations of its endpoints

from corpid.rules.directory.nodes import SHOWN
from corpid.rules.directory.values import suggestion
from corpid.rules.oauth.api_server import API_PATH as PATH
from corpid.rules.oauth.errors import TemporarilyUnavailable
from corpid.web.api.openapi import build_document, describe_operation
from corpid.web.api.operations import OPERATIONS
from corpid.web.api.problems import Problem, response
from corpid.web.api.security import METHOD, WEB, admit, challenge
from corpid.web.http.documents import PublicDocument
from corpid.web.http.requests import take_back_counts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from corpid.web.api.calls import Call
    from corpid.web.api.operation import Operation
    from corpid.web.context import WebContext

_CALL: Final = "corpid.call"
_CACHED_SECONDS: Final = 300
_MAKING: Final = Lock()
_DOCUMENTS: Final[dict[str, PublicDocument]] = {}
"""by base_url"""
_NO_TELEMETRY: Final = {
    "tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False,
}  # fmt: skip
"""spans and metrics are ours: they hold nothing that a caller sent (D48)"""


@cache
def application() -> ASGIApp:
    """The application of every provider of this process."""
    api = FastAPI(
        title="CorpID admin API",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,  # type: ignore[arg-type]
    )
    for operation in OPERATIONS:
        api.router.routes.append(_Route(operation))
    api.router.add_route(f"{PATH}/openapi.json", _openapi, methods=["GET"], name="openapi")
    api.add_exception_handler(HTTPException, _refused)
    return _without_body_of_head(api)


@cache
def document(base_url: str) -> bytes:
    """The OpenAPI document of a deployment, as JSON. Source: OpenAPI 3.1, D59"""
    routes = [_Route(operation) for operation in OPERATIONS]
    return msgspec.json.format(msgspec.json.encode(build_document(routes, base_url, PATH)), indent=2)


async def _openapi(request: Request) -> Response:
    base_url = request.scope[WEB].provider.policy.base_url
    found = _DOCUMENTS.get(base_url)
    if found is None:
        found = await asyncio.to_thread(_made, base_url)
    return found.response(request, cache_seconds=_CACHED_SECONDS)


def _made(base_url: str) -> PublicDocument:
    """The document, made once even if several callers ask together.

    Call it in a thread: it takes a quarter of a second.
    """
    with _MAKING:
        if base_url not in _DOCUMENTS:
            _DOCUMENTS[base_url] = PublicDocument(document(base_url), "application/json")
    return _DOCUMENTS[base_url]


class _Route(APIRoute):
    """The route of an operation.

    Admission comes before anything of the request is looked at.
    """

    def __init__(self, operation: Operation) -> None:
        self._operation: Final = operation
        super().__init__(
            PATH + operation.path,
            _endpoint(operation),
            methods=[operation.method],
            operation_id=operation.name,
            response_model=None,
            status_code=operation.status,
            **describe_operation(operation),
        )

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        answer, operation = super().get_route_handler(), self._operation

        async def handle(request: Request) -> Response:
            web: WebContext = request.scope[WEB]
            try:
                request.scope[_CALL] = await admit(request, web, operation)
                _check_query(request, operation)
                return await answer(request)
            except RequestValidationError as error:
                return response(request, _invalid(error), challenge(web))
            except Exception as error:  # noqa: BLE001 - the one place where whatever an operation raises is rendered
                refusal = response(request, error, challenge(web))
                if refusal.status_code == TemporarilyUnavailable.status:
                    await take_back_counts(request, web.provider)
                return refusal

        return handle


def _endpoint(operation: Operation) -> Callable[..., Awaitable[Response]]:
    """A function with the operation's parameters, which FastAPI reads and checks."""

    async def run(request: Request, **given: Any) -> Response:  # noqa: ANN401
        call: Call = request.scope[_CALL]
        call.given = given
        return await operation.run(call)

    keyword = Parameter.KEYWORD_ONLY
    parameters = [Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)]
    if operation.takes_object:
        path = Path(description="The member `id` of the object.", min_length=1, max_length=1024)
        parameters.append(Parameter("id", keyword, annotation=Annotated[str, path]))
    for query in operation.queries:
        kind = query.kind if query.needed or query.default is not None else query.kind | None
        documented_as = QueryParameter(description=query.description, ge=query.least, le=query.most)
        default = Parameter.empty if query.needed else query.default
        parameters.append(Parameter(query.name, keyword, annotation=Annotated[kind, documented_as], default=default))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__name__ = operation.name
    return run


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


def _invalid(error: RequestValidationError) -> Problem:
    faults = []
    for fault in error.errors():
        where, *names = fault["loc"]
        if where == "path":
            return Problem(404, "There is no such object")
        faults.append({"parameter": str(names[0]) if names else "", "detail": str(fault["msg"])})
    return Problem(400, "A query parameter is not valid", faults=faults)


async def _refused(request: Request, error: Exception) -> Response:
    """Unknown paths and methods."""
    web = request.scope[WEB]
    status = error.status_code if isinstance(error, HTTPException) else 500
    allowed: list[str] = sorted({each.method for each, path in _PATHS if path.fullmatch(request.scope["path"])})
    if status == 405 and allowed:
        allowed += ["HEAD"] if "GET" in allowed else []
        methods = ", ".join(allowed)
        return response(request, Problem(405, f"Use {methods}", headers={"Allow": methods}), challenge(web))
    return response(request, Problem(404, "Nothing is served at this path"), challenge(web))


_PATHS: Final = [
    (operation, re.compile(re.escape(PATH + operation.path).replace(r"\{id\}", "[^/]+"))) for operation in OPERATIONS
]


def _without_body_of_head(api: ASGIApp) -> ASGIApp:
    """HEAD is answered wherever GET is (D32)."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[METHOD] = scope["method"]
        if scope["method"] != "HEAD":
            await api(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        await api(scope, receive, sending)

    return answer
