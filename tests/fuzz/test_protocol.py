"""Any parameters, headers and tokens give a typed value or one OAuth error, and never another exception (Spec 7)."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from urllib.parse import quote_plus

import pytest
from hypothesis import strategies as st

from corpid.flows import namespaces
from corpid.jose import key_ring
from corpid.jose.keys import parse_client_key_set
from corpid.rules.oauth import authorization_request, client_assertion, dpop, parameters, token_request
from corpid.rules.oauth import tokens as token_rules
from corpid.rules.oauth.authorization_request import PUSHED_PARAMETERS, validate_request
from corpid.rules.oauth.client_assertion import ASSERTION_TYPE, KeyNotFound
from corpid.rules.oauth.errors import (
    CredentialsRequired,
    InvalidClient,
    InvalidDPoPProof,
    InvalidGrant,
    InvalidRequest,
    InvalidScope,
    InvalidToken,
    OAuthError,
    RequestNotSupported,
    RequestURINotSupported,
    UnsupportedGrantType,
    public_members,
)
from corpid.rules.oauth.generations import CURRENT, GENERATIONS, LEGACY, Generation
from corpid.rules.oauth.jwt_claims import BadClaim, jti, numeric_date
from tests.fuzz.examples import ANY_TEXT, JSON, TEXT, TIERS, altered, hold, tokens
from tests.unit.jose.signed import CURVES, key, key_set, public_jwk
from tests.unit.rules.oauth.given import CLIENT, ISSUER, JKT, NOW, PARAMETERS, PREFIX, VERIFIER

pytestmark = pytest.mark.full

URL: Final = ISSUER + "/userinfo"
TARGET: Final = dpop.ProofTarget(method="GET", url=URL)
PROOF_HEADER: Final = {"typ": "dpop+jwt", "jwk": public_jwk(key())}
PROOF_CLAIMS: Final = {"jti": "1", "htm": "GET", "htu": URL, "iat": NOW, "ath": "x", "nonce": "n", "exp": NOW + 9}
ASSERTION_CLAIMS: Final = {
    "iss": "rp-1", "sub": "rp-1", "aud": ISSUER, "jti": "1", "iat": NOW, "exp": NOW + 60, "nbf": NOW,
}  # fmt: skip
PROOFS: Final = tokens(PROOF_HEADER, PROOF_CLAIMS)
ASSERTIONS: Final = tokens({"typ": "JWT", "kid": "a"}, ASSERTION_CLAIMS)
KEYS: Final = parse_client_key_set(key_set(*[public_jwk(key(curve), use="sig", kid="a") for curve in CURVES.values()]))
FORM_VALUES: Final = TEXT | st.sampled_from([*PARAMETERS.values(), "none login", "request", "0", "\0"])


def told(error: OAuthError) -> None:
    """Every refusal can be told to whoever is refused."""
    for catalogue in (None, ISSUER):
        description = public_members(error, "r1", catalogue=catalogue)["error_description"]
        assert description.isascii()
        assert len(description) <= 300


@pytest.mark.parametrize("examples", TIERS)
def test_a_form_of_too_many_pairs_is_refused_before_anything_in_it_is_read(examples: int) -> None:
    """D47: at most 100 form pairs, whatever they hold; one less is refused for what is in it only."""
    readers = (parameters.parse, parameters.requote_known)

    def check(given: tuple[list[bytes], int]) -> None:
        pairs, count = given
        raw = b"&".join((pairs * count)[:count])
        for read in readers:
            try:
                read(raw, PUSHED_PARAMETERS)
                refused = ""
            except InvalidRequest as error:
                told(error)
                refused = str(error)
            assert ("more than 100 parameters" in refused) == (count > 100)
        if count > 100:
            assert parameters.lone(raw, "state", longest=2048) is None

    pair = st.binary(max_size=8).map(lambda raw: raw.replace(b"&", b"")) | st.sampled_from([b"state=a", b"%41", b"%zz"])
    counts = st.sampled_from([1, 99, 100, 101, 102, 5000])
    hold(examples, st.tuples(st.lists(pair, min_size=1, max_size=4), counts), check)


@pytest.mark.parametrize("examples", TIERS)
def test_forms(examples: int) -> None:
    def check(raw: bytes) -> None:
        try:
            found = parameters.parse(raw, PUSHED_PARAMETERS)
        except InvalidRequest as refused:
            told(refused)
            return
        assert found.keys() <= PUSHED_PARAMETERS
        assert all(found.values())
        echoed = parameters.lone(raw, "state", longest=2048)
        assert echoed == parameters.short(found.get("state", ""), longest=2048)
        assert authorization_request.choose_error_mode(raw, LEGACY) in LEGACY.response_modes
        with contextlib.suppress(InvalidRequest):
            again = parameters.requote_known(raw, PUSHED_PARAMETERS)
            assert again.isascii()
            assert parameters.parse(again.encode(), PUSHED_PARAMETERS) == found

    pairs = st.lists(st.tuples(st.sampled_from(sorted(PUSHED_PARAMETERS)) | TEXT, FORM_VALUES), max_size=6)
    encoded = pairs.map(
        lambda found: "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in found).encode()
    )
    damaged = st.tuples(encoded, st.binary(max_size=5)).map(lambda parts: parts[0] + parts[1])
    hold(examples, st.binary() | encoded | damaged, check)


@pytest.mark.parametrize("examples", TIERS)
def test_times_and_identifiers(examples: int) -> None:
    def check(claims: dict[str, object]) -> None:
        with contextlib.suppress(BadClaim):
            at = numeric_date(claims, "exp")
            assert at is None or 0 <= at <= 2**53
        with contextlib.suppress(BadClaim):
            identifier = jti(claims)
            assert identifier is None or 0 < len(identifier) <= 256

    hold(examples, st.fixed_dictionaries({}, optional={"exp": JSON, "jti": JSON}), check)


@pytest.mark.parametrize("examples", TIERS)
def test_proofs(examples: int) -> None:
    """And the jti of one that holds can be spent."""

    def check(text: str) -> None:
        try:
            proof = dpop.verify(text, TARGET, algorithms=CURRENT.proof_algorithms, now=NOW)
        except InvalidDPoPProof as refused:
            told(refused)
            return
        namespaces.PROOF.entry(ISSUER, proof.jkt, proof.jti)
        assert (proof.nonce or "").encode() is not None
        assert 300 <= proof.remember_seconds <= 450

    hold(examples, PROOFS | PROOFS | PROOFS | ANY_TEXT, check)


@pytest.mark.parametrize("examples", TIERS)
def test_dpop_headers(examples: int) -> None:
    def check(values: list[bytes]) -> None:
        with contextlib.suppress(InvalidDPoPProof):
            text = dpop.header(values)
            if text is not None:
                dpop.verify(text, TARGET, algorithms=CURRENT.proof_algorithms, now=NOW, access_token="a")

    hold(examples, st.lists(st.binary() | PROOFS.map(lambda text: text.encode("utf-8", "replace")), max_size=2), check)


@pytest.mark.parametrize("examples", TIERS)
@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=lambda one: one.name)
def test_assertions(examples: int, generation: Generation) -> None:
    """And the jti of one that verifies can be spent."""

    def check(given: dict[str, str]) -> None:
        try:
            candidate = client_assertion.read(
                given, issuer=ISSUER, endpoint=f"{ISSUER}/request", rules=generation, now=NOW
            )
        except InvalidClient as refused:
            told(refused)
            return
        candidate.client_id.encode()
        with contextlib.suppress(KeyNotFound):
            assertion = client_assertion.verify(candidate, KEYS, now=NOW)
            assert assertion.jti is not None or not generation.assertion_jti_required
            namespaces.ASSERTION.entry(ISSUER, assertion.client_id, assertion.jti or "")
            assert 0 < assertion.lifetime <= generation.assertion_seconds
            assert 330 < assertion.remember_seconds <= generation.assertion_seconds + 30 + 330

    given = st.fixed_dictionaries(
        {"client_assertion_type": st.just(ASSERTION_TYPE), "client_assertion": ASSERTIONS},
        optional={"client_id": st.just("rp-1") | TEXT},
    )
    loose = st.dictionaries(st.sampled_from(["client_assertion_type", "client_assertion", "client_id"]), ANY_TEXT)
    hold(examples, given | given | loose, check)


@pytest.mark.parametrize("examples", TIERS)
def test_credentials(examples: int) -> None:
    def check(values: list[bytes]) -> None:
        try:
            text = token_rules.access_token(values, "DPoP")
        except (CredentialsRequired, InvalidRequest, InvalidToken) as refused:
            told(refused)
            return
        text.encode("ascii")

    token = st.binary(max_size=30).map(lambda rest: b"DPoP " + rest)
    hold(examples, st.lists(st.binary() | token, max_size=2), check)


@pytest.mark.parametrize("examples", TIERS)
def test_access_tokens(examples: int) -> None:
    own = key_ring.open_signing_key(key_ring.generate_private_jwk(), active_from=0, retired_at=None, revoked_at=None)
    ring = key_ring.build([own], now=NOW, kept_seconds=1)
    claims = {
        "iss": ISSUER, "aud": [URL], "sub": "u", "sub_type": "user", "entity": {"sub": "e"}, "client_id": "rp-1",
        "scope": "openid", "iat": NOW, "exp": NOW + 600, "jti": "j", "cnf": {"jkt": JKT},
    }  # fmt: skip

    def check(text: str) -> None:
        try:
            token = token_rules.verify(text, ring, issuer=ISSUER, resource_url=URL, now=NOW)
        except InvalidToken as refused:
            told(refused)
            return
        namespaces.DENIED_TOKEN.entry(ISSUER, token.jti)
        assert isinstance(token.user_id, str)
        assert isinstance(token.entity_id, str)

    header = {"typ": "at+jwt", "kid": own.kid}
    packed = {**claims, "sub": "s=S1,uuid=u,u=eS1,c=SG", "entity": {"sub": "e", "sub_type": "entity"}}
    del packed["sub_type"], packed["cnf"]
    hold(examples, tokens(header, claims, own.private) | tokens(header, packed, own.private) | ANY_TEXT, check)


@pytest.mark.parametrize("examples", TIERS)
@pytest.mark.parametrize("generation", [CURRENT, LEGACY], ids=lambda one: one.name)
def test_authorization_requests(examples: int, generation: Generation) -> None:
    optional = generation.pkce_optional

    def check(given: dict[str, Any]) -> None:
        found = {name: value for name, value in given.items() if isinstance(value, str) and value}
        try:
            request = validate_request(found, CLIENT, generation, jkt=JKT, acr_prefix=PREFIX, pkce_optional=optional)
        except (InvalidRequest, InvalidScope, RequestNotSupported, RequestURINotSupported) as refused:
            told(refused)
            return
        assert request.redirect_uri in CLIENT.redirect_uris
        assert len(request.code_challenge) == 43 or (optional and "code_challenge" not in found)
        assert "openid" in request.scopes
        assert set(request.scopes) <= set(CLIENT.scopes) & set(generation.scopes)
        assert request.response_mode in generation.response_modes
        assert (request.state or "").isascii()

    names = st.sampled_from(sorted(PUSHED_PARAMETERS))
    near = st.tuples(st.dictionaries(names, FORM_VALUES, max_size=4)).map(lambda more: {**PARAMETERS, **more[0]})
    hold(examples, near | near | altered(PARAMETERS) | st.dictionaries(names, FORM_VALUES), check)


@pytest.mark.parametrize("examples", TIERS)
@pytest.mark.parametrize("generation", [CURRENT, LEGACY], ids=lambda one: one.name)
def test_token_requests(examples: int, generation: Generation) -> None:
    valid = {"grant_type": "authorization_code", "code": "c", "redirect_uri": "u", "code_verifier": VERIFIER}

    def check(given: dict[str, str]) -> None:
        try:
            request = token_request.validate_token_request(given, generation)
            token_request.require_verifier(request, generation, pkce_optional=generation.pkce_optional)
        except (InvalidRequest, InvalidGrant, UnsupportedGrantType) as refused:
            told(refused)
            return
        assert len(request.challenge) == 43 or (generation.pkce_optional and "code_verifier" not in given)

    some = st.dictionaries(st.sampled_from(sorted(valid)), TEXT.filter(bool), max_size=2)
    bare = {name: value for name, value in valid.items() if name != "code_verifier"}
    hold(examples, some.map(lambda more: {**valid, **more}) | some.map(lambda more: {**bare, **more}) | some, check)
