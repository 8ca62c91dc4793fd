"""What the browser carries back to the redirect URI, and how (RFC 6749 §3.1.2, §4.1.2, RFC 9207, D38)."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.oauth.authorization_request import (
    ReturnAddress,
    address_response,
    create_code_response,
    create_error_response,
)
from corpid.rules.oauth.errors import AccessDenied
from corpid.rules.oauth.refusals import Reason
from tests.unit.rules.oauth.given import request

CALLBACK = "https://rp.example/callback"
ISSUER = "https://op.example"


def address(
    uri: str = CALLBACK, mode: str = "query", state: str | None = None, iss: str | None = None
) -> ReturnAddress:
    return ReturnAddress(redirect_uri=uri, mode=mode, state=state, iss=iss)


def query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)


def test_a_success_carries_code_and_state() -> None:
    answer = create_code_response(address(state="a state"), code="c123")
    assert answer.url == f"{CALLBACK}?code=c123&state=a+state"
    assert not answer.posted


def test_iss_stands_in_it_only_where_discovery_says_so() -> None:
    assert query(create_code_response(address(iss=ISSUER), code="c").url) == [("code", "c"), ("iss", ISSUER)]


@pytest.mark.parametrize("registered", ["a=1", "a=1&b=%20x", "a", "a=%26b"])
def test_a_registered_query_is_kept_as_it_is_and_ours_appended(registered: str) -> None:
    there = address(f"{CALLBACK}?{registered}", state="s")
    assert create_code_response(there, code="c").url == f"{CALLBACK}?{registered}&code=c&state=s"


def test_a_failure_tells_the_error_why_and_the_reference() -> None:
    url = create_error_response(
        address(state="s", iss=ISSUER), AccessDenied(Reason.CANCELLED, "cancelled"), reference="r1"
    ).url
    assert query(url) == [
        ("error", "access_denied"),
        ("error_description", "cancelled (reference r1)"),
        ("state", "s"),
        ("iss", ISSUER),
    ]


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1), st.sampled_from(["?", "#"]))
def test_a_state_is_returned_unchanged_whatever_it_holds(state: str, separator: str) -> None:
    """Spec 4.2: and nothing in it becomes a parameter, a fragment or another host."""
    url = create_code_response(address(mode={"?": "query", "#": "fragment"}[separator], state=state), code="c").url
    base, found, rest = url.partition(separator)
    assert (base, found) == (CALLBACK, separator)
    assert parse_qsl(rest, strict_parsing=True) == [("code", "c"), ("state", state)]
    assert "#" not in rest
    assert url.isprintable()


@pytest.mark.parametrize("registered", ["", "?a=1"])
def test_a_fragment_stands_after_the_registered_query(registered: str) -> None:
    """OAuth 2.0 Multiple Response Type Encoding Practices §2.1."""
    answer = create_code_response(address(CALLBACK + registered, mode="fragment", state="s"), code="c")
    assert answer.url == f"{CALLBACK}{registered}#code=c&state=s"
    assert not answer.posted


@pytest.mark.parametrize("state", ["s", "<&\"'>", "a b"])
def test_what_is_posted_is_told_as_it_is_and_to_the_redirect_uri_as_registered(state: str) -> None:
    """OAuth 2.0 Form Post Response Mode §2."""
    answer = create_code_response(address(f"{CALLBACK}?a=1", mode="form_post", state=state, iss=ISSUER), code="c")
    assert answer.posted
    assert answer.redirect_uri == f"{CALLBACK}?a=1"
    assert dict(answer.parameters) == {"code": "c", "state": state, "iss": ISSUER}


def test_a_request_is_answered_where_and_as_it_asked() -> None:
    made = request(response_mode="fragment", state="s")
    assert address_response(made, iss=ISSUER) == address(mode="fragment", state="s", iss=ISSUER)
