"""Client assertions beside LEGACY codes: longer lives, jti optional, the token endpoint as audience for a while (D8; Spec "Generations")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.protocol.deployment import ISSUER, PAR, TOKEN, other_key
from tests.protocol.refusals import json_refusal
from tests.world.clients import CALLBACK, FAR
from tests.world.clock import NOON

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World, Worlds


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY alone, with single sign-on; Alice is signed in."""
    made = worlds.fresh(generations=("legacy",))
    made.sign_in()
    return made


def asserted(world: World, code: str, /, **claims: Any) -> httpx.Response:
    return world.redeem(code, client_assertion=world.rp.assertion(**claims))


def refused(world: World, /, **claims: Any) -> str:
    """invalid_client, and nothing is spent: the code serves an honest request afterwards."""
    code = world.code()
    with world.nothing_spent():
        sentence = json_refusal(asserted(world, code, **claims), 401, "invalid_client")
    assert world.redeem(code).status_code == 200
    return sentence


def token_endpoint_until(world: World, day: str | None) -> None:
    world.registers(generations=("legacy",), legacy_until=FAR, endpoint_audience_until=day)


@pytest.mark.parametrize("ago", [0, 400])
def test_an_assertion_may_live_for_ten_minutes(world: World, ago: int) -> None:
    """Spec "Generations": 600 s."""
    iat = int(world.clock.now) - ago
    assert asserted(world, world.code(), iat=iat, exp=iat + 600).status_code == 200


@pytest.mark.parametrize("seconds", [601, 3600])
def test_a_longer_life_is_invalid_client(world: World, seconds: int) -> None:
    """Spec "Generations": the cap is on exp - iat."""
    now = int(world.clock.now)
    assert "600 s are allowed" in refused(world, exp=now + seconds)
    assert "600 s are allowed" in refused(world, iat=now - seconds + 60, exp=now + 60)


@pytest.mark.parametrize(
    "claims", [{"iat": None}, {"exp": None}, {"exp": 1}, {"sub": "rp-2"}, {"iss": ISSUER}, {"jti": ""}, {"jti": 5}]
)
def test_the_rest_of_the_rules_is_as_ever(world: World, claims: dict[str, Any]) -> None:
    """D8, D33: a jti that is there must be one."""
    refused(world, **claims)


def test_an_assertion_of_another_key_is_invalid_client(world: World) -> None:
    """D8."""
    refused(world, key=other_key())


def test_without_jti_an_assertion_serves_until_it_expires(world: World) -> None:
    """Spec "Generations": optional."""
    now = int(world.clock.now)
    form = {"client_assertion": world.rp.assertion(jti=None, exp=now + 600)}
    for later in (0, 599):
        world.clock.now = now + later
        assert world.redeem(world.code(), **form).status_code == 200
    world.clock.now = now + 600
    json_refusal(world.redeem(world.code(), **form), 401, "invalid_client")


def test_with_jti_an_assertion_is_used_once_and_the_code_stays_unspent(world: World) -> None:
    """Spec "Generations": single use if present; Spec "The order of a request"."""
    now = int(world.clock.now)
    form = {"client_assertion": world.rp.assertion(exp=now + 600)}
    assert world.redeem(world.code(), **form).status_code == 200
    for later in (0, 599):
        world.clock.now = now + later
        code = world.code()
        with world.nothing_spent("assertion.replay"):
            json_refusal(world.redeem(code, **form), 401, "invalid_client")
        assert world.redeem(code).status_code == 200


def test_the_token_endpoint_is_no_audience_by_default(world: World) -> None:
    """D8: exactly the issuer, one string."""
    assert ISSUER in refused(world, aud=TOKEN)


def test_until_its_last_day_a_client_may_name_the_token_endpoint(world: World) -> None:
    """D8: per client, with an end date, which is included; the clock begins at 2027-01-15 08:00 UTC."""
    token_endpoint_until(world, "2027-01-15")
    midnight = NOON + 16 * 3600
    assert asserted(world, world.code(), aud=TOKEN).status_code == 200
    assert asserted(world, world.code()).status_code == 200
    world.clock.now = midnight - 1
    assert asserted(world, world.code(), aud=TOKEN).status_code == 200
    world.clock.now = midnight
    assert ISSUER in refused(world, aud=TOKEN)


def test_its_last_day_ends_in_the_time_zone_of_the_deployment(worlds: Worlds) -> None:
    """D8, D23: in Singapore it is 16:00 when the clock begins."""
    world = worlds.fresh(generations=("legacy",), timezone="Asia/Singapore")
    world.sign_in()
    token_endpoint_until(world, "2027-01-15")
    world.clock.now = NOON + 8 * 3600 - 1
    assert asserted(world, world.code(), aud=TOKEN).status_code == 200
    world.clock.now = NOON + 8 * 3600
    refused(world, aud=TOKEN)


