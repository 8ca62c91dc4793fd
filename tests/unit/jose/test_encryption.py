"""Compact JWE towards a client's key (RFC 7516, RFC 7518 §4.6, D21)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from joserfc import jwe
from joserfc.errors import JoseError

from corpid.jose.encryption import CONTENT_ENCRYPTIONS, ENCRYPTIONS, encrypt
from corpid.jose.keys import EncryptionKey, parse_client_key_set
from corpid.rules.oauth.generations import GENERATIONS, LEGACY
from tests.unit.jose.signed import key, key_set, public_jwk, rsa_key, sign

WRAPS = ["ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"]
RSA = ["RSA-OAEP", "RSA-OAEP-256"]
ENCS = ["A128CBC-HS256", "A128GCM", "A256CBC-HS512", "A256GCM"]
REGISTRY = jwe.JWERegistry(algorithms=[*WRAPS, "ECDH-ES", *RSA, *ENCS])


def encryption_key(curve: str, wrap: str) -> EncryptionKey:
    found = parse_client_key_set(key_set(public_jwk(key(curve), use="enc", kid="enc-1", alg=wrap))).encryption
    assert found is not None
    return found


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


def prepared(alg: str, *, named: bool, curve: str = "P-256", bits: int = 2048) -> tuple[EncryptionKey, Any]:
    """A key of a client's set for this alg, which its JWK names or not, and the private one."""
    private = rsa_key(bits) if alg in RSA else key(curve)
    members = {"alg": alg} if named else {}
    found = parse_client_key_set(key_set(public_jwk(private, use="enc", kid="enc-1", **members))).encryption_for(alg)
    assert found is not None
    return found, private


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("enc", ENCS)
@pytest.mark.parametrize(
    ("alg", "kind", "members"),
    [
        ("ECDH-ES", {"curve": "P-256"}, {"epk"}),
        ("ECDH-ES", {"curve": "P-384"}, {"epk"}),
        ("ECDH-ES", {"curve": "P-521"}, {"epk"}),
        ("RSA-OAEP", {"bits": 2048}, set()),
        ("RSA-OAEP-256", {"bits": 2048}, set()),
        ("RSA-OAEP-256", {"bits": 3072}, set()),
    ],
)
def test_what_legacy_publishes_is_opened_by_the_holder_of_the_private_key(
    alg: str, kind: dict[str, Any], members: set[str], enc: str, *, named: bool
) -> None:
    """Spec 2.8; RFC 7518 §4.3, §4.6, §5: another library reads it."""
    public, private = prepared(alg, named=named, **kind)
    inner = sign({"sub": "somebody"})
    text = encrypt(inner, public, enc)
    opened = jwe.decrypt_compact(text, private, registry=REGISTRY)
    assert opened.plaintext == inner.encode()
    header = opened.headers()
    assert {name: header[name] for name in ("alg", "enc", "kid", "typ", "cty")} == {
        "alg": alg, "enc": enc, "kid": "enc-1", "typ": "JWT", "cty": "JWT",
    }  # fmt: skip
    assert header.keys() - {"alg", "enc", "kid", "typ", "cty"} == members
    assert (text.split(".")[1] == "") == (alg == "ECDH-ES")


@pytest.mark.parametrize("alg", [*WRAPS, "ECDH-ES", *RSA])
@pytest.mark.parametrize("enc", ENCS)
def test_nothing_random_is_used_twice(alg: str, enc: str) -> None:
    """RFC 7518 §5.3, §8.2: iv, content key and ephemeral key are new each time, so the same text differs throughout."""
    public, _ = prepared(alg, named=True)
    texts = [encrypt("a.b.c", public, enc).split(".") for _ in range(50)]
    for part, name in enumerate(("header", "key", "iv", "ciphertext", "tag")):
        alike = (name == "header" and alg in RSA) or (name == "key" and alg == "ECDH-ES")
        assert len({text[part] for text in texts}) == (1 if alike else 50), name


def test_what_was_changed_on_the_way_is_not_opened() -> None:
    """RFC 7516 §5.2: tag and header are covered, with each content encryption."""
    for enc in ENCS:
        public, private = prepared("RSA-OAEP-256", named=True)
        header, wrapped, iv, sealed, tag = encrypt("a.b.c", public, enc).split(".")
        for changed in ((header, wrapped, iv, "A" + sealed[1:], tag), (header, wrapped, iv, sealed, "A" + tag[1:])):
            if ".".join(changed) != f"{header}.{wrapped}.{iv}.{sealed}.{tag}":
                with pytest.raises(JoseError):
                    jwe.decrypt_compact(".".join(changed), private, registry=REGISTRY)


def test_legacy_offers_of_what_it_publishes_whatever_needs_no_shared_secret() -> None:
    """Spec 2.8, Spec "Generations": dir, A128KW and A256KW need one, which no client has."""
    (resource,) = LEGACY.resources
    published = LEGACY.metadata["userinfo_encryption_alg_values_supported"]
    assert {*resource.encryption_algs, "dir", "A128KW", "A256KW"} == set(published)  # type: ignore[call-overload]
    assert set(resource.encryption_encs) == set(ENCRYPTIONS) == set(ENCS)
    assert set(ENCS) == set(LEGACY.metadata["userinfo_encryption_enc_values_supported"])  # type: ignore[call-overload]


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
