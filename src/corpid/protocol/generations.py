"""The generations of the interface, as data.

Rules of this file: a generation is one frozen record; a later one is written with `replace`, so
that it reads as the difference from its neighbour. No other module compares or branches on a
generation: what differs is a field here (decisions.md, "Generations").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from corpid.jose.keys import WRAPS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A protected endpoint: where it is, how it is asked, what it answers with."""

    name: str
    path: str
    metadata_name: str
    claim_names: Mapping[str, str]
    """scope → name of the member that carries its block"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Everything in which one generation of the interface differs from another."""

    name: str
    code_prefix: str
    """first character of its codes: a token request has its code's generation"""
    pushed: bool
    scheme: str
    resources: tuple[Resource, ...]
    returns_iss: bool
    required_parameters: frozenset[str]
    key_binding_required: bool
    """PAR needs a DPoP proof or dpop_jkt"""
    bad_verifier_code: str
    statuses: Mapping[str, int]
    """error code → status where it differs from the usual one, at PAR and token"""
    unknown_acr_refused: bool
    assertion_algorithms: tuple[str, ...]
    proof_algorithms: tuple[str, ...]
    assertion_seconds: int
    assertion_iat_required: bool
    assertion_jti_required: bool
    response_modes: tuple[str, ...]
    id_token_encrypted: bool
    """always; else only where the client registered an encryption algorithm"""
    userinfo_signed: bool
    """always; else only where the client registered a signing algorithm"""
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


USERINFO: Final = Resource(
    name="userinfo",
    path="/userinfo",
    metadata_name="userinfo_endpoint",
    claim_names=MappingProxyType({"authinfo": "auth_info", "tpauthinfo": "tp_auth_info"}),
)

ALGORITHMS: Final = ("ES256", "ES256K", "ES384", "ES512")

CURRENT: Final = Generation(
    name="current",
    code_prefix="c",
    pushed=True,
    scheme="DPoP",
    resources=(USERINFO,),
    returns_iss=False,
    required_parameters=frozenset({"state", "nonce", "authentication_context_type"}),
    key_binding_required=True,
    bad_verifier_code="invalid_request",
    statuses=MappingProxyType({}),
    unknown_acr_refused=True,
    assertion_algorithms=ALGORITHMS,
    proof_algorithms=ALGORITHMS,
    assertion_seconds=120,
    assertion_iat_required=True,
    assertion_jti_required=True,
    response_modes=("query",),
    id_token_encrypted=True,
    userinfo_signed=True,
    metadata=MappingProxyType(
        {
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "subject_types_supported": ["public"],
            "claims_supported": [
                "iss",
                "aud",
                "sub",
                "iat",
                "exp",
                "nonce",
                "at_hash",
                "auth_time",
                "amr",
                "acr",
                "sub_type",
                "sub_attributes",
                "act",
                "entity",
                "auth_info",
                "tp_auth_info",
            ],
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

GENERATIONS: Final[Mapping[str, Generation]] = MappingProxyType({CURRENT.name: CURRENT})
