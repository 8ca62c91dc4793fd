"""The log of a refusal: its reason, and the client that had authenticated or that somebody claims to be (D48, D57)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.oauth.refusals import Reason
from corpid_dev.relying_party import people
from tests.protocol import directory
from tests.protocol.deployment import PAR, TOKEN
from tests.protocol.expectations import ANOTHER, EVERY, PUSHED
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import logged
from tests.protocol.test_codes import off

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx


pytestmark = pytest.mark.generations(*EVERY)


def line_of(answer: httpx.Response) -> dict[str, Any]:
    """The log line of a refusal in JSON."""
    return logged(str(answer.json()["error_description"]).rpartition("reference ")[2].rstrip(")"))


def reason_of(answer: httpx.Response) -> str:
    return str(line_of(answer)["reason"])


TAKEN_AWAY: dict[str, tuple[Callable[[World], object], Reason]] = {
    "person off": (lambda w: w.writes(off(directory.ALICE)), Reason.PERSON_MAY_NOT_ACT),
    "membership gone": (lambda w: w.deletes(directory.MEMBERSHIP), Reason.PERSON_MAY_NOT_ACT),
    "scope gone": (lambda w: w.registers(scopes=("openid", "authinfo")), Reason.SCOPE_WITHDRAWN),
    "generation gone": (
        lambda w: w.registers(generations=(ANOTHER[w.interface.name],)),
        Reason.GENERATION_WITHDRAWN,
    ),
    "redirect URI gone": (
        lambda w: w.registers(redirect_uris=("https://rp.example/new",)),
        Reason.REDIRECT_URI_NOT_REGISTERED,
    ),
}


@pytest.mark.parametrize("case", TAKEN_AWAY)
def test_the_log_tells_apart_why_a_code_is_refused_which_its_sentence_does_not(world: World, case: str) -> None:
    """D19: one sentence for every invalid_grant; D57: a reason for each."""
    change, reason = TAKEN_AWAY[case]
    code = world.code()
    change(world)
    answer = world.redeem(code)
    assert answer.json()["error"] == "invalid_grant"
    line = line_of(answer)
    assert (line["reason"], line["client_id"]) == (reason.code, "rp-1")
    assert "claimed_client_id" not in line


def test_so_it_does_of_a_code_that_is_unknown_too_long_or_for_another_redirect_uri(world: World) -> None:
    """D18, D57."""
    code = world.code()
    assert reason_of(world.redeem("c" * 43)) == "code_unknown"
    assert reason_of(world.redeem(code, code_verifier="x" * 43)) == "code_verifier"
    assert reason_of(world.redeem("x" * 513)) == "code_malformed"
    assert reason_of(world.redeem(code, redirect_uri="https://rp.example/other?kept=1")) == "code_redirect_uri"
    assert reason_of(world.redeem(code)) == "code_redeemed"


ASSERTIONS: dict[str, tuple[Callable[[World], Any], Reason]] = {
    "aud": (lambda w: w.rp.assertion(aud="https://other.example"), Reason.ASSERTION_AUDIENCE),
    "iss": (lambda w: w.rp.assertion(iss="rp-2"), Reason.ASSERTION_ISSUER),
    "exp": (lambda w: w.rp.assertion(iat=w.clock.now - 90, exp=w.clock.now - 1), Reason.ASSERTION_EXPIRED),
    "iat": (lambda w: w.rp.assertion(iat=w.clock.now + 45), Reason.ASSERTION_IN_THE_FUTURE),
    "lifetime": (lambda w: w.rp.assertion(exp=w.clock.now + 3600), Reason.ASSERTION_LIFETIME),
    "jti": (lambda w: w.rp.assertion(jti=7), Reason.ASSERTION_MALFORMED),
    "typ": (lambda w: w.rp.assertion(header={"typ": "at+jwt"}), Reason.ASSERTION_JWT_TYPE),
    "alg": (lambda w: w.rp.assertion(header={"alg": "RS256"}), Reason.ASSERTION_ALGORITHM),
    "kid": (lambda w: w.rp.assertion(header={"kid": "none"}), Reason.ASSERTION_KEY),
    "sub": (lambda w: w.rp.assertion(iss="nobody", sub="nobody"), Reason.ASSERTION_CLIENT_ID),
    "no JWS": (lambda _: "x.y", Reason.ASSERTION_MALFORMED),
}


@pytest.mark.parametrize("case", ASSERTIONS)
def test_a_client_that_has_not_authenticated_is_logged_as_a_claim_with_the_reason(shared: World, case: str) -> None:
    """D57: whoever sends a client_id may have made it up."""
    made, reason = ASSERTIONS[case]
    answer = shared.redeem("c" * 43, client_assertion=made(shared))
    line = line_of(answer)
    assert answer.json()["error"] == "invalid_client"
    assert (line["reason"], line["claimed_client_id"]) == (reason.code, "rp-1")
    assert "client_id" not in line


def test_an_unknown_client_is_told_apart_from_a_wrong_signature_in_the_log_alone(shared: World) -> None:
    """D28: one sentence for both."""
    stranger = shared.party("nobody", keys=shared.rp.keys)
    unknown, forged = (
        shared.redeem("c" * 43, stranger),
        shared.redeem("c" * 43, client_assertion=ASSERTIONS["kid"][0](shared)),
    )
    assert [reason_of(unknown), reason_of(forged)] == ["client_unknown", "assertion_key"]
    assert line_of(unknown)["claimed_client_id"] == "nobody"
    sentences = {str(each.json()["error_description"]).partition(" (reference")[0] for each in (unknown, forged)}
    assert len(sentences) == 1


def test_without_a_client_id_the_claim_is_that_of_the_assertion(shared: World) -> None:
    """D57: RFC 7523 §2.2 lets a client leave it out."""
    assertion = shared.rp.assertion(aud="https://other.example")
    line = line_of(shared.redeem("c" * 43, client_id=None, client_assertion=assertion))
    assert line["claimed_client_id"] == "rp-1"


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("claimed", ["x" * 5000, "a\nb\x1b[2J", "\u202e"])
def test_a_claimed_client_id_is_bounded_and_escaped(shared: World, claimed: str) -> None:
    """D48: what a stranger sends does nothing to whoever reads the log."""
    line = line_of(shared.push(client_id=claimed, state="s"))
    written = line["claimed_client_id"]
    assert len(written) <= 203
    assert written.isascii()
    assert written.isprintable()


def test_a_stranger_leaves_nothing_in_the_audit_and_a_client_that_authenticated_may(world: World) -> None:
    """D57: strangers' refusals are counted, never audited."""
    code = world.code()
    with world.nothing_spent():
        for made, _ in ASSERTIONS.values():
            assert world.redeem(code, client_assertion=made(world)).status_code == 401
        assert world.redeem(code, grant_type="password").status_code == 400
    assert world.redeem(code).status_code == 200
    assert world.redeem(code).status_code == 400
    assert world.audited()[-1] == "code.replay"


