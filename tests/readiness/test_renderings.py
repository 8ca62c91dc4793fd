"""The report as a page, as JSON and as JUnit XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from corpid_dev.readiness.cases import CASES
from corpid_dev.readiness.observation import Call, Finding, Observation, RelyingPartyPage, SignIn, Verdict
from corpid_dev.readiness.report import Report, Result, html, junit

HOSTILE = "<script>alert(1)</script>\x1b[31m\x00"
PAGE = RelyingPartyPage(url="https://rp.example/callback?code=secret-code", status=200, heading=HOSTILE)
CALL = Call(exchange_id="7", endpoint="token", method="POST", path="/token", status=200, orders=("token",))
VERDICTS = dict(zip(Verdict, ("baseline", "id-token-nonce", "proof-key-fresh", "iss-missing"), strict=True))


@pytest.fixture
def report() -> Report:
    observation = Observation(sign_ins=(SignIn(pages=(PAGE,), callback_calls=(CALL,)),))
    results = [
        Result(
            case=CASES[case_id], finding=Finding(verdict=verdict, seen=HOSTILE), observation=observation, seconds=0.25
        )
        for verdict, case_id in VERDICTS.items()
    ]
    return Report(
        url="https://rp.example/login?secret-code", issuer="http://localhost:8400", client_id="rp", marker=HOSTILE,
        user="rina", at=0.0, seconds=1.0, results=tuple(results),
    )  # fmt: skip


def test_the_page_is_one_file_that_asks_nobody_and_runs_nothing(report: Report) -> None:
    page = html(report)
    assert not re.search(r"<script|<img|<link|<iframe|@import|url\(|\son\w+=|style=", page)
    assert "default-src 'none'" in page
    for case_id in VERDICTS.values():
        assert f'id="case-{case_id}"' in page
    assert CASES["id-token-nonce"].fix in page


def test_no_rendering_has_a_code(report: Report) -> None:
    """D48."""
    for text in (html(report), junit(report), str(report.members()["cases"])):
        assert "secret-code" not in text


def test_junit_has_a_failure_for_what_failed_and_skips_what_was_not_judged(report: Report) -> None:
    root = ElementTree.fromstring(junit(report))
    kinds = {case.get("name", "").partition(":")[0]: [child.tag for child in case] for case in root.iter("testcase")}
    assert kinds == {
        "baseline": [],
        "id-token-nonce": ["failure"],
        "proof-key-fresh": ["system-out"],
        "iss-missing": ["skipped"],
    }
    suite = next(root.iter("testsuite"))
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]


def test_json_counts_and_lists(report: Report) -> None:
    members = report.members()
    assert members["summary"] == {"passed": 1, "failed": 1, "warned": 1, "not_judged": 1}
    first = members["cases"][1]
    assert (first["id"], first["verdict"], first["fix"]) == ("id-token-nonce", "failed", CASES["id-token-nonce"].fix)
    assert first["calls"] == [{"exchange": "7", "endpoint": "token", "status": 200, "error": "", "orders": ["token"]}]
