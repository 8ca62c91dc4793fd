"""Schemathesis over the document: no 500, and no answer outside the schema (D59). `test_schemathesis` runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from corpid.web.api.application import document
from tests.api.calling import Api, calling
from tests.api.test_objects import with_examples
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from schemathesis import Case

    from tests.protocol.provider import Worlds

pytestmark = pytest.mark.full

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
"""not among them: what the schema allows is refused where the directory's rules say so"""
LIMITS: Any = {"api_per_client": 0, "api_per_address": 0, "token_per_client": 0}

REFUSED: Final = (400, 401, 403, 404, 405, 406, 409, 412, 415, 422, 428, 429)
"""what an answer to invalid data may be; 412: If-Match is looked at first, and names another version (RFC 9110 §13.2.2)"""
CONFIGURATION: Final = {
    "phases": {"coverage": {"enabled": True}},
    "checks": {"negative_data_rejection": {"expected-statuses": list(REFUSED)}},
}

schema = schemathesis.openapi.from_dict(
    json.loads(document(ISSUER)), config=SchemathesisConfig.from_dict(CONFIGURATION)
)


@pytest.fixture(scope="module")
def served(worlds: Worlds) -> Api:
    """A client with every scope, in a world with one object of each kind."""
    api = calling(worlds.fresh(**LIMITS))
    with_examples(api)
    return api


def body_of(sent: dict[str, Any]) -> dict[str, Any]:
    """Query and body as httpx takes them."""
    given = {name: sent[name] for name in ("params", "json", "data") if sent.get(name) is not None}
    if isinstance(given.get("data"), bytes | str):
        given["content"] = given.pop("data")
    return given


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_call_breaks_the_api_or_is_answered_outside_the_document(case: Case[Any], served: Api) -> None:
    """D59, OpenAPI 3.1."""
    sent = case.as_transport_kwargs(base_url=f"{ISSUER}/api/v1")
    served.world.clock.now += 0.001
    served.token = served.caller.access_token() if not served.token else served.token
    parts = urlsplit(sent["url"])
    proof = served.caller.proof(case.method, f"{ISSUER}{parts.path}", served.token)
    headers = {**sent["headers"], "authorization": f"DPoP {served.token}", "dpop": proof}
    raw = {name: str(value).encode("latin-1", "replace") for name, value in headers.items()}
    request = served.world.http.build_request(case.method, sent["url"], headers=raw, **body_of(sent))
    answer = served.world.run(served.world.http.send(request))
    case.validate_response(answer, checks=CHECKS)
    if case.operation.label == "PUT /maintenance":  # it would answer all that comes after it
        served.call("PUT", "/maintenance", {"maintenance": False})
