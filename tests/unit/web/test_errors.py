"""What becomes of an exception at the edge (D28, D48)."""

from __future__ import annotations

from corpid.rules.oauth.errors import InvalidRequest
from corpid.rules.oauth.refusals import Reason
from corpid.web.pages.errors import as_oauth_error


def test_of_an_unforeseen_exception_the_log_gets_type_and_place_not_the_message() -> None:
    """D48: a message may hold an identity number or a token."""
    try:
        int("S1234567A")
    except ValueError as raised:
        error = as_oauth_error(raised)
    assert error.code == "server_error"
    assert error.detail.startswith("ValueError < ")
    assert "test_errors.py" in error.detail
    assert "S1234567A" not in error.detail + error.description


def test_an_error_of_the_protocol_stays_as_it_is() -> None:
    error = InvalidRequest(Reason.PARAMETER_MISSING, "state is missing", detail="why")
    assert as_oauth_error(error) is error
