"""The generations of the interface, as data.

Rules of this file: a generation is one frozen record; the others are written with `replace`, so
that each reads as the difference from its neighbour. No other module compares or branches on a
generation: what differs is a field here (Spec "Generations").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from corpid.jose.encryption import CONTENT_ENCRYPTIONS, ENCRYPTIONS
from corpid.jose.keys import AGREEMENT, RSA, WRAPS

ENTITY_SCOPES: Final = ("entity.identity", "entity.basic_profile.name", "entity.basic_profile.uen_status")
IDENTITY_SCOPES: Final = (*ENTITY_SCOPES, "user.identity", "user.name")
SCOPES: Final = ("openid", "authinfo", "tpauthinfo", *IDENTITY_SCOPES)
"""every scope (Spec 4.9, R-4.1)"""


class Nesting(msgspec.Struct, frozen=True, kw_only=True):
    """A JWE around a signed answer.

    Without `alg` it is that of the client's key (D21, D22).
    """

    alg: str | None
    enc: str


class ProtectedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A protected endpoint: its path and the form of its answer."""

    name: str
    path: str
    metadata_names: tuple[str, ...]
    """members of the discovery document that hold its URL"""
    claim_names: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """scope → name of the member that carries its block"""
    entity_member: str | None = None
    """name of the member that carries what entity.* scopes grant; a token without one is refused (D26)"""
    scoped: bool = True
    """each block needs its scope; else every block is there, whatever the scopes"""
    encryption_algs: tuple[str, ...] = WRAPS
    """the JWE algs with which a client may have the answer nested (D22)"""
    encryption_encs: tuple[str, ...] = CONTENT_ENCRYPTIONS
    encrypted_by_enc: bool = True
    """a client that names none of these algs, but an enc, has it nested with the alg of its key; else it is signed only
    """

    def nesting(self, alg: str | None, enc: str | None) -> Nesting | None:
        """The nesting for a client's registered alg and enc.

        None for none. Source: D22
        """
        if enc is None or enc not in self.encryption_encs:
            return None
        if alg in self.encryption_algs:
            return Nesting(alg=alg, enc=enc)
        return Nesting(alg=None, enc=enc) if self.encrypted_by_enc else None


