"""What is presented again stands in the audit table (SECURITY.md; D7, D8, D18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.protocol.deployment import PAR, USERINFO
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.refusals import json_refusal, resource_refusal
from tests.protocol.test_client_assertion import ask, is_accepted, is_refused

if TYPE_CHECKING:
    from corpid.rules.audit import AuditEntry
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*PUSHED)


def last_event(world: World) -> AuditEntry:
    return world.run(world.provider.registry.audit.entries(limit=10_000))[-1]


def told(event: AuditEntry) -> tuple[str, str, str, str, int]:
    return event.action, event.actor, event.client_id, event.outcome, event.at


def replay_of(world: World, action: str) -> tuple[str, str, str, str, int]:
    return action, "client:rp-1", "rp-1", "refused", int(world.clock.now)


@pytest.mark.generations(*EVERY)
def test_a_code_that_is_presented_again_is_in_the_audit_table(world: World) -> None:
    """D18: with the deny entry of its token, in one unit."""
    code = world.code()
    assert world.redeem(code).status_code == 200
    json_refusal(world.redeem(code), 400, "invalid_grant")
    assert told(last_event(world)) == replay_of(world, "code.replay")
    assert last_event(world).detail["reason"] == "code_redeemed"
    assert "denied_token" in world.kinds()


@pytest.mark.generations(*EVERY)
def test_its_entry_has_the_reason_that_the_log_has(world: World) -> None:
    """D57: the client had authenticated; its answer names none of them (D19)."""
    code = world.code()
    world.redeem(code, code_verifier="y" * 43)
    assert last_event(world).detail["reason"] == "code_verifier"
    world.clock.now += 60
    world.redeem(code)
    assert last_event(world).detail["reason"] == "code_expired"


@pytest.mark.generations(*EVERY)
def test_an_assertion_that_is_presented_again_is_in_the_audit_table(world: World) -> None:
    """D8; only the second use is an event."""
    assertion = world.rp.assertion()
    is_accepted(world, ask(world, assertion))
    assert "assertion.replay" not in world.audited()
    is_refused(world, ask(world, assertion))
    assert told(last_event(world)) == replay_of(world, "assertion.replay")
    assert last_event(world).detail["reason"] == "assertion_replayed"


def test_a_proof_that_is_presented_again_is_in_the_audit_table(world: World) -> None:
    """D7, at PAR."""
    proof = world.rp.proof("POST", PAR)
    assert world.push(headers={"DPoP": proof}, state="s").status_code == 201
    again = world.push(headers={"DPoP": proof}, state="s")
    json_refusal(again, world.expected.bad_proof_status, "invalid_dpop_proof", state="s")
    assert told(last_event(world)) == replay_of(world, "proof.replay")


def test_so_is_one_that_is_presented_again_to_a_resource(world: World) -> None:
    """D7, RFC 9449 §7; the client is the one of the access token."""
    token = world.tokens().access_token
    proof = world.rp.proof("GET", USERINFO, access_token=token)
    assert world.userinfo(token=token, DPoP=proof).status_code == 200
    again = world.userinfo(token=token, DPoP=proof)
    resource_refusal(again, 401, "invalid_dpop_proof", world.expected.challenge)
    assert told(last_event(world)) == replay_of(world, "proof.replay")
