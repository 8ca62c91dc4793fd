"""What the public service's own demo relying parties send, rebuilt request by request, with its preset (D6, D63, D64, R-0.14).

One is for Node, on openid-client; the other for Java, on Nimbus. Neither names authentication_context_type, since their
clients only read data; the one for Java names the endpoint as audience, and puts an exp into its proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid.settings.fields import PUBLIC_SERVICE
from corpid_dev.relying_party import jwt
from tests.protocol.deployment import ISSUER, PAR, TOKEN, USERINFO
from tests.protocol.refusals import json_refusal
from tests.world.clients import FAR

if TYPE_CHECKING:
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

READS_DATA: dict[str, Any] = {"authentication_context_type": None}
"""what a client that only reads data leaves out of the push"""


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A provider with the preset, in which Alice is signed in."""
    made = worlds.fresh(preset="public-service", generations=("current", "legacy"))
    made.sign_in()
    return made


def registered(world: World, **members: Any) -> RelyingParty:
    """The relying party of a client that the preset registered."""
    world.registers(**{**PUBLIC_SERVICE.new_client, **members})
    return world.party(userinfo_enc="A256GCM", stringified_blocks=True)


def verified(world: World, rp: RelyingParty, answer: Any) -> None:
    """Both tokens and userinfo, as the demo takes them: opened, verified, and about this client."""
    tokens = world.run(rp.believe(answer))
    assert (tokens.id_token["sub_type"], tokens.id_token["aud"]) == ("entity", rp.client_id)
    header, _ = jwt.peek(tokens.raw["id_token"])
    assert (header["enc"], header["iss"], header["aud"]) == ("A256CBC-HS512", ISSUER, rp.client_id)
    assert world.run(rp.userinfo())["auth_info"]["Result_Set"]["ESrvc_Row_Count"] > 0


# Node


@pytest.mark.parametrize("rule", ["refused", "optional"])
def test_the_demo_for_node_signs_in_without_a_context_type(world: World, rule: str) -> None:
    """D63: the real service refuses the parameter from clients that only read data; the assertion names the issuer."""
    rp = registered(world, context_type_rule=rule)
    verified(world, rp, world.redeem(world.code(rp, **READS_DATA), rp))


def test_the_demo_for_node_is_refused_with_a_context_type_by_its_rule(world: World) -> None:
    """D63: the sentence names the rule, and the request without it is taken afterwards."""
    rp = registered(world, context_type_rule="refused")
    with world.nothing_spent():
        refusal = world.push(rp, authentication_context_type="APP_AUTHENTICATION_DEFAULT", state="s")
        sentence = json_refusal(refusal, 400, "invalid_request", state="s")
    assert "the context_type_rule of this client is refused" in sentence
    assert world.push(rp, **READS_DATA).status_code == 201


def test_a_client_for_sign_ins_has_to_name_its_context_type(world: World) -> None:
    """Spec 4.1, D63: what stops the demo where its client has the rule required."""
    rp = registered(world)
    refusal = json_refusal(world.push(rp, **READS_DATA, state="s"), 400, "invalid_request", state="s")
    assert refusal.endswith("the context_type_rule of this client is required")


# Java


def nimbus_assertion(rp: RelyingParty, endpoint: str) -> str:
    """Its header has alg and kid alone; 60 s long, and for the endpoint that is asked."""
    now = int(rp.clock())
    return rp.assertion(header={"typ": None}, aud=endpoint, iat=now, exp=now + 60)


def nimbus_proof(rp: RelyingParty, method: str, url: str, token: str | None = None) -> dict[str, str]:
    """The SDK sets no exp, so the demo adds one."""
    return {"DPoP": rp.proof(method, url, token, exp=int(rp.clock()) + 60)}


def nimbus_push(world: World, rp: RelyingParty) -> Any:
    form = {"client_assertion": nimbus_assertion(rp, PAR), **READS_DATA}
    return world.push(rp, headers=nimbus_proof(rp, "POST", PAR), **form)


def nimbus_code(world: World, rp: RelyingParty) -> str:
    rp.restart()
    answer = nimbus_push(world, rp)
    assert answer.status_code == 201, answer.text
    rp.sign_in.request_uri = answer.json()["request_uri"]
    return rp.callback(world.get(rp.authorization_url()).headers["location"])


def nimbus_token(world: World, rp: RelyingParty, code: str) -> Any:
    """With client_assertion the SDK sends no client_id (Spec 4.3: optional)."""
    form = {"client_assertion": nimbus_assertion(rp, TOKEN), "client_id": None}
    return world.redeem(code, rp, headers=nimbus_proof(rp, "POST", TOKEN), **form)


def test_the_demo_for_java_signs_in_with_the_endpoint_as_audience(world: World) -> None:
    """D64: the PAR endpoint's URL at PAR, the token endpoint's at the token endpoint."""
    rp = registered(world, context_type_rule="refused", endpoint_audience_until=FAR)
    verified(world, rp, nimbus_token(world, rp, nimbus_code(world, rp)))
    token = rp.sign_in.tokens.access_token if rp.sign_in.tokens else ""
    assert world.userinfo(rp, **nimbus_proof(rp, "GET", USERINFO, token)).status_code == 200


def test_the_demo_for_java_is_refused_without_the_exception(world: World) -> None:
    """D8, D64: off by default, at both endpoints."""
    rp = registered(world, context_type_rule="refused")
    assert f"aud must be the issuer {ISSUER}" in nimbus_push(world, rp).json()["error_description"]
    answer = nimbus_token(world, rp, world.code(rp, **READS_DATA))
    assert f"aud must be the issuer {ISSUER}" in json_refusal(answer, 401, "invalid_client")
