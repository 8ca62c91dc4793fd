"""The OpenAPI documents of the protocol: valid, and true of every recorded exchange."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from corpid.rules.oauth.generations import GENERATIONS
from corpid_dev.web.documents import FILES
from scripts.reference.claims import recorded
from scripts.reference.endpoints import endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator


def document(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILES[f"openapi-{name}.json"][0])
    return content


def exchanges(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those with a request, by name."""
    yield from ((title, each) for title, each in recorded(name)["exchanges"].items() if "request" in each)


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (each for key, each in value.items() if key == "$ref")
        for each in value.values():
            yield from references(each)
    if isinstance(value, list):
        for each in value:
            yield from references(each)


@pytest.mark.parametrize("name", GENERATIONS)
def test_each_document_is_valid(name: str) -> None:
    """By the OpenAPI Initiative's own schema of OpenAPI 3.1."""
    jsonschema_rs.Draft202012Validator(OPENAPI_31).validate(document(name))


def test_the_checker_refuses_what_is_no_openapi() -> None:
    validator = jsonschema_rs.Draft202012Validator(OPENAPI_31)
    whole = document("current")
    path = next(iter(whole["paths"]))
    assert not validator.is_valid({**whole, "paths": {path.removeprefix("/"): {}}})
    assert not validator.is_valid({**whole, "info": {}})


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_reference_leads_somewhere_and_every_endpoint_is_there(name: str) -> None:
    whole = document(name)
    named = {each.removeprefix("#/components/schemas/") for each in references(whole)}
    assert named <= set(whole["components"]["schemas"])
    served = {(each.path, method.lower()) for each in endpoints(GENERATIONS[name]) for method in each.methods}
    assert {(path, method) for path, item in whole["paths"].items() for method in item} == served
    operations = [operation["operationId"] for item in whole["paths"].values() for operation in item.values()]
    assert len(operations) == len(set(operations))


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_recorded_exchange_is_one_that_the_document_describes(name: str) -> None:
    """Parameters, status, content type and body."""
    whole = document(name)
    for title, exchange in exchanges(name):
        request, response = exchange["request"], exchange["response"]
        operation = whole["paths"][urlsplit(request["url"]).path][request["method"].lower()]
        form = operation.get("requestBody", {}).get("content", {}).get("application/x-www-form-urlencoded")
        if form:
            assert set(form["schema"]["required"]) <= set(request["form"]) <= set(form["schema"]["properties"]), title
        described = operation["responses"][str(response["status"])]
        if response["body"]:
            media_type = response["headers"]["content-type"].partition(";")[0]
            schema = {**whole, **described["content"][media_type]["schema"]}
            jsonschema_rs.Draft202012Validator(schema).validate(response["body"])
