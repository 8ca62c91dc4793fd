"""Public keys of others: a proof's own key, and the key sets of clients.

RFC 7517, RFC 7518 §6.2, D7, D8, D21, D27
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey

from corpid.jose.encoding import MalformedToken
from corpid.jose.keys import (
    WRAPS,
    KeySetError,
    UnusableKey,
    import_public_key,
    import_rsa_key,
    import_verifier,
    parse_client_key_set,
    private_members,
    thumbprint,
)
from tests.unit.jose.signed import CURVES, b64, key, key_set, private_jwk, public_jwk, rsa_key

SIZES = {"P-256": 32, "secp256k1": 32, "P-384": 48, "P-521": 66}
P256 = public_jwk(key())


@pytest.mark.parametrize(("alg", "curve"), CURVES.items())
def test_a_public_key_is_imported_with_the_algorithm_of_its_curve(alg: str, curve: str) -> None:
    public, algorithm = import_public_key(public_jwk(key(curve)))
    raw: Any = key(curve).raw_value
    assert public.public_numbers() == raw.public_key().public_numbers()
    assert (algorithm.name, algorithm.size) == (alg, SIZES[curve])


NOT_KEYS: dict[str, tuple[dict[str, object], str]] = {
    "nothing": ({}, "not an EC key"),
    "an RSA key": ({**P256, "kty": "RSA"}, "not an EC key"),
    "kty in lower case": ({**P256, "kty": "ec"}, "not an EC key"),
    "an OKP key": ({"kty": "OKP", "crv": "Ed25519", "x": P256["x"]}, "not an EC key"),
    "a curve that nobody has": ({**P256, "crv": "P-999"}, "not an EC key"),
    "a curve that is a list": ({**P256, "crv": ["P-256"]}, "not an EC key"),
    "a curve that is an object": ({**P256, "crv": {}}, "not an EC key"),
    "no x": ({name: value for name, value in P256.items() if name != "x"}, "the key has no x"),
    "y that is a number": ({**P256, "y": 5}, "the key has no y"),
    "x of 31 bytes": ({**P256, "x": b64(bytes(31))}, "x is not 32 bytes"),
    "x of 33 bytes, a zero in front": ({**P256, "x": b64(b"\0" + bytes(32))}, "x is not 32 bytes"),
    "an empty y": ({**P256, "y": ""}, "y is not 32 bytes"),
    "coordinates of another curve": ({**P256, "crv": "P-384"}, "x is not 48 bytes"),
    "a point of another curve of the same size": ({**P256, "crv": "secp256k1"}, "no point on the curve"),
    "x and y exchanged": ({**P256, "x": P256["y"], "y": P256["x"]}, "no point on the curve"),
    "the point (0, 0)": ({**P256, "x": b64(bytes(32)), "y": b64(bytes(32))}, "no point on the curve"),
    "coordinates above the field": ({**P256, "x": b64(b"\xff" * 32), "y": b64(b"\xff" * 32)}, "no point on the curve"),
}


@pytest.mark.parametrize(("jwk", "reason"), NOT_KEYS.values(), ids=NOT_KEYS.keys())
def test_what_is_no_key_on_one_of_the_four_curves_is_refused(jwk: dict[str, object], reason: str) -> None:
    """By both libraries."""
    for imported in (import_public_key, import_verifier):
        with pytest.raises(UnusableKey, match=reason):
            imported(jwk)


def test_coordinates_are_canonical_base64url() -> None:
    """Else one key would have two thumbprints (RFC 7638 §7, D7)."""
    with pytest.raises(MalformedToken):
        import_public_key({**P256, "x": P256["x"] + "="})


def key_with_leading_zero() -> ECKey:
    """A key whose x begins with a zero byte, which some libraries leave out."""
    return next(
        made for made in iter(lambda: ECKey.generate_key("P-256"), None) if str(made.as_dict()["x"]).startswith("AA")
    )


def test_leading_zeros_of_a_coordinate_are_kept_and_may_not_be_left_out() -> None:
    """RFC 7518 §6.2.1.2: the length is that of the curve."""
    made = key_with_leading_zero()
    jwk = public_jwk(made)
    import_public_key(jwk)
    assert thumbprint(jwk) == made.thumbprint()
    short = int.from_bytes(import_public_key(jwk)[0].public_numbers().x.to_bytes(32)).to_bytes(31)
    with pytest.raises(UnusableKey, match="x is not 32 bytes"):
        import_public_key({**jwk, "x": b64(short)})


@pytest.mark.parametrize("curve", CURVES.values())
def test_the_thumbprint_is_that_of_another_library_whatever_else_the_key_holds(curve: str) -> None:
    """RFC 7638 §3: the required members only (D7)."""
    jwk = public_jwk(key(curve), use="sig", kid="any", alg="any", extra={"a": 1})
    assert thumbprint(jwk) == key(curve).thumbprint()
    assert len(thumbprint(jwk)) == 43


OF_RSA = ("d", "p", "q", "dp", "dq", "qi", "oth")


@pytest.mark.parametrize(
    ("kind", "member"),
    [("EC", "d"), ("OKP", "d"), ("oct", "k"), *(("RSA", each) for each in OF_RSA),
     *((kind, each) for kind in (None, "other", ["EC"]) for each in (*OF_RSA, "k"))],
)  # fmt: skip
def test_private_and_symmetric_members_are_recognised(kind: object, member: str) -> None:
    """D7, RFC 7518 §6: by the key's kind; of an unknown kind, all of them; whatever their value."""
    for value in ("x", "", False, list[object]()):
        assert private_members({"kty": kind, member: value}) == {member}, value
    assert private_members({"kty": kind, member: None}) == frozenset()


