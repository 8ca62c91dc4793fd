"""A client as it may be registered, keys for its key set, and the rules of a deployment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec

from corpid.jose.encoding import base64url
from corpid.jose.keys import BY_CURVE
from corpid.rules.oauth.client_registration import IssuerRules, RegistrationRules
from corpid.rules.oauth.records import FIRST_ISSUER, Client

if TYPE_CHECKING:
    from corpid.rules.oauth.generations import Generation


def jwk(use: str, kid: str | None, **members: str) -> dict[str, str]:
    numbers = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    x, y = (base64url(number.to_bytes(32)) for number in (numbers.x, numbers.y))
    named = {} if kid is None else {"kid": kid}
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y, "use": use, **named, **members}


def on(curve: str) -> dict[str, str]:
    """A signing key on a curve that is named as in a JWK."""
    algorithm = BY_CURVE[curve]
    numbers = ec.generate_private_key(algorithm.curve).public_key().public_numbers()
    x, y = (base64url(number.to_bytes(algorithm.size)) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": curve, "x": x, "y": y, "use": "sig", "kid": curve}


SIGNING, ENCRYPTION = jwk("sig", "s"), jwk("enc", "e")
CLIENT = Client(
    client_id="rp",
    name="RP",
    redirect_uris=("https://rp.example/callback",),
    jwks=json.dumps({"keys": [SIGNING, ENCRYPTION]}),
)


def rules_of(*, developer_mode: bool = False, pushed: Generation | None = None, **members: Any) -> RegistrationRules:
    """The rules of a deployment with one issuer, which has these and serves this generation."""
    issuer = IssuerRules(served=(pushed,) if pushed else (), **members)
    return RegistrationRules(developer_mode=developer_mode, any_key_url=developer_mode, issuers={FIRST_ISSUER: issuer})
