"""The discovery document: constants of a generation, and absolute URLs under base_url (Spec 2.8, D41)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.protocol import assurance
from corpid.protocol.scopes import SCOPES

if TYPE_CHECKING:
    from corpid.protocol.generations import Generation

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
JWKS_PATH: Final = "/.well-known/keys"
PAR_PATH: Final = "/request"
AUTHORIZATION_PATH: Final = "/mga/sps/oauth/oauth20/authorize"
TOKEN_PATH: Final = "/mga/sps/oauth/oauth20/token"


def discovery(
    generation: Generation, *, base_url: str, name: str, acr_prefix: str, returns_iss: bool
) -> dict[str, object]:
    """The discovery document of a deployment (OpenID Connect Discovery §3, RFC 8414 §2, Spec 2.8, D41)."""
    document: dict[str, object] = {
        "issuer": base_url,
        "authorization_endpoint": base_url + AUTHORIZATION_PATH,
        "token_endpoint": base_url + TOKEN_PATH,
        "pushed_authorization_request_endpoint": base_url + PAR_PATH,
        "jwks_uri": base_url + JWKS_PATH,
    }
    document |= {resource.metadata_name: base_url + resource.path for resource in generation.resources}
    document |= {"name": name, "scopes_supported": list(SCOPES), **generation.metadata}
    return document | {
        "token_endpoint_auth_signing_alg_values_supported": list(generation.assertion_algorithms),
        "dpop_signing_alg_values_supported": list(generation.proof_algorithms),
        "acr_values_supported": [assurance.urn(acr_prefix, level) for level in assurance.LEVELS],
        "require_pushed_authorization_requests": generation.pushed,
        "authorization_response_iss_parameter_supported": returns_iss,
    }
