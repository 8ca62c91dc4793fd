"""What the browser carries back to the redirect URI (RFC 6749 §3.1.2, §4.1.2, RFC 9207, D38)."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.protocol.authorization_response import failure, success
from corpid.protocol.errors import AccessDenied

CALLBACK = "https://rp.example/callback"


def query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)


def test_a_success_carries_code_and_state() -> None:
    url = success(CALLBACK, code="c123", state="a state", iss=None).url
    assert url == f"{CALLBACK}?code=c123&state=a+state"


def test_iss_stands_in_it_only_where_discovery_says_so() -> None:
    assert query(success(CALLBACK, code="c", state=None, iss="https://op.example").url) == [
        ("code", "c"),
        ("iss", "https://op.example"),
    ]


@pytest.mark.parametrize("registered", ["a=1", "a=1&b=%20x", "a", "a=%26b"])
def test_a_registered_query_is_kept_as_it_is_and_ours_appended(registered: str) -> None:
    url = success(f"{CALLBACK}?{registered}", code="c", state="s", iss=None).url
    assert url == f"{CALLBACK}?{registered}&code=c&state=s"


def test_a_failure_tells_the_error_why_and_the_reference() -> None:
    url = failure(CALLBACK, AccessDenied("cancelled"), reference="r1", state="s", iss="https://op.example").url
    assert query(url) == [
        ("error", "access_denied"),
        ("error_description", "cancelled (reference r1)"),
        ("state", "s"),
        ("iss", "https://op.example"),
    ]


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1))
def test_a_state_is_returned_unchanged_whatever_it_holds(state: str) -> None:
    """Spec 4.2: and nothing in it becomes a parameter, a fragment or another host."""
    url = success(CALLBACK, code="c", state=state, iss=None).url
    assert query(url) == [("code", "c"), ("state", state)]
    assert url.startswith(CALLBACK + "?")
    assert "#" not in url
    assert url.isprintable()
