"""The reference's table of errors, by endpoint: what the code refuses stands there, under the error that it has (D28)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from corpid.rules.oauth.generations import GENERATIONS
from corpid.rules.oauth.refusals import Reason
from scripts.reference.endpoints import Endpoint, endpoints
from tests.protocol.every_refusal import Case
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.test_every_refusal import Refused, refusals, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*EVERY, differ=True)

_SETTING: Final = Reason.CODE_KEY
"""the setting `dpop_mismatch_error` decides its error"""


def _after(change: dict[str, Any], ask: Callable[[World], httpx.Response]) -> Callable[[World], httpx.Response]:
    def provoke(world: World) -> httpx.Response:
        world.registers(**change)
        return ask(world)

    return provoke


def _without_encryption_key(ask: Callable[[World], httpx.Response]) -> Callable[[World], httpx.Response]:
    def provoke(world: World) -> httpx.Response:
        code = world.code()
        signing = [each for each in world.rp.keys.public()["keys"] if each["use"] == "sig"]
        world.registers(jwks={"keys": signing}, id_token_encryption_alg="ECDH-ES+A256KW")
        return ask(world) if ask is not _redeem else world.redeem(code)

    return provoke


def _push(world: World) -> httpx.Response:
    return world.push()


def _redeem(world: World) -> httpx.Response:
    return world.redeem("c" * 43)


def _authorize(world: World) -> httpx.Response:
    return world.get(f"{world.issuer}/mga/sps/oauth/oauth20/authorize?client_id=rp-1", world.new_browser())


def _ask(world: World) -> httpx.Response:
    world.rp.sign_in.state = "st4te"
    return world.get(world.run(world.rp.begin()), world.new_browser())


NOT_PROVOKED: Final = {
    ("authorize", Reason.SIGN_IN_ENDED),
    *((name, Reason.CLIENT_ENCRYPTION_KEY_MISSING) for name in ("userinfo", "entity-info", "authorization-info")),
}
"""they need a sign-in that ends while it is answered, and a JWE at a resource"""
MORE: Final = {
    "par: client disabled": Case("client_disabled", _after({"enabled": False}, _push), PUSHED),
    "par: client elsewhere": Case("client_of_another_issuer", _after({"issuers": ("elsewhere",)}, _push), PUSHED),
    "par: no key": Case("client_encryption_key_missing", _without_encryption_key(_push), PUSHED),
    "token: no key": Case("client_encryption_key_missing", _without_encryption_key(_redeem)),
    "authorize: no key": Case("client_encryption_key_missing", _without_encryption_key(_ask), ("legacy",)),
    "authorize: client disabled": Case("client_disabled", _after({"enabled": False}, _authorize)),
    "authorize: client elsewhere": Case("client_of_another_issuer", _after({"issuers": ("elsewhere",)}, _authorize)),
}
"""refusals whose reason has another error at another endpoint"""


def every(worlds: Worlds, generation: str) -> list[Refused]:
    more = ((name, case) for name, case in MORE.items() if generation in case.generations)
    return [*refusals(worlds, generation), *(refused(worlds.fresh(), name, case) for name, case in more)]


def declared(generation: str) -> dict[str, Endpoint]:
    return {each.path: each for each in endpoints(GENERATIONS[generation])}


@pytest.mark.full
def test_every_refusal_stands_in_the_table_of_its_endpoint(worlds: Worlds, speaking: str) -> None:
    """Spec 7.1-7.4: with its error, and its status outside callbacks and pages."""
    known = declared(speaking)
    for each in every(worlds, speaking):
        endpoint = known.get(each.line["path"])
        if endpoint is None:
            assert each.line["reason"] == "path_unknown", each.name
            continue
        reason, code = Reason[each.line["reason"].upper()], each.line["error"]
        assert reason in endpoint.errors().get(code, ()), (each.name, endpoint.name, code, reason.code)
        status = each.answer.status_code
        if endpoint.name != "authorize" and reason is not Reason.METHOD_NOT_ALLOWED:
            assert status == endpoint.status(code), each.name


def test_a_case_here_is_refused_for_the_reason_that_it_names(worlds: Worlds, speaking: str) -> None:
    for name, case in MORE.items():
        if speaking in case.generations:
            assert refused(worlds.fresh(), name, case).line["reason"] == case.reason, name


@pytest.mark.parametrize("generation", EVERY)
def test_at_one_endpoint_a_reason_has_one_error(generation: str) -> None:
    """D28: a developer finds it under the error that came."""
    for endpoint in endpoints(GENERATIONS[generation]):
        found = Counter(reason for reasons in endpoint.errors().values() for reason in reasons)
        assert {reason.code for reason, number in found.items() if number > 1} <= {_SETTING.code}, endpoint.name


def test_a_reason_that_has_several_errors_was_seen_with_the_one_that_the_table_has(
    worlds: Worlds, speaking: str
) -> None:
    """Where an endpoint's codes do not tell which one it is there."""
    seen = {(each.line["path"], each.line["reason"], each.line["error"]) for each in every(worlds, speaking)}
    for path, endpoint in declared(speaking).items():
        for reason in endpoint.decided.keys() & set(endpoint.reasons):
            found = {code for one, why, code in seen if (one, why) == (path, reason.code)}
            if (endpoint.name, reason) not in NOT_PROVOKED or found:
                assert found == {endpoint.decided[reason]}, (endpoint.name, reason.code)
