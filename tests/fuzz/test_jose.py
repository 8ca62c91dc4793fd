"""Any bytes give a value or MalformedToken, and what is accepted has one spelling only (D33)."""

from __future__ import annotations

import contextlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import strategies as st

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import JoseError, MalformedToken, base64url, from_base64url, json_object
from corpid.jose.encryption import encrypt
from corpid.jose.keys import ALGORITHMS, KeySetError, import_public_key, parse_client_key_set, thumbprint
from corpid.rules.oauth.client_registration import public_key_set
from tests.fuzz.examples import ANY_TEXT, JSON, TIERS, altered, hold, tokens, written
from tests.unit.jose.signed import CURVES, b64, key, private_jwk, public_jwk, rsa_key

KEYS = [
    public_jwk(key(), use="sig", kid="a", alg="ES256"),
    public_jwk(key("P-384"), use="enc", kid="b", alg="ECDH-ES+A192KW"),
    private_jwk(key("P-521"), use="enc", kid="c"),
    public_jwk(key("secp256k1"), use="sig"),
    {"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig"},
    public_jwk(rsa_key(), use="enc", kid="d"),
    public_jwk(key(), use="enc", kid="e", alg="ECDH-ES"),
]
ALTERED_KEYS = st.sampled_from(KEYS).flatmap(altered)
KEY_SETS = st.lists(ALTERED_KEYS | JSON, max_size=22).flatmap(lambda keys: altered({"keys": keys}).flatmap(written))
TOKENS = tokens({"typ": "JWT", "kid": "k", "jwk": KEYS[0]}, {"sub": "rp-1", "exp": 1, "nested": {"a": {"b": [1]}}})


@pytest.mark.parametrize("examples", TIERS)
def test_base64url(examples: int) -> None:
    def check(raw: bytes | str) -> None:
        with contextlib.suppress(MalformedToken):
            value = from_base64url(raw)
            assert base64url(value) == (raw if isinstance(raw, str) else raw.decode())

    near = (
        st.binary(max_size=40).map(b64).flatmap(lambda text: st.sampled_from([text, text + "=", text[:-1], text + "A"]))
    )
    hold(examples, st.binary() | ANY_TEXT | near, check)


@pytest.mark.parametrize("examples", TIERS)
def test_json(examples: int) -> None:
    def check(raw: bytes | str) -> None:
        with contextlib.suppress(MalformedToken):
            value = json_object(raw)
            assert isinstance(value, dict)
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()

    anything = st.dictionaries(ANY_TEXT, JSON).flatmap(written)
    nested = st.tuples(st.sampled_from(["[", '{"a":', "[[{"]), st.integers(0, 30_000)).map(
        lambda pair: pair[0] * pair[1]
    )
    hold(examples, st.binary() | ANY_TEXT | anything | JSON.map(json.dumps) | nested, check)


def outcome(raw: bytes | str) -> str:
    try:
        return repr(json_object(raw))
    except MalformedToken:
        return "refused"


@pytest.mark.parametrize("examples", TIERS)
def test_json_is_read_alike_on_the_quick_way_and_on_the_slow_one(examples: int) -> None:
    """What is written exactly as we write it takes a shorter way, which must see nothing else in it."""

    def check(raw: bytes) -> None:
        assert outcome(raw) == outcome(b" " + raw)
        with contextlib.suppress(UnicodeDecodeError):
            assert outcome(raw) == outcome(raw.decode())

    objects = st.dictionaries(ANY_TEXT, JSON)
    tight = objects.map(lambda found: json.dumps(found, separators=(",", ":")).encode())
    raw_text = objects.map(lambda found: json.dumps(found, separators=(",", ":"), ensure_ascii=False))
    in_utf_8 = raw_text.map(lambda text: text.encode("utf-8", "surrogatepass"))
    twice = tight.map(lambda text: text[:-1] + (b"," if len(text) > 2 else b"") + text[1:])
    hold(examples, tight | in_utf_8 | twice | objects.flatmap(written) | st.binary(), check)


@pytest.mark.parametrize("examples", TIERS)
def test_compact_tokens(examples: int) -> None:
    public, _ = import_public_key(KEYS[0])

    def check(text: str) -> None:
        with contextlib.suppress(MalformedToken):
            token = compact.parse(text)
            assert f"{token.signing_input.decode()}.{b64(token.signature)}" == text
            with contextlib.suppress(BadSignature):
                compact.verify(token, public, ALGORITHMS["ES256"])
                assert token.header["alg"] == "ES256"

    parts = st.lists(ANY_TEXT.filter(lambda text: "\ud800" not in text), max_size=5).map(".".join)
    hold(examples, TOKENS | TOKENS | ANY_TEXT | parts | st.binary().map(lambda raw: raw.decode("latin-1")), check)


@pytest.mark.parametrize("examples", TIERS)
def test_keys(examples: int) -> None:
    """A key that is imported has the thumbprint of the point it stands for."""

    def check(jwk: dict[str, object]) -> None:
        with contextlib.suppress(JoseError):
            public, algorithm = import_public_key(jwk)
            numbers = public.public_numbers()
            size = algorithm.size
            again: dict[str, object] = {
                "crv": algorithm.curve_name,
                "x": b64(numbers.x.to_bytes(size)),
                "y": b64(numbers.y.to_bytes(size)),
            }
            assert thumbprint(jwk) == thumbprint(again)

    hold(examples, ALTERED_KEYS | st.dictionaries(ANY_TEXT, JSON), check)


@pytest.mark.parametrize("examples", TIERS)
def test_client_key_sets(examples: int) -> None:
    """D27: whatever a URL answers with, nothing but KeySetError leaves, and nothing private stays."""

    def check(raw: bytes) -> None:
        with contextlib.suppress(KeySetError):
            prepared = parse_client_key_set(raw)
            assert all(one.algorithm.name in CURVES for one in prepared.signing)
            assert prepared.encryption is None or isinstance(prepared.encryption.public, ec.EllipticCurvePublicKey)
            for alg, found in prepared.by_wrap.items():
                assert found.wrap == alg
                assert encrypt("a.b.c", found, "A128CBC-HS256").count(".") == 4
            assert all(len(problem) < 400 for problem in prepared.problems if "private member" not in problem)

    hold(examples, KEY_SETS | st.binary() | st.dictionaries(ANY_TEXT, JSON).flatmap(written), check)


@pytest.mark.parametrize("examples", TIERS)
def test_key_sets_as_they_are_stored(examples: int) -> None:
    def check(raw: bytes) -> None:
        stored = public_key_set(raw.decode("utf-8", "replace"))
        with contextlib.suppress(KeySetError):
            assert not [problem for problem in parse_client_key_set(stored).problems if "private member" in problem]

    hold(examples, KEY_SETS | st.binary(), check)
