"""Judging of what a relying party did: pure, from an observation."""

from __future__ import annotations

from typing import Any

import pytest

from corpid_dev.readiness.case import judge, not_applicable
from corpid_dev.readiness.cases import CASES
from corpid_dev.readiness.observation import Call, Facts, Observation, RelyingPartyPage, SignIn, Verdict
from corpid_dev.relying_party.jwt import base64url

FACTS = Facts(
    client_id="rp",
    issuer="http://localhost:8400",
    sends_iss=True,
    pushes=True,
    resource="userinfo",
    roles=frozenset({"Approver"}),
)
IN = RelyingPartyPage(
    url="https://rp.example/home", status=200, heading="Welcome", text="Welcome, Approver", session=True
)
OUT = RelyingPartyPage(url="https://rp.example/error", status=400, heading="Not signed in")
CRASH = RelyingPartyPage(url="https://rp.example/callback", status=500, heading="Internal Server Error")
SILENT = RelyingPartyPage(url="https://rp.example/callback", status=0, problem="disconnected")


def call(endpoint: str, *orders: str, **members: Any) -> Call:
    return Call(
        exchange_id="1", endpoint=endpoint, method="POST", path=f"/{endpoint}", status=200, orders=orders, **members
    )


def seen(
    *pages: RelyingPartyPage, calls: tuple[Call, ...] = (), login: RelyingPartyPage | None = None, **more: Any
) -> SignIn:
    return SignIn(pages=pages, callback_calls=calls, login=login, **more)


def verdict(case: str, *sign_ins: SignIn, **more: Any) -> Verdict:
    return judge(CASES[case], Observation(sign_ins=sign_ins, **more), FACTS).verdict


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (OUT, Verdict.PASSED),
        (IN, Verdict.FAILED),
        (CRASH, Verdict.FAILED),
        (SILENT, Verdict.FAILED),
        (RelyingPartyPage(url="https://rp.example/", status=502), Verdict.PASSED),
    ],
)
def test_a_refusal_is_a_page_without_a_session(page: RelyingPartyPage, expected: Verdict) -> None:
    """A 502 is a page about a provider that answered wrongly (RFC 9110 §15.6.3), a 500 is a crash."""
    assert verdict("id-token-nonce", seen(page, calls=(call("token", "token"),))) is expected


def test_a_refusal_proves_nothing_if_the_fault_did_not_reach_the_relying_party() -> None:
    assert verdict("userinfo-signature", seen(OUT, calls=(call("token"),))) is Verdict.NOT_JUDGED
    assert verdict("userinfo-signature", seen(IN, calls=(call("token"),))) is Verdict.NOT_JUDGED


def test_a_refusal_proves_nothing_if_everything_is_refused() -> None:
    calls = (call("token", "token"),)
    assert verdict("id-token-nonce", seen(OUT, calls=calls), recovered=False) is Verdict.NOT_JUDGED
    assert verdict("id-token-nonce", seen(OUT, calls=calls), recovered=True) is Verdict.PASSED


def test_a_refused_callback_leads_to_no_token_request() -> None:
    altered = (call("callback", "callback"),)
    assert verdict("state-altered", seen(OUT, login_calls=altered)) is Verdict.PASSED
    assert verdict("state-altered", seen(OUT, login_calls=altered, calls=(call("token"),))) is Verdict.FAILED


def test_a_sign_in_that_could_not_be_started_is_not_judged_but_a_broken_baseline_is() -> None:
    assert verdict("state-altered", seen(login=OUT)) is Verdict.NOT_JUDGED
    assert verdict("baseline", seen(login=OUT)) is Verdict.FAILED
    assert verdict("baseline", SignIn(problem="refused")) is Verdict.FAILED


@pytest.mark.parametrize(
    ("login", "expected"), [(OUT, Verdict.PASSED), (CRASH, Verdict.FAILED), (None, Verdict.FAILED)]
)
def test_a_refused_push_ends_at_a_page(login: RelyingPartyPage | None, expected: Verdict) -> None:
    """RFC 9126 §2.3."""
    pages = () if login else (OUT,)
    assert verdict("par-error", seen(*pages, login=login, login_calls=(call("par", "error"),))) is expected


