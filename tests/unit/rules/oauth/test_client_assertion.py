"""Client authentication by a signed JWT (RFC 7523 §3, D5, D8, D27, D33)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.jose.encoding import base64url
from corpid.jose.keys import parse_client_key_set
from corpid.rules.oauth.client_assertion import (
    ASSERTION_TYPE,
    Assertion,
    Candidate,
    KeyNotFound,
    claimed_client_id,
    may_name_its_audience,
    read,
    refuse_assertion,
    verify,
)
from corpid.rules.oauth.errors import Explanation, InvalidClient
from corpid.rules.oauth.generations import CURRENT, FAPI2, GENERATIONS, LEGACY, Generation
from corpid.rules.oauth.refusals import Reason
from tests.unit.jose.signed import CURVES, key, key_set, public_jwk, sign, unsigned
from tests.unit.rules.oauth.given import CLIENT, ISSUER, NOW

CLAIMS = {"iss": "rp-1", "sub": "rp-1", "aud": ISSUER, "jti": "one", "iat": int(NOW), "exp": int(NOW) + 60}
TOKEN = ISSUER + "/mga/sps/oauth/oauth20/token"
PAR = ISSUER + "/request"
LAST_DAY = "2027-03-31"


def parameters(text: str, **more: str) -> dict[str, str]:
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": text, **more}


def candidate(header: dict[str, Any] | None = None, alg: str = "ES256", **changes: Any) -> Candidate:
    """What is read of a token with these changes; None leaves a claim out."""
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    text = sign(claims, alg=alg, **(header or {}))
    return read(parameters(text), issuer=ISSUER, endpoint=TOKEN, rules=CURRENT, now=NOW)


def test_an_assertion_whose_claims_hold_becomes_a_candidate() -> None:
    found = candidate(extra="ignored")
    assert (found.client_id, found.jti, found.issued_at, found.expires_at) == ("rp-1", "one", NOW, NOW + 60)


@pytest.mark.parametrize("typ", ["JWT", "client-authentication+jwt"])
def test_the_types_that_are_accepted(typ: str) -> None:
    """D8: absent, or one of these."""
    candidate({"typ": typ})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another iss": ({"iss": "rp-2"}, "iss and sub must both be the client_id"),
    "another sub": ({"sub": "rp-2"}, "iss and sub must both be the client_id"),
    "no iss": ({"iss": None}, "iss and sub must both be the client_id"),
    "no sub": ({"sub": None}, "iss and sub must both be the client_id"),
    "neither": ({"iss": None, "sub": None}, "iss and sub must both be the client_id"),
    "both empty": ({"iss": "", "sub": ""}, "iss and sub must both be the client_id"),
    "both a number": ({"iss": 1, "sub": 1}, "iss and sub must both be the client_id"),
    "no aud": ({"aud": None}, f"aud must be the issuer {ISSUER}, as one string"),
    "aud as an array": ({"aud": [ISSUER]}, "as one string"),
    "another endpoint": ({"aud": ISSUER + "/userinfo"}, "as one string"),
    "the issuer with a slash": ({"aud": ISSUER + "/"}, "as one string"),
    "no jti": ({"jti": None}, "jti is missing"),
    "an empty jti": ({"jti": ""}, "jti must be a string of 1 to 256"),
    "a long jti": ({"jti": "x" * 257}, "jti must be a string of 1 to 256"),
    "no exp": ({"exp": None}, "exp is missing"),
    "no iat": ({"iat": None}, "iat is missing"),
    "exp as text": ({"exp": str(CLAIMS["exp"])}, "exp must be a number of seconds"),
    "iat as boolean": ({"iat": True}, "iat must be a number of seconds"),
    "nbf as text": ({"nbf": "now"}, "nbf must be a number of seconds"),
    "expired this moment": ({"exp": NOW}, "expired 0 s ago by this server's clock"),
    "expired": ({"iat": NOW - 100, "exp": NOW - 40}, "expired 40 s ago by this server's clock"),
    "from the future": ({"iat": NOW + 31, "exp": NOW + 60}, "iat is 31 s ahead of this server's clock; 30 s"),
    "not yet": ({"nbf": NOW + 31}, "nbf is 31 s ahead of this server's clock; 30 s"),
    "valid too long": ({"exp": NOW + 121}, "exp is 121 s after iat; 120 s are allowed"),
    "valid for ever": ({"exp": 2**53}, "120 s are allowed"),
}


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_claim_that_does_not_hold_is_refused_with_what_was_expected(changes: dict[str, Any], reason: str) -> None:
    """D8, D28: for clocks the measured difference."""
    with pytest.raises(InvalidClient, match="client_assertion: ") as refused:
        candidate(**changes)
    assert reason in refused.value.description


@pytest.mark.parametrize(
    "changes",
    [
        {"iat": NOW + 30, "nbf": NOW + 30},
        {"exp": NOW + 0.5},
        {"exp": NOW + 120},
        {"iat": NOW - 119.5, "exp": NOW + 0.5},
        {"iat": NOW + 30, "exp": NOW + 150},
        {"jti": "x" * 256},
        {"nbf": 0},
    ],
)
def test_the_edges_of_what_holds(changes: dict[str, Any]) -> None:
    candidate(**changes)


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "crit": ({"crit": ["exp"]}, "header member crit is not accepted"),
    "zip": ({"zip": "DEF"}, "header member zip is not accepted"),
    "b64": ({"b64": True}, "header member b64 is not accepted"),
    "a key from elsewhere": ({"jku": "https://evil.example"}, "header member jku is not accepted"),
    "a proof's type": ({"typ": "dpop+jwt"}, "typ must be JWT or client-authentication\\+jwt"),
    "an access token's type": ({"typ": "at+jwt"}, "typ must be JWT"),
    "a type that is a list": ({"typ": ["JWT"]}, "typ must be JWT"),
}


@pytest.mark.parametrize(("header", "reason"), HEADERS.values(), ids=HEADERS.keys())
def test_a_header_that_is_not_accepted_is_refused(header: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidClient, match=reason):
        read(
            parameters(unsigned({"alg": "ES256", **header}, CLAIMS)),
            issuer=ISSUER,
            endpoint=TOKEN,
            rules=CURRENT,
            now=NOW,
        )


@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "PS256", "EdDSA", "ES256 ", "es256"])
def test_an_algorithm_outside_the_generations_list_is_refused(alg: str) -> None:
    with pytest.raises(InvalidClient, match="alg must be one of ES256, ES256K, ES384, ES512"):
        read(parameters(unsigned({"alg": alg}, CLAIMS)), issuer=ISSUER, endpoint=TOKEN, rules=CURRENT, now=NOW)
    with pytest.raises(InvalidClient, match=r"alg must be one of ES256$"):
        read(parameters(unsigned({"alg": "ES384"}, CLAIMS)), issuer=ISSUER, endpoint=TOKEN, rules=FAPI2, now=NOW)


def test_a_generation_decides_whether_iat_and_jti_are_needed() -> None:
    """Spec "Generations": without iat the cap is measured from now."""
    without_iat = {name: CLAIMS[name] for name in ("iss", "sub", "aud", "jti")}
    found = of(FAPI2, {**without_iat, "exp": NOW + 600})
    assert (found.jti, found.issued_at) == ("one", NOW)
    with pytest.raises(InvalidClient, match="exp is 601 s after now; 600 s are allowed"):
        of(FAPI2, {**without_iat, "exp": NOW + 601})
    without_jti = {name: CLAIMS[name] for name in ("iss", "sub", "aud", "iat", "exp")}
    assert of(LEGACY, without_jti).jti is None
    with pytest.raises(InvalidClient, match="jti is missing"):
        of(FAPI2, without_jti)
    with pytest.raises(InvalidClient, match="iat is missing"):
        of(LEGACY, {**without_iat, "exp": NOW + 60})


def of(generation: Generation, claims: dict[str, Any]) -> Candidate:
    return read(parameters(sign(claims)), issuer=ISSUER, endpoint=TOKEN, rules=generation, now=NOW)


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=lambda one: one.name)
def test_the_endpoint_that_is_asked_may_be_an_audience_but_in_fapi2(generation: Generation) -> None:
    """D64: for a client that may name it, which is looked at once the client is known; no other endpoint's URL."""
    claims = {**CLAIMS, "aud": TOKEN}
    for aud in (PAR, [TOKEN], f"{TOKEN}/"):
        with pytest.raises(InvalidClient, match=f"aud must be the issuer {ISSUER}, as one string"):
            of(generation, {**CLAIMS, "aud": aud})
    if generation is not FAPI2:
        assert of(generation, claims).names_endpoint
        assert not of(generation, CLAIMS).names_endpoint
        return
    with pytest.raises(InvalidClient, match="aud must be the issuer"):
        of(generation, claims)


