"""Clients of the admin API, and its authorization server.

The server has an issuer of its own, so that the discovery document of the specification stays as it is. Source: D59
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from corpid.rules.fields import Field, KeyedRecord, documented_fields
from corpid.rules.limits import API_TOKEN_SECONDS
from corpid.rules.oauth import authorization_request, tokens
from corpid.rules.oauth.discovery import AUTHORIZATION_SERVER_PATH, JWKS_PATH
from corpid.rules.oauth.errors import UnsupportedGrantType
from corpid.rules.oauth.generations import ALGORITHMS, AuthenticationRules
from corpid.rules.oauth.parameters import require_parameter
from corpid.rules.oauth.records import CLIENT_MEMBERS, ClientId
from corpid.rules.oauth.refusals import Reason
from corpid.rules.readers import ListReader, one_of

ApiScope: TypeAlias = Literal[
    "directory.read", "directory.write", "clients.read", "clients.write", "audit.read", "operations"
]  # fmt: skip
"""of a token of the admin API (D59)"""
API_SCOPE_MEANINGS: Final[Mapping[ApiScope, str]] = {
    "directory.read": (
        "Read entities, people, memberships, services, roles, third parties, administrators and requests for approval"
    ),
    "directory.write": "Change them, and withdraw its own requests",
    "clients.read": "Read relying parties",
    "clients.write": "Change relying parties",
    "audit.read": "Read and verify the audit",
    "operations": "Read signing keys, make the next one, see and end sessions and locks, and switch maintenance",
}
"""scope → its meaning"""
API_SCOPES: Final = tuple(API_SCOPE_MEANINGS)


_LISTED: Final = ", ".join(f"`{scope}`" for scope in API_SCOPES)


class RegisteredApiClient(KeyedRecord, frozen=True, kw_only=True):
    """A client of the admin API as it was registered.

    Members that relying parties have too are declared there; a default is one that stored records may lack.
    `client_id` is unique among the clients of both kinds. Source: D59
    """

    client_id: ClientId
    name: Annotated[str, CLIENT_MEMBERS["name"]]
    scopes: Annotated[
        tuple[ApiScope, ...],
        Field(
            read=ListReader(one_of(*API_SCOPES), least=1),
            help="A scope that it can request; repeat for several.",
            doc=f"list: {_LISTED}",
            needed=True, example=("directory.read", "audit.read"),
        ),
    ]  # fmt: skip
    jwks: Annotated[str | None, CLIENT_MEMBERS["jwks"]] = None
    """a JSON Web Key Set as JSON text; exactly one of jwks and jwks_uri (D27)"""
    jwks_uri: Annotated[str | None, CLIENT_MEMBERS["jwks_uri"]] = None
    entity_id: str = ""
    """the one entity that it is bound to; empty: none, so its scopes hold for the whole deployment"""
    enabled: bool = True
    created_at: int = 0
    """epoch seconds"""


API_CLIENT_MEMBERS: Final = {
    name: each for name, each in documented_fields(RegisteredApiClient).items() if not each.identifies
}
"""member that a command sets → its declaration"""


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The first response to a request with an Idempotency-Key."""

    request: str
    """a MAC of the request: another request with the same key is refused"""
    status: int
    headers: dict[str, str]
    body: str
    """empty if it is made again for each repetition"""
    shown: str = ""
    """the identifier of the object that such a response shows: no other member of the record is stored"""


ISSUER_PATH: Final = "/api"
TOKEN_PATH: Final = f"{ISSUER_PATH}/token"
API_PATH: Final = f"{ISSUER_PATH}/v1"
"""under base_url: the API itself, which is the audience of its tokens"""
METADATA_PATH: Final = f"{AUTHORIZATION_SERVER_PATH}{ISSUER_PATH}"
"""of a base_url without a path; else its path stands before the last segment (RFC 8414 §3.1)"""

GRANT_TYPE: Final = "client_credentials"
TOKEN_PARAMETERS: Final = frozenset(
    {"grant_type", "scope", "client_id", "client_assertion_type", "client_assertion", "client_secret"}
)
RULES: Final = AuthenticationRules(
    scheme="DPoP",
    assertion_algorithms=ALGORITHMS,
    proof_algorithms=ALGORITHMS,
    assertion_seconds=120,
    assertion_iat_required=True,
    assertion_jti_required=True,
    endpoint_audience=False,
)


def metadata_url(base_url: str) -> str:
    """The address of the metadata: a well-known one, before the path. Source: RFC 8414 §3.1"""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}{AUTHORIZATION_SERVER_PATH}{parts.path}{ISSUER_PATH}"


def metadata(base_url: str, rules: AuthenticationRules) -> dict[str, object]:
    """The metadata document.

    There is no response type, and a list without elements is left out. Source: RFC 8414 §2, §3.2, D59
    """
    return {
        "issuer": base_url + ISSUER_PATH,
        "token_endpoint": base_url + TOKEN_PATH,
        "jwks_uri": base_url + JWKS_PATH,
        "scopes_supported": list(API_SCOPES),
        "grant_types_supported": [GRANT_TYPE],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": list(rules.assertion_algorithms),
        "dpop_signing_alg_values_supported": list(rules.proof_algorithms),
    }


def validate(parameters: dict[str, str]) -> None:
    """Check presence and value of grant_type.

    Raises InvalidRequest, UnsupportedGrantType. Source: RFC 6749 §4.4.2
    """
    if require_parameter(parameters, "grant_type") != GRANT_TYPE:
        raise UnsupportedGrantType(Reason.GRANT_TYPE, f"grant_type must be {GRANT_TYPE}")


def granted_scopes(asked: str | None, registered: Sequence[str]) -> tuple[str, ...]:
    """The scopes of a new token.

    Those asked for, else every registered one. Raises InvalidScope. Source: RFC 6749 §3.3, D59
    """
    if asked is None:
        return tuple(registered)
    return authorization_request.validate_scopes(asked, registered, API_SCOPES, needed="")


def access_token_claims(
    *,
    base_url: str,
    client_id: str,
    entity_id: str,
    granted: Sequence[str],
    jkt: str,
    token_id: str,
    now: int,
    loss: str = "",
) -> dict[str, object]:
    """The claims of a new token, whose subject is its client.

    `entity_id` is the entity that the client is bound to, or empty, `loss` the tag of a recent loss of data. Source:
    RFC 9068 §2.2, RFC 9449 §6.1, D59
    """
    bound = {"entity_id": entity_id} if entity_id else {}
    return {
        "iss": base_url + ISSUER_PATH,
        "aud": [base_url + API_PATH],
        "sub": client_id,
        "client_id": client_id,
        "scope": " ".join(granted),
        **bound,
        "iat": now,
        "exp": now + API_TOKEN_SECONDS,
        "jti": token_id,
        "cnf": {"jkt": jkt},
        **({tokens.LOSS: loss} if loss else {}),
    }


def no_person(claims: Mapping[str, object]) -> tuple[str, str] | None:
    """No user_id, and the entity_id of a token of the API.

    None if it is another token: its subject is not its client. Source: RFC 9068 §2.2, D59
    """
    entity_id = claims.get("entity_id", "")
    if claims.get("sub") != claims.get("client_id") or not isinstance(entity_id, str):
        return None
    return "", entity_id
