"""What a process remembers of codes and requests that it issued, to name the cause of a refusal (D18, D28)."""

from __future__ import annotations

from corpid.flows.oauth.recently_issued import KEPT, RecentlyIssued
from corpid.rules.oauth import token_request
from corpid.rules.oauth.authorization_request import AuthorizationRequest
from corpid.rules.oauth.refusals import Reason
from corpid.rules.oauth.token_request import IssuedCode, TokenRequest

REQUEST = AuthorizationRequest(
    client_id="rp-1", generation="current", redirect_uri="https://rp.example/cb", scopes=("openid",),
    code_challenge="c" * 43, acr="urn:x:2",
)  # fmt: skip


def reason(issued: IssuedCode | None, *, client_id: str = "rp-1", challenge: str = "c" * 43, now: float = 10) -> Reason:
    sent = TokenRequest(code="x", redirect_uri="https://rp.example/cb", challenge=challenge)
    return token_request.not_found(issued, sent, client_id, now=now).reason


def test_each_cause_of_a_miss_has_a_reason() -> None:
    """D18, D19: all of them are one sentence for the caller."""
    known = RecentlyIssued()
    known.note_code("x", REQUEST, 0)
    assert reason(known.issued_code("y")) is Reason.CODE_UNKNOWN
    assert reason(known.issued_code("x"), client_id="rp-2") is Reason.CODE_OF_ANOTHER_CLIENT
    assert reason(known.issued_code("x"), challenge="d" * 43) is Reason.CODE_VERIFIER
    assert reason(known.issued_code("x"), now=60) is Reason.CODE_EXPIRED
    assert reason(known.issued_code("x")) is Reason.CODE_UNKNOWN
    known.note_redeemed("x")
    assert reason(known.issued_code("x"), now=100) is Reason.CODE_REDEEMED


def test_the_client_of_a_pushed_request_is_known() -> None:
    known = RecentlyIssued()
    known.note_request("r", "rp-1")
    assert (known.client_of_request("r"), known.client_of_request("s")) == ("rp-1", None)


def test_only_the_latest_are_kept() -> None:
    """A process does not grow with its sign-ins."""
    known = RecentlyIssued()
    for number in range(KEPT + 1):
        known.note_code(str(number), REQUEST, 0)
        known.note_request(str(number), "rp-1")
    assert known.issued_code("0") is None
    assert known.issued_code(str(KEPT)) is not None
    assert (known.client_of_request("0"), known.client_of_request("1")) == (None, "rp-1")
