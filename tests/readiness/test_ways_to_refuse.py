"""Relying parties refuse in several ways; the report takes none of them for a crash or for a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpid.sandbox.interfaces import CURRENT
from corpid.sandbox.readiness.visitor import SENT_AGAIN
from tests.readiness.broken_rp import running
from tests.readiness.scene import demo, verdicts

if TYPE_CHECKING:
    from pathlib import Path

CASES = ("state-altered", "other-browser", "callback-repeated", "id-token-nonce", "userinfo-error", "token-error")


@pytest.mark.full
def test_a_new_sign_in_and_a_start_page_are_refusals(tmp_path: Path) -> None:
    with demo(tmp_path, CURRENT) as provider, running(issuer=provider.issuer) as rp:
        provider.apply(rp.registration("HARBOUR-PERMIT"))
        rp.after_failure = "/"
        assert not verdicts(provider.checked(f"{rp.home}/login", CASES))
        rp.after_failure = "/login"
        report = provider.checked(f"{rp.home}/login", CASES)
        assert not verdicts(report)
        assert all(SENT_AGAIN in each.finding.seen for each in report.results[1:])


@pytest.mark.full
def test_a_new_sign_in_in_place_of_a_session_is_a_failure(tmp_path: Path) -> None:
    with demo(tmp_path, CURRENT) as provider, running(issuer=provider.issuer) as rp:
        provider.apply(rp.registration("HARBOUR-PERMIT"))
        rp.after_failure = "/login"
        rp.become("key-rotated")
        found = verdicts(provider.checked(f"{rp.home}/login", ["key-rotated"], cool_down=0.1))
        assert SENT_AGAIN in found["key-rotated"]
        assert found["key-rotated"].startswith("failed")


@pytest.mark.full
def test_an_ordinary_sign_in_that_fails_is_a_finding(tmp_path: Path) -> None:
    """And no question of how a session is recognised, which the developer of a broken login cannot answer."""
    with demo(tmp_path, CURRENT) as provider, running(issuer=provider.issuer, defect="baseline") as rp:
        provider.apply(rp.registration("HARBOUR-PERMIT"))
        assert verdicts(provider.checked(f"{rp.home}/login", [])) == {
            "baseline": "failed: no session began: status 400, “Sign-in failed”"
        }
