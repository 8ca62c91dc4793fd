"""What an explanation shows of a received value, and what it leaves out (D28, D48)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.oauth.errors import abbreviate_hash, list_values, shorten_value, url_difference, without_query


@pytest.mark.parametrize(
    ("url", "left"),
    [
        ("https://rp.example/cb?code=secret", "https://rp.example/cb"),
        ("https://rp.example/cb#secret", "https://rp.example/cb"),
        ("https://user:secret@rp.example/cb", "https://rp.example/cb"),
        ("https://user:secret@rp.example", "https://rp.example"),
        ("https://rp.example/a@b", "https://rp.example/a@b"),
        ("not a URL?secret", "not a URL"),
        ("", "nothing"),
        (None, "nothing"),
        (["https://rp.example"], '["https://rp.example"]'),
    ],
)
def test_a_url_is_shown_without_credentials_query_and_fragment(url: object, left: str) -> None:
    """D48."""
    assert without_query(url) == left


@given(st.text(max_size=300))
def test_whatever_was_received_is_one_short_printable_line(text: str) -> None:
    """D28: printable, whatever a caller sends."""
    for made in (shorten_value(text), without_query(text), list_values([text, text]), abbreviate_hash(text)):
        assert made.isprintable()
        assert len(made) <= 2100


@pytest.mark.parametrize(
    ("received", "difference"),
    [
        ("https://rp.example/cb/", "it differs by a slash at the end of the path"),
        ("http://rp.example/cb", ""),
        ("https://rp.example:8443/cb", "it differs in the port alone"),
        ("https://www.rp.example/cb", "it differs in the host alone"),
        ("https://rp.example/callback", "it differs in the path alone"),
        ("https://rp.example/cb?x=1", "it differs in the query alone"),
        ("https://rp.example/cb#", "it differs in its spelling alone, such as upper case, a default port or an empty query"),
        ("https://RP.example:443/cb", "it differs in its spelling alone, such as upper case, a default port or an empty query"),
        ("https://other.example/x", ""),
        ("https://rp.example:port/cb", ""),
        ("https://[rp.example/cb", ""),
    ],
)  # fmt: skip
def test_how_a_redirect_uri_differs_from_the_closest_one(received: str, difference: str) -> None:
    """D38: exact strings, so the difference can be one character."""
    assert url_difference(received, ["https://far.example/away", "https://rp.example/cb"]) == difference


def test_localhost_and_the_loopback_address_are_two_hosts() -> None:
    """D38: the mistake that developers make."""
    found = url_difference("http://localhost:8410/callback", ["http://127.0.0.1:8410/callback"])
    assert found == "it differs in the host alone"


def test_a_long_list_is_cut() -> None:
    assert list_values("abcdef") == "a b c d and 2 more"
    assert list_values([]) == "nothing"
