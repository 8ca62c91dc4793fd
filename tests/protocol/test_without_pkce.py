"""LEGACY without PKCE, for a client that is registered so (Spec "LEGACY without PKCE"; D14, D18)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.interfaces import INTERFACES
from tests.protocol.deployment import ISSUER
from tests.protocol.expectations import PUSHED
from tests.protocol.refusals import json_refusal, told_error
from tests.world.clients import CALLBACK, FAR

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

BARE: dict[str, Any] = {"code_challenge": None, "code_challenge_method": None}
OPTIONAL: dict[str, Any] = {"generations": ("legacy",), "legacy_until": FAR, "pkce": "optional"}


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY alone; both clients may leave PKCE out, and Alice is signed in."""
    made = worlds.fresh(generations=("legacy",))
    made.registers("rp-2", **OPTIONAL)
    made.registers(**OPTIONAL)
    made.sign_in()
    return made


def bare_code(world: World, rp: RelyingParty | None = None) -> str:
    return world.code(rp, **BARE)


def redeem_bare(world: World, code: str, rp: RelyingParty | None = None, /, **form: Any) -> httpx.Response:
    return world.redeem(code, rp, code_verifier=None, **form)


def token_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def test_the_request_of_a_stock_library_leads_to_tokens_and_authorization_info(world: World) -> None:
    """What the library for this interface sends: openid alone, neither challenge nor nonce, no verifier."""
    world.run(world.rp.discover())
    url = world.asked()
    assert dict(parse_qsl(urlsplit(url).query)).keys() >= {"code_challenge", "nonce"}, "what is left out below"
    sent: dict[str, Any] = {
        "state": "st4te", "redirect_uri": CALLBACK, "scope": "openid", "client_id": "rp-1", "response_type": "code",
    }  # fmt: skip
    answer = world.get(world.asked(**{**dict.fromkeys(world.rp.request_parameters()), **sent}))
    arrived = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert arrived.keys() == {"code", "state", "iss"}
    token = token_of(redeem_bare(world, arrived["code"]))
    found = jwt.peek(world.userinfo(token=token).text)[1] or {}
    assert found["AuthInfo"]["Result_Set"]["ESrvc_Row_Count"] == 1


def test_an_empty_verifier_counts_as_none(world: World) -> None:
    """D14."""
    token_of(world.redeem(bare_code(world), code_verifier=""))


def test_what_was_sent_is_verified(world: World) -> None:
    """Spec "Generations": PKCE is verified if sent, also for a client that need not send it."""
    code = world.code()
    json_refusal(world.redeem(code, code_verifier="x" * 43), 400, "invalid_grant")
    token_of(world.redeem(code))


def test_a_verifier_for_a_code_without_challenge_is_invalid_grant_and_spends_nothing(world: World) -> None:
    """RFC 9700 §2.1.1: a downgrade is noticed; D18: a wrong verifier finds nothing."""
    code = bare_code(world)
    json_refusal(world.redeem(code), 400, "invalid_grant")
    token = token_of(redeem_bare(world, code))
    json_refusal(world.redeem(code), 400, "invalid_grant")
    assert world.userinfo(token=token).status_code == 200


def test_no_verifier_for_a_code_with_a_challenge_is_invalid_grant_and_spends_nothing(world: World) -> None:
    """D18: in the key of the code the empty string stands for the S256."""
    code = world.code()
    json_refusal(redeem_bare(world, code), 400, "invalid_grant")
    token = token_of(world.redeem(code))
    json_refusal(redeem_bare(world, code), 400, "invalid_grant")
    assert world.userinfo(token=token).status_code == 200


@pytest.mark.parametrize("verifier", ["v" * 42, "v" * 129, "v" * 42 + "ä", "v" * 42 + " ", ["v" * 43, "v" * 43]])
def test_a_malformed_verifier_is_invalid_request_and_spends_nothing(world: World, verifier: Any) -> None:
    """RFC 7636 §4.1; Spec "Generations"."""
    code, form = bare_code(world), {"client_assertion": world.rp.assertion()}
    with world.nothing_spent():
        json_refusal(world.redeem(code, code_verifier=verifier, **form), 400, "invalid_request")
    token_of(redeem_bare(world, code, **form))


@pytest.mark.parametrize("sent", [{"code_challenge": None}, {"code_challenge_method": None}, {"code_challenge": ""}])
def test_half_of_a_challenge_is_invalid_request(world: World, sent: dict[str, Any]) -> None:
    """RFC 7636 §4.3: a challenge without method would be plain."""
    with world.nothing_spent():
        told_error(world.get(world.asked(state="s", **sent)), "invalid_request", state="s", iss=ISSUER)


