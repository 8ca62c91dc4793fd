"""The calendar of the signing keys as relying parties see it (Spec 4.7, 9; D42)."""

from __future__ import annotations

import json

import pytest

from corpid.flows.operations import signing_keys
from corpid.rules.directory.access import CommandLine
from corpid.rules.signing_keys import is_standby
from corpid_dev.relying_party import jwt
from tests.protocol.deployment import ISSUER, LIVE
from tests.protocol.expectations import EVERY
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import resource_refusal

pytestmark = pytest.mark.generations(*EVERY)
OPERATOR = CommandLine(by="lee@node1")
PUBLISHED_BEFORE = 7200
KEPT_AFTER = 600 + 3600


@pytest.fixture
def world(worlds: Worlds) -> World:
    """Alice is signed in, at a client whose userinfo is signed."""
    made = worlds.fresh()
    made.writes(made.client(userinfo_signing_alg="ES256"))
    made.sign_in()
    return made


def published(world: World) -> list[str]:
    """The kids of the key set, in order, without that of the standby key, which is always one of them."""
    kids = [key["kid"] for key in json.loads(world.run(world.http.get(f"{ISSUER}/.well-known/keys")).content)["keys"]]
    waiting = [key.kid for key in world.run(signing_keys.stored_keys(world.provider.registry)) if is_standby(key)]
    assert len(set(waiting).intersection(kids)) == 1
    return [kid for kid in kids if kid not in waiting]


def signing(world: World) -> str:
    """The kid that signs now, from tokens that a relying party verified."""
    world.rp.provider_keys = None
    found = world.tokens()
    kids = {found.access_token_header["kid"], found.id_token_header["kid"], jwt.peek(world.userinfo().text)[0]["kid"]}
    assert len(kids) == 1
    return str(kids.pop())


def rotate(world: World, *, at_once: bool = False) -> str:
    """In another process; the new kid. Five seconds pass, after which the running server knows."""
    key = world.run(signing_keys.rotate(world.provider.registry, OPERATOR, now=world.clock(), at_once=at_once))
    world.clock.now += LIVE
    return key.kid


def test_a_new_key_is_published_two_hours_before_it_signs(world: World) -> None:
    """D42: twice the time that relying parties cache the key set."""
    (old,) = published(world)
    start = world.clock.now
    new = rotate(world)
    assert published(world) == [old, new]
    for later in (LIVE, PUBLISHED_BEFORE - 1):
        world.clock.now = start + later
        assert signing(world) == old
    world.clock.now = start + PUBLISHED_BEFORE
    assert signing(world) == new
    assert published(world) == [new, old]


def test_tokens_signed_before_a_rotation_verify_until_they_expire(world: World) -> None:
    """Spec 9; D42: a key is kept until the last token's exp and an hour."""
    (old,) = published(world)
    switch = world.clock.now + PUBLISHED_BEFORE
    new = rotate(world)
    world.clock.now = switch - 1
    token = world.tokens().access_token
    for later in (0, 598):
        world.clock.now = switch + later
        assert world.userinfo(token=token).status_code == 200
    world.clock.now = switch + 599
    assert "expired" in resource_refusal(world.userinfo(token=token), 401, "invalid_token", world.expected.challenge)
    world.clock.now = switch + KEPT_AFTER - 1
    assert published(world) == [new, old]
    world.clock.now = switch + KEPT_AFTER
    assert published(world) == [new]


def test_an_emergency_rotation_skips_the_wait(world: World) -> None:
    """D42; a relying party that meets the unknown kid fetches the key set again (Spec 4.7)."""
    (old,) = published(world)
    token = world.tokens().access_token
    new = rotate(world, at_once=True)
    assert published(world) == [new, old]
    stale = world.rp.provider_keys
    assert stale is not None
    key = world.rp.sign_in.dpop_key
    world.rp.restart()
    assert world.tokens().id_token_header["kid"] == new
    world.rp.sign_in.dpop_key = key
    assert world.userinfo(token=token).status_code == 200


def test_a_revoked_key_is_neither_published_nor_accepted(world: World) -> None:
    """D42: at once, loudly; what it signed is refused."""
    (old,) = published(world)
    world.tokens()
    assert world.userinfo().status_code == 200
    new = world.run(signing_keys.revoke(world.provider.registry, OPERATOR, old, now=world.clock()))
    assert new is not None
    assert world.userinfo().status_code == 200, "no process may refuse what another still signs"
    world.clock.now += LIVE
    assert published(world) == [new.kid]
    resource_refusal(world.userinfo(), 401, "invalid_token", world.expected.challenge)
    assert signing(world) == new.kid
    assert {"key.rotate", "key.revoke"} <= set(world.audited())


def test_a_code_survives_a_rotation(world: World) -> None:
    """D42: rotating is nothing that a person notices."""
    code = world.code()
    new = rotate(world, at_once=True)
    world.rp.provider_keys = None
    assert world.run(world.rp.believe(world.redeem(code))).id_token_header["kid"] == new


def test_two_rotations_in_a_row_leave_one_key_signing_at_any_time(world: World) -> None:
    """D42."""
    (first,) = published(world)
    start = world.clock.now
    second = rotate(world)
    world.clock.now = start + 3600
    third = rotate(world)
    assert set(published(world)) == {first, second, third}
    seen = []
    for later in (3700, PUBLISHED_BEFORE + 1, 3600 + PUBLISHED_BEFORE + 1):
        world.clock.now = start + later
        seen.append(signing(world))
    assert seen == [first, second, third]


def test_the_keys_are_the_same_after_a_restart(world: World) -> None:
    """Issue "Faults": keys are the same; and what was issued before still counts."""
    world.tokens()
    before = published(world)
    with World(at=world.directory, clock=world.clock, generations=(world.interface.name,)) as again:
        assert published(again) == before
        again.rp.sign_in = world.rp.sign_in
        assert again.userinfo().status_code == 200
