"""The client that a request says it is of, before anything is verified (D48, D57)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.jose.encoding import base64url
from corpid.rules.oauth.client_assertion import claimed_client_id


def token(**claims: Any) -> str:
    """A token that no key has signed."""
    parts = (msgspec.json.encode({"alg": "ES256"}), msgspec.json.encode(claims), b"\0" * 64)
    return ".".join(base64url(part) for part in parts)


@pytest.mark.parametrize(
    ("parameters", "authorization", "claimed"),
    [
        ({"client_id": "a", "client_assertion": token(sub="b")}, (), "a"),
        ({"client_assertion": token(sub="b")}, (), "b"),
        ({"client_assertion": token(sub=7)}, (), ""),
        ({"client_assertion": token()}, (b"DPoP " + token(client_id="c").encode(),), "c"),
        ({}, (b"Bearer  " + token(client_id="c").encode() + b" ",), "c"),
        ({}, (b"Basic YTpi",), ""),
        ({}, (), ""),
    ],
)
def test_the_parameter_is_believed_before_the_assertion_and_that_before_the_token(
    parameters: dict[str, str], authorization: tuple[bytes, ...], claimed: str
) -> None:
    """RFC 7523 §3: the sub of an assertion is the client_id; RFC 9068 §2.2: a token names its client."""
    assert claimed_client_id(parameters, authorization) == claimed


@given(st.dictionaries(st.sampled_from(["client_id", "client_assertion"]), st.text()), st.lists(st.binary(max_size=80)))
def test_whatever_was_sent_there_is_a_text_and_no_error(parameters: dict[str, str], authorization: list[bytes]) -> None:
    """D48: the log of a refusal must not become a fault of its own."""
    assert isinstance(claimed_client_id(parameters, authorization), str)
