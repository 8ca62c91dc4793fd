"""Relying parties refuse in several ways; the report takes none of them for a crash or for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid_dev.readiness.visitor import SENT_AGAIN, Marker
from corpid_dev.relying_party.interfaces import CURRENT
from tests.readiness.broken_rp import SIGNED_IN, RelyingParty
from tests.readiness.scene import RunningDemo, broken, demo, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator


CASES = ("state-altered", "other-browser", "callback-repeated", "id-token-nonce", "userinfo-error", "token-error")


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDemo]:
    with demo(tmp_path_factory.mktemp("demo"), CURRENT) as made:
        yield made


@pytest.fixture(scope="module")
def registered(provider: RunningDemo) -> Iterator[RelyingParty]:
    with broken(provider) as made:
        yield made


@pytest.fixture
def rp(registered: RelyingParty) -> RelyingParty:
    registered.become("")
    return registered


@pytest.mark.full
def test_a_new_sign_in_and_a_start_page_are_refusals(provider: RunningDemo, rp: RelyingParty) -> None:
    rp.after_failure = "/"
    assert not verdicts(provider.checked(f"{rp.home}/login", CASES))
    rp.after_failure = "/login"
    report = provider.checked(f"{rp.home}/login", CASES)
    assert not verdicts(report)
    assert all(SENT_AGAIN in each.finding.seen for each in report.results[1:])


@pytest.mark.full
def test_a_new_sign_in_in_place_of_a_session_is_a_failure(provider: RunningDemo, rp: RelyingParty) -> None:
    rp.become("key-rotated")
    rp.after_failure = "/login"
    found = verdicts(provider.checked(f"{rp.home}/login", ["key-rotated"], cool_down=0.1))
    assert SENT_AGAIN in found["key-rotated"]
    assert found["key-rotated"].startswith("failed")


@pytest.mark.full
def test_an_ordinary_sign_in_that_fails_is_a_finding(provider: RunningDemo, rp: RelyingParty) -> None:
    """And no question of how a session is recognised, which the developer of a broken login cannot answer."""
    rp.become("baseline")
    assert verdicts(provider.checked(f"{rp.home}/login", [])) == {
        "baseline": "failed: no session began: status 400, “Sign-in failed”"
    }


@pytest.mark.full
def test_a_session_behind_a_page_that_says_it_failed_is_found(provider: RunningDemo, rp: RelyingParty) -> None:
    rp.session_before_userinfo = True
    found = verdicts(
        provider.checked(f"{rp.home}/login", ["userinfo-sub", "id-token-nonce"], marker=Marker(text=SIGNED_IN))
    )
    assert found == {"userinfo-sub": "failed: a session began: status 200, “Signed in as somebody”"}
