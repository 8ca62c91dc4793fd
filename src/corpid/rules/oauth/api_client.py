"""The record of a client of the admin API."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Final

import msgspec

from corpid.rules.oauth.client_members import MemberDeclaration, declared_members
from corpid.rules.oauth.records import CLIENT_MEMBERS
from corpid.rules.oauth.scopes import API_SCOPES, ApiScope

_LISTED: Final = ", ".join(f"`{scope}`" for scope in API_SCOPES)


class RegisteredApiClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client of the admin API as it was registered.

    Members that relying parties have too are declared there; a default is one that stored records may lack.
    `client_id` is unique among the clients of both kinds. Source: D59
    """

    client_id: str
    name: Annotated[str, CLIENT_MEMBERS["name"].member]
    scopes: Annotated[
        tuple[ApiScope, ...],
        MemberDeclaration(
            help="A scope it may ask for; repeat.",
            doc=f"list: {_LISTED}",
            least=1, needed=True, example=("directory.read", "audit.read"),
        ),
    ]  # fmt: skip
    jwks: Annotated[str | None, CLIENT_MEMBERS["jwks"].member] = None
    """a JSON Web Key Set as JSON text; exactly one of jwks and jwks_uri (D27)"""
    jwks_uri: Annotated[str | None, CLIENT_MEMBERS["jwks_uri"].member] = None
    entity_id: str = ""
    """the one entity that it is bound to; empty: none, so its scopes hold for the whole deployment"""
    enabled: bool = True
    created_at: int = 0
    """epoch seconds"""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.client_id,)


API_CLIENT_MEMBERS: Final = MappingProxyType(declared_members(RegisteredApiClient))
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
