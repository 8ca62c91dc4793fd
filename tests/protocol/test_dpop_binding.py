"""Which key a sign-in is bound to, and what a mismatch is called (Spec 4.1, 4.3; RFC 9449 §5, §10; D6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.deployment import PAR, TOKEN, other_key
from tests.protocol.expectations import PUSHED, SIGNED
from tests.protocol.refusals import json_refusal, resource_refusal

if TYPE_CHECKING:
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*PUSHED)


def refuse_push(world: World, headers: Any, **form: Any) -> None:
    """invalid_request, nothing spent; then honestly with the same assertion."""
    honest = {"client_assertion": world.rp.assertion(), "state": "s"}
    with world.nothing_spent():
        json_refusal(world.push(headers=headers, **honest, **form), 400, "invalid_request", state="s")
    assert world.push(**honest).status_code == 201


@pytest.mark.generations(*SIGNED)
def test_a_push_needs_a_proof_or_the_thumbprint_of_a_key(shared: World) -> None:
    """Spec 4.1: DPoP unless dpop_jkt is given; D6."""
    refuse_push(shared, {"DPoP": None})
    refuse_push(shared, {"DPoP": None}, dpop_jkt="")
    thumbprint = shared.rp.sign_in.dpop_key.thumbprint()
    assert shared.push(headers={"DPoP": None}, dpop_jkt=thumbprint).status_code == 201
    assert shared.push(dpop_jkt=thumbprint).status_code == 201


def test_thumbprint_and_proof_must_name_the_same_key(shared: World) -> None:
    """Spec 4.1: if both are given they must match; D6: invalid_request."""
    refuse_push(shared, {"DPoP": shared.rp.proof("POST", PAR)}, dpop_jkt=other_key().thumbprint())


@pytest.mark.parametrize("value", ["x", "A" * 42, "A" * 44, f"{'A' * 42}=", f"{'A' * 42}+", f"{'A' * 42} ", "é" * 43])
def test_a_malformed_thumbprint_is_refused_with_and_without_a_proof(shared: World, value: str) -> None:
    """D6; RFC 9449 §10."""
    refuse_push(shared, {}, dpop_jkt=value)
    refuse_push(shared, {"DPoP": None}, dpop_jkt=value)


def test_a_token_request_needs_a_proof_and_without_one_spends_nothing(world: World) -> None:
    """Spec 4.3, D6: no proof at token is invalid_request."""
    code, assertion = world.code(), world.rp.assertion()
    with world.nothing_spent():
        json_refusal(world.redeem(code, headers={"DPoP": None}, client_assertion=assertion), 400, "invalid_request")
    assert world.redeem(code, client_assertion=assertion).status_code == 200


@pytest.mark.parametrize("spoil", [{"method": "GET"}, {"url": PAR}, {"iat": 0}, {"header": {"typ": "JWT"}}])
def test_a_bad_proof_at_the_token_endpoint_spends_neither_assertion_nor_code(
    world: World, spoil: dict[str, Any]
) -> None:
    """D5: invalid_dpop_proof 401 with its challenge; Spec "The order of a request"."""
    code, assertion = world.code(), world.rp.assertion()
    proof = world.rp.proof(**{"method": "POST", "url": TOKEN, **spoil})
    with world.nothing_spent():
        answer = world.redeem(code, headers={"DPoP": proof}, client_assertion=assertion)
        json_refusal(answer, world.expected.bad_proof_status, "invalid_dpop_proof")
    assert world.redeem(code, client_assertion=assertion).status_code == 200


def test_a_replayed_proof_at_the_token_endpoint_spends_neither_assertion_nor_code(world: World) -> None:
    """Spec "The order of a request": the proof is spent first, then the assertion, then the code."""
    first, proof = world.code(), world.rp.proof("POST", TOKEN)
    assert world.redeem(first, headers={"DPoP": proof}).status_code == 200
    code, assertion = world.code(), world.rp.assertion()
    with world.nothing_spent("proof.replay"):
        answer = world.redeem(code, headers={"DPoP": proof}, client_assertion=assertion)
        json_refusal(answer, world.expected.bad_proof_status, "invalid_dpop_proof")
    assert world.redeem(code, client_assertion=assertion).status_code == 200


@pytest.mark.parametrize("by", ["proof", "dpop_jkt"])
def test_another_key_than_the_bound_one_is_invalid_grant_and_the_code_is_spent(world: World, by: str) -> None:
    """D6, D18: the bound key is compared after the take."""
    world.sign_in()
    code = _code_bound_by(world, by)
    stolen = world.rp.proof("POST", TOKEN, key=other_key())
    alive = world.kinds().count("code")
    json_refusal(world.redeem(code, headers={"DPoP": stolen}), 400, "invalid_grant")
    assert world.kinds().count("code") == alive - 1
    json_refusal(world.redeem(code), 400, "invalid_grant")


@pytest.mark.parametrize("by", ["proof", "dpop_jkt"])
def test_the_bound_key_redeems_and_is_confirmed_in_the_token(world: World, by: str) -> None:
    """Spec 5: the key at PAR, token and userinfo is the same one; D20: cnf.jkt."""
    world.sign_in()
    tokens = world.run(world.rp.believe(world.redeem(_code_bound_by(world, by))))
    assert tokens.access_token_claims["cnf"] == {"jkt": world.rp.sign_in.dpop_key.thumbprint()}


def _code_bound_by(world: World, by: str) -> str:
    """A code bound to the relying party's key by a proof or by its thumbprint alone."""
    rp = world.rp
    rp.restart()
    if by == "proof":
        answer = world.push(headers={"DPoP": rp.proof("POST", PAR)})
    else:
        answer = world.push(headers={"DPoP": None}, dpop_jkt=rp.sign_in.dpop_key.thumbprint())
    rp.sign_in.request_uri = answer.json()["request_uri"]
    return rp.callback(world.get(rp.authorization_url()).headers["location"])


def test_a_resource_asked_with_another_key_is_invalid_token(world: World) -> None:
    """D6: another key than cnf.jkt is invalid_token 401; nothing is spent."""
    token = world.tokens().access_token
    stolen = world.rp.proof("GET", f"{world.issuer}/userinfo", token, key=other_key())
    with world.nothing_spent():
        answer = world.userinfo(token=token, DPoP=stolen)
        resource_refusal(answer, 401, "invalid_token", world.expected.challenge)
