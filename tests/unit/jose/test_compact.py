"""Compact JWS: parsed once, believed only after `verify` (RFC 7515 §3.1, D8, D33)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc import jws

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import MalformedToken, base64url
from corpid.jose.keys import ALGORITHMS, BY_CURVE, import_verifier
from tests.unit.jose.signed import CURVES, REGISTRY, b64, key, public_jwk, sign, unsigned

CLAIMS = {"sub": "rp-1", "n": 1}


def test_a_token_is_parsed_into_what_its_maker_wrote() -> None:
    text = sign(CLAIMS, typ="JWT", kid="k1")
    token = compact.parse(text)
    assert token.header == {"alg": "ES256", "typ": "JWT", "kid": "k1"}
    assert (token.claims, token.algorithm, token.kid) == (CLAIMS, "ES256", "k1")
    assert token.signing_input == text.rpartition(".")[0].encode()
    assert b64(token.signature) == text.rpartition(".")[2]
    assert compact.parse(sign(CLAIMS)).kid is None


REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "three parts"),
    "one part": ("abc", "three parts"),
    "an unsecured token's two parts": (unsigned({"alg": "ES256"}).rpartition(".")[0], "three parts"),
    "four parts": (unsigned({"alg": "ES256"}) + ".", "three parts"),
    "a JWE's five parts": ("a.b.c.d.e", "three parts"),
    "two tokens in one header": ("a.b.c,a.b.c", "three parts"),
    "an empty header": ("..", "not JSON"),
    "padding": (f"{b64('{}')}=.{b64('{}')}.", "base64url"),
    "a header that is no object": (unsigned("[]"), "not a JSON object"),
    "a payload that is no object": (unsigned({"alg": "ES256"}, "[1]"), "not a JSON object"),
    "a payload that is no JSON": (unsigned({"alg": "ES256"}, b"\xff"), "not JSON"),
    "a detached payload": (f"{b64({'alg': 'ES256'})}..{b64(bytes(64))}", "not JSON"),
    "a repeated member of the header": (unsigned('{"alg":"ES256","alg":"none"}'), "repeated"),
    "a repeated claim": (unsigned({"alg": "ES256"}, '{"sub":"a","sub":"b"}'), "repeated"),
    "no alg": (unsigned({"typ": "JWT"}), "header has no alg"),
    "an alg that is no text": (unsigned({"alg": ["ES256"]}), "header has no alg"),
    "an alg of null": (unsigned({"alg": None}), "header has no alg"),
    "a kid that is a number": (unsigned({"alg": "ES256", "kid": 1}), "kid is not a string"),
    "a letter outside ASCII": (unsigned({"alg": "ES256"}) + "é", "base64url"),
    "a space": (" " + unsigned({"alg": "ES256"}), "base64url"),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_the_closed_form_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(MalformedToken, match=reason):
        compact.parse(text)


@pytest.mark.parametrize("member", ["crit", "zip", "b64", "jku", "x5u"])
@pytest.mark.parametrize("value", [["exp"], False, True, "DEF"])
def test_a_header_that_changes_how_a_token_is_read_is_refused(member: str, value: object) -> None:
    """D8, SECURITY.md: whatever the value."""
    with pytest.raises(MalformedToken, match=f"header member {member} is not accepted"):
        compact.parse(unsigned({"alg": "ES256", member: value}))


@pytest.mark.parametrize("member", ["kid", "typ", "crit", "zip", "b64", "jku", "x5u", "jwk"])
def test_a_member_of_a_header_that_is_null_counts_as_absent(member: str) -> None:
    """D85."""
    token = compact.parse(unsigned({"alg": "ES256", member: None}))
    assert (dict(token.header), token.kid) == ({"alg": "ES256"}, None)


def test_a_claim_that_is_null_counts_as_absent() -> None:
    """D85."""
    assert compact.parse(unsigned({"alg": "ES256"}, '{"sub":"a","nbf":null,"jti":null}')).claims == {"sub": "a"}


def test_a_token_may_have_eight_kibibytes_and_not_one_byte_more() -> None:
    """D33."""
    header, signature = b64({"alg": "ES256"}), b64(bytes(64))
    frame = len(header) + len(signature) + 2
    room = (compact.MAX_BYTES - frame) // 4 * 3
    fitting = f"{header}.{b64(json.dumps({'a': ''})[:-2] + 'x' * (room - 9) + chr(34) + '}')}.{signature}"
    assert compact.MAX_BYTES - 4 < len(fitting) <= compact.MAX_BYTES
    compact.parse(fitting)
    with pytest.raises(MalformedToken, match="longer than 8192 bytes"):
        compact.parse("x" * (compact.MAX_BYTES + 1))


def verified(text: str, jwk: dict[str, Any], name: str) -> None:
    key = import_verifier(jwk)
    assert key.algorithm.name == name
    compact.verify(compact.parse(text), key)


@pytest.mark.parametrize(("alg", "curve"), CURVES.items())
def test_each_algorithm_verifies_what_another_library_signed(alg: str, curve: str) -> None:
    verified(sign(CLAIMS, alg=alg), public_jwk(key(curve)), alg)
    assert BY_CURVE[curve].name == alg


@pytest.mark.parametrize(("alg", "curve"), CURVES.items())
def test_another_library_verifies_what_each_algorithm_signed(alg: str, curve: str) -> None:
    """Thirty times, since one in 256 numbers is a byte shorter than its place."""
    private: Any = key(curve).raw_value
    header = base64url(json.dumps({"alg": alg}).encode()).encode()
    for number in range(30):
        text = compact.sign(header, json.dumps({"n": number}).encode(), private, ALGORITHMS[alg])
        assert json.loads(jws.deserialize_compact(text, key(curve), registry=REGISTRY).payload) == {"n": number}
        verified(text, public_jwk(key(curve)), alg)


@pytest.mark.parametrize("claimed", CURVES)
@pytest.mark.parametrize("real", CURVES)
def test_the_algorithm_of_the_key_decides_and_never_the_header(claimed: str, real: str) -> None:
    """RFC 8725 §3.1: a header that names another algorithm than the key's is refused, also within one family."""
    signature = sign(CLAIMS, alg=real).rpartition(".")[2]
    text = f"{b64({'alg': claimed})}.{b64(CLAIMS)}.{signature}"
    with pytest.raises(BadSignature):
        verified(text, public_jwk(key(CURVES[real])), real)


