"""The provider's own signing keys and their calendar: published, in use, retired, revoked (D42)."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest
from joserfc import jws
from joserfc.jwk import ECKey
from msgspec.structs import replace

from corpid.jose import certificates, compact, key_ring
from corpid.jose.certificates import CertificateRefused
from corpid.jose.compact import BadSignature
from tests.certificates import Authority
from tests.unit.jose.signed import REGISTRY, b64, key, sign

if TYPE_CHECKING:
    from corpid.jose.key_ring import KeyRing, SigningKey

NOW = 1_800_000_000
KEPT = 4200


@cache
def private_jwk(number: int) -> str:
    return key_ring.generate_private_jwk()


def kid(number: int) -> str:
    return str(json.loads(private_jwk(number))["kid"])


def signing_key(
    number: int, *, active_from: int = NOW, retired_at: int | None = None, revoked_at: int | None = None
) -> SigningKey:
    return key_ring.open_signing_key(
        private_jwk(number), active_from=active_from, retired_at=retired_at, revoked_at=revoked_at
    )


def ring(*keys: SigningKey, now: float = NOW) -> KeyRing:
    return key_ring.build(keys, now=now, kept_seconds=KEPT)


def published(built: KeyRing) -> list[str]:
    return [jwk["kid"] for jwk in json.loads(built.public_key_set)["keys"]]


def test_a_new_key_is_a_p_256_key_named_by_its_thumbprint() -> None:
    made = ECKey.import_key(json.loads(private_jwk(0)))
    assert made.is_private
    assert (made.curve_name, made.kid) == ("P-256", made.thumbprint())
    assert kid(0) != kid(1)


def opened(number: int, *, certificate_chain: str | None = None) -> SigningKey:
    return key_ring.open_signing_key(
        private_jwk(number),
        active_from=NOW,
        retired_at=None,
        revoked_at=None,
        created_at=NOW - 7200,
        certificate_chain=certificate_chain,
    )


def test_every_published_key_carries_its_certificate_where_certificates_are_wanted() -> None:
    """Spec 2.9: x5c, x5t, x5t#S256; keys of a rotation each have their own."""
    keys = [opened(0), opened(1)]
    built = key_ring.build(keys, now=NOW, kept_seconds=KEPT, with_certificates=True)
    jwks = json.loads(built.public_key_set)["keys"]
    assert {jwk["kid"] for jwk in jwks} == {kid(0), kid(1)}
    for jwk in jwks:
        (signing,) = [each for each in keys if each.kid == jwk["kid"]]
        made = certificates.self_signed(signing.private, kid=signing.kid, created_at=NOW - 7200)
        assert jwk == {**signing.public_jwk, **certificates.members([made])}


def test_an_operators_chain_takes_the_place_of_the_default() -> None:
    root = Authority("Root")
    chain = (root.certify(opened(0).public, begin=NOW, seconds=60), *root.chain)
    signing = opened(0, certificate_chain=certificates.pem(chain))
    built = key_ring.build([signing], now=NOW, kept_seconds=KEPT, with_certificates=True)
    (jwk,) = json.loads(built.public_key_set)["keys"]
    assert jwk == {**signing.public_jwk, **certificates.members(chain)}


def test_no_certificate_is_published_where_none_is_wanted_even_if_one_is_stored() -> None:
    """Spec "Generations": x5c, x5t, x5t#S256 only while LEGACY is served; nothing reads what is stored."""
    for stored in (None, "not even a certificate"):
        signing = opened(0, certificate_chain=stored)
        (jwk,) = json.loads(ring(signing).public_key_set)["keys"]
        assert jwk == signing.public_jwk


def test_a_stored_chain_that_was_changed_is_not_published() -> None:
    with pytest.raises(CertificateRefused, match="no certificate in PEM form"):
        key_ring.build([opened(0, certificate_chain="")], now=NOW, kept_seconds=KEPT, with_certificates=True)


def test_a_key_of_unknown_age_has_a_certificate_from_its_first_use_on() -> None:
    key = signing_key(0)
    (made,) = certificates.chain_of(key.private, kid=key.kid, created_at=key.created_at, stored=key.certificate_chain)
    assert made.not_valid_before_utc.timestamp() == NOW


@pytest.mark.parametrize("typ", ["JWT", "at+jwt"])
def test_what_the_ring_signs_is_verified_by_another_library_with_the_published_key(typ: str) -> None:
    """Spec 4.7: by kid, among the published keys with use sig."""
    built = ring(signing_key(0))
    text = built.sign(b'{"a":1}', typ)
    (jwk,) = json.loads(built.public_key_set)["keys"]
    assert set(jwk) == {"kty", "use", "kid", "alg", "crv", "x", "y"}
    opened = jws.deserialize_compact(text, ECKey.import_key(jwk), registry=REGISTRY)
    assert opened.headers() == {"alg": "ES256", "kid": kid(0), "typ": typ}
    assert opened.payload == b'{"a":1}'
    built.verify(compact.parse(text))


def test_the_published_document_holds_nothing_private() -> None:
    document = ring(signing_key(0), signing_key(1)).public_key_set.decode()
    for number in (0, 1):
        assert json.loads(private_jwk(number))["d"] not in document
    assert '"d"' not in document


