"""The OpenAPI document of the admin API, from the table of operations (D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from corpid import __version__
from corpid.rules.oauth.api_server import API_PATH
from corpid.rules.oauth.scopes import API_SCOPE_MEANINGS
from corpid.web.api.calls import CHANGE_REASON
from corpid.web.api.schemas import Schema, components

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpid.web.api.operation import Operation

SCHEME: Final = "api"
MOST_ID_CHARACTERS: Final = 1024
_KINDS: Final[Mapping[Any, Schema]] = {str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"}}
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


def build_document(operations: Sequence[Operation], base_url: str) -> dict[str, Any]:
    """The document of a deployment. Source: OpenAPI 3.1"""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation)
    flow = {"tokenUrl": f"{base_url}/api/token", "scopes": dict(API_SCOPE_MEANINGS)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CorpID admin API",
            "description": _ABOUT.replace("{base_url}", base_url),
            "version": __version__,
        },
        "servers": [{"url": base_url + API_PATH}],
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {
                SCHEME: {
                    "type": "oauth2",
                    "description": "client_credentials; the token is bound to a DPoP key and sent with a proof (RFC 9449).",
                    "flows": {"clientCredentials": flow},
                }
            },
        },
    }


def statuses(operation: Operation) -> tuple[int, ...]:
    """The statuses of the errors that an operation can answer."""
    found = {*_ALWAYS, *operation.errors} - (set() if operation.scope else {401, 403})
    found |= {404} if operation.takes_object else set()
    found |= {412, 428} if operation.conditional else set()
    found |= {413, 415} if operation.body else set()
    return tuple(sorted(found))


def _describe_operation(operation: Operation) -> dict[str, Any]:
    responses = {operation.status: _success(operation), **_requested(operation), **_errors(operation)}
    described: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "operationId": operation.name,
        "parameters": [*_parameters(operation), *_headers(operation)],
        "responses": {str(status): response for status, response in responses.items()},
        "security": [{SCHEME: [operation.scope]}] if operation.scope else [],
    }
    if not described["parameters"]:
        del described["parameters"]
    if operation.body:
        schema = {"$ref": f"#/components/schemas/{operation.body}"}
        content = {kind: {"schema": schema} for kind in operation.media_types}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    """The parameters in path and query."""
    if operation.takes_object:
        schema = {"type": "string", "minLength": 1, "maxLength": MOST_ID_CHARACTERS}
        yield _parameter("path", "id", "The member `id` of the object.", schema, required=True)
    for query in operation.queries:
        schema = dict(_KINDS.get(query.kind) or {"enum": list(get_args(query.kind)), "type": "string"})
        if not query.needed and query.default is None:
            schema = {"anyOf": [schema, {"type": "null"}]}
        bounds = {"maximum": query.most, "minimum": query.least}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        yield _parameter("query", query.name, query.description, schema, required=query.needed, default=query.default)


def _parameter(
    where: str, name: str, description: str, schema: Schema, *, required: bool, default: object = None
) -> dict[str, Any]:
    described = {**schema, "description": description, **({} if default is None else {"default": default})}
    described["title"] = name.replace("_", " ").title()
    return {"name": name, "in": where, "required": required, "schema": described, "description": description}


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
