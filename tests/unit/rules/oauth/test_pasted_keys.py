"""Keys as people paste them: what becomes a key set, and what never stays (D27, D66)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from joserfc.jwk import ECKey, RSAKey

from corpid.jose.keys import parse_client_key_set
from corpid.rules.oauth.client_registration import public_key_set
from corpid.rules.oauth.pasted_keys import describe_content, read_pasted


def key(use: str = "sig", *, private: bool = False, **more: object) -> dict[str, Any]:
    return {**ECKey.generate_key("P-256").as_dict(private=private), "use": use, "kid": use, **more}


def pem(private: Any) -> str:
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return str(public.decode())


def certificate() -> str:
    private, name = ec.generate_private_key(ec.SECP384R1()), x509.Name([])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, private.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(private, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def keys_of(jwks: str) -> list[dict[str, Any]]:
    return list(json.loads(jwks)["keys"])


def test_a_public_key_set_stays_as_it_is() -> None:
    """D27: nothing to remark on."""
    text = json.dumps({"keys": [key(), key("enc")]})
    assert read_pasted(f"\n{text} ") == read_pasted(text)
    assert (read_pasted(text).jwks, read_pasted(text).completed, read_pasted(text).fault) == (text, False, "")


@pytest.mark.parametrize("form", ["one key", "a list", "named keys"])
def test_other_forms_of_keys_become_a_key_set(form: str) -> None:
    """RFC 7517 §5; the last one is how the examples keep theirs. Nothing was chosen."""
    one = key()
    pasted = read_pasted(json.dumps({"one key": one, "a list": [one], "named keys": {"signing": one}}[form]))
    assert keys_of(pasted.jwks) == [one]
    assert not pasted.completed


@pytest.mark.parametrize("form", ["key set", "one key", "a list", "named keys"])
def test_private_members_are_taken_out(form: str) -> None:
    """RFC 7517 §9.3: only the public part is left."""
    one = key(private=True)
    pasted = read_pasted(
        json.dumps({"key set": {"keys": [one]}, "one key": one, "a list": [one], "named keys": {"signing": one}}[form])
    )
    assert pasted.private
    assert keys_of(pasted.jwks) == [{name: value for name, value in one.items() if name != "d"}]
    assert one["d"] not in repr(pasted)


def test_a_public_key_is_not_called_private_for_a_name() -> None:
    """D85: a private member without a value, one of another kind of key, and one beside the keys."""
    one = {**key(), "d": None, "k": "any"}
    for text in (json.dumps(one), json.dumps([one]), json.dumps({"keys": [one], "p": "policy", "d": "1"})):
        assert not read_pasted(text).private
        assert keys_of(read_pasted(text).jwks) == [one]


def test_a_private_key_is_found_wherever_it_is() -> None:
    """RFC 7517 §9.3."""
    hidden = {**key(), "x5c": [{"next": key(private=True)}]}
    assert read_pasted(json.dumps({"keys": [hidden]})).private
    assert read_pasted(json.dumps({"keys": [hidden]})).jwks == ""


def test_a_private_key_without_its_kind_is_not_shown_again() -> None:
    """RFC 7517 §9.3: a mistake in a key makes it no less private."""
    bare = {name: value for name, value in key(private=True).items() if name not in {"kty", "crv"}}
    for pasted in (bare, {"keys": [[bare]]}, {"sig": bare}, {"keys": [], "private": bare}):
        assert read_pasted(json.dumps(pasted)).private
        assert str(bare["d"]) not in read_pasted(json.dumps(pasted)).jwks
        assert str(bare["d"])[:20] not in describe_content(json.dumps(pasted))


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_of_a_private_pem_nothing_is_left(form: PrivateFormat) -> None:
    """RFC 7468 §10: how to get its public part is said."""
    private = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, form, NoEncryption()).decode()
    pasted = read_pasted(private)
    assert (pasted.private, pasted.jwks) == (True, "")
    assert "-pubout" in pasted.fault


def test_broken_json_with_a_private_key_leaves_nothing() -> None:
    """RFC 7517 §9.3."""
    text = json.dumps({"keys": [key(private=True)]})[:-1]
    assert (read_pasted(text).private, read_pasted(text).jwks) == (True, "")


def test_a_private_key_inside_another_member_leaves_nothing() -> None:
    """RFC 7517 §9.3."""
    text = json.dumps({"keys": [{**key(), "more": key(private=True)}]})
    assert (read_pasted(text).private, read_pasted(text).jwks) == (True, "")


def test_pem_text_becomes_a_key_set_that_can_be_registered() -> None:
    """RFC 7468 §13: public keys and certificates, the first to sign, the second to encrypt; kid by RFC 7638 §3."""
    pasted = read_pasted(pem(ec.generate_private_key(ec.SECP256R1())) + certificate())
    found = parse_client_key_set(pasted.jwks)
    assert [each.verifier.algorithm.name for each in found.signing] == ["ES256"]
    assert found.encryption is not None
    assert found.encryption.curve_name == "P-384"
    assert pasted.completed
    assert [each["kid"] for each in keys_of(pasted.jwks)] == [
        ECKey.import_key(each).thumbprint() for each in keys_of(pasted.jwks)
    ]
    assert read_pasted(pasted.jwks).jwks == pasted.jwks
    assert not read_pasted(pasted.jwks).completed, "what was shown is registered as it is"


def test_one_key_of_pem_text_is_taken_to_sign_and_the_one_to_encrypt_is_asked_for() -> None:
    """RFC 7468 §13: what was pasted stays, so that the other key can be pasted below it."""
    text = pem(ec.generate_private_key(ec.SECP256R1()))
    pasted = read_pasted(text)
    assert "paste the one to encrypt below it" in pasted.fault
    assert pasted.jwks == text.strip()


def test_an_rsa_key_encrypts() -> None:
    """D22: legacy encrypts to RSA keys. Their kid, too, is the thumbprint (RFC 7638 §3)."""
    text = pem(ec.generate_private_key(ec.SECP256R1())) + pem(rsa.generate_private_key(65537, 2048))
    pasted = read_pasted(text)
    assert set(parse_client_key_set(pasted.jwks).by_wrap) == {"RSA-OAEP", "RSA-OAEP-256"}
    assert keys_of(pasted.jwks)[1]["kid"] == RSAKey.import_key(keys_of(pasted.jwks)[1]).thumbprint()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "neither a PEM public key nor a JSON key set"),
        ('"hello"', "neither a PEM public key nor a JSON key set"),
        ("[" * 20000, "neither a PEM public key nor a JSON key set"),
        ('{"keys":[],"keys":[]}', "neither a PEM public key nor a JSON key set"),
        ('{"hello": 1}', "no array named keys"),
        ("-----BEGIN PUBLIC KEY-----\nMFk", "no complete block"),
        ("-----BEGIN PUBLIC KEY-----\nMFk=\n-----END PUBLIC KEY-----", "block 1 (PUBLIC KEY) is no public key"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "neither an EC nor an RSA key"),
        (pem(ec.generate_private_key(ec.SECP224R1())), "secp224r1"),
    ],
)
def test_what_holds_no_key_says_so_and_stays(text: str, said: str) -> None:
    """D66: what was typed is kept."""
    pasted = read_pasted(text)
    assert said in pasted.fault
    assert pasted.jwks == text.strip()


@pytest.mark.parametrize(("members", "use"), [({"alg": "ES256"}, "sig"), ({"key_ops": ["deriveBits"]}, "enc")])
def test_a_missing_use_follows_from_alg_or_key_ops(members: dict[str, object], use: str) -> None:
    """RFC 7517 §4.2-4.4."""
    one = {**key(), **members}
    del one["use"]
    pasted = read_pasted(json.dumps({"keys": [one]}))
    assert keys_of(pasted.jwks)[0]["use"] == use
    assert pasted.completed


def test_what_came_instead_is_repeated_in_short_and_without_a_private_key() -> None:
    """D48, D66."""
    assert describe_content("<html>\n  <title>Log in</title>") == "<html> <title>Log in</title>"
    assert len(describe_content("x" * 1000)) < 100
    assert "d" not in describe_content(json.dumps(key(private=True))).split()
    assert describe_content("") == "nothing"


def test_a_byte_order_mark_before_it_is_ignored_and_hides_no_private_key() -> None:
    """RFC 8259 §8.1, D27."""
    public = read_pasted("\ufeff" + json.dumps({"keys": [key(), key("enc")]}))
    assert not public.fault
    assert [each["use"] for each in keys_of(public.jwks)] == ["sig", "enc"]
    secret = json.dumps({"keys": [key(private=True), key("enc")]})
    assert read_pasted("\ufeff" + secret).private
    assert "d" not in keys_of(public_key_set("\ufeff" + secret))[0]


@pytest.mark.parametrize(
    "text",
    [
        '{kty: "EC", d: "SECRETSECRETSECRETSECRET"}',
        "kty: EC\nd: SECRETSECRETSECRETSECRET\n",
        "-----begin private key-----\nSECRETSECRETSECRETSECRET",
        "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 14\nSECRETSECRETSECRETSECRET",
    ],
)
def test_a_private_key_in_another_notation_is_not_kept_either(text: str) -> None:
    """D27, D48: what a form shows again, and keeps for ten minutes, has nothing private."""
    found = read_pasted(text)
    assert (found.private, found.jwks) == (True, "")
    assert found.fault


@pytest.mark.parametrize(
    "text", ["<html>d: no</html>", "did:example:0123456789abcdef", "https://x.example/a?id=SOMETHINGLONGHERE12"]
)
def test_other_text_is_not_taken_for_a_private_key(text: str) -> None:
    assert not read_pasted(text).private
