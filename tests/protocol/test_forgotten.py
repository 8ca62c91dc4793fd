"""A store that lost its memory: what was made before that moment is refused (DESIGN "What each engine promises", D49)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from tests.protocol.deployment import ISSUER, NOON, Clock, fill
from tests.protocol.provider import World

if TYPE_CHECKING:
    from pathlib import Path

AHEAD = 30


def after_a_power_loss(path: Path) -> None:
    """The machine was started anew, as far as the database can tell."""
    asyncio.run(fill(path, Clock(), base_url=ISSUER, trusted_proxies=("127.0.0.1",)))
    with closing(sqlite3.connect(path / "corpid.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE deployment SET value = 'an earlier one' WHERE name = 'machine_start'")


def test_proofs_and_assertions_are_refused_until_none_can_be_older_than_the_loss(tmp_path: Path) -> None:
    """D7, D8: iat may lie 30 s ahead, so what was spent just before the loss may be dated 30 s after it."""
    after_a_power_loss(tmp_path)
    with World(at=tmp_path) as world:
        world.clock.now = NOON + AHEAD - 1
        refused = world.push()
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_dpop_proof")
        assert "restart" in refused.json()["error_description"]
        assert world.kinds() == []
        world.clock.now = NOON + AHEAD
        assert world.push().status_code == 201