@pytest.mark.parametrize(
    ("until", "today", "taken"),
    [
        (LAST_DAY, LAST_DAY, True),
        (LAST_DAY, "2027-01-01", True),
        (LAST_DAY, "2027-04-01", False),
        (None, LAST_DAY, False),
    ],
)
def test_a_client_may_name_its_endpoint_until_its_last_day(until: str | None, today: str, taken: bool) -> None:
    """D8, D64: per client, off, with an end date."""
    client = msgspec.structs.replace(CLIENT, endpoint_audience_until=until)
    assert may_name_its_audience(of(CURRENT, CLAIMS), client, today=today)
    assert may_name_its_audience(of(CURRENT, {**CLAIMS, "aud": TOKEN}), client, today=today) is taken


def test_the_refusal_has_one_sentence_whatever_its_cause() -> None:
    """D28, D64: the words are those for an unknown client, too; the cause is for the log and developer mode."""
    named, honest = of(CURRENT, {**CLAIMS, "aud": TOKEN}), of(CURRENT, CLAIMS)
    for candidate in (named, honest):
        refusal = refuse_assertion(
            Reason.CLIENT_UNKNOWN, candidate, issuer=ISSUER, explanation=Explanation(cause="unknown")
        )
        assert "endpoint_audience_until" not in refusal.description
        assert (f"aud must be the issuer {ISSUER}" in refusal.description) is candidate.names_endpoint
        assert refusal.exact == "unknown"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "client_assertion_type must be urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ({"client_assertion": "a.b.c"}, "client_assertion_type must be"),
        ({"client_assertion_type": "jwt-bearer", "client_assertion": "a.b.c"}, "client_assertion_type must be"),
        ({"client_assertion_type": ASSERTION_TYPE}, "client_assertion is missing"),
        (parameters("no token"), "client_assertion: not a compact JWS"),
        (parameters(sign(CLAIMS), client_id="rp-2"), "client_id differs from the sub of client_assertion"),
    ],
)
def test_without_an_assertion_or_with_a_foreign_client_id_the_client_is_invalid(
    given: dict[str, str], reason: str
) -> None:
    """D5: invalid_client, status 401."""
    with pytest.raises(InvalidClient, match=reason) as refused:
        read(given, issuer=ISSUER, endpoint=TOKEN, rules=CURRENT, now=NOW)
    assert refused.value.status == 401


