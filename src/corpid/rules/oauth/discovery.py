"""The discovery document: constants of a generation, and absolute URLs under base_url.

Source: Spec 2.8, D41
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.rules.oauth.generations import Generation

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
AUTHORIZATION_SERVER_PATH: Final = "/.well-known/oauth-authorization-server"
"""of the same document; the path of base_url stands after it (RFC 8414 §3.1)"""
JWKS_PATH: Final = "/.well-known/keys"
PAR_PATH: Final = "/request"
AUTHORIZATION_PATH: Final = "/mga/sps/oauth/oauth20/authorize"
TOKEN_PATH: Final = "/mga/sps/oauth/oauth20/token"


def discovery(
    served: Sequence[Generation],
    *,
    base_url: str,
    name: str,
    acr_prefix: str,
    returns_iss: bool,
    languages: Sequence[str],
) -> dict[str, object]:
    """The discovery document of a deployment.

    It is that of the first generation served, with the resources of the others. `languages` are the tags of those that
    the pages speak.

    Source: OpenID Connect Discovery §3, RFC 8414 §2, Spec 2.8, D41
    """
    first = served[0]
    document: dict[str, object] = {
        "issuer": base_url,
        "authorization_endpoint": base_url + AUTHORIZATION_PATH,
        "token_endpoint": base_url + TOKEN_PATH,
        "jwks_uri": base_url + JWKS_PATH,
        "name": name,
        "scopes_supported": list(first.scopes),
        **first.metadata,
        "token_endpoint_auth_signing_alg_values_supported": list(first.assertion_algorithms),
        "authorization_response_iss_parameter_supported": returns_iss,
    }
    if first.pushed:
        document |= {
            "pushed_authorization_request_endpoint": base_url + PAR_PATH,
            "dpop_signing_alg_values_supported": list(first.proof_algorithms),
            "acr_values_supported": [acr.urn(acr_prefix, level) for level in acr.LEVELS],
            "require_pushed_authorization_requests": all(generation.pushed for generation in served),
            "ui_locales_supported": list(languages),
        }
    for resource in (resource for generation in served for resource in generation.resources):
        for member in resource.metadata_names:
            document.setdefault(member, base_url + resource.path)
    return document
