"""The endpoint as audience of assertions: for one client, until a day, never in FAPI2 (D8, D28, D64)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.settings import load
from tests.protocol.deployment import ISSUER, PAR, TOKEN, USERINFO, other_key
from tests.protocol.expectations import PUSHED, SIGNED
from tests.protocol.provider import World
from tests.protocol.refusals import json_refusal
from tests.world.clients import FAR
from tests.world.clock import NOON

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty

pytestmark = pytest.mark.generations(*SIGNED)
DEVELOPER = "http://localhost:8080"


def pushed(world: World, rp: RelyingParty | None = None, /, **claims: Any) -> httpx.Response:
    rp = rp or world.rp
    return world.push(rp, client_assertion=rp.assertion(**claims), state="s")


def redeemed(world: World, code: str, /, **claims: Any) -> httpx.Response:
    return world.redeem(code, client_assertion=world.rp.assertion(**claims))


def refused(world: World, aud: Any, at: str) -> str:
    """invalid_client at this endpoint, and nothing is spent."""
    code = world.code()
    with world.nothing_spent():
        answer = pushed(world, aud=aud) if at == PAR else redeemed(world, code, aud=aud)
        sentence = json_refusal(answer, 401, "invalid_client", state="s" if at == PAR else None)
    assert world.redeem(code).status_code == 200
    return sentence


def test_until_its_last_day_a_client_may_name_each_endpoint_where_it_asks_it(world: World) -> None:
    """D64: the PAR endpoint at PAR, the token endpoint at token; the clock begins at 2027-01-15 08:00 UTC."""
    world.registers(endpoint_audience_until="2027-01-15")
    code = world.code(client_assertion=world.rp.assertion(aud=PAR))
    assert redeemed(world, code, aud=TOKEN).status_code == 200
    assert redeemed(world, world.code(), aud=ISSUER).status_code == 200
    world.clock.now = NOON + 16 * 3600 - 1
    assert pushed(world, aud=PAR).status_code == 201
    world.clock.now = NOON + 16 * 3600
    for endpoint in (PAR, TOKEN):
        assert f"aud must be the issuer {ISSUER}" in refused(world, endpoint, endpoint)


@pytest.mark.parametrize("endpoint", [PAR, TOKEN])
@pytest.mark.generations(*PUSHED)
def test_no_client_may_by_default(world: World, endpoint: str) -> None:
    """D8, D64: off by default; outside developer mode nobody is told of the member."""
    sentence = refused(world, endpoint, endpoint)
    assert f"aud must be the issuer {ISSUER}, as one string" in sentence
    assert "endpoint_audience_until" not in sentence


@pytest.mark.parametrize(
    ("at", "audience"),
    [
        (PAR, TOKEN), (TOKEN, PAR), (PAR, [PAR]), (PAR, [ISSUER, PAR]), (TOKEN, [TOKEN]), (TOKEN, f"{TOKEN}/"),
        (PAR, PAR.upper()), (PAR, f"{PAR}?"), (PAR, USERINFO), (TOKEN, None), (PAR, ""),
    ],
)  # fmt: skip
def test_no_other_audience_is_taken_even_then(world: World, at: str, audience: Any) -> None:
    """D64: one string, character by character, and the endpoint that is asked."""
    world.registers(endpoint_audience_until=FAR)
    refused(world, audience, at)


def test_the_exception_is_one_clients_alone_and_nobody_learns_whose(world: World) -> None:
    """D28: unknown client, failed signature and this setting share one sentence."""
    world.registers("rp-2", endpoint_audience_until=FAR)
    stranger = world.party("nobody")
    sentences = {
        json_refusal(pushed(world, rp, aud=PAR, **claims), 401, "invalid_client", state="s")
        for rp, claims in (
            (stranger, {}), (world.party("rp-1"), {}), (world.party("rp-1"), {"key": other_key()}),
            (world.party("rp-2"), {"key": other_key()}),
        )
    }  # fmt: skip
    assert len(sentences) == 1
    assert pushed(world, world.party("rp-2"), aud=PAR).status_code == 201


@pytest.mark.parametrize("endpoint", [PAR, TOKEN])
@pytest.mark.generations("fapi2")
def test_in_fapi2_the_endpoint_is_no_audience_whatever_stands_in_the_record(world: World, endpoint: str) -> None:
    """D64, FAPI 2.0 §5.3.2.1: a record that was written for another generation changes nothing."""
    world.registers(endpoint_audience_until=FAR)
    assert refused(world, endpoint, endpoint).startswith("client_assertion: aud must be the issuer")


@pytest.mark.parametrize(("generation", "told"), [("current", True), ("intermediate", True), ("fapi2", False)])
@pytest.mark.generations("current")
def test_in_developer_mode_the_refusal_names_the_member(generation: str, told: bool) -> None:
    """D64, D28: what is registered, of a client that is."""
    options: dict[str, Any] = {"base_url": DEVELOPER, "developer_mode": True, "trusted_proxies": ()}
    assert load(**options).developer_mode
    with World(generations=(generation,), **options) as world:
        sentence = json_refusal(pushed(world, world.rp, aud=f"{DEVELOPER}/request"), 401, "invalid_client", state="s")
        assert f"{DEVELOPER}/request" in sentence
        assert ("endpoint_audience_until none" in sentence) is told