def test_another_client_finds_nothing_and_spends_nothing(world: World) -> None:
    """D18: the client is part of the code's key, with and without PKCE."""
    code = bare_code(world)
    json_refusal(redeem_bare(world, code, world.party("rp-2")), 400, "invalid_grant")
    token_of(redeem_bare(world, code))


async def together(code: Any, world: World) -> list[httpx.Response]:
    return await asyncio.gather(*(world.rp.token(code, {"code_verifier": None}) for _ in range(16)))


def test_of_sixteen_simultaneous_redemptions_one_succeeds_and_its_token_is_dead_afterwards(world: World) -> None:
    """D18: one atomic take, and a replay kills the first token, without PKCE too."""
    code = bare_code(world)

    answers = world.run(together(code, world))
    won = [answer for answer in answers if answer.status_code == 200]
    assert len(won) == 1
    for answer in answers:
        assert answer in won or json_refusal(answer, 400, "invalid_grant")
    assert world.userinfo(token=token_of(won[0])).status_code == 401


# Registered otherwise, or not any more


def test_a_client_whose_pkce_is_required_is_answered_as_before(world: World) -> None:
    """Spec "Generations": a missing code_challenge, and a missing code_verifier, are invalid_request."""
    world.registers(**{**OPTIONAL, "pkce": "required"})
    sentence = told_error(world.get(world.asked(state="s", **BARE)), "invalid_request", state="s", iss=ISSUER)
    assert sentence == "parameter code_challenge is missing"
    code, form = world.code(), {"client_assertion": world.rp.assertion()}
    with world.nothing_spent():
        json_refusal(redeem_bare(world, code, **form), 400, "invalid_request")
    token_of(world.redeem(code, **form))


def test_a_caller_who_has_not_proven_who_they_are_does_not_learn_what_a_client_may(world: World) -> None:
    """D28: the same answer for a client whose PKCE is required, for one whose is not, and for one that is unknown."""
    world.registers("rp-2", **{**OPTIONAL, "pkce": "required"})
    forged = {client_id: world.party(client_id, keys=world.party("rp-2").keys) for client_id in ("rp-1", "nobody")}
    forged["rp-2"] = world.party("rp-2", keys=world.party("rp-1").keys)
    for rp in forged.values():
        world.run(rp.discover())
    answers = [redeem_bare(world, "l" + "x" * 43, rp) for rp in forged.values()]
    assert len({json_refusal(answer, 401, "invalid_client") for answer in answers}) == 1


@pytest.mark.parametrize(("until", "allowed"), [("2027-01-15", True), ("2027-01-14", False)])
def test_pkce_is_required_from_the_day_after_the_last_one(world: World, until: str, allowed: bool) -> None:
    """Member `pkce_optional_until`: a last day, like legacy_until. The world's day is 2027-01-15."""
    world.registers(**OPTIONAL, pkce_optional_until=until)
    answer = world.get(world.asked(state="s", **BARE))
    if allowed:
        assert "code=" in answer.headers["location"]
    else:
        told_error(answer, "invalid_request", state="s", iss=ISSUER)


@pytest.mark.parametrize("change", [{"pkce": "required"}, {"pkce_optional_until": "2027-01-14"}])
def test_a_code_from_before_the_change_is_not_redeemed_without_a_verifier(world: World, change: dict[str, Any]) -> None:
    """D50: live state counts at the token endpoint again."""
    code = bare_code(world)
    world.registers(**{**OPTIONAL, **change})
    form = {"client_assertion": world.rp.assertion()}
    with world.nothing_spent():
        json_refusal(redeem_bare(world, code, **form), 400, "invalid_request")


@pytest.mark.generations(*PUSHED)
def test_where_requests_are_pushed_pkce_is_required_of_every_client(worlds: Worlds) -> None:
    """Spec "Generations": optional in LEGACY only, whatever the record says."""
    world = worlds.fresh()
    world.registers(pkce="optional")
    world.sign_in()
    sentence = json_refusal(world.push(state="s", **BARE), 400, "invalid_request", state="s")
    assert sentence == "parameter code_challenge is missing"
    code, form = world.code(), {"client_assertion": world.rp.assertion()}
    with world.nothing_spent():
        json_refusal(redeem_bare(world, code, **form), 400, world.expected.bad_verifier)
    token_of(world.redeem(code, **form))


def test_a_client_that_may_not_use_legacy_cannot_leave_pkce_out_by_the_form_of_a_code(worlds: Worlds) -> None:
    """Spec "No downgrade": a caller names the generation by the code it sends."""
    world = worlds.fresh(generations=("current", "legacy"))
    world.registers(pkce="optional")
    asking = world.party(interface=INTERFACES["legacy"])
    world.run(asking.discover())
    with world.nothing_spent():
        json_refusal(redeem_bare(world, "l" + "x" * 43, asking), 400, "invalid_request")
