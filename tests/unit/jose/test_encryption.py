"""Compact JWE towards a client's key (RFC 7516, RFC 7518 §4.6, D21)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode

import pytest
from joserfc import jwe

from corpid.jose.encryption import CONTENT_ENCRYPTIONS, encrypt
from corpid.jose.keys import EncryptionKey, parse_client_key_set
from corpid.protocol.generations import GENERATIONS
from tests.unit.jose.signed import key, key_set, public_jwk, sign

WRAPS = ["ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"]
REGISTRY = jwe.JWERegistry(algorithms=[*WRAPS, *CONTENT_ENCRYPTIONS])


def encryption_key(curve: str, wrap: str) -> EncryptionKey:
    prepared = parse_client_key_set(key_set(public_jwk(key(curve), use="enc", kid="enc-1", alg=wrap)))
    assert prepared.encryption is not None
    return prepared.encryption


@pytest.mark.parametrize("enc", CONTENT_ENCRYPTIONS)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("curve", ["P-256", "P-384", "P-521"])
def test_the_holder_of_the_private_key_opens_what_was_encrypted(curve: str, wrap: str, enc: str) -> None:
    inner = sign({"sub": "somebody"})
    text = encrypt(inner, encryption_key(curve, wrap), enc)
    opened = jwe.decrypt_compact(text, key(curve), registry=REGISTRY)
    assert opened.plaintext == inner.encode()
    header = opened.headers()
    assert header.pop("epk")["crv"] == curve
    assert header == {"alg": wrap, "enc": enc, "kid": "enc-1", "typ": "JWT", "cty": "JWT"}


def test_each_token_has_its_own_ephemeral_key_and_holds_no_private_one() -> None:
    texts = [encrypt("a.b.c", encryption_key("P-256", WRAPS[0]), "A256GCM") for _ in range(2)]
    headers = [json.loads(urlsafe_b64decode(text.partition(".")[0] + "===")) for text in texts]
    assert headers[0]["epk"] != headers[1]["epk"]
    assert all(set(header["epk"]) == {"kty", "crv", "x", "y"} for header in headers)


def test_the_content_encryptions_are_those_that_are_registered_and_published() -> None:
    """D21, D41: three lists of one thing. What LEGACY publishes is given by Spec 2.8, and not all of it is offered."""
    for generation in (each for each in GENERATIONS.values() if each.pushed):
        for what in ("id_token", "userinfo"):
            assert set(WRAPS) == set(generation.metadata[f"{what}_encryption_alg_values_supported"])  # type: ignore[call-overload]
            assert set(CONTENT_ENCRYPTIONS) == set(generation.metadata[f"{what}_encryption_enc_values_supported"])  # type: ignore[call-overload]
