"""Bodies and paths that are nearly right: an error of SCIM or a change, and never a fault (RFC 7644 §3.12)."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.scim.calling import GROUP, PATCH, USER, Scim, provisioning

if TYPE_CHECKING:
    from tests.protocol.provider import Worlds

NUMBERS = count()
"""for addresses: few invitations a day go to one"""
ATTRIBUTES = [
    "userName", "USERNAME", "externalId", "displayName", "name", "name.givenName", "name.formatted", "active", "emails",
    "emails.value", 'emails[type eq "work"].value', 'emails[type eq "home"]', "emails[primary eq true].value", "groups", "id",
    "meta", "meta.version", "schemas", "members", "members.value", 'members[value eq "x"]', "title", f"{USER}:userName", f"{USER}",
    f"{GROUP}:members", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager", "", " ", "[", "a.b.c",
    "emails[", 'emails[type eq "work"]', "$ref", "members.$ref", "password", "name[givenName pr]",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8),
    st.sampled_from(["x", "mei", "True", "False", "mei@harbour.example", USER, "work", "2026-01-01T00:00:00Z"]),
)  # fmt: skip
NAMES = st.sampled_from([*ATTRIBUTES, "value", "type", "primary", "givenName", "display", "$ref"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "Replace", "remove", "move"])},
    optional={"path": st.sampled_from(ATTRIBUTES), "value": VALUES},
)
PATCHES = st.builds(
    lambda operations: {"schemas": [PATCH], "Operations": operations}, st.lists(OPERATIONS, min_size=1, max_size=3)
)
RESOURCES = st.dictionaries(NAMES, VALUES, max_size=5).map(
    lambda members: {"schemas": [USER], "userName": "x", **members}
)
FILTERS = st.builds(
    lambda parts, word: f" {word} ".join(f"{name} {operator} {json.dumps(value)}" for name, operator, value in parts),
    st.lists(st.tuples(NAMES, st.sampled_from(["eq", "co", "sw", "ne", "pr", "gt"]), SCALARS), min_size=1, max_size=3),
    st.sampled_from(["and", "or", "AND", ""]),
)
FINE = {200, 201, 204, 400, 403, 404, 409, 412, 429}  # 429: the invitations of a day to one address


@pytest.fixture(scope="module")
def served(worlds: Worlds) -> Scim:
    return provisioning(worlds.fresh(scim_per_client=0, scim_per_address=0))


def checked(answer: Any) -> None:
    assert answer.status_code in FINE, answer.text
    if answer.status_code >= 400:
        told = answer.json()
        assert told["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert told["status"] == str(answer.status_code)
        assert told["detail"]


def run(served: Scim, resource: dict[str, Any], patch: dict[str, Any], text: str) -> None:
    made = served.call("POST", "/Users", resource)
    checked(made)
    user = (
        made.json()["id"]
        if made.status_code == 201
        else served.added("x", emails=[{"value": f"{next(NUMBERS)}@harbour.example"}])["id"]
    )
    group = served.found("Groups", 'displayName co "A"')[0]["id"]
    try:
        for where in (f"/Users/{user}", f"/Groups/{group}"):
            checked(served.call("PATCH", where, patch))
            checked(served.call("PUT", where, resource))
            checked(served.get(where))
        for kind in ("Users", "Groups"):
            checked(served.get(f"/{kind}?filter={quote(text)}&attributes={quote(text)[:50]}"))
    finally:
        served.delete(f"/Users/{user}")


@pytest.mark.full
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(RESOURCES, PATCHES, FILTERS)
def test_nothing_that_is_nearly_right_is_a_fault(
    served: Scim, resource: dict[str, Any], patch: dict[str, Any], text: str
) -> None:
    """D28: a 500 is for what nobody foresaw."""
    run(served, resource, patch, text)


@pytest.mark.full
@pytest.mark.timeout(600)
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(RESOURCES, PATCHES, FILTERS)
def test_nothing_of_very_much_that_is_nearly_right_is_a_fault(
    served: Scim, resource: dict[str, Any], patch: dict[str, Any], text: str
) -> None:
    """The same, for longer."""
    run(served, resource, patch, text)
