"""A store that lost its memory: what was made before that moment is refused (DESIGN "What each engine promises", D49)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.protocol.deployment import ISSUER, PAR, fill
from tests.protocol.expectations import PUSHED
from tests.protocol.provider import World
from tests.protocol.refusals import json_refusal
from tests.protocol.test_client_assertion import ask, is_accepted, is_refused
from tests.world.clock import NOON, Clock

if TYPE_CHECKING:
    from pathlib import Path

AHEAD = 30


def after_a_power_loss(path: Path) -> None:
    """The machine was started anew, as far as the database can tell."""
    asyncio.run(fill(path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    with closing(sqlite3.connect(path / "corpid.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE deployment SET value = 'an earlier one' WHERE name = 'machine_start'")


@pytest.mark.generations(*PUSHED)
def test_proofs_are_refused_until_none_can_be_older_than_the_loss(tmp_path: Path, speaking: str) -> None:
    """D7: iat may lie 30 s ahead, so what was spent just before the loss may be dated 30 s after it."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        world.clock.now = NOON + AHEAD - 1
        refused = world.push(headers={"DPoP": world.rp.proof("POST", PAR)}, state="s")
        sentence = json_refusal(refused, world.expected.bad_proof_status, "invalid_dpop_proof", state="s")
        assert "restart" in sentence
        assert world.kinds() == []
        world.clock.now = NOON + AHEAD
        assert world.push(headers={"DPoP": world.rp.proof("POST", PAR)}).status_code == 201


@pytest.mark.generations("legacy")
def test_so_are_assertions(tmp_path: Path, speaking: str) -> None:
    """D8: also where no proof is beside them."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        world.clock.now = NOON + AHEAD - 1
        assert "restart" in is_refused(world, ask(world, world.rp.assertion()))
        assert world.kinds() == []
        world.clock.now = NOON + AHEAD
        is_accepted(world, ask(world, world.rp.assertion()))


@pytest.mark.generations("fapi2")
def test_an_assertion_without_iat_is_refused_for_the_length_of_its_cap(tmp_path: Path, speaking: str) -> None:
    """DESIGN "What each engine promises": it may have been made 600 s before its exp."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path, generations=(speaking,)) as world:
        for later, lifetime in ((AHEAD - 1, 600), (AHEAD, 60), (AHEAD + 539, 60)):
            world.clock.now = NOON + later
            assertion = world.rp.assertion(iat=None, exp=world.clock.now + lifetime)
            assert "restart" in is_refused(world, ask(world, assertion))
        for later, lifetime in ((AHEAD + 539, 600), (AHEAD + 540, 60)):
            world.clock.now = NOON + later
            is_accepted(world, ask(world, world.rp.assertion(iat=None, exp=world.clock.now + lifetime)))
