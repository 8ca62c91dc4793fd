"""The errors of the protocol and their public texts (RFC 6749 §5.2, Spec 7, D5, D28)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.failures import StoreUnavailable
from corpid.rules.oauth import errors
from corpid.rules.oauth.errors import (
    Attributed,
    InvalidRequest,
    OAuthError,
    RequestOf,
    public_members,
    reason_of,
)
from corpid.rules.oauth.refusals import Reason

STATUSES = {
    "invalid_request": 400,
    "invalid_client": 401,
    "invalid_grant": 400,
    "invalid_scope": 400,
    "unauthorized_client": 400,
    "unsupported_grant_type": 400,
    "invalid_dpop_proof": 401,
    "use_dpop_nonce": 400,
    "invalid_token": 401,
    "insufficient_scope": 403,
    "server_error": 500,
    "temporarily_unavailable": 503,
}
CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, OAuthError)]


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_each_code_has_the_status_of_the_table(code: str, status: int) -> None:
    """D5, Spec 7: one class per code; 429 is one of temporarily_unavailable's own."""
    (found,) = [one for one in CLASSES if one.__base__ is OAuthError and one.code == code]
    assert found.status == status


def test_a_detail_is_for_the_log_alone() -> None:
    error = InvalidRequest(Reason.PARAMETER_MISSING, "the public text", detail="the private text")
    assert str(error) == "the public text"
    assert "private" not in str(public_members(error, "r1", catalogue=None))


@given(st.text(max_size=500), st.text("0123456789abcdef", min_size=1, max_size=40))
def test_a_description_is_printable_ascii_of_300_characters_that_ends_with_the_reference(
    text: str, reference: str
) -> None:
    """D28: without quote and backslash, since it stands in a header too."""
    plain = InvalidRequest(Reason.PARAMETER_MISSING, text)
    explained = InvalidRequest(Reason.PARAMETER_MISSING, text).with_cause(received=text, expected=text, registered=text)
    for error, catalogue in ((plain, None), (plain, "https://op.example/x"), (explained, "https://op.example/x")):
        description = public_members(error, reference, catalogue=catalogue)["error_description"]
        assert re.fullmatch(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{1,300}", description)
        assert description.endswith(f" (reference {reference})")


def test_developer_mode_tells_the_cause_and_links_to_a_catalogue_if_it_has_one() -> None:
    """D28, D66: `corpid` without the developer kit has no catalogue of reasons."""
    error = InvalidRequest(Reason.RESPONSE_TYPE, "must be code").with_cause(received="token", expected="code")
    assert public_members(error, "r1", catalogue=None) == {
        "error": "invalid_request", "error_description": "must be code (reference r1)"
    }  # fmt: skip
    assert public_members(error, "r1", catalogue="") == {
        "error": "invalid_request", "error_description": "must be code; received token, expected code (reference r1)"
    }  # fmt: skip
    assert public_members(error, "r1", catalogue="https://op.example/e") == {
        "error": "invalid_request",
        "error_description": "must be code; received token, expected code (reference r1)",
        "error_uri": "https://op.example/e#response_type",
    }


def test_a_short_description_is_kept_whole() -> None:
    assert (
        public_members(InvalidRequest(Reason.PARAMETER_MISSING, 'say "x"\r\n\\'), "r1", catalogue=None)[
            "error_description"
        ]
        == "say 'x'''' (reference r1)"
    )


@pytest.mark.parametrize("raised", [InvalidRequest(Reason.PARAMETER_MISSING, "x"), StoreUnavailable("x")])
def test_what_is_raised_in_a_request_of_a_client_knows_whose_it_is(raised: Attributed) -> None:
    """D57: the log line of a refusal names the client once it has authenticated."""
    with pytest.raises(type(raised)), RequestOf("rp"):
        raise raised
    assert raised.client_id == "rp"


def test_a_reason_that_a_record_of_another_version_kept_is_read_too() -> None:
    """Nodes of two versions serve side by side: docs/upgrades.md."""
    assert reason_of(Reason.CANCELLED.code) is Reason.CANCELLED
    assert reason_of("") is reason_of("of_a_later_version") is Reason.SIGN_IN_REFUSED