@pytest.mark.parametrize(("kind", "member"), [("EC", "k"), ("EC", "p"), ("RSA", "k"), ("oct", "d")])
def test_a_member_that_is_private_in_another_kind_says_nothing(kind: str, member: str) -> None:
    """D85."""
    assert private_members({"kty": kind, member: "x"}) == frozenset()


@pytest.mark.parametrize("member", ["d", "alg", "kid", "x5c", "key_ops", "ext"])
def test_a_member_of_a_key_that_is_null_counts_as_absent(member: str) -> None:
    """D85."""
    text = json.dumps({"keys": [{**sig(kid="a"), member: None}]})
    read = parse_client_key_set(text)
    assert (len(read.signing), read.problems) == (1, ())


def sig(curve: str = "P-256", number: int = 0, **members: Any) -> dict[str, Any]:
    return public_jwk(key(curve, number), use="sig", **members)


def enc(curve: str = "P-256", number: int = 0, **members: Any) -> dict[str, Any]:
    return public_jwk(key(curve, number), **{"use": "enc", "kid": f"{curve}-{number}", **members})


def rsa(bits: int = 2048, number: int = 0, **members: Any) -> dict[str, Any]:
    described = {"use": "enc", "kid": f"RSA-{number}", **members}
    return public_jwk(rsa_key(bits, number), **{name: value for name, value in described.items() if value is not None})


def test_a_key_set_is_sorted_into_signing_keys_and_one_encryption_key() -> None:
    """A key without alg: its curve decides (D8); without alg to encrypt: A256KW (D21)."""
    prepared = parse_client_key_set(key_set(sig(kid="a"), sig("P-521", alg="ES512"), enc()))
    assert [(one.kid, one.verifier.algorithm.name) for one in prepared.signing] == [("a", "ES256"), (None, "ES512")]
    assert prepared.encryption is not None
    assert (prepared.encryption.kid, prepared.encryption.wrap) == ("P-256-0", "ECDH-ES+A256KW")
    assert prepared.problems == ()


def test_an_empty_key_set_is_a_key_set_and_nothing_in_it_is_usable() -> None:
    prepared = parse_client_key_set(b'{"keys":[],"and":"more"}')
    assert (prepared.signing, prepared.encryption, prepared.problems) == ((), None, ())