def test_requests_are_counted_over_all_sign_ins_of_a_case() -> None:
    """Spec 8: keys are cached for an hour."""
    once, never = seen(IN, calls=(call("jwks"),)), seen(IN)
    assert verdict("keys-cached", once, never) is Verdict.PASSED
    assert verdict("keys-cached", once, once) is Verdict.FAILED


def test_a_code_is_not_sent_again() -> None:
    first, other = ({"code": each} for each in "ab")
    error = [call("token", "error", parameters=each) for each in (first, first, other)]
    assert verdict("token-error", seen(OUT, calls=tuple(error[:1]))) is Verdict.PASSED
    assert verdict("token-error", seen(OUT, calls=tuple(error[:2]))) is Verdict.FAILED
    assert verdict("token-error", seen(OUT, calls=tuple(error[1:]))) is Verdict.PASSED


def test_roles_are_not_shown_without_an_answer_that_has_them() -> None:
    calls = (call("userinfo", "error"),)
    without = RelyingPartyPage(url="https://rp.example/home", status=200, text="Welcome", session=True)
    assert verdict("userinfo-error", seen(without, calls=calls)) is Verdict.PASSED
    assert verdict("userinfo-error", seen(IN, calls=calls)) is Verdict.FAILED


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a" * 22, "b" * 22, Verdict.PASSED),
        ("a" * 22, "a" * 22, Verdict.FAILED),
        ("a" * 21, "b" * 22, Verdict.FAILED),
        ("", "b" * 22, Verdict.FAILED),
    ],
)
def test_a_challenge_is_new_each_time_and_hard_to_guess(first: str, second: str, expected: Verdict) -> None:
    """RFC 7636 §4.1."""
    requests = [{"code_challenge": each, "code_challenge_method": "S256"} for each in (first, second)]
    assert verdict("pkce-fresh", *(seen(IN, request=each) for each in requests)) is expected


def test_a_plain_challenge_fails() -> None:
    requests = [{"code_challenge": each * 43, "code_challenge_method": "plain"} for each in "ab"]
    assert verdict("pkce-fresh", *(seen(IN, request=each) for each in requests)) is Verdict.FAILED


def _jws(header: dict[str, Any], claims: dict[str, Any]) -> str:
    import json

    return ".".join([*(base64url(json.dumps(each).encode()) for each in (header, claims)), "signature"])


def test_a_dpop_key_that_is_used_again_is_a_warning() -> None:
    """RFC 9449 §11.1."""
    one, other = (call("par", headers={"dpop": _jws({"jwk": {"x": each}}, {})}) for each in "ab")
    assert verdict("proof-key-fresh", seen(IN, calls=(one,)), seen(IN, calls=(one,))) is Verdict.WARNED
    assert verdict("proof-key-fresh", seen(IN, calls=(one,)), seen(IN, calls=(other,))) is Verdict.PASSED
    assert verdict("proof-key-fresh", seen(IN), seen(IN)) is Verdict.NOT_JUDGED


@pytest.mark.parametrize(("seconds", "expected"), [(60, Verdict.PASSED), (120, Verdict.PASSED), (300, Verdict.FAILED)])
def test_assertions_are_short(seconds: int, expected: Verdict) -> None:
    """RFC 7523 §3."""
    assertion = {"client_assertion": _jws({}, {"iat": 1000, "exp": 1000 + seconds})}
    assert verdict("assertions-short", seen(IN, calls=(call("token", parameters=assertion),))) is expected


def test_cases_that_the_provider_or_the_relying_party_cannot_have_are_left_out() -> None:
    facts = Facts(
        client_id="rp",
        issuer="https://sso.example",
        sends_iss=False,
        pushes=False,
        resource="userinfo",
        signs_resource=False,
    )
    left_out = {case_id for case_id, case in CASES.items() if not_applicable(case, facts)}
    assert left_out == {
        "iss-altered", "iss-missing", "token-type", "dpop-nonce", "par-error", "par-unavailable",
        "userinfo-signature", "userinfo-aud", "userinfo-iss",
    }  # fmt: skip
    assert not any(not_applicable(case, FACTS) for case in CASES.values())
