"""Times and identifiers inside JWTs (RFC 7519 §2, §4.1, D33)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.jwt_claims import BadClaim, jti, numeric_date, seconds


@pytest.mark.parametrize("value", [0, -0.0, 1, 1.5, 1_800_000_000, 2**53, float(2**53)])
def test_a_time_is_a_number_from_zero_to_two_to_the_fifty_third(value: float) -> None:
    assert numeric_date({"exp": value}, "exp") == value


@pytest.mark.parametrize(
    "value", [None, True, False, "1800000000", [], {}, -1, -0.5, 2**53 + 1, 2**70, float("inf"), float("nan")]
)
def test_anything_else_is_no_time(value: object) -> None:
    """D33: no boolean, though Python counts with them."""
    with pytest.raises(BadClaim, match="exp must be a number of seconds"):
        numeric_date({"exp": value}, "exp")


def test_an_absent_claim_is_none() -> None:
    assert numeric_date({"iat": 1}, "exp") is None
    assert jti({}) is None


@pytest.mark.parametrize("value", ["a", "x" * 256, "ü", "\0"])
def test_an_identifier_has_one_to_256_characters(value: str) -> None:
    assert jti({"jti": value}) == value


@pytest.mark.parametrize("value", ["", "x" * 257, None, 1, True, ["a"], {}])
def test_anything_else_is_no_identifier(value: object) -> None:
    with pytest.raises(BadClaim, match="jti must be a string of 1 to 256 characters"):
        jti({"jti": value})


@pytest.mark.parametrize(("difference", "text"), [(0, "0 s"), (30.4, "30 s"), (3600, "3600 s")])
def test_a_difference_of_clocks_is_told_in_seconds(difference: float, text: str) -> None:
    assert seconds(difference) == text