class AuthenticationRules(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of client assertions and DPoP proofs."""

    scheme: str
    """of access tokens; the token_type"""
    statuses: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """error code → status if it differs from the usual one, at PAR and token"""
    assertion_algorithms: tuple[str, ...]
    proof_algorithms: tuple[str, ...]
    """none: tokens are bound to no key, and a proof is not looked at"""
    assertion_seconds: int
    assertion_iat_required: bool
    assertion_jti_required: bool
    endpoint_audience: bool
    """a client may be allowed, until a date, to name in its assertion the endpoint that it is sent to (D8, D64)"""
    audience_arrays: bool = False
    """the audience of an assertion may be an array: of the issuer, or of issuer and endpoint where that is allowed
    (D70)"""

    @property
    def sender_constrained(self) -> bool:
        """True if tokens are bound to a key of the client's.

        Source: RFC 9449
        """
        return bool(self.proof_algorithms)


class Generation(AuthenticationRules, frozen=True, kw_only=True):
    """The parameters in which generations of the interface differ."""

    name: str
    code_prefix: str
    """first character of its codes: a token request has its code's generation"""
    pushed: bool
    """requests come by PAR, not as query parameters; a deployment serves at most one of each kind"""
    stands_alone: bool
    """cannot be served with another one"""
    ends: bool
    """serves only the clients that name it, until the end date of each"""
    successor: str | None
    """the generation that its clients have to move to"""
    resources: tuple[ProtectedResource, ...]
    scopes: tuple[str, ...]
    returns_iss: bool
    required_parameters: frozenset[str]
    key_binding_required: bool
    """PAR needs a DPoP proof or dpop_jkt"""
    pkce_optional: bool
    """a client may be registered to send no code_challenge (RFC 7636)"""
    bad_verifier_code: str
    unknown_acr_refused: bool
    response_modes: tuple[str, ...]
    """the first is the default"""
    acr_in_id_token: bool
    """the ID token has `acr`"""
    sid_in_id_token: bool
    """the ID token has `sid` if the person stays signed in"""
    packed_subject: bool
    """`sub` packs the person into one text, and userInfo and entityInfo have the rest (R-12.2)"""
    id_token_encrypted: bool
    """always; else only if the client registered an encryption algorithm"""
    userinfo_signed: bool
    """always; else only if the client registered a signing algorithm"""
    certificates: bool
    """published keys carry x5c, x5t and x5t#S256"""
    metadata: Mapping[str, object] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """members of its discovery document in addition to those of the fields above"""

    @property
    def unasked_scopes(self) -> tuple[str, ...]:
        """The scopes whose blocks a client reads without requesting them."""
        return tuple(scope for resource in self.resources if not resource.scoped for scope in resource.claim_names)


USERINFO: Final = ProtectedResource(
    name="userinfo",
    path="/userinfo",
    metadata_names=("userinfo_endpoint",),
    claim_names=MappingProxyType({"authinfo": "auth_info", "tpauthinfo": "tp_auth_info"}),
)
ENTITY_INFO: Final = ProtectedResource(
    name="entity-info",
    path="/entity-info",
    metadata_names=("entityinfo_endpoint",),
    entity_member="entity_info",
)
AUTHORIZATION_INFO: Final = ProtectedResource(
    name="authorization-info",
    path="/authorization-info",
    metadata_names=("authorization-info_endpoint", "userinfo_endpoint"),
    claim_names=MappingProxyType({"authinfo": "AuthInfo", "tpauthinfo": "TPAuthInfo"}),
    scoped=False,
    encryption_algs=(AGREEMENT, *RSA),
    encryption_encs=tuple(ENCRYPTIONS),
    encrypted_by_enc=False,
)

ALGORITHMS: Final = ("ES256", "ES256K", "ES384", "ES512")
_CLAIMS: Final = (
    "iss", "aud", "sub", "iat", "exp", "nonce", "at_hash", "auth_time", "amr", "acr",
    "sub_type", "sub_attributes", "act", "entity", "auth_info", "tp_auth_info",
)  # fmt: skip

CURRENT: Final = Generation(
    name="current",
    code_prefix="c",
    pushed=True,
    stands_alone=False,
    ends=False,
    successor=None,
    scheme="DPoP",
    resources=(USERINFO,),
    scopes=SCOPES,
    returns_iss=False,
    required_parameters=frozenset({"state", "nonce", "authentication_context_type"}),
    key_binding_required=True,
    pkce_optional=False,
    bad_verifier_code="invalid_request",
    unknown_acr_refused=True,
    assertion_algorithms=ALGORITHMS,
    proof_algorithms=ALGORITHMS,
    assertion_seconds=120,
    assertion_iat_required=True,
    assertion_jti_required=True,
    endpoint_audience=True,
    response_modes=("query",),
    acr_in_id_token=True,
    sid_in_id_token=False,
    packed_subject=False,
    id_token_encrypted=True,
    userinfo_signed=True,
    certificates=False,
    metadata=MappingProxyType(
        {
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "subject_types_supported": ["public"],
            "claims_supported": list(_CLAIMS),
            "claim_types_supported": ["normal"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "id_token_encryption_alg_values_supported": list(WRAPS),
            "id_token_encryption_enc_values_supported": ["A256CBC-HS512", "A256GCM"],
            "userinfo_signing_alg_values_supported": ["ES256"],
            "userinfo_encryption_alg_values_supported": list(WRAPS),
            "userinfo_encryption_enc_values_supported": ["A256GCM", "A256CBC-HS512"],
            "claims_parameter_supported": False,
            "request_parameter_supported": False,
            "request_uri_parameter_supported": False,
        }
    ),
)

INTERMEDIATE: Final = replace(
    CURRENT,
    name="intermediate",
    code_prefix="i",
    resources=(USERINFO, ENTITY_INFO),
    metadata=MappingProxyType(
        {
            **CURRENT.metadata,
            "claims_supported": [*_CLAIMS, "entity_info"],
            "entityinfo_signing_alg_values_supported": ["ES256"],
            "entityinfo_encryption_alg_values_supported": list(WRAPS),
            "entityinfo_encryption_enc_values_supported": ["A256GCM", "A256CBC-HS512"],
        }
    ),
)

FAPI2: Final = replace(
    CURRENT,
    name="fapi2",
    code_prefix="f",
    stands_alone=True,
    returns_iss=True,
    required_parameters=frozenset(),
    key_binding_required=False,
    bad_verifier_code="invalid_grant",
    statuses=MappingProxyType({"invalid_dpop_proof": 400}),
    unknown_acr_refused=False,
    assertion_algorithms=("ES256",),
    proof_algorithms=("ES256",),
    assertion_seconds=600,
    assertion_iat_required=False,
    endpoint_audience=False,
    id_token_encrypted=False,
    userinfo_signed=False,
)

LEGACY: Final = replace(
    CURRENT,
    name="legacy",
    code_prefix="l",
    pushed=False,
    ends=True,
    successor=CURRENT.name,
    scheme="Bearer",
    resources=(AUTHORIZATION_INFO,),
    scopes=("openid", "authinfo", "tpauthinfo"),
    returns_iss=True,
    required_parameters=frozenset(),
    key_binding_required=False,
    pkce_optional=True,
    unknown_acr_refused=False,
    proof_algorithms=(),
    assertion_seconds=600,
    assertion_jti_required=False,
    audience_arrays=True,
    response_modes=("query", "fragment", "form_post"),
    acr_in_id_token=False,
    sid_in_id_token=True,
    packed_subject=True,
    certificates=True,
    metadata=MappingProxyType(
        {
            **CURRENT.metadata,
            "response_modes_supported": ["form_post", "fragment", "query"],
            "claims_supported": [
                "nonce", "aud", "iss", "sub", "exp", "iat", "userInfo", "entityInfo", "AuthInfo", "TPAuthInfo",
                "rt_hash", "at_hash", "amr", "email", "email_verified", "sid", "auth_time", "EntityInfo",
            ],
            "id_token_encryption_enc_values_supported": ["A256CBC-HS512"],
            "userinfo_encryption_alg_values_supported": [
                "A128KW", "A256KW", "ECDH-ES", "RSA-OAEP", "RSA-OAEP-256", "dir",
            ],
            "userinfo_encryption_enc_values_supported": ["A128CBC-HS256", "A128GCM", "A256CBC-HS512", "A256GCM"],
        }
    ),
)  # fmt: skip

GENERATIONS: Final[Mapping[str, Generation]] = MappingProxyType(
    {generation.name: generation for generation in (LEGACY, INTERMEDIATE, CURRENT, FAPI2)}
)
"""by name, oldest first"""