@pytest.mark.parametrize(
    ("now", "active", "until"),
    [
        (NOW, 0, NOW + 7200),
        (NOW + 7199.999, 0, NOW + 7200),
        (NOW + 7200, 1, NOW + 7200 + KEPT),
        (NOW + 7200 + KEPT - 0.001, 1, NOW + 7200 + KEPT),
    ],
)
def test_a_rotation_takes_over_at_its_moment_and_both_keys_are_published(now: float, active: int, until: int) -> None:
    old = signing_key(0, retired_at=NOW + 7200)
    new = signing_key(1, active_from=NOW + 7200)
    for keys in ((old, new), (new, old)):
        built = ring(*keys, now=now)
        assert built.active.kid == kid(active)
        assert set(built.by_kid) == set(published(built)) == {kid(0), kid(1)}
        assert published(built)[0] == kid(active)
        assert built.until == until


def test_a_retired_key_verifies_for_as_long_as_it_is_kept_and_then_no_more() -> None:
    """D42: until the last token's exp, and an hour."""
    old = signing_key(0, active_from=NOW - 10_000, retired_at=NOW)
    text = compact.parse(ring(old, now=NOW - 1).sign(b"{}", "JWT"))
    new = signing_key(1, active_from=NOW)
    ring(old, new, now=NOW + KEPT - 0.001).verify(text)
    after = ring(old, new, now=NOW + KEPT)
    assert published(after) == [kid(1)]
    assert after.until == float("inf")
    with pytest.raises(BadSignature, match="kid names no key"):
        after.verify(text)


def test_a_revoked_key_is_neither_published_nor_accepted_from_its_moment_on() -> None:
    """D42: until then every process learns of it."""
    text = compact.parse(ring(signing_key(0)).sign(b"{}", "JWT"))
    keys = (signing_key(0, retired_at=NOW, revoked_at=NOW + 5), signing_key(1))
    before, after = ring(*keys, now=NOW + 4), ring(*keys, now=NOW + 5)
    assert published(before) == [kid(1), kid(0)]
    assert before.until == NOW + 5
    before.verify(text)
    assert published(after) == [kid(1)]
    with pytest.raises(BadSignature, match="kid names no key"):
        after.verify(text)


def test_the_newest_key_whose_time_has_come_signs() -> None:
    keys = [signing_key(number, active_from=NOW - 100 + number) for number in range(3)]
    assert ring(*keys, signing_key(3, active_from=NOW + 1)).active.kid == kid(2)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [signing_key(0, active_from=NOW + 1)],
        [signing_key(0, retired_at=NOW)],
        [signing_key(0, revoked_at=NOW - 1)],
        [signing_key(0, retired_at=NOW), signing_key(1, active_from=NOW + 1)],
    ],
    ids=["none", "not yet", "retired", "revoked", "a gap"],
)
def test_a_ring_without_a_key_to_sign_with_says_what_to_do(keys: list[SigningKey]) -> None:
    with pytest.raises(ValueError, match="corpid key rotate --now"):
        ring(*keys)


def test_a_token_that_names_no_key_or_a_strangers_key_is_refused() -> None:
    built = ring(signing_key(0))
    for text in (sign({}), sign({}, kid=""), sign({}, kid="unknown"), sign({}, kid=kid(1))):
        with pytest.raises(BadSignature, match="kid names no key"):
            built.verify(compact.parse(text))
    with pytest.raises(BadSignature, match="not valid"):
        built.verify(compact.parse(sign({}, kid=kid(0))))


def test_a_known_token_with_another_signature_is_verified_and_refused() -> None:
    """docs/decisions/0033"""
    built = ring(signing_key(0))
    text = built.sign(b"{}", key_ring.ACCESS_TOKEN)
    built.verify(compact.parse(text))
    signature = bytearray(compact.parse(text).signature)
    signature[-1] ^= 1
    with pytest.raises(BadSignature, match="not valid"):
        built.verify(compact.parse(compact.serialize_token(compact.parse(text).signing_input, bytes(signature))))


def test_a_known_token_of_a_revoked_key_is_refused() -> None:
    """D42, docs/decisions/0033"""
    first, second = signing_key(0), signing_key(1, active_from=NOW + 1)
    text = ring(first).sign(b"{}", key_ring.ACCESS_TOKEN)
    ring(first).verify(compact.parse(text))
    with pytest.raises(BadSignature, match="kid names no key"):
        ring(replace(first, revoked_at=NOW + 1), second, now=NOW + 1).verify(compact.parse(text))


def test_a_signature_is_verified_once_and_only_the_latest_are_remembered() -> None:
    """docs/decisions/0033"""
    of_another_process, here = ring(signing_key(0)), signing_key(0)
    token = compact.parse(of_another_process.sign(b"{}", key_ring.ACCESS_TOKEN))
    assert not here.valid.contains(token.signing_input, token.signature)
    ring(here).verify(token)
    assert here.valid.contains(token.signing_input, token.signature)
    for number in range(key_ring.ValidSignatures.MOST):
        here.valid.add(b"%d" % number, b"")
    assert not here.valid.contains(token.signing_input, token.signature)
    ring(here).verify(token)


def test_our_own_keys_verify_es256_alone() -> None:
    built = ring(signing_key(0))
    real = built.sign(b"{}", "JWT")
    for alg in ("none", "ES256K", "ES384", "HS256"):
        text = f"{b64({'alg': alg, 'kid': kid(0)})}.{real.partition('.')[2]}"
        with pytest.raises(BadSignature, match="does not fit"):
            built.verify(compact.parse(text))
    with pytest.raises(BadSignature):
        built.verify(compact.parse(sign({}, key("P-384"), alg="ES384", kid=kid(0))))


def test_a_kid_never_looks_like_an_option_of_a_command() -> None:
    """One thumbprint in 64 begins with a hyphen; `corpid key revoke` could not be given it."""
    assert not [text for text in (key_ring.generate_private_jwk() for _ in range(400)) if '"kid":"-' in text]
