"""A client as it may be registered, and keys for its key set."""

from __future__ import annotations

import json

from cryptography.hazmat.primitives.asymmetric import ec

from corpid.jose.encoding import base64url
from corpid.protocol.records import Client


def jwk(use: str, kid: str | None, **members: str) -> dict[str, str]:
    numbers = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    x, y = (base64url(number.to_bytes(32)) for number in (numbers.x, numbers.y))
    named = {} if kid is None else {"kid": kid}
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y, "use": use, **named, **members}


SIGNING, ENCRYPTION = jwk("sig", "s"), jwk("enc", "e")
CLIENT = Client(
    client_id="rp",
    name="RP",
    redirect_uris=("https://rp.example/callback",),
    jwks=json.dumps({"keys": [SIGNING, ENCRYPTION]}),
)
