"""The Authorization header of a resource request (RFC 9110 §11.6.2, RFC 9449 §7.1, Spec 7.4, D24)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.errors import CredentialsRequired, InvalidRequest, InvalidToken
from corpid.rules.oauth.tokens import access_token


@pytest.mark.parametrize("header", [b"DPoP a.b-c_d", b"dpop a.b-c_d", b"DPOP   a.b-c_d", b" DPoP a.b-c_d "])
def test_the_scheme_is_compared_without_case(header: bytes) -> None:
    assert access_token([header], "DPoP") == "a.b-c_d"


@pytest.mark.parametrize(
    "headers", [[], [b""], [b"Bearer a.b.c"], [b"Basic YTpi"], [b"DPoPa.b.c"], [b"a.b.c"], [b"DPoP\xff a.b.c"]]
)
def test_without_credentials_or_with_another_scheme_they_are_asked_for(headers: list[bytes]) -> None:
    """Spec 7.4: 401 with no error code, description or body."""
    with pytest.raises(CredentialsRequired) as asked:
        access_token(headers, "DPoP")
    assert asked.value.status == 401


@pytest.mark.parametrize("rest", [b"", b" ", b" a b", b" a,b", b' token="a"', b" \xff", b" a\x00b", b" =="])
def test_what_follows_the_scheme_and_is_no_token_is_an_invalid_token(rest: bytes) -> None:
    with pytest.raises(InvalidToken, match="missing or malformed"):
        access_token([b"DPoP" + rest], "DPoP")


def test_several_headers_are_a_malformed_request() -> None:
    with pytest.raises(InvalidRequest, match="more than one Authorization header"):
        access_token([b"DPoP a.b.c", b"DPoP a.b.c"], "DPoP")