def test_a_signature_by_another_curve_of_the_same_size_is_refused() -> None:
    """ES256 and ES256K differ in nothing but the curve."""
    text = sign(CLAIMS, alg="ES256K")
    with pytest.raises(BadSignature, match="does not fit the algorithm"):
        verified(text, public_jwk(key("P-256")), "ES256")
    relabelled = f"{b64({'alg': 'ES256'})}.{text.partition('.')[2]}"
    with pytest.raises(BadSignature, match="not valid"):
        verified(relabelled, public_jwk(key("P-256")), "ES256")


@pytest.mark.parametrize("alg", ["none", "None", "HS256", "RS256", "es256", "ES256 ", "EdDSA", ""])
def test_any_other_algorithm_in_the_header_is_refused(alg: str) -> None:
    with pytest.raises(BadSignature, match="does not fit the algorithm"):
        verified(unsigned({"alg": alg}), public_jwk(key()), "ES256")


def test_a_changed_byte_anywhere_makes_the_signature_invalid() -> None:
    header, payload, signature = sign(CLAIMS).split(".")
    for text in (
        f"{b64({'alg': 'ES256', 'kid': 'x'})}.{payload}.{signature}",
        f"{header}.{b64({**CLAIMS, 'n': 2})}.{signature}",
        f"{header}.{payload}.{b64(bytes(63) + b'1')}",
    ):
        with pytest.raises(BadSignature, match="not valid"):
            verified(text, public_jwk(key()), "ES256")
    with pytest.raises(BadSignature, match="not valid"):
        verified(sign(CLAIMS), public_jwk(key(number=1)), "ES256")


P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
EXTREMES = {"zero": 0, "one": 1, "the order": P256_ORDER, "the largest": 2**256 - 1}


@pytest.mark.parametrize("r", EXTREMES.values(), ids=EXTREMES.keys())
@pytest.mark.parametrize("s", EXTREMES.values(), ids=EXTREMES.keys())
def test_a_signature_of_extreme_numbers_is_refused(r: int, s: int) -> None:
    """CVE-2022-21449: (0, 0) once verified everything."""
    token = f"{b64({'alg': 'ES256'})}.{b64(CLAIMS)}.{b64(r.to_bytes(32) + s.to_bytes(32))}"
    with pytest.raises(BadSignature, match="not valid"):
        verified(token, public_jwk(key()), "ES256")


@pytest.mark.parametrize("length", [0, 1, 63, 65, 70, 96, 128])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    """RFC 7518 §3.4: 64 bytes, neither DER nor zeros in front."""
    real = sign(CLAIMS)
    for raw in (bytes(length), b"\x30" + bytes(max(length - 1, 0))):
        with pytest.raises(BadSignature, match="does not fit"):
            verified(f"{real.rpartition('.')[0]}.{b64(raw)}", public_jwk(key()), "ES256")


def test_tokens_with_one_header_have_their_own_claims() -> None:
    first, second = sign(CLAIMS, kid="same"), sign({"sub": "rp-2"}, kid="same")
    assert first.partition(".")[0] == second.partition(".")[0]
    assert compact.parse(first).claims == CLAIMS
    assert compact.parse(second).claims == {"sub": "rp-2"}


def test_a_refused_header_is_refused_each_time() -> None:
    """D7, D8."""
    for _ in range(2):
        with pytest.raises(MalformedToken, match="zip is not accepted"):
            compact.parse(unsigned({"alg": "ES256", "zip": "DEF"}))