def keys_of(*jwks: dict[str, Any]) -> Any:
    return parse_client_key_set(key_set(*jwks))


def sig(curve: str = "P-256", number: int = 0, **members: Any) -> dict[str, Any]:
    return public_jwk(key(curve, number), use="sig", **members)


@pytest.mark.parametrize(("alg", "curve"), CURVES.items())
def test_a_signature_by_the_registered_key_makes_an_assertion(alg: str, curve: str) -> None:
    """The spent jti is remembered until exp, the clocks' difference and the margin of D49."""
    assert verify(candidate(alg=alg), keys_of(sig(curve)), now=NOW) == Assertion(
        client_id="rp-1",
        jti="one",
        issued_at=NOW,
        has_iat=True,
        remember_seconds=60 + 30 + 300,
        lifetime=60,
        names_endpoint=False,
    )


def test_without_kid_every_fitting_key_is_tried_and_with_kid_only_those_it_names() -> None:
    """D8: several keys with one kid: every fitting one."""
    both = keys_of(sig("P-384"), sig(number=1, kid="a"), sig(kid="a"), sig(number=2, kid="b"))
    for header in ({}, {"kid": "a"}):
        verify(candidate(header), both, now=NOW)
    for kid in ("b", "c", ""):
        with pytest.raises(KeyNotFound):
            verify(candidate({"kid": kid}), both, now=NOW)


@pytest.mark.parametrize(
    "jwks",
    [
        [],
        [sig(number=1)],
        [sig("secp256k1")],
        [sig("P-384"), sig("P-521")],
        [public_jwk(key(), use="enc", kid="enc")],
    ],
    ids=["no key", "another key", "the other curve of 256 bits", "larger curves", "a key to encrypt"],
)
def test_without_a_key_that_verifies_nothing_is_told_but_that(jwks: list[dict[str, Any]]) -> None:
    """D27, D28: the flow fetches the set anew, and then one sentence serves for every reason."""
    with pytest.raises(KeyNotFound):
        verify(candidate(), keys_of(*jwks), now=NOW)


def unverified_token(**claims: Any) -> str:
    """A token that no key has signed."""
    parts = (msgspec.json.encode({"alg": "ES256"}), msgspec.json.encode(claims), b"\0" * 64)
    return ".".join(base64url(part) for part in parts)


@pytest.mark.parametrize(
    ("parameters", "authorization", "claimed"),
    [
        ({"client_id": "a", "client_assertion": unverified_token(sub="b")}, (), "a"),
        ({"client_assertion": unverified_token(sub="b")}, (), "b"),
        ({"client_assertion": unverified_token(sub=7)}, (), ""),
        ({"client_assertion": unverified_token()}, (b"DPoP " + unverified_token(client_id="c").encode(),), "c"),
        ({}, (b"Bearer  " + unverified_token(client_id="c").encode() + b" ",), "c"),
        ({}, (b"Basic YTpi",), ""),
        ({}, (), ""),
    ],
)
def test_the_parameter_is_believed_before_the_assertion_and_that_before_the_unverified_token(
    parameters: dict[str, str], authorization: tuple[bytes, ...], claimed: str
) -> None:
    """RFC 7523 §3: the sub of an assertion is the client_id; RFC 9068 §2.2: a token names its client."""
    assert claimed_client_id(parameters, authorization) == claimed


@given(st.dictionaries(st.sampled_from(["client_id", "client_assertion"]), st.text()), st.lists(st.binary(max_size=80)))
def test_whatever_was_sent_there_is_a_text_and_no_error(parameters: dict[str, str], authorization: list[bytes]) -> None:
    """D48: the log of a refusal must not become a fault of its own."""
    assert isinstance(claimed_client_id(parameters, authorization), str)