def test_the_issuer_may_stand_in_an_array_and_beside_the_token_endpoint_until_that_ends(world: World) -> None:
    """D70."""
    assert asserted(world, world.code(), aud=[ISSUER]).status_code == 200
    for both in ([ISSUER, TOKEN], [TOKEN, ISSUER]):
        assert ISSUER in refused(world, aud=both)
    token_endpoint_until(world, "2027-01-15")
    for both in ([ISSUER, TOKEN], [TOKEN, ISSUER]):
        assert asserted(world, world.code(), aud=both).status_code == 200
    world.clock.now = NOON + 16 * 3600
    for both in ([ISSUER, TOKEN], [TOKEN, ISSUER]):
        assert ISSUER in refused(world, aud=both)
    assert asserted(world, world.code(), aud=[ISSUER]).status_code == 200


@pytest.mark.parametrize(
    "audience", [[TOKEN], [], [ISSUER, ISSUER], [ISSUER, TOKEN, TOKEN], [ISSUER, PAR], [[ISSUER]], f"{TOKEN}/", TOKEN.upper(), PAR, CALLBACK, f"{ISSUER}/authorization-info", None, ""]
)  # fmt: skip
def test_no_other_audience_is_taken_even_then(world: World, audience: Any) -> None:
    """D8, D70: character by character."""
    token_endpoint_until(world, FAR)
    refused(world, aud=audience)


def test_nobody_learns_from_a_refusal_whether_a_client_exists_or_what_it_may_do(world: World) -> None:
    """D28: unknown client, failed signature and an audience that is this client's setting share one sentence."""
    world.registers("rp-2", endpoint_audience_until=FAR)
    sentences = {
        json_refusal(world.redeem("lx", rp, client_assertion=assertion), 401, "invalid_client")
        for rp in (world.party("nobody"), world.party("rp-1"), world.party("rp-2"))
        for assertion in (
            rp.assertion(aud=TOKEN, key=other_key()),
            rp.assertion(aud=TOKEN, key=other_key(), header={"kid": "x"}),
        )
    }
    assert len(sentences) == 1
    assert ISSUER in sentences.pop()


@pytest.mark.parametrize(("jti", "error", "alive"), [("once", "invalid_client", True), (None, "invalid_grant", False)])
def test_the_same_token_request_byte_for_byte(world: World, jti: str | None, error: str, alive: bool) -> None:
    """D18; Spec "The order of a request": where the assertion can be spent, the repeat never reaches the code; else it is a replay."""
    code = world.code()
    form = {"client_assertion": world.rp.assertion(jti=jti)}
    token = world.redeem(code, **form).json()["access_token"]
    json_refusal(world.redeem(code, **form), 401 if alive else 400, error)
    assert (world.userinfo(token=token).status_code == 200) == alive


def test_the_allowance_is_one_clients_alone(world: World) -> None:
    """D8: per-client setting."""
    token_endpoint_until(world, FAR)
    other = world.party("rp-2")
    code = world.code(other)
    form = {"client_assertion": other.assertion(aud=TOKEN)}
    json_refusal(world.redeem(code, other, **form), 401, "invalid_client")
    assert world.redeem(code, other).status_code == 200


def test_side_by_side_the_longer_life_and_the_missing_jti_are_for_legacy_codes_alone(worlds: Worlds) -> None:
    """Spec "The generation of a token request", a push has the pushed one."""
    world = worlds.fresh(generations=("current", "legacy"))
    rp = world.registers(generations=("legacy", "current"), legacy_until=FAR, endpoint_audience_until=FAR)
    now = int(world.clock.now)
    for claims in ({"exp": now + 600}, {"jti": None}):
        json_refusal(
            world.push(rp, client_assertion=rp.assertion(**claims), state="s"), 401, "invalid_client", state="s"
        )
        code = world.code(rp)
        json_refusal(world.redeem(code, rp, client_assertion=rp.assertion(**claims)), 401, "invalid_client")
        assert world.redeem(code, rp).status_code == 200


def test_no_other_method_stands_beside_an_assertion(world: World) -> None:
    """D8: another authentication method beside it."""
    code = world.code()
    with world.nothing_spent():
        json_refusal(world.redeem(code, client_secret="x"), 400, "invalid_request")
        json_refusal(world.redeem(code, headers={"Authorization": "Bearer x"}), 400, "invalid_request")
    assert world.redeem(code).status_code == 200


@pytest.mark.parametrize("claims", [{"jti": None}, {"exp": NOON + 500}, {"aud": TOKEN}], ids=["jti", "exp", "aud"])
def test_a_client_that_is_not_marked_is_judged_as_current_whatever_its_code_looks_like(
    worlds: Worlds, claims: dict[str, Any]
) -> None:
    """Spec "No downgrade": the first character of a code is the caller's to choose; D28: one sentence for all."""
    world = worlds.fresh(generations=("current", "legacy"))
    code = "l" + "A" * 43
    with world.nothing_spent():
        unmarked = json_refusal(asserted(world, code, **claims), 401, "invalid_client")
        stranger = world.party("nobody")
        answer = world.redeem(code, stranger, client_assertion=stranger.assertion(**claims))
        assert json_refusal(answer, 401, "invalid_client") == unmarked
    world.registers(generations=("legacy", "current"), legacy_until=FAR, endpoint_audience_until=FAR)
    marked = {**claims, **({"exp": world.clock.now + 500} if "exp" in claims else {})}
    json_refusal(asserted(world, code, **marked), 400, "invalid_grant")
