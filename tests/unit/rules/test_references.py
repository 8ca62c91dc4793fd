"""References of requests, in whatever somebody pastes (D28, D82)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpid.rules.references import find_reference, make_reference, moment_of

NOW = 1_800_000_000.0
REFERENCE = make_reference(NOW, 0xABCDEF)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_reference_says_when_its_request_came() -> None:
    """D82."""
    assert REFERENCE == "6b49d20000abcdef"
    assert moment_of(REFERENCE, now=NOW + 86_400) == NOW


@pytest.mark.parametrize("reference", ["0" * 16, "f" * 16, make_reference(NOW + 7200, 1), "5f00000000000000"])
def test_a_reference_of_no_time_that_can_be_names_none(reference: str) -> None:
    """D82: those of earlier versions were random."""
    assert moment_of(reference, now=NOW) == 0


@pytest.mark.parametrize(
    "text",
    [
        REFERENCE,
        f"  {REFERENCE.upper()}\n",
        f"the code is not known: use it once (reference {REFERENCE})",
        f"Reference: {REFERENCE}.",
        f"参考编号 {REFERENCE}",
        json.dumps({"time": "2027-01-15T08:00:00Z", "request_id": REFERENCE, "trace_id": TRACE}),
        json.dumps({"trace_id": TRACE[:16], "request_id": REFERENCE}),
        f"request_id={REFERENCE} trace_id={TRACE[:16]}",
        f"error=invalid_grant&error_description=unknown+%28reference+{REFERENCE}%29".replace("+", " "),
    ],
)
def test_a_reference_is_found_on_a_page_in_a_description_and_in_a_line_of_the_log(text: str) -> None:
    """D82."""
    assert find_reference(text) == REFERENCE


@pytest.mark.parametrize(
    "text", ["", "acme", TRACE, f"x{REFERENCE}", f"{REFERENCE}-1", f"{REFERENCE}0", "\uff16b49d20000abcdef"]
)
def test_what_only_contains_its_digits_is_no_reference(text: str) -> None:
    """D82: a trace, a key and a longer identifier are searched as they are."""
    assert find_reference(text) == ""


@given(st.text())
def test_whatever_is_pasted_a_reference_is_empty_or_sixteen_digits(text: str) -> None:
    """D82: it becomes part of an address."""
    found = find_reference(text)
    assert found == "" or (len(found) == 16 and set(found) <= set("0123456789abcdef"))
