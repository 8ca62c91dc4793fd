"""Entity-info: what the granted entity scopes tell, signed, for a bound token (Spec 4.8; D5, D22, D24, D25, D26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid_dev.relying_party import jwt, people
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, USERINFO, other_key
from tests.protocol.refusals import is_public, not_cached, resource_refusal
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    import httpx

    from tests.protocol.provider import World

pytestmark = pytest.mark.generations("intermediate")
ENTITY_INFO = f"{ISSUER}/entity-info"
CHALLENGE = 'DPoP algs="ES256 ES256K ES384 ES512"'
TOLD = {
    "entity.identity": {"entity_type": "UEN", "entity_reg_number": "209900042K", "entity_coi": "SG"},
    "entity.basic_profile.name": {"entity_name": "Harbour Works Pte. Ltd."},
    "entity.basic_profile.uen_status": {"entity_uen_status": "Registered"},
}
EVERY_SCOPE = " ".join(("openid", *TOLD))


def redeemed(world: World, scope: str = EVERY_SCOPE) -> str:
    """An access token for these scopes, just redeemed and verified."""
    world.rp.scope = scope
    return str(world.tokens().access_token)


def asked(world: World, method: str = "GET", *, token: str | None = None, **headers: Any) -> httpx.Response:
    return world.run(world.rp.resource(method, headers, access_token=token, endpoint="entityinfo_endpoint"))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_answer_is_a_signed_jwt_with_exactly_these_claims(shared: World, method: str) -> None:
    """D26: GET and POST, DPoP, JWS."""
    redeemed(shared)
    answer = asked(shared, method)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/jwt")
    assert not_cached(answer)
    assert "www-authenticate" not in answer.headers
    header, payload = jwt.peek(answer.text)
    keys = shared.run(shared.http.get(f"{ISSUER}/.well-known/keys")).json()["keys"]
    assert header == {"alg": "ES256", "kid": keys[0]["kid"], "typ": "JWT"}
    now = int(shared.clock.now)
    assert payload == {
        "iss": ISSUER,
        "aud": "rp-1",
        "sub": directory.ALICE.user_id,
        "iat": now,
        "exp": now + 600,
        "entity_info": {name: value for told in TOLD.values() for name, value in told.items()},
    }
    shared.run(shared.rp.entity_info(method))


def test_head_is_answered_like_get(shared: World) -> None:
    """D32."""
    redeemed(shared)
    assert asked(shared, "HEAD").status_code == 200


@pytest.mark.parametrize("scope", TOLD)
def test_each_scope_tells_its_own_attributes(shared: World, scope: str) -> None:
    """D26, R-12.4: and neither scopes of the person nor the blocks of roles add anything."""
    redeemed(shared, f"openid authinfo tpauthinfo user.name user.identity {scope}")
    found = shared.run(shared.rp.entity_info())
    assert found["entity_info"] == TOLD[scope]
    assert found.keys() == {"iss", "aud", "sub", "iat", "exp", "entity_info"}


@pytest.mark.parametrize("scope", ["openid", "openid authinfo tpauthinfo user.identity user.name"])
def test_without_an_entity_scope_the_scope_is_insufficient_and_nothing_is_spent(shared: World, scope: str) -> None:
    """D5, D24, D26: 403 with one challenge that names the scopes; RFC 6750 §3.1."""
    token = redeemed(shared, scope)
    proof = shared.rp.proof("GET", ENTITY_INFO, token)
    for _ in range(2):
        with shared.nothing_spent():
            answer = asked(shared, DPoP=proof)
        assert (answer.status_code, answer.headers["content-type"]) == (403, "application/json")
        assert not_cached(answer)
        body = answer.json()
        assert body.keys() == {"error", "error_description"}
        description = body["error_description"]
        is_public(description, "insufficient_scope")
        assert answer.headers.get_list("www-authenticate") == [
            f'{CHALLENGE}, error="insufficient_scope", error_description="{description}", scope="{" ".join(TOLD)}"'
        ]
    assert shared.userinfo(token=token).status_code == 200


@pytest.mark.parametrize(("subject", "sub"), [("user", directory.ALICE.user_id), ("entity", "209900042K")])
def test_sub_is_that_of_the_id_token(world: World, subject: str, sub: str) -> None:
    """D1; OpenID Connect Core §5.3.2."""
    world.registers(subject=subject)
    redeemed(world)
    assert world.run(world.rp.entity_info())["sub"] == sub


def test_a_foreign_entity_shows_its_own_number_and_no_registration_status(world: World) -> None:
    """R-12.4: the status is told of UEN entities alone."""
    world.rp.scope = EVERY_SCOPE
    bob = Person(user_name="bob", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    url = world.run(world.rp.begin())
    callback = world.run(people.sign_in(world.browser, url, bob, directory.FOREIGN.entity_id, now=world.clock))
    world.run(world.rp.redeem(callback))
    assert world.run(world.rp.entity_info())["entity_info"] == {
        "entity_type": "NON-UEN",
        "entity_reg_number": "HRB 4711",
        "entity_coi": "DE",
        "entity_name": "Nordwerk GmbH",
    }


def test_one_token_is_for_both_resources_and_a_proof_for_one(shared: World) -> None:
    """D20: aud holds the resource URLs; RFC 9449 §4.3 (9): htu."""
    token = redeemed(shared)
    tokens = shared.rp.sign_in.tokens
    assert tokens is not None
    assert tokens.access_token_claims["aud"] == [USERINFO, ENTITY_INFO]
    elsewhere = shared.rp.proof("GET", USERINFO, token)
    resource_refusal(asked(shared, DPoP=elsewhere), 401, "invalid_dpop_proof")
    assert shared.userinfo(DPoP=elsewhere).status_code == 200
    assert asked(shared).status_code == 200


@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_a_client_that_has_its_userinfo_encrypted_has_this_encrypted_too(world: World, enc: str) -> None:
    """D22: the per-client option."""
    world.registers(userinfo_encryption_enc=enc)
    world.rp.userinfo_enc = enc
    redeemed(world)
    header, _ = jwt.peek(asked(world).text)
    assert (header["enc"], header["kid"]) == (enc, rp_keys("rp-1").encryption.get("kid"))
    assert world.run(world.rp.entity_info())["entity_info"]["entity_name"] == "Harbour Works Pte. Ltd."


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("value", [None, "", "Bearer {token}", "Basic cnAtMTpz", "{token}"])
def test_without_credentials_of_our_scheme_it_is_a_bare_401(shared: World, method: str, value: str | None) -> None:
    """Spec 7.4 rule 2, D24, D25."""
    token = redeemed(shared)
    with shared.nothing_spent():
        answer = asked(shared, method, Authorization=value and value.format(token=token))
    assert (answer.status_code, answer.content) == (401, b"")
    assert answer.headers.get_list("www-authenticate") == [CHALLENGE]


@pytest.mark.parametrize(
    ("headers", "status", "error"),
    [
        ({"DPoP": None}, 400, "invalid_request"),
        ({"DPoP": "x"}, 401, "invalid_dpop_proof"),
        ({"Authorization": "DPoP x"}, 401, "invalid_token"),
    ],
)
def test_it_refuses_as_userinfo_does(shared: World, headers: dict[str, Any], status: int, error: str) -> None:
    """D5, D6, D24."""
    redeemed(shared)
    with shared.nothing_spent():
        resource_refusal(asked(shared, **headers), status, error)


def test_another_key_is_invalid_token(shared: World) -> None:
    """D6: another key than cnf.jkt."""
    token = redeemed(shared)
    stolen = shared.rp.proof("GET", ENTITY_INFO, token, key=other_key())
    resource_refusal(asked(shared, DPoP=stolen), 401, "invalid_token")


def test_a_proof_is_used_once_and_a_replayed_code_ends_the_token_here_too(world: World) -> None:
    """D7, D18."""
    world.rp.scope = EVERY_SCOPE
    code = world.code()
    token = world.run(world.rp.believe(world.redeem(code))).access_token
    proof = world.rp.proof("GET", ENTITY_INFO, token)
    assert asked(world, DPoP=proof).status_code == 200
    assert "already used" in resource_refusal(asked(world, DPoP=proof), 401, "invalid_dpop_proof")
    assert world.redeem(code).status_code == 400
    assert "revoked" in resource_refusal(asked(world), 401, "invalid_token")


@pytest.mark.parametrize("scopes", [("openid",), ("openid", "entity.basic_profile.name")])
def test_a_scope_that_was_taken_away_ends_the_token(world: World, scopes: tuple[str, ...]) -> None:
    """D50."""
    redeemed(world, "openid entity.identity")
    assert asked(world).status_code == 200
    world.registers(scopes=scopes)
    resource_refusal(asked(world), 401, "invalid_token")


@pytest.mark.generations("legacy", "current", "fapi2")
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_generation_serves_it(shared: World, method: str) -> None:
    """Spec "Generations": resources."""
    assert shared.run(shared.http.request(method, ENTITY_INFO)).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_another_method_is_405_with_the_allowed_ones(shared: World, method: str) -> None:
    """D32."""
    answer = shared.run(shared.http.request(method, ENTITY_INFO))
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, HEAD")
