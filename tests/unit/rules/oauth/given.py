"""A client, and a request of it that holds, for the tests of the law."""

from __future__ import annotations

from typing import Any, Final

from corpid.rules.oauth.authorization_request import AuthorizationRequest
from corpid.rules.oauth.generations import CURRENT
from corpid.rules.oauth.records import Client, Grant

NOW: Final = 1_800_000_000.0
ISSUER: Final = "https://op.example"
PREFIX: Final = "urn:idp:authentication:loa:"
VERIFIER: Final = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE: Final = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
"""of VERIFIER: RFC 7636 appendix B"""
JKT: Final = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
SCOPES: Final = ("openid", "authinfo", "tpauthinfo", "user.name")

CLIENT: Final = Client(
    client_id="rp-1",
    name="Relying party",
    redirect_uris=("https://rp.example/callback", "https://rp.example/other?tenant=1"),
    jwks='{"keys":[]}',
    scopes=SCOPES,
    context_types=("APP_AUTHENTICATION_DEFAULT", "APP_PAYMENT_DEFAULT"),
)

PARAMETERS: Final = {
    "client_id": "rp-1",
    "response_type": "code",
    "redirect_uri": "https://rp.example/callback",
    "scope": "openid authinfo",
    "state": "the state",
    "nonce": "the nonce",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
    "authentication_context_type": "APP_AUTHENTICATION_DEFAULT",
}


def request(**members: Any) -> AuthorizationRequest:
    return AuthorizationRequest(
        **{
            "client_id": "rp-1",
            "generation": CURRENT.name,
            "redirect_uri": "https://rp.example/callback",
            "scopes": ("openid",),
            "code_challenge": CHALLENGE,
            "acr": PREFIX + "2",
            **members,
        }
    )


def grant(**members: Any) -> Grant:
    return Grant(
        **{
            "client_id": "rp-1",
            "generation": CURRENT.name,
            "redirect_uri": "https://rp.example/callback",
            "scopes": ("openid", "authinfo"),
            "nonce": "the nonce",
            "jkt": JKT,
            "user_id": "user-1",
            "entity_id": "200000001A",
            "auth_time": int(NOW) - 60,
            "amr": ("pwd", "otp"),
            "acr": PREFIX + "2",
            **members,
        }
    )
