"""D6's alternative: a code redeemed with another key is invalid_dpop_proof where the operator says so (R-0.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.protocol.deployment import PAR, TOKEN, other_key
from tests.protocol.expectations import PUSHED
from tests.protocol.refusals import json_refusal, resource_refusal

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*PUSHED)


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A provider as the preset public-service has it, where Alice is signed in."""
    made = worlds.fresh(dpop_mismatch_error="invalid_dpop_proof")
    made.sign_in()
    return made


def bound_code(world: World) -> str:
    """A code that is bound to the relying party's key."""
    rp = world.rp
    rp.restart()
    answer = world.push(headers={"DPoP": rp.proof("POST", PAR)})
    rp.sign_in.request_uri = answer.json()["request_uri"]
    return rp.callback(world.get(rp.authorization_url()).headers["location"])


def test_another_key_than_the_bound_one_is_invalid_dpop_proof_and_the_code_is_spent(world: World) -> None:
    """D6, D18, D28: the sentence names the key; the status is that of every invalid_dpop_proof (Spec "Generations")."""
    code = bound_code(world)
    alive = world.kinds().count("code")
    answer = world.redeem(code, headers={"DPoP": world.rp.proof("POST", TOKEN, key=other_key())})
    sentence = json_refusal(answer, world.expected.bad_proof_status, "invalid_dpop_proof")
    assert world.kinds().count("code") == alive - 1
    assert "its key is not the one that was bound at the authorization request" in sentence
    assert json_refusal(world.redeem(code), 400, "invalid_grant").startswith("the code is unknown, expired")


def test_every_other_mismatch_is_called_what_it_always_is(world: World) -> None:
    """D6, D19: the setting concerns the bound key alone."""
    code = bound_code(world)
    json_refusal(world.redeem(code, headers={"DPoP": None}), 400, "invalid_request")
    json_refusal(world.redeem(code, code_verifier="x" * 43), 400, "invalid_grant")
    json_refusal(world.redeem(code, redirect_uri="https://rp.example/other?kept=1"), 400, "invalid_grant")
    pushed = world.push(headers={"DPoP": world.rp.proof("POST", PAR)}, dpop_jkt=other_key().thumbprint(), state="s")
    json_refusal(pushed, 400, "invalid_request", state="s")
    token = world.tokens().access_token
    stolen = world.rp.proof("GET", f"{world.issuer}/userinfo", token, key=other_key())
    resource_refusal(world.userinfo(DPoP=stolen), 401, "invalid_token", world.expected.challenge)


def test_the_bound_key_redeems(world: World) -> None:
    """D6."""
    assert world.redeem(bound_code(world)).status_code == 200
