"""Proof Key for Code Exchange, S256 only (RFC 7636, D18)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.token_request import NO_CHALLENGE, is_verifier, read_challenge, s256, validate_challenge
from tests.unit.rules.oauth.given import CHALLENGE, VERIFIER


def test_the_challenge_of_a_verifier_is_that_of_rfc_7636_appendix_b() -> None:
    assert s256(VERIFIER) == CHALLENGE
    assert validate_challenge(CHALLENGE, "S256") == CHALLENGE


@pytest.mark.parametrize("text", ["a" * 43, "a" * 128, "-._~" * 11, VERIFIER])
def test_a_verifier_has_43_to_128_unreserved_characters(text: str) -> None:
    assert is_verifier(text)


@pytest.mark.parametrize("text", ["", "a" * 42, "a" * 129, "a" * 43 + "\n", "a" * 42 + "+", "a" * 42 + "ü", " " * 43])
def test_anything_else_is_no_verifier(text: str) -> None:
    assert not is_verifier(text)


@pytest.mark.parametrize("method", ["plain", "s256", "", "S512"])
def test_only_s256_is_a_method(method: str) -> None:
    with pytest.raises(InvalidRequest, match="code_challenge_method must be S256"):
        validate_challenge(CHALLENGE, method)


def test_only_where_pkce_is_optional_a_request_may_come_without_it() -> None:
    """Spec "LEGACY without PKCE": what was sent is verified in any case."""
    assert read_challenge({"state": "s"}, optional=True) == NO_CHALLENGE
    with pytest.raises(InvalidRequest, match="parameter code_challenge is missing"):
        read_challenge({"state": "s"}, optional=False)
    sent = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    assert read_challenge(sent, optional=True) == read_challenge(sent, optional=False) == CHALLENGE


@pytest.mark.parametrize(
    "sent",
    [{"code_challenge": CHALLENGE}, {"code_challenge_method": "S256"}, {"code_challenge": "", "code_challenge_method": "S256"}],
)  # fmt: skip
@pytest.mark.parametrize("optional", [True, False])
def test_half_of_a_challenge_is_refused(sent: dict[str, str], *, optional: bool) -> None:
    """RFC 7636 §4.3: without a method it would be plain."""
    with pytest.raises(InvalidRequest):
        read_challenge(sent, optional=optional)


@pytest.mark.parametrize(
    "text",
    [
        "",
        CHALLENGE[:-1],
        CHALLENGE + "A",
        CHALLENGE + "=",
        CHALLENGE[:-1] + "N",
        "+" + CHALLENGE[1:],
        " " + CHALLENGE[1:],
        VERIFIER * 2,
    ],
)
def test_a_challenge_is_exactly_43_characters_of_canonical_base64url(text: str) -> None:
    """D18: N where M ends the text has bits left over; two spellings would be two keys of one code."""
    with pytest.raises(InvalidRequest, match="code_challenge must be the 43 base64url characters"):
        validate_challenge(text, "S256")
