"""The OpenAPI document: every operation whole, and the file in docs as it is served (D59)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpid.rules.directory.objects import RESOURCES, parse_object
from corpid.web.api.application import document
from corpid.web.api.openapi import EXAMPLES
from corpid.web.api.operations import OPERATIONS
from scripts.tables import API_BASE_URL, API_DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: dict[str, Any] = json.loads(document(API_BASE_URL))


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            yield operation["operationId"], operation


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (each for name, each in value.items() if name == "$ref")
        for each in value.values():
            yield from references(each)
    if isinstance(value, list):
        for each in value:
            yield from references(each)


def test_the_document_in_docs_is_the_one_that_is_served() -> None:
    """`make tables` writes it."""
    assert API_DOCUMENT.read_bytes() == document(API_BASE_URL), "run `make tables`"


def test_every_operation_is_described_with_its_scope_its_errors_and_examples() -> None:
    """D59."""
    assert sorted(name for name, _ in operations()) == sorted(operation.name for operation in OPERATIONS)
    schemas = DOCUMENT["components"]["schemas"]
    for name, operation in operations():
        assert operation["summary"] and operation["description"].endswith("."), name
        scopes = [scope for each in operation["security"] for scope in each["api"]]
        known = DOCUMENT["components"]["securitySchemes"]["api"]["flows"]["clientCredentials"]["scopes"]
        assert len(scopes) == (name != "audit_keys") and set(scopes) <= set(known)
        statuses = set(operation["responses"])
        assert statuses >= {"400", "429", "503", *(("401", "403") if scopes else ())}, name
        for status, answer in operation["responses"].items():
            kinds = answer.get("content", {})
            assert (list(kinds) == ["application/problem+json"]) == (status[0] == "4" or status == "503"), name
        for reference in references([operation.get("requestBody"), operation["responses"]]):
            titled = schemas[reference.removeprefix("#/components/schemas/")]
            assert titled.get("examples") or titled is schemas["Problem"], reference


def test_every_reference_of_the_document_leads_somewhere_and_every_schema_is_used() -> None:
    named = {each.removeprefix("#/components/schemas/") for each in references(DOCUMENT)}
    assert named == set(DOCUMENT["components"]["schemas"])


def test_every_example_is_read_as_it_is_written() -> None:
    """One declaration: the schema and the reader are made from the same keys."""
    schemas = DOCUMENT["components"]["schemas"]
    for resource in RESOURCES:
        new = EXAMPLES[resource.title]
        parse_object(resource, {**new})
        assert set(schemas[f"New{resource.title}"]["properties"]) == set(resource.keys)
        assert set(schemas[f"New{resource.title}"]["required"]) <= set(new)


def test_no_schema_of_the_document_changes_its_name() -> None:
    """D59: programs are generated from these names; a class can be renamed, its schema keeps the name."""
    names = (Path(__file__).parent / "schema_names.txt").read_text(encoding="utf-8").split()
    schemas = DOCUMENT["components"]["schemas"]
    assert sorted(schemas) == names, "append new names; the others stay"
    assert all(schema.get("title", name) == name for name, schema in schemas.items())
