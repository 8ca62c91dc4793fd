"""`sid` in the ID token of LEGACY: a name of the session for one client (Spec 2.8, OpenID Connect Front-Channel Logout §3)."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.expectations import PUSHED

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

SHAPE = re.compile("[A-Za-z0-9_-]{43}")


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY alone, with single sign-on; Alice is signed in."""
    made = worlds.fresh(generations=("legacy",))
    made.sign_in()
    return made


def session_keys(world: World) -> list[str]:
    with closing(sqlite3.connect(f"file:{world.directory / 'corpid.sqlite'}?mode=ro", uri=True)) as look:
        return [key for (key,) in look.execute("SELECT session_id FROM sessions")]


def sid(world: World, client_id: str = "rp-1") -> Any:
    return world.tokens(world.party(client_id)).id_token["sid"]


def test_a_session_has_one_name_for_a_client_and_another_for_another(world: World) -> None:
    """Two clients cannot tell that their sessions are one; the same client can."""
    first, again, other = sid(world), sid(world), sid(world, "rp-2")
    assert first == again != other
    assert SHAPE.fullmatch(first)
    assert SHAPE.fullmatch(other)


def test_the_name_tells_nothing_of_the_session_s_key(world: World) -> None:
    """Whoever reads an ID token must not come nearer to a session."""
    (key,) = session_keys(world)
    for name in (sid(world), sid(world, "rp-2")):
        assert key not in name
        assert name not in key
    identity = str(world.tokens().id_token)
    assert key not in identity


def test_another_sign_in_begins_another_session(world: World) -> None:
    before = sid(world)
    after = world.run(world.rp.redeem(world.sign_in(browser=world.new_browser()))).id_token["sid"]
    assert SHAPE.fullmatch(after)
    assert after != before
    assert sid(world) == before


def test_the_sign_in_and_what_single_sign_on_answers_later_name_the_same_session(worlds: Worlds) -> None:
    world = worlds.fresh(generations=("legacy",))
    at_sign_in = world.run(world.rp.redeem(world.sign_in())).id_token["sid"]
    assert sid(world) == at_sign_in


def test_without_single_sign_on_there_is_no_session_to_name(worlds: Worlds) -> None:
    """D30: what a sign-in begins then ends with it."""
    world = worlds.fresh(generations=("legacy",), session_seconds=0)
    assert "sid" not in world.run(world.rp.redeem(world.sign_in())).id_token


@pytest.mark.generations(*PUSHED)
def test_the_other_generations_name_no_session(worlds: Worlds) -> None:
    """D2 has no sid."""
    world = worlds.fresh()
    world.sign_in()
    assert "sid" not in world.tokens().id_token