@pytest.mark.generations(*PUSHED)
def test_what_is_refused_after_authentication_names_the_client(shared: World) -> None:
    """D57: at PAR and token, also of the proof, which is looked at later."""
    cases = {
        Reason.SCOPE_UNKNOWN: shared.push(scope="openid x", state="s"),
        Reason.PROOF_METHOD: shared.push(headers={"DPoP": shared.rp.proof("GET", PAR)}, state="s"),
        Reason.PROOF_URL: shared.push(headers={"DPoP": shared.rp.proof("POST", TOKEN)}, state="s"),
        Reason.PROOF_MALFORMED: shared.push(headers={"DPoP": "x"}, state="s"),
        Reason.PROOF_TOO_OLD: shared.push(headers={"DPoP": shared.rp.proof("POST", PAR, iat=1)}, state="s"),
    }
    lines = {reason: line_of(answer) for reason, answer in cases.items()}
    assert {reason: line["reason"] for reason, line in lines.items()} == {reason: reason.code for reason in cases}
    assert {line.get("client_id") for line in lines.values()} == {"rp-1"}


def test_a_resource_names_the_client_of_a_good_token_and_the_claim_of_another(world: World) -> None:
    """D57: a token proves the client only while it verifies."""
    token = world.tokens().access_token
    world.writes(world.client(enabled=False))
    line = line_of(world.userinfo(token=token))
    assert (line["reason"], line["client_id"]) == ("access_token_client", "rp-1")
    world.clock.now += 3600
    line = line_of(world.userinfo(token=token))
    assert (line["reason"], line["claimed_client_id"]) == ("access_token_expired", "rp-1")


def test_the_authorization_endpoint_logs_the_client_id_that_a_browser_brought_as_a_claim(shared: World) -> None:
    """D16, D57: anybody can write a query."""
    answer = shared.get(f"{shared.issuer}/mga/sps/oauth/oauth20/authorize?client_id=stranger&request_uri=x")
    reference = answer.text.partition("eference")[2].partition("<code>")[2].partition("</code>")[0].strip()
    line = logged(reference)
    assert (line["reason"], line["claimed_client_id"]) == ("client_id_unknown", "stranger")


@pytest.mark.generations(*PUSHED)
def test_a_sign_in_that_was_cancelled_says_so_in_the_log_each_time_its_redirect_is_asked_for(world: World) -> None:
    """D15, D57: the redirect is given again for sixty seconds."""
    world.run(world.browser.open(world.run(world.rp.begin())))
    callback = world.run(people.cancel(world.browser))
    line = logged(query(callback)["error_description"].rpartition("reference ")[2].rstrip(")"))
    assert (line["error"], line["reason"], line["client_id"]) == ("access_denied", "cancelled", "rp-1")
    assert line["detail"]


@pytest.mark.full
def test_a_busy_store_is_logged_with_the_client_that_had_authenticated(worlds: Worlds) -> None:
    """D57: also where no refusal of ours was raised."""
    world = worlds.fresh(one_database=True)
    code = world.code()
    with closing(sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = world.redeem(code)
        other.execute("ROLLBACK")
    line = line_of(answer)
    assert answer.status_code == 503
    assert (line["reason"], line["client_id"]) == ("store_unavailable", "rp-1")
