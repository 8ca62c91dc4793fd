"""The checks that the inspector shows: each refusal of an endpoint ends exactly one of them (D28, D66)."""

from __future__ import annotations

from collections import Counter

import pytest

from corpid.rules.oauth.refusals import Reason
from corpid_dev.rules.checks import CHECKS, Check, CheckState, failed_check, states

ELSEWHERE = {
    "step_unknown", "form_of_another_site", "form_of_another_browser", "sandbox_order", "simulation", "api_client_entity",
    "provisioning_token", "client_refused",
}  # fmt: skip
"""reasons of pages, the admin API and SCIM, whose requests the inspector does not keep"""


def checks_of(endpoint: str) -> list[Check]:
    return [each for part in CHECKS[endpoint] for each in part.checks]


@pytest.mark.parametrize("endpoint", CHECKS)
def test_a_reason_stands_in_one_check_of_an_endpoint(endpoint: str) -> None:
    """D66: one check is red; a parameter that is missing is found by the check that names it, or by the other one."""
    counted = Counter(
        (reason.code, name)
        for each in checks_of(endpoint)
        for reason in each.reasons
        for name in each.parameters or {""}
    )
    assert [each for each, count in counted.items() if count > 1] == []
    assert [each.name for each in checks_of(endpoint) if not each.reasons] == []
    names = Counter(each.name for each in checks_of(endpoint))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_reason_of_the_protocol_stands_in_a_check() -> None:
    """D28: the catalogue is closed, and so is the table."""
    every = {reason.code for endpoint in CHECKS for each in checks_of(endpoint) for reason in each.reasons}
    assert {each.code for each in Reason} - every == ELSEWHERE


def test_a_missing_parameter_is_found_where_it_is_looked_for() -> None:
    """Spec "The order of a request": client_id before the proof, all others after it."""
    first = failed_check("par", "parameter_missing", "parameter client_id is missing")
    other = failed_check("par", "parameter_missing", "parameter nonce is missing")
    assert first is not None
    assert other is not None
    assert (first.name, other.name) == ("client_id is there", "Every required parameter is there")


def test_what_failed_at_the_provider_says_nothing_of_other_checks() -> None:
    """D66: a store that is down may be met anywhere."""
    found = [state for _, judged in states("token", "store_unavailable", present=()) for _, state in judged]
    assert set(found) == {CheckState.UNKNOWN, CheckState.FAILED}
    ordered = [state for _, judged in states("token", "", present=(), known=False) for _, state in judged]
    assert set(ordered) == {CheckState.UNKNOWN}


def test_before_the_person_has_signed_in_the_checks_of_the_sign_in_are_not_reached() -> None:
    """D66: authorize led to our page."""
    found = {
        part.title: [state for _, state in judged] for part, judged in states("authorize", "", present=(), pending=True)
    }
    assert set(found["Sign-in"]) == {CheckState.NOT_REACHED}
    assert CheckState.NOT_REACHED not in found["Request"]
