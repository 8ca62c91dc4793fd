"""What a token request must bring (Spec 4.3, 7.3; D5, D14, D18, D19). What is refused here spends nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import jwt
from tests.protocol.deployment import TOKEN
from tests.protocol.expectations import EVERY
from tests.protocol.refusals import json_refusal, not_cached
from tests.world.clients import CALLBACK, rp_keys

if TYPE_CHECKING:
    from tests.protocol.provider import World

pytestmark = pytest.mark.generations(*EVERY)
PARAMETERS = (
    "grant_type", "code", "redirect_uri", "client_id", "client_assertion_type", "client_assertion", "code_verifier", "client_secret",
)  # fmt: skip


def refuse(world: World, error: str, /, **form: Any) -> str:
    """A request with one thing wrong: refused, nothing spent; then honestly with the same code, assertion and proof."""
    code = world.code()
    honest: dict[str, Any] = {"client_assertion": world.rp.assertion()}
    headers = {"DPoP": world.rp.proof("POST", TOKEN)} if world.interface.bound else {}
    with world.nothing_spent():
        sentence = json_refusal(world.redeem(code, headers=headers, **{**honest, **form}), 400, error)
    assert world.redeem(code, headers=headers, **honest).status_code == 200
    return sentence


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize("name", ["grant_type", "code", "redirect_uri", "code_verifier"])
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_parameter_is_invalid_request_and_is_named(shared: World, name: str, value: str | None) -> None:
    """Spec 4.3, D14."""
    error = shared.expected.bad_verifier if name == "code_verifier" else "invalid_request"
    assert name in refuse(shared, error, **{name: value})


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_repeated_parameter_is_invalid_request(shared: World, name: str) -> None:
    """Spec 7.3: duplicated parameter; D14."""
    assert refuse(shared, "invalid_request", **{name: ["x", "x"]}) == f"parameter {name} is repeated"


@pytest.mark.parametrize(
    "value",
    [
        "refresh_token",
        "client_credentials",
        "password",
        "implicit",
        "Authorization_code",
        "authorization_code ",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ],
)
def test_another_grant_type_is_unsupported(shared: World, value: str) -> None:
    """Spec 7.3, 8: authorization_code only."""
    refuse(shared, "unsupported_grant_type", grant_type=value)


@pytest.mark.generations(*EVERY)
@pytest.mark.parametrize(
    "value", ["x" * 42, "x" * 129, "x" * 42 + "é", "x" * 42 + "+", "x" * 42 + "=", "x" * 42 + " ", "x" * 43 + "\n"]
)
def test_a_malformed_verifier_is_refused_and_spends_nothing(shared: World, value: str) -> None:
    """Spec "Generations": invalid_request, in FAPI2 invalid_grant; RFC 7636 §4.1."""
    refuse(shared, shared.expected.bad_verifier, code_verifier=value)


@pytest.mark.parametrize("verifier", ["v" * 43, "w" * 128, "-._~" + "Az09" * 10])
def test_every_proper_verifier_redeems(shared: World, verifier: str) -> None:
    """RFC 7636 §4.1: 43 to 128 unreserved characters."""
    code = shared.code(code_challenge=jwt.digest(verifier))
    assert shared.redeem(code, code_verifier=verifier).status_code == 200


def test_client_id_may_be_left_out(shared: World) -> None:
    """Spec 4.3: not required."""
    assert shared.redeem(shared.code(), client_id=None).status_code == 200
    assert shared.redeem(shared.code(), unknown=["x", "y"]).status_code == 200


def test_every_way_in_which_a_code_does_not_fit_is_one_sentence(shared: World) -> None:
    """D19: unknown, expired, foreign code, other redirect_uri, wrong verifier: one public sentence."""
    sentences = {
        json_refusal(shared.redeem(shared.expected.code + "A" * 43), 400, "invalid_grant"),
        json_refusal(shared.redeem("x"), 400, "invalid_grant"),
        json_refusal(shared.redeem("x" * 513), 400, "invalid_grant"),
        json_refusal(shared.redeem("\u00e9\u0000"), 400, "invalid_grant"),
        json_refusal(shared.redeem(shared.code(), redirect_uri=f"{CALLBACK}x"), 400, "invalid_grant"),
        json_refusal(shared.redeem(shared.code(), code_verifier="x" * 43), 400, "invalid_grant"),
    }
    assert len(sentences) == 1


@pytest.mark.generations("legacy", "intermediate", "current")
def test_without_an_encryption_key_it_is_a_server_error_and_nothing_is_spent(world: World) -> None:
    """D27: no usable enc key at token is server_error 500 with nothing spent."""
    code = world.code()
    world.registers(jwks=json.dumps({"keys": rp_keys("rp-1").public()["keys"][:1]}))
    honest = {"client_assertion": world.rp.assertion()}
    headers = {"DPoP": world.rp.proof("POST", TOKEN)} if world.interface.bound else {}
    with world.nothing_spent():
        json_refusal(world.redeem(code, headers=headers, **honest), 500, "server_error")
    world.writes(world.client())
    assert world.redeem(code, headers=headers, **honest).status_code == 200


@pytest.mark.generations(*EVERY, differ=True)
def test_the_answer_has_exactly_these_members(world: World) -> None:
    """Spec 2.4, 4.3, D31."""
    answer = world.redeem(world.code(scope="openid authinfo"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert not_cached(answer)
    body = answer.json()
    assert body.keys() == {"access_token", "id_token", "token_type", "expires_in", "scope"}
    scheme = "DPoP" if world.interface.bound else "Bearer"
    assert (body["token_type"], body["expires_in"], body["scope"]) == (scheme, 600, "openid authinfo")
    assert "www-authenticate" not in answer.headers
