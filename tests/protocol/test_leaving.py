"""What `corpid client migration` reports after real sign-ins: who uses LEGACY, and how (issue "Leaving LEGACY"; D8, D13)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

from corpid.cli.client import migration
from corpid_dev.relying_party.interfaces import INTERFACES
from tests.protocol.deployment import ISSUER, PAR, TOKEN
from tests.world.clients import FAR

if TYPE_CHECKING:
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

NO_PKCE: dict[str, Any] = {"code_challenge": None, "code_challenge_method": None}

command = typer.Typer()
command.command()(migration)


@pytest.fixture
def world(worlds: Worlds) -> World:
    """Both are served; rp-1 may use either and name the token endpoint; Alice is signed in."""
    made = worlds.fresh(generations=("current", "legacy"))
    written(made)  # what earlier tests counted is still held in memory
    made.reset()
    until = {"legacy_until": FAR, "endpoint_audience_until": FAR}
    made.registers(generations=("legacy", "current"), pkce="optional", **until)
    made.sign_in()
    return made


def legacy(world: World, client_id: str = "rp-1") -> RelyingParty:
    return world.party(client_id, interface=INTERFACES["legacy"])


def written(world: World) -> None:
    """As the server does every few seconds."""
    world.run(world.provider.usage.flush(world.provider.registry))


def shown(world: World, *arguments: str) -> str:
    written(world)
    environment = {
        "CORPID_DATA_DIR": str(world.directory),
        "CORPID_BASE_URL": ISSUER,
        "CORPID_TRUSTED_PROXIES": "127.0.0.1",
        "CORPID_GENERATIONS": "current,legacy",
        "COLUMNS": "300",
    }
    result = CliRunner(env=environment).invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def reported(world: World, client_id: str = "rp-1", generation: str = "legacy") -> dict[str, Any]:
    found = {(each["client_id"], each["generation"]): each for each in json.loads(shown(world, "--json"))}
    return dict(found[client_id, generation])


def habits(world: World, generation: str = "legacy") -> dict[str, int]:
    return {each["habit"]: each["count"] for each in reported(world, generation=generation)["habits"]}


def rows(world: World) -> set[tuple[Any, ...]]:
    """All that is kept of it."""
    written(world)
    with closing(sqlite3.connect(world.directory / "corpid.sqlite")) as other:
        return set(other.execute("SELECT * FROM generation_use"))


def signs_in(world: World, *, assertion: dict[str, Any] | None = None, **asked: Any) -> None:
    """A whole LEGACY sign-in of rp-1 with these habits."""
    rp = legacy(world)
    rp.response_mode = asked.pop("response_mode", None)
    answer = world.get(world.asked(rp, **asked))
    form: dict[str, Any] = {"code_verifier": None} if asked.keys() >= NO_PKCE.keys() else {}
    code = _code(answer, rp.response_mode)
    assert world.redeem(code, rp, client_assertion=rp.assertion(**(assertion or {})), **form).status_code == 200


def _code(answer: Any, mode: str | None) -> str:
    text = answer.text if mode == "form_post" else answer.headers["location"]
    _, _, rest = text.partition('name="code" value="' if mode == "form_post" else "code=")
    return str(rest[:44])


def test_honest_sign_ins_are_counted_with_their_last_moment_and_no_habit(world: World) -> None:
    """Which clients still use LEGACY, when last, how often, when their end date falls."""
    for _ in range(3):
        world.clock.now += 10
        signs_in(world)
    found = reported(world)
    assert (found["uses"], found["last_at"], found["habits"]) == (3, int(world.clock.now), [])
    assert (found["generation"], found["successor"]) == ("legacy", "current")
    assert (found["allowed"], found["last_day"], found["passed"], found["lists_successor"]) == (True, FAR, False, True)


@pytest.mark.parametrize(
    ("habit", "asked", "assertion"),
    [
        ("assertion_lifetime", {}, {"exp": 600}),
        ("assertion_without_jti", {}, {"jti": None}),
        ("token_endpoint_audience", {}, {"aud": TOKEN}),
        ("response_mode", {"response_mode": "fragment"}, {}),
        ("response_mode", {"response_mode": "form_post"}, {}),
        ("without_state", {"state": None}, {}),
        ("without_nonce", {"nonce": None}, {}),
        ("without_challenge", NO_PKCE, {}),
    ],
)
def test_each_habit_is_counted_once_for_each_redeemed_code(
    world: World, habit: str, asked: dict[str, Any], assertion: dict[str, Any]
) -> None:
    """Which of their habits CURRENT would refuse."""
    for _ in range(2):
        until = {"exp": int(world.clock.now) + assertion["exp"]} if "exp" in assertion else {}
        signs_in(world, assertion={**assertion, **until}, **asked)
    signs_in(world)
    assert habits(world) == {habit: 2}
    assert reported(world)["uses"] == 3


def test_a_request_with_neither_challenge_nor_nonce_is_counted_by_itself(world: World) -> None:
    """Spec "LEGACY without PKCE": RFC 9700 2.1.1 is not met then."""
    signs_in(world, **NO_PKCE)
    signs_in(world, **NO_PKCE, nonce=None)
    assert habits(world) == {"without_challenge": 2, "without_challenge_and_nonce": 1, "without_nonce": 1}
    assert "requests have neither code_challenge nor nonce (RFC 9700 2.1.1)" in shown(world)


@pytest.mark.parametrize(("seconds", "shows"), [(120, False), (121, True)])
def test_an_assertion_is_long_lived_where_the_successor_says_so(world: World, seconds: int, shows: bool) -> None:
    """Spec "Generations": 120 s in CURRENT."""
    signs_in(world, assertion={"exp": int(world.clock.now) + seconds})
    assert ("assertion_lifetime" in habits(world)) == shows


def test_all_habits_at_once_are_told_in_words(world: World) -> None:
    """What an operator needs before switching LEGACY off."""
    claims = {"exp": int(world.clock.now) + 600, "jti": None, "aud": TOKEN}
    signs_in(world, assertion=claims, response_mode="form_post", state=None, nonce=None)
    assert len(habits(world)) == 6
    text = shown(world)
    for words in (
        "no state",
        "no nonce",
        "no jti",
        "longer than 120 s",
        "token endpoint",
        "response_mode is not query",
    ):
        assert words in text
    moment = datetime.fromtimestamp(world.clock.now, UTC)
    assert f"{moment:%Y-%m-%d %H:%M}" in text
    assert FAR in text


def test_what_redeems_nothing_counts_nothing(world: World) -> None:
    """Aggregated counters of sign-ins; a code counts once."""
    rp = legacy(world)
    code = world.code(rp)
    for refused in ({"code_verifier": "x" * 43}, {"client_assertion": "x"}, {"grant_type": "x"}):
        assert world.redeem(code, rp, **refused).status_code >= 400
    world.get(world.asked(rp, scope="openid nothing"))
    world.get(world.asked(rp, prompt="login"), world.new_browser())
    assert rows(world) == set()
    assert world.redeem(code, rp).status_code == 200
    assert world.redeem(code, rp).status_code == 400
    assert world.userinfo(rp, token="x").status_code == 401
    assert reported(world)["uses"] == 1


def test_a_wrong_redirect_uri_or_a_person_who_left_counts_nothing(world: World) -> None:
    """D18: the code is spent, but nobody signed in."""
    rp = legacy(world)
    code = world.code(rp)
    assert world.redeem(code, rp, redirect_uri="https://evil.example/").status_code == 400
    assert rows(world) == set()


def test_current_counts_nothing(world: World) -> None:
    """Of LEGACY alone."""
    rp = world.party()
    for _ in range(2):
        world.tokens(rp)
    assert rows(world) == set()
    assert reported(world)["uses"] == 0


@pytest.mark.parametrize(
    ("at_par", "at_token", "counted"),
    [
        (PAR, TOKEN, {"par_endpoint_audience": 2, "token_endpoint_audience": 2}),
        (PAR, ISSUER, {"par_endpoint_audience": 2}),
        (ISSUER, TOKEN, {"token_endpoint_audience": 2}),
    ],
)
def test_in_current_an_endpoint_as_audience_is_counted_and_nothing_else(
    world: World, at_par: str, at_token: str, counted: dict[str, int]
) -> None:
    """D64: counted in the migration report, once for each redeemed code."""
    for _ in range(2):
        rp = world.party()
        code = world.code(rp, client_assertion=rp.assertion(aud=at_par))
        assert world.redeem(code, rp, client_assertion=rp.assertion(aud=at_token)).status_code == 200
    world.tokens(world.party())
    assert habits(world, "current") == counted
    found = reported(world, generation="current")
    assert (found["uses"], found["last_at"], found["successor"]) == (2, int(world.clock.now), None)
    assert (found["allowed"], found["last_day"], found["passed"]) == (True, FAR, False)
    text = shown(world)
    assert "Clients whose assertions may name an endpoint" in text
    assert "rp-1: current, without endpoint_audience_until, would refuse this" in text
    assert reported(world)["uses"] == 0


def test_a_client_without_an_exception_is_not_told_of_in_current(world: World) -> None:
    """D64: the report is about what ends."""
    world.registers("rp-2", generations=("current",))
    world.tokens(world.party("rp-2"))
    assert "rp-2" not in shown(world)


def test_nothing_of_a_request_is_kept(world: World) -> None:
    """No stored requests; five columns, whatever was asked."""
    rp = legacy(world)
    world.tokens(rp, response_mode="query", max_age="3600")
    assert rows(world) == {("rp-1", "legacy", "", 1, int(world.clock.now))}


def test_clients_are_counted_apart_and_who_never_used_it_is_told(world: World) -> None:
    """Which clients still use LEGACY."""
    world.registers("rp-2", generations=("legacy",), legacy_until="2027-01-20")
    signs_in(world)
    other = reported(world, "rp-2")
    assert (other["uses"], other["last_at"], other["lists_successor"]) == (0, None, False)
    world.tokens(legacy(world, "rp-2"))
    assert (reported(world, "rp-2")["uses"], reported(world)["uses"]) == (1, 1)


def test_a_client_that_was_taken_off_legacy_keeps_its_counts(world: World) -> None:
    """What it still did is told, and that it may not any more."""
    signs_in(world)
    world.registers(generations=("current",), legacy_until=None)
    found = reported(world)
    assert (found["uses"], found["allowed"], found["last_day"]) == (1, False, None)
    assert "may not use it any more" in shown(world)
