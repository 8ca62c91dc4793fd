"""Behaviour of a strict relying party in each generation of the interface.

Written from the specification alone, apart from `corpid.rules.oauth.generations`: what checks the provider
must not believe its records. One frozen record for each generation; what differs is a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A resource that the relying party reads with its access token."""

    name: str
    """its name in checks and exchanges"""
    endpoint: str
    """the member of the metadata that holds its URL"""
    method: str = "GET"
    """how it is asked unless the caller says otherwise"""
    blocks: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    """scope → the block that it grants"""
    scoped: bool = True
    """False: every block is there, whatever the scopes"""
    signed: bool = True
    """False: JSON, unless this client registered a signing algorithm"""

    @property
    def title(self) -> str:
        """The name at the beginning of a line."""
        return self.name[0].upper() + self.name[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One generation, as its relying parties see it."""

    name: str
    pushed: bool
    """the request is pushed (PAR); else it is the query of the authorization URL"""
    ends: bool
    """clients are registered for it until a day"""
    scheme: str
    """of the access token at resources, and the token_type"""
    proof_at_push: bool
    scopes: tuple[str, ...]
    """the scopes in addition to openid"""
    parameters: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    """required parameters in addition to those of OAuth and OpenID Connect"""
    message: bool = True
    """whether a request may carry authentication_context_message"""
    response_modes: tuple[str, ...] = ("query",)
    """the first is the default"""
    id_token_enc: str | None
    """content encryption of the ID token; None: signed only, unless this client registered an encryption"""
    packed_subject: bool = False
    """`sub` packs the person, userInfo and entityInfo have the rest (R-12.2)"""
    userinfo: Reading
    entity_info: Reading | None = None
    certificates: bool = False
    """published keys carry x5c, x5t and x5t#S256"""
    lists: Mapping[str, str]
    """metadata member → a value that it must list, since the relying party uses it (Spec 2.8, D41)"""
    alone: Mapping[str, Any] = field(repr=False)
    """exact metadata if no other generation is served; None: the member is absent"""

    @property
    def bound(self) -> bool:
        """True if access tokens are bound to a key.

        The relying party's. Source: RFC 9449
        """
        return self.scheme == "DPoP"

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The resources that an access token is for."""
        return (self.userinfo, self.entity_info) if self.entity_info else (self.userinfo,)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The metadata members with URLs that the relying party uses."""
        push = ("pushed_authorization_request_endpoint",) if self.pushed else ()
        own = tuple(reading.endpoint for reading in self.readings)
        return ("authorization_endpoint", "token_endpoint", *push, "jwks_uri", *own)


_IDENTITY: Final = (
    "entity.identity",
    "entity.basic_profile.name",
    "entity.basic_profile.uen_status",
    "user.identity",
    "user.name",
)
_ALGORITHMS: Final = ("ES256", "ES256K", "ES384", "ES512")
_WRAPS: Final = ("ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW")
_ENCODINGS: Final = ("A256CBC-HS512", "A256GCM")
_USED: Final = MappingProxyType(
    {
        "response_types_supported": "code",
        "grant_types_supported": "authorization_code",
        "code_challenge_methods_supported": "S256",
        "token_endpoint_auth_methods_supported": "private_key_jwt",
        "token_endpoint_auth_signing_alg_values_supported": "ES256",
        "id_token_signing_alg_values_supported": "ES256",
        "userinfo_signing_alg_values_supported": "ES256",
        "scopes_supported": "openid",
    }
)
_PUBLISHED: Final = MappingProxyType(
    {
        "response_types_supported": ("code",),
        "response_modes_supported": ("query",),
        "subject_types_supported": ("public",),
        "claim_types_supported": ("normal",),
        "grant_types_supported": ("authorization_code",),
        "code_challenge_methods_supported": ("S256",),
        "token_endpoint_auth_methods_supported": ("private_key_jwt",),
        "token_endpoint_auth_signing_alg_values_supported": _ALGORITHMS,
        "dpop_signing_alg_values_supported": _ALGORITHMS,
        "id_token_signing_alg_values_supported": ("ES256",),
        "id_token_encryption_alg_values_supported": _WRAPS,
        "id_token_encryption_enc_values_supported": _ENCODINGS,
        "userinfo_signing_alg_values_supported": ("ES256",),
        "userinfo_encryption_alg_values_supported": _WRAPS,
        "userinfo_encryption_enc_values_supported": _ENCODINGS,
        "scopes_supported": ("openid", "authinfo", "tpauthinfo", *_IDENTITY),
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "require_pushed_authorization_requests": True,
        "authorization_response_iss_parameter_supported": False,
        "authorization-info_endpoint": None,
        "entityinfo_endpoint": None,
        "entityinfo_signing_alg_values_supported": None,
    }
)

CURRENT: Final = Interface(
    name="current",
    pushed=True,
    ends=False,
    scheme="DPoP",
    proof_at_push=True,
    scopes=("authinfo", "tpauthinfo", *_IDENTITY),
    parameters=MappingProxyType({"authentication_context_type": "APP_AUTHENTICATION_DEFAULT"}),
    id_token_enc="A256CBC-HS512",
    userinfo=Reading(
        name="userinfo",
        endpoint="userinfo_endpoint",
        blocks=MappingProxyType({"authinfo": "auth_info", "tpauthinfo": "tp_auth_info"}),
    ),
    lists=MappingProxyType({**_USED, "dpop_signing_alg_values_supported": "ES256"}),
    alone=_PUBLISHED,
)

INTERMEDIATE: Final = replace(
    CURRENT,
    name="intermediate",
    entity_info=Reading(name="entity-info", endpoint="entityinfo_endpoint"),
    lists=MappingProxyType({**CURRENT.lists, "entityinfo_signing_alg_values_supported": "ES256"}),
    alone=MappingProxyType(
        {
            **{name: value for name, value in _PUBLISHED.items() if name != "entityinfo_endpoint"},
            "entityinfo_signing_alg_values_supported": ("ES256",),
            "entityinfo_encryption_alg_values_supported": _WRAPS,
            "entityinfo_encryption_enc_values_supported": _ENCODINGS,
        }
    ),
)

FAPI2: Final = replace(
    CURRENT,
    name="fapi2",
    proof_at_push=False,
    parameters=NOTHING,
    id_token_enc=None,
    userinfo=replace(CURRENT.userinfo, signed=False),
    alone=MappingProxyType(
        {
            **_PUBLISHED,
            "token_endpoint_auth_signing_alg_values_supported": ("ES256",),
            "dpop_signing_alg_values_supported": ("ES256",),
            "authorization_response_iss_parameter_supported": True,
        }
    ),
)

LEGACY: Final = replace(
    CURRENT,
    name="legacy",
    pushed=False,
    ends=True,
    scheme="Bearer",
    proof_at_push=False,
    scopes=("authinfo", "tpauthinfo"),
    parameters=NOTHING,
    message=False,
    response_modes=("query", "fragment", "form_post"),
    packed_subject=True,
    userinfo=Reading(
        name="authorization-info",
        endpoint="authorization-info_endpoint",
        method="POST",
        blocks=MappingProxyType({"authinfo": "AuthInfo", "tpauthinfo": "TPAuthInfo"}),
        scoped=False,
    ),
    certificates=True,
    lists=_USED,
    alone=MappingProxyType(
        {
            **{name: value for name, value in _PUBLISHED.items() if name != "authorization-info_endpoint"},
            "response_modes_supported": ("form_post", "fragment", "query"),
            "claims_supported": (
                "nonce", "aud", "iss", "sub", "exp", "iat", "userInfo", "entityInfo", "AuthInfo", "TPAuthInfo",
                "rt_hash", "at_hash", "amr", "email", "email_verified", "sid", "auth_time", "EntityInfo",
            ),
            "id_token_encryption_enc_values_supported": ("A256CBC-HS512",),
            "userinfo_encryption_alg_values_supported": (
                "A128KW", "A256KW", "ECDH-ES", "RSA-OAEP", "RSA-OAEP-256", "dir",
            ),
            "userinfo_encryption_enc_values_supported": (
                "A128CBC-HS256", "A128GCM", "A256CBC-HS512", "A256GCM",
            ),
            "scopes_supported": ("openid", "authinfo", "tpauthinfo"),
            "authorization_response_iss_parameter_supported": True,
            "pushed_authorization_request_endpoint": None,
            "require_pushed_authorization_requests": None,
            "dpop_signing_alg_values_supported": None,
            "acr_values_supported": None,
        }
    ),
)  # fmt: skip

INTERFACES: Final[Mapping[str, Interface]] = MappingProxyType(
    {interface.name: interface for interface in (LEGACY, INTERMEDIATE, CURRENT, FAPI2)}
)
"""by name, oldest first"""