def test_several_keys_with_one_kid_are_all_kept() -> None:
    """D8: every fitting one is tried."""
    assert len(parse_client_key_set(key_set(sig(kid="a"), sig(number=1, kid="a"), sig("P-384", kid="a"))).signing) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "no array named keys"),
        ('{"keys":{}}', "no array named keys"),
        ('{"keys":null}', "no array named keys"),
        ('{"keys":[],"keys":[]}', "repeated"),
        ('{"keys":[{"kty":"EC","kty":"EC"}]}', "repeated"),
        (b'\xff{"keys":[]}', "not JSON"),
        (json.dumps(P256), "no array named keys"),
    ],
)
def test_what_is_no_key_set_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(KeySetError, match=reason):
        parse_client_key_set(text)


def test_a_key_set_holds_twenty_keys_at_most() -> None:
    """D27. Unusable ones count: the limit bounds the work."""
    assert len(parse_client_key_set(key_set(*[sig()] * 20)).signing) == 20
    with pytest.raises(KeySetError, match="holds 21 keys, more than 20"):
        parse_client_key_set(key_set(*[sig()] * 20, {}))


LEFT_OUT: dict[str, tuple[object, str]] = {
    "a text": ("key", "not a JSON object"),
    "null": (None, "not a JSON object"),
    "no use": (P256, "use is neither sig nor enc"),
    "a use of its own": ({**P256, "use": "both"}, "use is neither sig nor enc"),
    "a use that is a list": ({**P256, "use": ["sig"]}, "use is neither sig nor enc"),
    "a kid that is a number": (sig(kid=1), "kid is not a string of printable ASCII characters"),
    "a kid with an escape sequence": (sig(kid="\x1b[2J"), "kid is not a string of printable ASCII characters"),
    "a kid with a C1 control": (enc() | {"kid": "\x9b31m"}, "kid is not a string of printable ASCII characters"),
    "a kid with a bidirectional control": (sig(kid="a\u202eb"), "kid is not a string of printable ASCII characters"),
    "a kid of several lines": (sig(kid="a\nb"), "kid is not a string of printable ASCII characters"),
    "a kid of 257 characters": (sig(kid="k" * 257), "256 at most"),
    "another curve's alg": (sig(alg="ES384"), "does not fit the curve P-256: ES256 is expected"),
    "the alg of the curve of the same size": (sig(alg="ES256K"), "does not fit the curve P-256"),
    "an alg that is a deep list": (sig(alg=[[[[]]]]), "does not fit the curve"),
    "an RSA key": ({"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig"}, "not an EC key"),
    "a broken point": (sig() | {"x": b64(bytes(32))}, "no point on the curve"),
    "to encrypt, without kid": (public_jwk(key(), use="enc"), "an encryption key needs a kid"),
    "to encrypt, on secp256k1": (enc("secp256k1"), "an encryption key is on one of P-256, P-384, P-521"),
    "to encrypt, an EC key by RSA": (enc(alg="RSA-OAEP"), "alg is not one of ECDH-ES\\+A128KW"),
    "to encrypt, an RSA key by agreement": (rsa(alg="ECDH-ES"), "alg is not one of RSA-OAEP, RSA-OAEP-256"),
    "to encrypt, an RSA key of old": (rsa(alg="RSA1_5"), "alg is not one of RSA-OAEP, RSA-OAEP-256"),
    "to encrypt, an RSA key without kid": (rsa(kid=None), "kid"),
    "to encrypt, a short RSA key": (
        {**rsa(), "n": b64(bytes([255]) * 128)},
        "an RSA key has 2048 to 8192 bits, and this one 1024",
    ),
    "to encrypt, with a secret": (
        {"kty": "oct", "use": "enc", "kid": "k", "alg": "dir"},
        "alg is not one of",
    ),
    "to encrypt, an alg that is an object": (enc(alg={"a": 1}), "alg is not one of"),
    "to encrypt, a curve that is a list": (enc() | {"crv": []}, "not an EC key"),
    "to encrypt, a broken point": (enc() | {"y": b64(bytes(32))}, "no point on the curve"),
}


