"""OpenAPI 3.1 documents of the protocol endpoints, one for each generation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.oauth.generations import GENERATIONS, Generation
from scripts.reference import answers
from scripts.reference.claims import recorded
from scripts.reference.endpoints import FORM, JSON, JWT, Endpoint, Parameter, endpoints
from scripts.reference.shapes import Record, schema, schemas_of

if TYPE_CHECKING:
    from collections.abc import Mapping


_TEXT: Final = {"type": "string"}
_REDIRECT: Final = 302
_CLIENT_ERROR: Final = 400
_NOT_PARAMETERS: Final = frozenset({"Content-Type", "Authorization"})
"""headers that OpenAPI describes elsewhere"""
_RETRY_AFTER: Final = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
_CHALLENGE: Final = {"description": "One challenge, with the scheme that is served.", "schema": _TEXT}
_WHAT_IS_WRONG: Final = "See docs/reference/errors.md for each reason, who must act and how to fix it."


def documents() -> dict[str, dict[str, Any]]:
    """Generation → its document."""
    return {name: _document(each) for name, each in GENERATIONS.items()}


def _document(generation: Generation) -> dict[str, Any]:
    scheme = generation.scheme
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"CorpID, {generation.name}",
            "version": "1",
            "description": "The endpoints that relying parties use, in a deployment that serves this generation alone. Take the URLs from the "
            "discovery document. The clients authenticate at PAR and token with `private_key_jwt`, in the form.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": answers.EXAMPLE_URL}],
        "paths": {each.path: {method.lower(): _operation(each, method, generation) for method in each.methods} for each in endpoints(generation)},
        "components": {
            "schemas": _moved(schemas_of(answers.answers(generation))),
            "securitySchemes": {
                scheme: {"type": "http", "scheme": scheme, "description": "The access token of the token endpoint."}
            },
        },
    }  # fmt: skip


def _operation(endpoint: Endpoint, method: str, generation: Generation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": f"{endpoint.name}_{method.lower()}".replace("-", "_"),
        "summary": endpoint.title,
        "description": f"Authentication: {endpoint.authentication}. Rate limit: {endpoint.limit}.",
        "security": [{generation.scheme: []}] if any(each.name == "Authorization" for each in endpoint.headers) else [],
    }
    sent = [each for each in endpoint.parameters if not each.refused]
    in_form = sent if method == "POST" else []
    parameters = [_parameter(each, "header") for each in endpoint.headers if each.name not in _NOT_PARAMETERS]
    parameters += [_parameter(each, "query") for each in sent if each not in in_form]
    if parameters:
        made["parameters"] = parameters
    if in_form:
        made["requestBody"] = {"required": True, "content": {FORM: {"schema": _form(in_form)}}}
    made["responses"] = {**_success(endpoint, generation), **_errors(endpoint)}
    return made


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": parameter.required and not parameter.condition,
        "description": _said(parameter),
        "schema": _TEXT,
    }


def _form(parameters: list[Parameter]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {each.name: {**_TEXT, "description": _said(each)} for each in parameters},
        "required": [each.name for each in parameters if each.required and not each.condition],
    }


def _said(parameter: Parameter) -> str:
    condition = f" ({parameter.condition})" if parameter.condition else ""
    return f"{parameter.meaning}{condition} Value: {parameter.value}."


def _success(endpoint: Endpoint, generation: Generation) -> dict[str, Any]:
    success = endpoint.success
    made: dict[str, Any] = {
        "description": success.about or endpoint.title,
        "headers": {_titled(name): {"schema": {"const": value}} for name, value in success.headers.items()},
    }
    if success.status == _REDIRECT:
        record = success.record.name if success.record else ""
        location = {"description": f"Your redirect URI with {record}, or with {endpoint.error.name}.", "schema": _TEXT}
        pages = {
            "description": "To the pages of the sign-in; a POST to the GET.",
            "headers": {"Location": {"schema": _TEXT}},
        }
        return {"302": {**made, "headers": {**made["headers"], "Location": location}}, "303": pages}
    if success.record is not None:
        made["content"] = _content(success.content_type, success.record, generation, endpoint)
    return {str(success.status): made}


def _content(content_type: str, record: Record, generation: Generation, endpoint: Endpoint) -> dict[str, Any]:
    media_type = content_type.partition(";")[0]
    reference = _moved(schema(record))
    signed = {
        "type": "string",
        "contentMediaType": JWT,
        "contentSchema": reference,
        "description": f"A JWT with {record.name}.",
    }
    if media_type == JWT:
        return {JWT: {"schema": signed}}
    made: dict[str, Any] = {media_type: {"schema": reference}}
    example = next((name for name in endpoint.examples if not name.endswith("error")), "")
    exchange = recorded(generation.name)["exchanges"].get(example, {})
    if isinstance(exchange.get("response", {}).get("body"), dict):
        made[media_type]["example"] = exchange["response"]["body"]
    is_resource = any(each.name == "Authorization" for each in endpoint.headers)
    return {**made, JWT: {"schema": signed}} if is_resource else made


def _errors(endpoint: Endpoint) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in endpoint.errors():
        by_status.setdefault(endpoint.status(code), []).append(code)
    if endpoint.success.status == _REDIRECT:
        by_status = {status: codes for status, codes in by_status.items() if status == _CLIENT_ERROR}
        return {"400": {"description": f"An error page, if the redirect URI is not known to be the client's. {_WHAT_IS_WRONG}",
                        "content": {"text/html": {"schema": _TEXT}}}}  # fmt: skip
    made = {}
    for status, codes in sorted(by_status.items()):
        shown = [code for code in codes if code != "credentials_required"]
        description = f"{', '.join(shown) or 'No credentials'}. {_WHAT_IS_WRONG}"
        made[str(status)] = {
            "description": description,
            **_error_headers(status, endpoint),
            "content": {JSON: {"schema": _moved(schema(endpoint.error))}},
        }
    made["429"] = {**made["503"], "description": f"temporarily_unavailable: too many requests. {_WHAT_IS_WRONG}"}
    return made


def _error_headers(status: int, endpoint: Endpoint) -> dict[str, Any]:
    if status == 503:
        return {"headers": {"Retry-After": _RETRY_AFTER}}
    is_resource = any(each.name == "Authorization" for each in endpoint.headers)
    return {"headers": {"WWW-Authenticate": _CHALLENGE}} if is_resource and status < 500 else {}


def _titled(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def _moved(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema with its references into an OpenAPI document."""
    moved: dict[str, Any] = json.loads(json.dumps(document).replace("#/$defs/", "#/components/schemas/"))
    return moved
