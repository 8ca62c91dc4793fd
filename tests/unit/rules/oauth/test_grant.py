"""What a token request must bring, and whether it fits the grant (RFC 6749 §4.1.3, Spec 4.3, D6, D18, D19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from corpid.rules.oauth.errors import InvalidDPoPProof, InvalidGrant, InvalidRequest, UnsupportedGrantType
from corpid.rules.oauth.generations import CURRENT, LEGACY
from corpid.rules.oauth.token_request import (
    FAILED,
    NO_CHALLENGE,
    TOKEN_PARAMETERS,
    TokenRequest,
    redeem,
    require_verifier,
    validate_token_request,
)
from tests.unit.rules.oauth.given import CHALLENGE, JKT, VERIFIER, grant

if TYPE_CHECKING:
    from corpid.rules.oauth.records import Grant

PARAMETERS = {
    "grant_type": "authorization_code",
    "code": "c" + "x" * 43,
    "redirect_uri": "https://rp.example/callback",
    "code_verifier": VERIFIER,
}
REQUEST = TokenRequest(code=PARAMETERS["code"], redirect_uri=PARAMETERS["redirect_uri"], challenge=CHALLENGE)


def redeemed(
    taken: Grant | None = None,
    request: TokenRequest = REQUEST,
    *,
    jkt: str | None = JKT,
    mismatch_code: str = "invalid_grant",
) -> Grant:
    return redeem(taken or grant(), request, jkt=jkt, mismatch_code=mismatch_code)


def test_a_token_request_is_read_with_the_challenge_of_its_verifier() -> None:
    assert validate_token_request(PARAMETERS, CURRENT) == REQUEST


@pytest.mark.parametrize("name", ["grant_type", "code", "redirect_uri"])
def test_a_missing_parameter_is_named(name: str) -> None:
    given = {key: value for key, value in PARAMETERS.items() if key != name}
    with pytest.raises(InvalidRequest, match=f"parameter {name} is missing"):
        validate_token_request(given, CURRENT)


@pytest.mark.parametrize("value", ["refresh_token", "client_credentials", "password", "Authorization_code", " "])
def test_there_is_one_grant_type(value: str) -> None:
    with pytest.raises(UnsupportedGrantType, match="grant_type must be authorization_code"):
        validate_token_request({**PARAMETERS, "grant_type": value}, CURRENT)


@pytest.mark.parametrize("verifier", [None, "x" * 42, "x" * 129, "x" * 43 + " ", "ü" * 43])
def test_a_missing_or_malformed_verifier_is_the_error_that_the_generation_names(verifier: str | None) -> None:
    """Spec "Generations": invalid_request, in FAPI2 invalid_grant."""
    given = {key: value for key, value in {**PARAMETERS, "code_verifier": verifier}.items() if value is not None}
    with pytest.raises(InvalidRequest, match="code_verifier must be 43 to 128"):
        validate_token_request(given, CURRENT)
    with pytest.raises(InvalidGrant, match="code_verifier must be 43 to 128"):
        validate_token_request(given, msgspec.structs.replace(CURRENT, bad_verifier_code="invalid_grant"))


def test_whether_a_verifier_may_be_missing_is_decided_when_the_client_is_known() -> None:
    """Spec "LEGACY without PKCE"; a client whose PKCE is required is answered as the generation says."""
    bare = validate_token_request({key: value for key, value in PARAMETERS.items() if key != "code_verifier"}, LEGACY)
    assert bare.challenge == NO_CHALLENGE
    require_verifier(bare, LEGACY, pkce_optional=True)
    with pytest.raises(InvalidRequest, match="code_verifier must be 43 to 128"):
        require_verifier(bare, LEGACY, pkce_optional=False)
    require_verifier(validate_token_request(PARAMETERS, LEGACY), LEGACY, pkce_optional=False)
    with pytest.raises(InvalidRequest, match="code_verifier must be 43 to 128"):
        validate_token_request({**PARAMETERS, "code_verifier": "x" * 42}, LEGACY)


def test_a_code_that_is_too_long_to_be_one_is_an_unknown_code() -> None:
    """D19: one public sentence."""
    assert validate_token_request({**PARAMETERS, "code": "c" * 512}, CURRENT).code == "c" * 512
    with pytest.raises(InvalidGrant) as refused:
        validate_token_request({**PARAMETERS, "code": "c" * 513}, CURRENT)
    assert refused.value.description == FAILED


def test_the_grant_is_redeemed_by_the_redirect_uri_and_the_key_of_its_request() -> None:
    assert redeemed() == grant()


def test_a_grant_that_no_key_was_bound_to_is_bound_to_the_key_of_the_token_request() -> None:
    """RFC 9449 §5: what is issued under DPoP is never unbound."""
    assert redeemed(grant(jkt=None)) == grant()
    assert redeemed(grant(jkt=None), jkt=None) == grant(jkt=None)


@pytest.mark.parametrize(
    ("uri", "jkt", "detail"),
    [
        ("https://rp.example/callback/", JKT, "another redirect_uri"),
        ("https://rp.example/other", JKT, "another redirect_uri"),
        ("https://rp.example/callback", JKT[:-1] + "M", "another DPoP key"),
        ("https://rp.example/callback", None, "another DPoP key"),
        ("https://rp.example/callback", "", "another DPoP key"),
    ],
)
def test_another_redirect_uri_or_key_is_an_invalid_grant_in_the_same_sentence(
    uri: str, jkt: str | None, detail: str
) -> None:
    """D6, D19: which of them it was stands in the log alone."""
    with pytest.raises(InvalidGrant) as refused:
        redeemed(request=msgspec.structs.replace(REQUEST, redirect_uri=uri), jkt=jkt)
    assert refused.value.description == FAILED
    assert detail in refused.value.exact


def test_another_key_is_the_error_that_the_deployment_names_and_another_redirect_uri_is_not() -> None:
    """D6: preset public-service. It says what is wrong, and nothing of codes (D28)."""
    with pytest.raises(InvalidDPoPProof) as refused:
        redeemed(jkt=JKT[:-1] + "M", mismatch_code="invalid_dpop_proof")
    assert refused.value.status == 401
    assert "its key is not the one that was bound at the authorization request" in refused.value.description
    assert "code" not in refused.value.description
    elsewhere = msgspec.structs.replace(REQUEST, redirect_uri="https://rp.example/other")
    with pytest.raises(InvalidGrant):
        redeemed(request=elsewhere, jkt=JKT[:-1] + "M", mismatch_code="invalid_dpop_proof")


def test_the_parameters_that_are_read_are_those_of_the_specification() -> None:
    """Spec 4.3."""
    table = {"client_id", "client_assertion_type", "client_assertion", *PARAMETERS}
    assert table <= TOKEN_PARAMETERS
