"""What a refusal tells: the sentence helps, repeats nothing dangerous, and its reference stands in the log (D28, D48)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.deployment import PAR
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.refusals import LOG, json_refusal, logged, resource_refusal
from tests.tables import hold_in_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*PUSHED)
HOSTILE = (
    '"',
    "\\",
    '"\\',
    "\x00\x1f\x7f",
    "é" * 5,
    "\u202e",
    "\U0001f600",
    "<script>",
    "\r\nX: y",
    "%22%5c",
    "a" * 5000,
)


def reference(answer: Any) -> str:
    return str(answer.json()["error_description"]).rpartition("reference ")[2].rstrip(")")


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "scope": lambda text: {"scope": f"openid {text}"},
    "redirect_uri": lambda text: {"redirect_uri": text},
    "acr_values": lambda text: {"acr_values": text},
    "context type": lambda text: {"authentication_context_type": text},
    "prompt": lambda text: {"prompt": text},
    "client_id": lambda text: {"client_id": text},
    "state": lambda text: {"state": text + "\x00"},
    "response_mode": lambda text: {"response_mode": text},
}


@pytest.mark.generations(*PUSHED, differ=True)
def test_whatever_a_parameter_holds_the_description_is_plain_and_short(shared: World) -> None:
    """D28: printable ASCII without quote and backslash, at most 300 characters, ending with the reference."""

    def check(row: tuple[str, str]) -> None:
        place, text = row
        answer = shared.push(**{"state": "s", **PLACES[place](text)})
        if answer.status_code == 201:
            assert (place, shared.interface.name) == ("acr_values", "fapi2")
            return
        error = answer.json()["error"]
        status = 401 if error == "invalid_client" else 400
        json_refusal(answer, status, error, state=None if place == "state" else "s")

    hold_in_each({f"{place} {at}": (place, text) for place in PLACES for at, text in enumerate(HOSTILE)}, check)


@pytest.mark.parametrize("text", HOSTILE[:-1], ids=range(len(HOSTILE) - 1))
def test_nor_does_what_a_token_holds_reach_the_description(shared: World, text: str) -> None:
    """D28: in assertion and proof."""
    for claim in ("sub", "iss", "aud", "jti", "exp"):
        spoiled: dict[str, Any] = {claim: {"x": text} if claim == "jti" else text}
        assertion = shared.rp.assertion(**spoiled)
        json_refusal(shared.push(client_assertion=assertion, state="s"), 401, "invalid_client", state="s")
    proof = shared.rp.proof("POST", PAR, htu=text, header={"typ": text})
    status = shared.expected.bad_proof_status
    json_refusal(shared.push(headers={"DPoP": proof}, state="s"), status, "invalid_dpop_proof", state="s")
    assertion = shared.rp.assertion(header={text: text, "alg": text, "kid": text})
    json_refusal(shared.push(client_assertion=assertion, state="s"), 401, "invalid_client", state="s")


def test_every_answer_has_a_reference_of_its_own(shared: World) -> None:
    """D28: the request id."""
    seen = {reference(shared.push(scope="x")) for _ in range(50)}
    assert len(seen) == 50


@pytest.mark.generations(*EVERY)
def test_the_log_tells_more_than_the_caller_and_nothing_secret(world: World) -> None:
    """D48: the private reason, never code, token, assertion, proof, state or request_uri."""
    code = world.code()
    request_uri, state = world.rp.sign_in.request_uri, world.rp.sign_in.state
    answer = world.redeem(code, redirect_uri="https://rp.example/other?kept=1")
    line = logged(reference(answer))
    assert (line["error"], line["status"]) == ("invalid_grant", 400)
    assert line["detail"] == (
        "another redirect_uri than in the authorization request; received https://rp.example/other, expected "
        "https://rp.example/callback"
    )
    assert line["path"] == "/mga/sps/oauth/oauth20/token"
    tokens = world.tokens()
    honest = f"{world.interface.scheme} {tokens.access_token}"
    answer = world.userinfo(Authorization=[honest, honest])
    resource_refusal(answer, 400, "invalid_request", world.expected.challenge)
    text = LOG.getvalue().decode()
    sent = [code, request_uri, state, tokens.access_token, tokens.raw["id_token"], *world.browser.http.cookies.values()]
    sent += [world.rp.sign_in.code_verifier, world.rp.sign_in.nonce, request_uri.rpartition(":")[2]]
    assert not [value for value in sent if value and value in text]


def test_a_clock_that_is_wrong_is_told_by_how_much(shared: World) -> None:
    """D28: for clocks the measured difference."""
    now = shared.clock.now
    answer = shared.push(client_assertion=shared.rp.assertion(iat=now + 45, exp=now + 90), state="s")
    assert "45 s ahead" in json_refusal(answer, 401, "invalid_client", state="s")
    answer = shared.push(client_assertion=shared.rp.assertion(iat=now - 100, exp=now - 40), state="s")
    assert "expired 40 s ago" in json_refusal(answer, 401, "invalid_client", state="s")
    answer = shared.push(headers={"DPoP": shared.rp.proof("POST", PAR, iat=now - 150)}, state="s")
    assert "150 s behind" in json_refusal(answer, shared.expected.bad_proof_status, "invalid_dpop_proof", state="s")
