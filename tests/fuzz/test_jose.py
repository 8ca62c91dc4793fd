"""Any bytes give a value or MalformedToken, and what is accepted has one spelling only (D33)."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, TypeVar

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from hypothesis import strategies as st

from corpid.jose import compact
from corpid.jose.compact import BadSignature
from corpid.jose.encoding import JoseError, MalformedToken, base64url, from_base64url, json_object
from corpid.jose.encryption import encrypt
from corpid.jose.keys import (
    ALGORITHMS,
    KeySetError,
    coordinates,
    import_public_key,
    import_verifier,
    parse_client_key_set,
    thumbprint,
)
from corpid.rules.oauth.client_registration import public_key_set
from tests.fuzz.examples import ANY_TEXT, JSON, TIERS, altered, hold, tokens, written
from tests.unit.jose.signed import CURVES, P256_ORDER, b64, key, openssl_accepts, private_jwk, public_jwk, rsa_key

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.full

T = TypeVar("T")
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
    verifier = import_verifier(KEYS[0])

    def check(text: str) -> None:
        with contextlib.suppress(MalformedToken):
            token = compact.parse(text)
            assert f"{token.signing_input.decode()}.{b64(token.signature)}" == text
            with contextlib.suppress(BadSignature):
                compact.verify(token, verifier)
                assert token.header["alg"] == "ES256"

    parts = st.lists(ANY_TEXT.filter(lambda text: "\ud800" not in text), max_size=5).map(".".join)
    hold(examples, TOKENS | TOKENS | ANY_TEXT | parts | st.binary().map(lambda raw: raw.decode("latin-1")), check)


@pytest.mark.parametrize("examples", TIERS)
def test_aws_lc_verifies_what_openssl_verifies(examples: int) -> None:
    """FIPS 186-5 §6.4.2, docs/decisions/0035: on P-256, for altered signatures and messages."""
    private = ec.derive_private_key(7, ec.SECP256R1())
    repeatable = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
    public = private.public_key()
    accepts = ALGORITHMS["ES256"].verifier(coordinates(public)).accepts

    def check(given: tuple[bytes, bytes]) -> None:
        assert accepts(*given) is openssl_accepts(public, *given)

    def near(message: bytes) -> st.SearchStrategy[tuple[bytes, bytes]]:
        right = private.sign(message, repeatable)
        r, s = decode_dss_signature(right)
        number = st.sampled_from([r, s, P256_ORDER - s, P256_ORDER, P256_ORDER - 1, 0, 1]) | st.integers(0, 2**257)
        cut = st.integers(0, len(right)).map(lambda at: right[:at] + right[at + 1 :])
        flipped = st.integers(0, 8 * len(right) - 1).map(
            lambda bit: (int.from_bytes(right) ^ 1 << bit).to_bytes(len(right))
        )
        signature = (
            st.tuples(number, number).map(lambda pair: encode_dss_signature(*pair)) | cut | flipped | st.binary()
        )
        return st.tuples(st.just(message) | st.binary(), st.just(right) | signature)

    hold(examples, st.binary().flatmap(near), check)


@pytest.mark.parametrize("examples", TIERS)
def test_keys(examples: int) -> None:
    """What one library takes for a key the other does, and it has the thumbprint of the point it stands for."""

    def imported(load: Callable[[dict[str, object]], T], jwk: dict[str, object]) -> T | str:
        try:
            return load(jwk)
        except JoseError as error:
            return str(error)

    def check(jwk: dict[str, object]) -> None:
        found, verifier = imported(import_public_key, jwk), imported(import_verifier, jwk)
        if isinstance(found, str) or isinstance(verifier, str):
            assert found == verifier
            return
        public, algorithm = found
        assert verifier.algorithm is algorithm
        numbers, size = public.public_numbers(), algorithm.size
        again: dict[str, object] = {
            "kty": "EC",
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
            assert all(one.verifier.algorithm.name in CURVES for one in prepared.signing)
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
