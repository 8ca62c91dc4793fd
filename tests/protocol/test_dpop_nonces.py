"""Server nonces, which an operator can switch on (RFC 9449 §8, §9; D5, D7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.deployment import PAR, TOKEN, USERINFO
from tests.protocol.expectations import PUSHED
from tests.protocol.refusals import json_refusal, resource_refusal

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*PUSHED)


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A provider that wants its nonces."""
    return worlds.fresh(dpop_nonces=True)


def nonce_of(answer: Any) -> str:
    (nonce,) = answer.headers.get_list("dpop-nonce")
    return str(nonce)


def challenged(world: World) -> str:
    """The nonce of this moment, from a challenge at PAR."""
    answer = world.push(headers={"DPoP": world.rp.proof("POST", PAR)}, state="s")
    json_refusal(answer, 400, "use_dpop_nonce", state="s")
    return nonce_of(answer)


def code(world: World) -> str:
    """A code, with the nonce in the push."""
    rp = world.rp
    answer = world.push(headers={"DPoP": rp.proof("POST", PAR, nonce=challenged(world))})
    rp.sign_in.request_uri = answer.json()["request_uri"]
    return rp.callback(world.through_the_pages(rp.authorization_url()))


def test_at_par_a_proof_without_the_nonce_is_challenged_and_spends_nothing(world: World) -> None:
    """D5: use_dpop_nonce 400 with one DPoP-Nonce; a nonce challenge leaves the assertion unspent."""
    honest = {"client_assertion": world.rp.assertion(), "state": "s"}
    with world.nothing_spent():
        answer = world.push(headers={"DPoP": world.rp.proof("POST", PAR)}, **honest)
        json_refusal(answer, 400, "use_dpop_nonce", state="s")
    proof = world.rp.proof("POST", PAR, nonce=nonce_of(answer))
    assert world.push(headers={"DPoP": proof}, **honest).status_code == 201


@pytest.mark.parametrize("nonce", ["", "wrong", 5, ["x"], "é"])
def test_another_nonce_is_challenged_again(world: World, nonce: Any) -> None:
    """RFC 9449 §8."""
    with world.nothing_spent():
        answer = world.push(headers={"DPoP": world.rp.proof("POST", PAR, nonce=nonce)}, state="s")
        json_refusal(answer, 400, "use_dpop_nonce", state="s")


def test_a_nonce_is_taken_for_at_least_two_minutes_and_not_for_ever(world: World) -> None:
    """RFC 9449 §8: nonces change; the one before is still taken."""
    first = challenged(world)
    world.clock.now += 119
    assert world.push(headers={"DPoP": world.rp.proof("POST", PAR, nonce=first)}).status_code == 201
    world.clock.now += 121
    second = challenged(world)
    assert second != first
    answer = world.push(headers={"DPoP": world.rp.proof("POST", PAR, nonce=first)}, state="s")
    json_refusal(answer, 400, "use_dpop_nonce", state="s")


def test_a_bad_proof_is_invalid_before_its_nonce_is_looked_at(world: World) -> None:
    """RFC 9449 §4.3: a challenge is for a proof that is otherwise proper."""
    answer = world.push(headers={"DPoP": world.rp.proof("GET", PAR)}, state="s")
    json_refusal(answer, world.expected.bad_proof_status, "invalid_dpop_proof", state="s")


def test_a_push_bound_by_thumbprint_alone_needs_no_nonce(world: World) -> None:
    """Spec 4.1: dpop_jkt in place of the proof."""
    thumbprint = world.rp.sign_in.dpop_key.thumbprint()
    assert world.push(headers={"DPoP": None}, dpop_jkt=thumbprint).status_code == 201


def test_at_the_token_endpoint_a_challenge_spends_neither_assertion_nor_code(world: World) -> None:
    """D5, Spec "The order of a request"."""
    waiting, assertion = code(world), world.rp.assertion()
    with world.nothing_spent():
        answer = world.redeem(waiting, client_assertion=assertion)
        json_refusal(answer, 400, "use_dpop_nonce")
    proof = world.rp.proof("POST", TOKEN, nonce=nonce_of(answer))
    assert world.redeem(waiting, headers={"DPoP": proof}, client_assertion=assertion).status_code == 200


def test_at_userinfo_the_challenge_is_a_401(world: World) -> None:
    """D5: 401 at resources, with one DPoP-Nonce; RFC 9449 §9."""
    waiting = code(world)
    proof = world.rp.proof(
        "POST",
        TOKEN,
        nonce=world.run(world.provider.signing_keys.keys_at(world.clock())).dpop_nonce(world.clock(), loss=""),
    )
    token = world.redeem(waiting, headers={"DPoP": proof}).json()["access_token"]
    with world.nothing_spent():
        answer = world.userinfo(token=token)
        resource_refusal(answer, 401, "use_dpop_nonce", world.expected.challenge)
    proof = world.rp.proof("GET", USERINFO, token, nonce=nonce_of(answer))
    assert world.userinfo(token=token, DPoP=proof).status_code == 200


def test_while_nonces_are_off_no_answer_speaks_of_them(shared: World) -> None:
    """D7: off by default."""
    assert "dpop-nonce" not in shared.push().headers
    assert "dpop-nonce" not in shared.push(scope=None).headers
