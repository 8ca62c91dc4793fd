"""The OpenAPI document of the admin API, from the table of operations (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid import __version__
from corpid.rules.oauth.api_client import API_SCOPE_MEANINGS
from corpid.web.api.calls import CHANGE_REASON
from corpid.web.api.schemas import components

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.routing import BaseRoute

    from corpid.web.api.operation import Operation

SCHEME: Final = "api"
_ALWAYS: Final = (400, 401, 403, 429, 503)
_MEANINGS: Final[Mapping[int, str]] = {
    400: "A parameter or the body cannot be read",
    401: "There is no valid access token, or no valid DPoP proof for it",
    403: "The token lacks the scope, or no rule allows this",
    404: "There is no such object, or the client cannot see it",
    409: "The object exists already, something that it depends on changed at the same time, or the last owner would be removed",
    412: "The object has changed since it was read",
    413: "The body is too large",
    415: "The body has another media type",
    422: "The body is not valid: `errors` names each member and the allowed values. Or the Idempotency-Key was used "
    "for another request",
    428: "If-Match is missing",
    429: "Too many requests: Retry-After says when to retry",
    503: "CorpID is busy, unavailable or under maintenance: Retry-After says when to retry",
}
_ABOUT: Final = (
    "Administer a deployment from a program. Get access tokens at `{base_url}/api/token` by client_credentials with "
    "private_key_jwt and DPoP (RFC 9449); docs/api.md describes every step. Errors are problem "
    "details (RFC 9457)."
)


def describe_operation(operation: Operation) -> dict[str, Any]:
    """The documentation of an operation, as FastAPI takes it."""
    extra: dict[str, Any] = {"security": [{SCHEME: [operation.scope]}] if operation.scope else []}
    parameters = list(_headers(operation))
    if parameters:
        extra["parameters"] = parameters
    if operation.body:
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        extra["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": schema} for kind in operation.media_types},
        }
    return {
        "summary": operation.summary,
        "description": operation.description,
        "tags": [operation.tag],
        "responses": {operation.status: _success(operation), **_requested(operation), **_errors(operation)},
        "openapi_extra": extra,
    }


def statuses(operation: Operation) -> tuple[int, ...]:
    """The statuses of the errors that an operation can answer."""
    found = {*_ALWAYS, *operation.errors} - (set() if operation.scope else {401, 403})
    found |= {404} if operation.takes_object else set()
    found |= {412, 428} if operation.conditional else set()
    found |= {413, 415} if operation.body else set()
    return tuple(sorted(found))


def build_document(routes: Sequence[BaseRoute], base_url: str, path: str) -> dict[str, Any]:
    """The document of a deployment. Source: OpenAPI 3.1"""
    from fastapi.openapi.utils import get_openapi  # noqa: PLC0415 - loaded with the application

    found: dict[str, Any] = get_openapi(
        title="CorpID admin API",
        version=__version__,
        openapi_version="3.1.0",
        description=_ABOUT.replace("{base_url}", base_url),
        routes=list(routes),
        servers=[{"url": base_url + path}],
        separate_input_output_schemas=False,
    )
    found["paths"] = {name.removeprefix(path): item for name, item in found["paths"].items()}
    for item in found["paths"].values():
        for operation in item.values():
            if "422" not in _declared_statuses(operation):
                operation["responses"].pop("422", None)
    flow = {"tokenUrl": f"{base_url}/api/token", "scopes": dict(API_SCOPE_MEANINGS)}
    found["components"] = {
        "schemas": components(),
        "securitySchemes": {
            SCHEME: {
                "type": "oauth2",
                "description": "client_credentials; the token is bound to a DPoP key and sent with a proof (RFC 9449).",
                "flows": {"clientCredentials": flow},
            }
        },
    }
    return found


def _declared_statuses(operation: Mapping[str, Any]) -> set[str]:
    """The statuses that are ours: FastAPI adds one of its own."""
    return {
        status
        for status, answer in operation["responses"].items()
        if "application/problem+json" in answer.get("content", {}) or not status.startswith("4")
    }


def _headers(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if operation.conditional:
        description = "The entity tag of the object that you have read."
        found.append(
            {
                "name": "If-Match",
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
        )
    if operation.method not in {"GET", "HEAD"}:
        description = (
            "The reason, for the history; required if the change needs approval. Printable ASCII, with other "
            "characters as percent-encoded UTF-8."
        )
        schema = {"type": "string", "maxLength": 500, "pattern": "^[ -~]*$"}
        found.append({"name": CHANGE_REASON, "in": "header", "description": description, "schema": schema})
    if operation.repeatable:
        description = "Lets you safely repeat the request within 24 hours: you get the first response again."
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema})
    return found


def _success(operation: Operation) -> dict[str, Any]:
    words = {200: "Carried out", 201: "Added", 204: "Removed"}
    answer: dict[str, Any] = {"description": words[operation.status]}
    if operation.answer:
        schema = {"$ref": f"#/components/schemas/{operation.answer}"}
        answer["content"] = {operation.answer_type: {"schema": schema}}
    names = {201: ("ETag", "Location")}.get(operation.status, ())
    if names:
        answer["headers"] = {name: {"schema": {"type": "string"}} for name in names}
    return answer


def _requested(operation: Operation) -> dict[int | str, dict[str, Any]]:
    """The answer to a change that needs approval (D55)."""
    if not operation.requested:
        return {}
    schema = {"$ref": "#/components/schemas/Approval"}
    return {
        202: {
            "description": "Nothing has changed yet: the change needs another administrator's approval, and has been requested",
            "headers": {"Location": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": schema}},
        }
    }


def _errors(operation: Operation) -> dict[int | str, dict[str, Any]]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": problem} for status in statuses(operation)}