@pytest.mark.parametrize(("jwk", "reason"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_an_unusable_key_is_left_out_named_by_its_place_and_harms_no_other(jwk: object, reason: str) -> None:
    """D27."""
    prepared = parse_client_key_set(key_set(sig(kid="good"), jwk, enc(number=1)))
    assert [one.kid for one in prepared.signing] == ["good"]
    assert prepared.encryption is not None
    assert prepared.encryption.kid == "P-256-1"
    (problem,) = prepared.problems
    assert problem.startswith("key 2: ")
    assert problem.isascii()
    assert problem.isprintable()
    with pytest.raises(UnusableKey, match=reason):
        raise UnusableKey(problem)


def test_a_kid_may_have_256_characters_of_printable_ascii() -> None:
    kid = "".join(map(chr, range(0x20, 0x7F))).ljust(256, "k")
    prepared = parse_client_key_set(key_set(sig(kid=kid)))
    assert ([one.kid for one in prepared.signing], prepared.faults) == ([kid], ())


def test_private_members_are_dropped_and_reported_and_the_public_key_works() -> None:
    """D27: the client is told to replace a key that it gave away."""
    given = key_set(private_jwk(key(), use="sig", kid="mine"), private_jwk(key("P-384"), use="enc", kid="secret"))
    prepared = parse_client_key_set(given)
    assert len(prepared.signing) == 1
    assert prepared.encryption is not None
    assert isinstance(prepared.encryption.public, ec.EllipticCurvePublicKey)
    assert prepared.problems == (
        "mine: private member d was dropped; replace this key",
        "secret: private member d was dropped; replace this key",
    )
    assert str(key().as_dict(private=True)["d"]) not in repr(prepared.problems)


A128, A192, A256 = "ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"
CHOSEN = {
    "the strongest curve": ([enc(), enc("P-521"), enc("P-384")], "P-521-0"),
    "the curve before the wrap": ([enc(alg=A256), enc("P-384", alg=A128)], "P-384-0"),
    "the strongest wrap of one curve": ([enc(alg=A128), enc(number=1, alg=A256), enc(number=2, alg=A192)], "P-256-1"),
    "no alg counts as A256KW": ([enc(alg=A192), enc(number=1), enc(number=2, alg=A128)], "P-256-1"),
    "the first of equals": ([enc(number=2), enc(number=1, alg=A256), enc(number=0)], "P-256-2"),
    "usable ones only": ([enc("P-521", alg="ECDH-ES"), enc("P-384")], "P-384-0"),
}


FOR_A128 = {
    "the key that names it": ([enc(alg=A256), enc(number=1, alg=A128)], "P-256-1"),
    "a key that names none": ([enc(alg=A256), enc(number=1)], "P-256-1"),
    "the strongest curve of both": ([enc(alg=A128), enc("P-384"), enc("P-521", alg=A256)], "P-384-0"),
    "the first of equals": ([enc(number=1), enc(alg=A128)], "P-256-1"),
}


@pytest.mark.parametrize(("given", "kid"), FOR_A128.values(), ids=FOR_A128.keys())
def test_a_registered_alg_takes_the_strongest_key_that_has_it_or_none(given: list[dict[str, Any]], kid: str) -> None:
    """D21: and the key is used with that alg."""
    chosen = parse_client_key_set(key_set(*given)).encryption_for(A128)
    assert chosen is not None
    assert (chosen.kid, chosen.wrap) == (kid, A128)


def test_without_a_registered_alg_the_default_key_is_used() -> None:
    """D21."""
    prepared = parse_client_key_set(key_set(enc(alg=A128), enc("P-384", alg=A192)))
    assert prepared.encryption_for(None) is prepared.encryption
    assert prepared.encryption_for(A256) is None
    assert parse_client_key_set(key_set(sig())).encryption_for(None) is None


@pytest.mark.parametrize(("given", "kid"), CHOSEN.values(), ids=CHOSEN.keys())
def test_the_encryption_key_is_chosen_by_curve_then_wrap_then_order(given: list[dict[str, Any]], kid: str) -> None:
    """D21."""
    prepared = parse_client_key_set(key_set(*given))
    assert prepared.encryption is not None
    assert prepared.encryption.kid == kid


FOR_EACH_ALG = {
    "an EC key without alg": ([enc()], {*WRAPS, "ECDH-ES"}, "ECDH-ES+A256KW"),
    "an EC key for agreement alone": ([enc(alg="ECDH-ES")], {"ECDH-ES"}, None),
    "an RSA key without alg": ([rsa()], {"RSA-OAEP", "RSA-OAEP-256"}, None),
    "an RSA key for one alg": ([rsa(alg="RSA-OAEP-256")], {"RSA-OAEP-256"}, None),
    "one of each kind": ([rsa(), enc(alg=A128)], {"RSA-OAEP", "RSA-OAEP-256", A128}, A128),
}


@pytest.mark.parametrize(("given", "algs", "default"), FOR_EACH_ALG.values(), ids=FOR_EACH_ALG.keys())
def test_a_key_serves_its_own_alg_or_every_one_of_its_kind(
    given: list[dict[str, Any]], algs: set[str], default: str | None
) -> None:
    """Spec 2.8, D21: what is for one userinfo of one generation is never the default for ID tokens."""
    prepared = parse_client_key_set(key_set(*given))
    assert prepared.problems == ()
    assert {alg for alg in (*WRAPS, "ECDH-ES", "RSA-OAEP", "RSA-OAEP-256") if prepared.encryption_for(alg)} == algs
    assert all(prepared.by_wrap[alg].wrap == alg for alg in algs)
    assert (prepared.encryption.wrap if prepared.encryption else None) == default


def test_of_several_rsa_keys_the_longest_is_used_then_the_first() -> None:
    """D21, as of curves."""
    given = (rsa(), rsa(3072, 1), rsa(3072, 1, kid="again"), rsa(number=2, alg="RSA-OAEP"))
    prepared = parse_client_key_set(key_set(*given))
    assert [prepared.by_wrap[alg].kid for alg in ("RSA-OAEP", "RSA-OAEP-256")] == ["RSA-1", "RSA-1"]


def test_private_members_of_an_rsa_key_are_dropped_and_reported() -> None:
    """D27"""
    prepared = parse_client_key_set(key_set({**rsa_key().as_dict(private=True), "use": "enc", "kid": "mine"}))
    assert prepared.problems == ("mine: private member d was dropped; replace this key",)
    assert prepared.encryption_for("RSA-OAEP") is not None


PUBLIC = rsa()
NO_RSA_KEYS: dict[str, tuple[dict[str, object], str]] = {
    "no n": ({name: value for name, value in PUBLIC.items() if name != "n"}, "the key has no n"),
    "no e": ({name: value for name, value in PUBLIC.items() if name != "e"}, "the key has no e"),
    "n that is a number": ({**PUBLIC, "n": 5}, "the key has no n"),
    "an empty n": ({**PUBLIC, "n": ""}, "2048 to 8192 bits, and this one 0"),
    "one bit too few": ({**PUBLIC, "n": b64(((1 << 2047) - 1).to_bytes(256))}, "and this one 2047"),
    "one bit too many": ({**PUBLIC, "n": b64(((1 << 8193) - 1).to_bytes(1025))}, "and this one 8193"),
    "an even n": ({**PUBLIC, "n": b64((1 << 2047).to_bytes(256))}, "no RSA key"),
    "e of 1": ({**PUBLIC, "e": "AQ"}, "no RSA key"),
    "an even e": ({**PUBLIC, "e": "AQAA"}, "no RSA key"),
    "e of 0": ({**PUBLIC, "e": "AA"}, "no RSA key"),
    "an e that costs whoever encrypts": ({**PUBLIC, "e": PUBLIC["n"]}, "no RSA key"),
}


@pytest.mark.parametrize(("jwk", "reason"), NO_RSA_KEYS.values(), ids=NO_RSA_KEYS.keys())
def test_what_is_no_rsa_key_of_a_reasonable_size_is_refused(jwk: dict[str, object], reason: str) -> None:
    """RFC 7518 §4.3, §6.3.1"""
    with pytest.raises(UnusableKey, match=reason):
        import_rsa_key(jwk)


def test_the_numbers_of_an_rsa_key_are_canonical_base64url() -> None:
    """RFC 7518 §6.3.1"""
    with pytest.raises(MalformedToken):
        import_rsa_key({**PUBLIC, "n": PUBLIC["n"] + "="})
