"""Every refusal of the protocol's endpoints, as the inspector of developer mode shows it (D28, D66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid_dev.flows import inspection
from corpid_dev.flows.people import Developer
from corpid_dev.rules.checks import CheckState
from tests.protocol.every_refusal import CASES, Case
from tests.protocol.provider import Worlds, query

if TYPE_CHECKING:
    from corpid_dev.flows.inspection import Inspection

pytestmark = pytest.mark.generations("legacy", "current", differ=True)
DEMO: Final[dict[str, Any]] = {
    "base_url": "http://localhost:8080", "developer_mode": True, "trusted_proxies": (), "developer": Developer(key="k")
}  # fmt: skip
UNWATCHED: Final = ("no such path", "no such page", "guessed path")
"""requests at paths of no endpoint"""
EXPLAINED: Final = ("assertion: aud", "proof: htu", "redirect_uri", "code: verifier")


def inspected(worlds: Worlds, case: Case) -> Inspection:
    """The findings on the refusal of a case."""
    exchanges = DEMO["developer"].exchanges
    exchanges.clear()
    case.provoke(worlds.fresh(**DEMO))
    exchange = [each for each in exchanges.list_exchanges() if each.reason][-1]
    assert exchange.reason == case.reason
    return inspection.inspect(exchange, exchanges)


def out_of_order(found: Inspection) -> list[str]:
    """What the inspector shows wrongly: a check that was not passed before the red one, or was looked at after it."""
    judged = [each for part in found.parts for each in part.checks]
    red = [each.state for each in judged].index(CheckState.FAILED)
    before = [each.name for each in judged[:red] if each.state not in (CheckState.PASSED, CheckState.NOT_NEEDED)]
    return before + [each.name for each in judged[red + 1 :] if each.state is not CheckState.NOT_REACHED]


@pytest.mark.full
def test_one_check_of_each_refusal_is_red_those_before_it_green_and_no_later_one_reached(
    worlds: Worlds, speaking: str
) -> None:
    """D28, D66: as the endpoints answer."""
    cases = {name: case for name, case in CASES.items() if speaking in case.generations and name not in UNWATCHED}
    wrong = {name: found for name, case in cases.items() if (found := out_of_order(inspected(worlds, case)))}
    assert wrong == {}
    assert len(cases) > 50


def test_the_requests_of_a_sign_in_are_linked_in_each_generation(worlds: Worlds, speaking: str) -> None:
    """D66: pushed or in the query; each passed its checks, and those of the sign-in follow the page."""
    world, exchanges = worlds.fresh(**DEMO), DEMO["developer"].exchanges
    exchanges.clear()
    callback = query(world.sign_in())
    world.run(world.rp.believe(world.redeem(callback["code"])))
    world.userinfo()
    kept = [each for each in exchanges.list_exchanges() if each.sign_in]
    pushed = ["par"] if speaking == "current" else []
    resource = "userinfo" if speaking == "current" else "authorization-info"
    assert [each.endpoint for each in kept] == [*pushed, "authorize", "callback", "token", resource]
    assert len({each.sign_in.sign_in_id for each in kept if each.sign_in}) == 1
    assert {each.client_id for each in kept} == {"rp-1"}
    for each in kept:
        found = inspection.inspect(each, exchanges)
        states = {check.state for part in found.parts for check in part.checks if part.title != "Sign-in"}
        assert states <= {CheckState.PASSED, CheckState.NOT_NEEDED}, each.endpoint
        of_sign_in = {check.state for part in found.parts for check in part.checks if part.title == "Sign-in"}
        assert of_sign_in == {"authorize": {CheckState.NOT_REACHED}, "callback": {CheckState.PASSED}}.get(
            each.endpoint, set()
        )


def test_a_red_check_has_the_values_to_compare(worlds: Worlds, speaking: str) -> None:
    """D28: those of the refusal's explanation."""
    for name in EXPLAINED:
        if speaking in CASES[name].generations:
            failed = inspected(worlds, CASES[name]).failed
            assert failed is not None
            assert failed.received, name
            assert failed.expected or failed.registered, name
