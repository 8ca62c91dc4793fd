"""The tables of docs/specification name what the declarations have: no path, parameter, field or error more or less.

Other tests hold the declarations against a running provider.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from corpid.jose.compact import MAX_BYTES
from corpid.jose.keys import MAX_KEYS
from corpid.rules import limits
from corpid.rules.directory.parties import ENTITY_MEMBERS, USER_MEMBERS
from corpid.rules.oauth.authorization_request import REQUEST_PARAMETERS
from corpid.rules.oauth.client_registration import CONTEXT_TYPES
from corpid.rules.oauth.generations import CURRENT, FAPI2, GENERATIONS, INTERMEDIATE, LEGACY, SCOPES
from corpid.rules.oauth.records import CLIENT_MEMBERS
from scripts.citations import SPECIFICATION
from scripts.reference import answers, shapes
from scripts.reference.endpoints import Endpoint, endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_HTTP: Final = {"misdirected_request", "credentials_required"}
"""errors whose response has no code of their own"""


def section(number: str) -> str:
    """The text below the heading with this number, to the next heading."""
    for path in sorted(SPECIFICATION.glob("*.md")):
        for part in re.split(r"^#+ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if part.startswith(f"{number} "):
                return part
    raise LookupError(number)


def rows(number: str, column: str) -> Iterator[list[str]]:
    """The rows of the tables of a section whose first heading is this."""
    for table in re.split(r"\n\n+", section(number)):
        lines = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in table.splitlines()]
        if lines and lines[0][0].strip("| ") == column:
            yield from lines[2:]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def names(number: str, column: str) -> set[str]:
    """What the first column of these tables names."""
    return {name for row in rows(number, column) for name in named(row[0])}


def of(name: str) -> list[Endpoint]:
    """The endpoint, in each generation that has it."""
    return [each for generation in GENERATIONS.values() for each in endpoints(generation) if each.name == name]


def members(record: str) -> set[str]:
    """The members of a record, in any generation."""
    return {
        member.name
        for generation in GENERATIONS.values()
        for each in answers.answers(generation)
        if each.name == record
        for member in each.members
    }


def test_the_paths_are_those_of_the_endpoints() -> None:
    """Spec 2.1."""
    declared = {
        (endpoint.path, method)
        for generation in GENERATIONS.values()
        for endpoint in endpoints(generation)
        for method in endpoint.methods
        if endpoint.name not in {"healthz", "readyz"}
    }
    assert {(named(row[2])[0], method) for row in rows("2.1", "Purpose") for method in row[1].split(", ")} == declared


@pytest.mark.parametrize(("number", "name"), [("4.1", "par"), ("4.3", "token")])
def test_the_parameters_are_those_that_the_endpoint_reads(number: str, name: str) -> None:
    """Spec 4.1, 4.3."""
    declared = {each.name for endpoint in of(name) for each in endpoint.parameters if not each.refused}
    assert names(number, "Parameter") == declared


def test_the_parameters_of_authorize_are_two_or_the_request_itself() -> None:
    """Spec 4.2."""
    pushed = next(
        each for each in of("authorize") if "request_uri" in {one.name for one in each.parameters if not one.refused}
    )
    assert names("4.2", "Parameter") >= {each.name for each in pushed.parameters if each.required}
    assert names("4.2", "LEGACY parameter") == REQUEST_PARAMETERS - {"request", "request_uri"}


@pytest.mark.parametrize(
    ("number", "name"), [("4.1", "par"), ("4.3", "token"), ("4.4", "userinfo"), ("4.5", "authorization-info")]
)
def test_every_header_of_a_request_has_a_row(number: str, name: str) -> None:
    """Spec 4.1, 4.3, 4.4, 4.5."""
    declared = {each.name for endpoint in of(name) for each in endpoint.headers}
    assert names(number, "Header") - {"Content-Type"} == declared - {"Content-Type"}


@pytest.mark.parametrize(
    ("number", "column", "record"),
    [
        ("2.2", "Field", "ParResponse"),
        ("2.4", "Field", "TokenResponse"),
        ("2.4", "ID token claim", "IDTokenClaims"),
        ("2.5", "Claim", "UserinfoClaims"),
        ("2.6", "Claim", "AuthorizationInfoClaims"),
        ("2.8", "Field", "Discovery"),
    ],
)
def test_the_fields_are_those_of_the_response(number: str, column: str, record: str) -> None:
    """Spec 2.2, 2.4, 2.5, 2.6, 2.8."""
    assert names(number, column) == members(record)


def test_the_fields_of_keys_and_blocks_are_those_of_the_response() -> None:
    """Spec 2.4, 2.6, 2.9."""
    found: dict[str, set[str]] = {}
    for generation in GENERATIONS.values():
        for name, record in shapes.records(list(answers.answers(generation))).items():
            found[name] = found.get(name, set()) | {member.name for member in record.members}
    assert names("2.9", "Field") == found["SigningKey"]
    assert names("2.4", "`userInfo`") == found["UserInfo"]
    assert names("2.4", "`entityInfo`") == found["EntityInfo"]
    blocks = {name for name in found if name.startswith(("AuthInfo", "TPAuthInfo", "ThirdParty"))}
    paths = {part for name in names("2.6", "Path") for part in re.findall(r"[A-Za-z_]+", name)}
    assert paths == {member for name in blocks for member in found[name]}


def test_registration_names_every_member_of_a_client() -> None:
    """Spec 1: all but the name for people decide about the interface."""
    assert names("Registration", "Member") == (CLIENT_MEMBERS.keys() - {"name"}) | {"client_id"}


def test_the_published_values_of_legacy_are_its_own() -> None:
    """Spec 2.8."""
    _, _, table = section("2.8").partition("publishes exactly these values")
    found = {name: named(values) for name, values in re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE)}
    document = {**LEGACY.metadata, "scopes_supported": list(LEGACY.scopes),
                "token_endpoint_auth_signing_alg_values_supported": list(LEGACY.assertion_algorithms)}  # fmt: skip
    assert len(found) > 5
    for name, values in found.items():
        assert values[: len(document[name])] == document[name], name  # type: ignore[arg-type]  # these are lists


@pytest.mark.parametrize(
    ("number", "name"),
    [("7.1", "par"), ("7.2", "authorize"), ("7.3", "token"), ("7.4", "userinfo"), ("7.4", "entity-info")],
)
def test_the_errors_are_those_of_the_endpoint(number: str, name: str) -> None:
    """Spec 7.1-7.4."""
    declared = {code for endpoint in of(name) for code in endpoint.errors()} - _OF_HTTP
    said = names(number, "Code")
    assert said - declared <= {"insufficient_scope"} and declared <= said


@pytest.mark.parametrize(
    ("number", "name"), [("7.1", "par"), ("7.3", "token"), ("7.4", "userinfo"), ("7.4", "authorization-info")]
)
def test_the_statuses_are_those_of_the_endpoint(number: str, name: str) -> None:
    """Spec 7.1, 7.3, 7.4, D5."""
    said = {name: set(re.findall(r"\d{3}", row[1])) for row in rows(number, "Code") for name in named(row[0])}
    for endpoint in of(name):
        for code in endpoint.errors().keys() - _OF_HTTP:
            assert str(endpoint.status(code)) in said[code], (code, endpoint.path)


def test_scopes_and_attributes_are_those_that_are_known() -> None:
    """Spec 2.4, 4.9, R-4.1."""
    attributes = {name for scope in (*ENTITY_MEMBERS.values(), *USER_MEMBERS.values()) for name in scope}
    assert names("4.9", "Scope") == names("R-4.1", "Scope") == set(SCOPES)
    assert names("2.4", "Attribute") == attributes
    for scope, granted in (*ENTITY_MEMBERS.items(), *USER_MEMBERS.items()):
        assert {name for row in rows("4.9", "Scope") if named(row[0]) == [scope] for name in named(row[1])} == set(
            granted
        )


def test_context_types_are_those_that_can_be_registered() -> None:
    """R-5.2, D11."""
    assert {name for row in rows("R-5.2", "Group") for name in named(row[1])} == CONTEXT_TYPES


LIMITS: Final = {
    "`request_uri`, for arriving": f"{limits.REQUEST_URI_SECONDS} seconds",
    "sign-in, from arriving": f"{limits.INTERACTION_SECONDS // 60} minutes",
    "authorization code": f"{limits.CODE_SECONDS} seconds",
    "access token": f"{limits.ACCESS_TOKEN_SECONDS // 60} minutes",
    "ID token, JWTs of resources": f"{limits.ID_TOKEN_SECONDS // 60} minutes",
    "client assertion": f"at most {CURRENT.assertion_seconds} seconds after `iat`; LEGACY and FAPI2: {LEGACY.assertion_seconds}",
    "DPoP proof": f"{limits.PROOF_AGE_SECONDS} seconds",
    "clocks of clients": f"{limits.CLOCK_AHEAD_SECONDS} seconds",
    "discovery and keys, cached by an RP": f"{limits.METADATA_CACHE_SECONDS // 3600} hour",
    "change of a record until it has effect everywhere": f"{limits.LIVE_STATE_SECONDS} seconds",
    "request line and headers": f"{limits.HEAD_BYTES // 1024} KiB, within {limits.HEAD_SECONDS} seconds",
    "body": f"{limits.BODY_BYTES // 1024} KiB and {limits.FORM_PAIRS} parameters, within {limits.BODY_SECONDS} seconds",
    "a JWT": f"{MAX_BYTES // 1024} KiB",
    "`jti`": f"{limits.JTI_CHARACTERS} characters",
    "`state`, `nonce`": f"{limits.STATE_CHARACTERS}, {limits.NONCE_CHARACTERS} characters",
    "`authentication_context_message`": f"{limits.CONTEXT_MESSAGE_CHARACTERS} characters",
    "`ui_locales`": f"{limits.UI_LOCALES_CHARACTERS} characters",
    "`error_description`": f"{limits.DESCRIPTION_CHARACTERS} characters",
    "a client's key set": f"{MAX_KEYS} keys",
}


def test_the_limits_of_codes_are_those_of_the_code() -> None:
    """D45."""
    said = section("D45")
    for limit in (
        f"for {limits.MAILED_CODE_SECONDS // 60} minutes",
        f"{limits.MAILED_CODES_PER_SIGN_IN} in a sign-in, {limits.MAILED_CODES_PER_HOUR} in an hour",
        f"{limits.CODE_MISSES} wrong codes",
        f"{limits.CODE_GUESSES} wrong codes after",
        f"of {limits.FIRST_CODE_PAUSE_SECONDS // 60} minutes",
    ):
        assert limit in said, limit


def test_the_limits_are_those_of_the_code() -> None:
    """Spec 8."""
    said = {row[0]: row[1] for column in ("Item", "Size") for row in rows("8", column)}
    wrong = [f"{item}: {limit}" for item, limit in LIMITS.items() if limit not in said[item]]
    assert not wrong, wrong
    assert {FAPI2.assertion_seconds, LEGACY.assertion_seconds} == {600}
    assert CURRENT.assertion_seconds == INTERMEDIATE.assertion_seconds
