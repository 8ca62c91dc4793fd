"""Clients of the admin API: their scopes, and the record of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from corpid.rules.fields import Field, documented_fields
from corpid.rules.oauth.records import CLIENT_MEMBERS, ClientId
from corpid.rules.readers import ListReader, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping


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


class RegisteredApiClient(msgspec.Struct, frozen=True, kw_only=True):
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
            help="A scope it may ask for; repeat.",
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

    @property
    def key(self) -> tuple[str, ...]:
        return (self.client_id,)


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
