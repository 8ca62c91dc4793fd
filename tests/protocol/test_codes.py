"""A code is redeemed once, in sixty seconds, by whom it was made for; a replay kills its token (Spec 2.3; D18, D19, D50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.protocol import directory
from tests.protocol.deployment import TOKEN
from tests.protocol.expectations import ANOTHER, EVERY, PUSHED
from tests.protocol.refusals import json_refusal, resource_refusal
from tests.world.clients import CALLBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*EVERY)


def token_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


@pytest.mark.parametrize(("later", "alive"), [(0, True), (59.9, True), (60, False), (61, False)])
def test_a_code_lives_for_sixty_seconds(world: World, later: float, alive: bool) -> None:
    """Spec 2.3, 8; D49: codes end exactly."""
    code = world.code()
    world.clock.now += later
    answer = world.redeem(code)
    if alive:
        assert answer.status_code == 200
    else:
        json_refusal(answer, 400, "invalid_grant")


def test_another_client_finds_nothing_and_spends_nothing(world: World) -> None:
    """D18: a leaked code with another client kills nothing."""
    thief = world.party("rp-2")
    code = world.code()
    thief.sign_in.code_verifier = world.rp.sign_in.code_verifier
    thief.sign_in.dpop_key = world.rp.sign_in.dpop_key
    json_refusal(world.redeem(code, thief), 400, "invalid_grant")
    token = token_of(world.redeem(code))
    json_refusal(world.redeem(code, thief), 400, "invalid_grant")
    assert world.userinfo(token=token).status_code == 200


def test_a_wrong_verifier_finds_nothing_and_spends_nothing(world: World) -> None:
    """D18."""
    code = world.code()
    json_refusal(world.redeem(code, code_verifier="x" * 43), 400, "invalid_grant")
    token = token_of(world.redeem(code))
    json_refusal(world.redeem(code, code_verifier="y" * 43), 400, "invalid_grant")
    assert world.userinfo(token=token).status_code == 200


@pytest.mark.parametrize(
    "uri", ["https://rp.example/other?kept=1", "https://rp.example/callback/", "https://evil.example/"]
)
def test_another_redirect_uri_leaves_the_code_spent(world: World, uri: str) -> None:
    """Spec 4.3: must match the one used at PAR; D18: compared after the take."""
    code = world.code()
    json_refusal(world.redeem(code, redirect_uri=uri), 400, "invalid_grant")
    json_refusal(world.redeem(code), 400, "invalid_grant")


def test_a_code_that_is_presented_again_kills_its_token(world: World) -> None:
    """D18: a miss writes one deny entry, which resources refuse."""
    code = world.code()
    token = token_of(world.redeem(code))
    assert world.userinfo(token=token).status_code == 200
    json_refusal(world.redeem(code), 400, "invalid_grant")
    refused = resource_refusal(world.userinfo(token=token), 401, "invalid_token", world.expected.challenge)
    assert "revoked" in refused


@pytest.mark.parametrize("later", [61, 540])
def test_so_does_one_that_is_presented_again_after_its_sixty_seconds(world: World, later: int) -> None:
    """D18: the deny entry of 660 s outlives every token; RFC 6749 §10.5."""
    code = world.code()
    token = token_of(world.redeem(code))
    world.clock.now += later
    json_refusal(world.redeem(code), 400, "invalid_grant")
    world.clock.now += 599 - later
    resource_refusal(world.userinfo(token=token), 401, "invalid_token", world.expected.challenge)


@pytest.mark.generations(*PUSHED, differ=True)
def test_the_same_token_request_byte_for_byte_kills_nothing(world: World) -> None:
    """D18; Spec "The order of a request": the proof's jti is spent before the code is looked for."""
    code = world.code()
    form = {"client_assertion": world.rp.assertion()}
    headers = {"DPoP": world.rp.proof("POST", TOKEN)}
    token = token_of(world.redeem(code, headers=headers, **form))
    with world.nothing_spent("proof.replay"):
        again = world.redeem(code, headers=headers, **form)
        json_refusal(again, world.expected.bad_proof_status, "invalid_dpop_proof")
    assert world.userinfo(token=token).status_code == 200


def test_so_does_one_with_a_new_proof_and_the_old_assertion(world: World) -> None:
    """Spec "The order of a request": a refused assertion leaves the code unlooked-for."""
    code, form = world.code(), {"client_assertion": world.rp.assertion()}
    token = token_of(world.redeem(code, **form))
    json_refusal(world.redeem(code, **form), 401, "invalid_client")
    assert world.userinfo(token=token).status_code == 200


def test_every_code_is_another_and_so_is_the_token_it_yields(world: World) -> None:
    """D15, D18: the code is a MAC over the interaction, the jti a hash over the code."""
    tokens = [world.tokens().access_token_claims for _ in range(3)]
    assert len({claims["jti"] for claims in tokens}) == 3
    assert all(len(claims["jti"]) == 43 for claims in tokens)


def off(record: Any) -> Any:
    return msgspec.structs.replace(record, enabled=False)


GRANT_SIDE: dict[str, Callable[[World], object]] = {
    "user off": lambda w: w.writes(off(directory.ALICE)),
    "user gone": lambda w: w.deletes(directory.ALICE),
    "entity off": lambda w: w.writes(off(directory.HARBOUR)),
    "membership off": lambda w: w.writes(off(directory.MEMBERSHIP)),
    "membership gone": lambda w: w.deletes(directory.MEMBERSHIP),
    "scope gone": lambda w: w.registers(scopes=("openid", "authinfo")),
    "generation gone": lambda w: w.registers(generations=(ANOTHER[w.interface.name],)),
    "redirect URI gone": lambda w: w.registers(redirect_uris=("https://rp.example/new",)),
}


@pytest.mark.parametrize("change", GRANT_SIDE.values(), ids=GRANT_SIDE)
def test_what_was_taken_away_since_the_code_was_written_is_invalid_grant(
    world: World, change: Callable[[World], object]
) -> None:
    """D50; Spec 4.3: redirect_uri must be one of the registered ones. The code stays spent."""
    code = world.code()
    change(world)
    sentence = json_refusal(world.redeem(code), 400, "invalid_grant")
    assert sentence == json_refusal(world.redeem(f"{code[0]}x"), 400, "invalid_grant")
    world.writes(directory.ALICE, directory.HARBOUR, directory.MEMBERSHIP, world.client())
    json_refusal(world.redeem(code), 400, "invalid_grant")


def test_a_client_that_was_disabled_since_then_is_invalid_client_and_spends_nothing(world: World) -> None:
    """D50."""
    code = world.code()
    world.registers(enabled=False)
    with world.nothing_spent():
        json_refusal(world.redeem(code), 401, "invalid_client")
    world.writes(world.client())
    assert world.redeem(code).status_code == 200


def test_what_one_process_changes_is_seen_at_once_there(world: World) -> None:
    """D50: dropped at once in the process that made the change; elsewhere within five seconds."""
    code = world.code()
    world.writes(world.client(enabled=False))
    world.clock.now -= 5
    world.provider.registry_cache.drop()
    json_refusal(world.redeem(code), 401, "invalid_client")


def test_the_other_registered_redirect_uri_serves_as_well(world: World) -> None:
    """Spec 4.3; D38."""
    uri = "https://rp.example/other?kept=1"
    world.sign_in()
    world.rp.restart()
    world.rp.redirect_uri = uri
    callback = world.get(world.run(world.rp.begin())).headers["location"]
    assert callback.startswith(f"{uri}&code=")
    assert world.redeem(world.rp.callback(callback)).status_code == 200
    assert uri != CALLBACK
