"""FAPI2: what a stock client may leave out, and what it gets (Spec "Generations"; D5, D6, D8, D10, D21, D22, D27)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.jwt import public_members
from tests.protocol import directory
from tests.protocol.deployment import AUTHORIZE, ISSUER, PAR, TOKEN, other_key
from tests.protocol.provider import World, query
from tests.protocol.refusals import json_refusal, not_cached, resource_refusal
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.generations("fapi2")
LEVEL_2 = "urn:idp:authentication:loa:2"
CHALLENGE = 'DPoP algs="ES256"'
WRAPS = ("ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW")
ONLY_SIGNING = json.dumps({"keys": rp_keys("rp-1").public()["keys"][:1]})


def key_set(alg: str | None) -> str:
    """The relying party's keys, the one to encrypt to with this alg or none."""
    signing, encryption = rp_keys("rp-1").public()["keys"]
    described = {name: value for name, value in {**encryption, "alg": alg}.items() if value is not None}
    return json.dumps({"keys": [signing, described]})


def bare(**more: Any) -> dict[str, Any]:
    """Overrides that leave out all that RFC 9126 does not ask for."""
    return {"state": None, "nonce": None, "authentication_context_type": None, "scope": "openid", **more}


# The request


def test_a_request_with_nothing_beyond_the_rfcs_is_served_to_the_end(world: World) -> None:
    """Spec "Generations": those four are optional; RFC 9126, 9449, 7636, 7523, OpenID Connect Core."""
    world.sign_in()
    world.rp.restart()
    answer = world.get(world.asked(**bare()))
    told = query(answer.headers["location"])
    assert told.keys() == {"code", "iss"}
    assert told["iss"] == ISSUER
    answer = world.redeem(told["code"])
    assert answer.status_code == 200
    claims = jwt.peek(answer.json()["id_token"])[1]
    assert claims is not None
    assert "nonce" not in claims


def test_the_front_channel_takes_a_reference_alone(shared: World) -> None:
    """Spec "No downgrade": the same parameters in the query are an error page, never a redirect."""
    shared.run(shared.rp.discover())
    sent = {"client_id": "rp-1", **shared.rp.request_parameters()}
    answer = shared.run(shared.http.get(AUTHORIZE, params=sent))
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "location" not in answer.headers


@pytest.mark.parametrize("returned", ["in the callback of a success", "in the callback of an error"])
def test_iss_is_in_every_callback(shared: World, returned: str) -> None:
    """FAPI 2.0 §5.3.2.2; RFC 9207 §2."""
    if "error" not in returned:
        shared.sign_in()
        shared.rp.restart()
    more: dict[str, Any] = {"prompt": "none"} if "error" in returned else {}
    browser = shared.new_browser() if "error" in returned else shared.browser
    told = query(shared.get(shared.asked(**more), browser).headers["location"])
    assert told["iss"] == ISSUER
    assert ("error" in told) is ("error" in returned)


@pytest.mark.parametrize("asked", ["urn:idp:authentication:loa:3", "x y", "urn:mace:incommon:iap:silver"])
def test_an_unknown_acr_is_answered_with_the_clients_level_and_acr_says_which(world: World, asked: str) -> None:
    """D10; OpenID Connect Core §3.1.2.1: a voluntary claim."""
    found = world.tokens(acr_values=asked)
    assert found.id_token["acr"] == found.access_token_claims["acr"] == LEVEL_2


# The key


def test_a_code_of_a_push_without_any_key_is_bound_by_the_token_request(world: World) -> None:
    """RFC 9449 §5: whoever redeems it binds the token to their key, and every use needs that key."""
    found = world.tokens()
    assert found.access_token_claims["cnf"] == {"jkt": world.rp.sign_in.dpop_key.thumbprint()}
    stolen = world.rp.proof("GET", f"{ISSUER}/userinfo", found.access_token, key=other_key())
    resource_refusal(world.userinfo(DPoP=stolen), 401, "invalid_token", CHALLENGE)
    assert world.userinfo().status_code == 200


@pytest.mark.parametrize("pushed", [{}, {"dpop_jkt": "own"}])
def test_without_a_proof_at_the_token_endpoint_no_token_is_issued_and_nothing_is_spent(
    world: World, pushed: dict[str, str]
) -> None:
    """D6: no proof at token is invalid_request; a sender-constrained token is what FAPI 2.0 §5.3.2.1 wants."""
    own: dict[str, Any] = {name: world.rp.sign_in.dpop_key.thumbprint() for name in pushed}
    world.sign_in()
    code = world.rp.callback(world.get(world.asked(**own)).headers["location"])
    with world.nothing_spent():
        json_refusal(world.redeem(code, headers={"DPoP": None}), 400, "invalid_request")
    assert world.redeem(code).status_code == 200


def test_a_thumbprint_that_was_pushed_binds_the_code(world: World) -> None:
    """RFC 9449 §10; D6: invalid_grant, and the code is spent."""
    world.sign_in()
    world.rp.restart()
    url = world.asked(dpop_jkt=world.rp.sign_in.dpop_key.thumbprint())
    code = world.rp.callback(world.get(url).headers["location"])
    stolen = world.rp.proof("POST", TOKEN, key=other_key())
    json_refusal(world.redeem(code, headers={"DPoP": stolen}), 400, "invalid_grant")
    json_refusal(world.redeem(code), 400, "invalid_grant")


def test_a_bad_proof_is_400_without_a_challenge_at_par_and_token_and_401_with_one_at_resources(world: World) -> None:
    """Spec "Generations"; D5; RFC 9449 §5, §7.1."""
    code = world.code()
    at_par = world.push(headers={"DPoP": world.rp.proof("GET", PAR)}, state="s")
    at_token = world.redeem(code, headers={"DPoP": world.rp.proof("GET", TOKEN)})
    for answer, state in ((at_par, "s"), (at_token, None)):
        json_refusal(answer, 400, "invalid_dpop_proof", state=state)
        assert "www-authenticate" not in answer.headers
    token = world.tokens().access_token
    proof = world.rp.proof("PUT", f"{ISSUER}/userinfo", token)
    resource_refusal(world.userinfo(DPoP=proof), 401, "invalid_dpop_proof", CHALLENGE)


@pytest.mark.parametrize(("algorithm", "curve"), [("ES384", "P-384"), ("ES256K", "secp256k1"), ("ES512", "P-521")])
def test_only_es256_proves_anything(world: World, algorithm: str, curve: str) -> None:
    """FAPI 2.0 §5.4.1; Spec "Generations": proofs as assertions. The refusal names what is accepted."""
    key = other_key(curve)
    at_par = world.push(headers={"DPoP": world.rp.proof("POST", PAR, key=key)}, state="s")
    assert json_refusal(at_par, 400, "invalid_dpop_proof", state="s").endswith("ES256")
    world.registers(jwks=json.dumps({"keys": [{**public_members(key), "use": "sig", "kid": "k"}]}))
    assertion = world.rp.assertion(key=key, header={"alg": algorithm, "kid": "k"})
    answer = world.push(client_assertion=assertion, state="s")
    assert json_refusal(answer, 401, "invalid_client", state="s").endswith("alg must be one of ES256")


# The assertion


@pytest.mark.parametrize(
    ("claims", "taken"),
    [
        (lambda now: {"iat": None, "exp": now + 600}, True),
        (lambda now: {"iat": None, "exp": now + 600.5}, False),
        (lambda now: {"iat": None, "exp": now + 1}, True),
        (lambda now: {"iat": now - 500, "exp": now + 100}, True),
        (lambda now: {"iat": now - 500, "exp": now + 101}, False),
        (lambda now: {"jti": None, "exp": now + 60}, False),
        (lambda now: {"iat": None, "nbf": now + 30, "exp": now + 60}, True),
        (lambda now: {"iat": None, "nbf": now + 31, "exp": now + 60}, False),
    ],
)
def test_iat_may_be_left_out_and_jti_may_not(
    shared: World, claims: Callable[[float], dict[str, Any]], taken: bool
) -> None:
    """Spec "Generations": cap 600 s from iat, without it from now; jti required."""
    answer = shared.push(client_assertion=shared.rp.assertion(**claims(shared.clock.now)), state="s")
    if taken:
        assert answer.status_code == 201
    else:
        json_refusal(answer, 401, "invalid_client", state="s")


def test_an_assertion_without_iat_is_used_once_and_remembered_to_its_end(world: World) -> None:
    """D8, D49."""
    end = world.clock.now + 600
    assertion = world.rp.assertion(iat=None, exp=end)
    assert world.push(client_assertion=assertion).status_code == 201
    world.clock.now = end - 0.1
    refused = json_refusal(world.push(client_assertion=assertion, state="s"), 401, "invalid_client", state="s")
    assert "already used" in refused


# The ID token


def test_an_id_token_is_signed_only_and_needs_no_key_of_the_clients(world: World) -> None:
    """Signed-only if it registered nothing else; RFC 7519 §3.1: three parts."""
    world.registers(jwks=ONLY_SIGNING)
    found = world.tokens()
    assert len(found.raw["id_token"].split(".")) == 3
    assert (found.id_token["sub"], found.id_token["aud"]) == (directory.ALICE.user_id, "rp-1")
    assert world.userinfo().status_code == 200


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("named", [True, False], ids=["the key names it", "the key names none"])
@pytest.mark.parametrize("enc", ["A256CBC-HS512", "A256GCM"])
def test_a_registered_algorithm_wraps_the_id_token(world: World, wrap: str, named: bool, enc: str) -> None:
    """Spec "Generations": encrypted if the client registered an encryption alg; D21."""
    keys = key_set(wrap if named else None)
    world.registers(jwks=keys, id_token_encryption_alg=wrap, id_token_encryption_enc=enc)
    token = world.redeem(world.code()).json()["id_token"]
    header, _ = jwt.peek(token)
    assert (header["alg"], header["enc"], header["cty"]) == (wrap, enc, "JWT")
    assert header["kid"] == rp_keys("rp-1").encryption.get("kid")
    private = {name: value for name, value in rp_keys("rp-1").encryption.as_dict(private=True).items() if name != "alg"}
    inner = jwt.decrypted(token, ECKey.import_key(private), (wrap, enc)).decode()
    assert jwt.peek(inner)[0]["typ"] == "JWT"


@pytest.mark.parametrize("wrap", [*WRAPS, None])
def test_the_alg_of_the_key_wraps_the_id_token_of_a_client_that_leaves_it_to_the_key(
    world: World, wrap: str | None
) -> None:
    """D21: a key without alg stands for A256KW; Spec "Generations": encrypted if the client registered an alg."""
    world.registers(jwks=key_set(wrap), id_token_encryption_alg="key")
    header, _ = jwt.peek(world.redeem(world.code()).json()["id_token"])
    assert (header["alg"], header["enc"]) == (wrap or WRAPS[2], "A256CBC-HS512")


def test_of_several_keys_the_strongest_that_the_algorithm_fits_is_used(world: World) -> None:
    """D21."""
    described = [
        {**public_members(other_key(curve)), "use": "enc", "kid": f"{curve} {alg}", **({"alg": alg} if alg else {})}
        for curve, alg in (("P-521", WRAPS[2]), ("P-256", WRAPS[0]), ("P-384", None), ("P-256", None))
    ]
    signing = rp_keys("rp-1").public()["keys"][0]
    world.registers(jwks=json.dumps({"keys": [signing, *described]}), id_token_encryption_alg=WRAPS[0])
    header, _ = jwt.peek(world.redeem(world.code()).json()["id_token"])
    assert (header["kid"], header["alg"]) == ("P-384 None", WRAPS[0])


@pytest.mark.parametrize("keys", [ONLY_SIGNING, key_set(WRAPS[1])], ids=["no key", "a key of another alg"])
def test_without_a_key_that_fits_the_push_is_invalid_and_the_token_a_server_error_with_nothing_spent(
    world: World, keys: str
) -> None:
    """D27, Spec "The order of a request"."""
    world.registers(jwks=key_set(WRAPS[0]), id_token_encryption_alg=WRAPS[0])
    code = world.code()
    world.registers(jwks=keys, id_token_encryption_alg=WRAPS[0])
    pushing, redeeming = {"client_assertion": world.rp.assertion()}, {"client_assertion": world.rp.assertion()}
    proofs = [{"DPoP": world.rp.proof("POST", url)} for url in (PAR, TOKEN)]
    with world.nothing_spent():
        told = json_refusal(world.push(headers=proofs[0], **pushing, state="s"), 400, "invalid_request", state="s")
        json_refusal(world.redeem(code, headers=proofs[1], **redeeming), 500, "server_error")
    assert WRAPS[0] in told
    world.registers(jwks=key_set(WRAPS[0]), id_token_encryption_alg=WRAPS[0])
    assert world.push(headers=proofs[0], **pushing).status_code == 201
    assert world.redeem(code, headers=proofs[1], **redeeming).status_code == 200


# Userinfo


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("accept", ["application/json", "application/jwt", None])
def test_userinfo_is_json_whatever_accept_says(shared: World, method: str, accept: str | None) -> None:
    """Spec "Generations"; D22: Accept never causes 406; D31; OpenID Connect Core §5.3.2."""
    found = shared.tokens()
    answer = shared.userinfo(method=method, Accept=accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert not_cached(answer)
    assert "www-authenticate" not in answer.headers
    body = answer.json()
    assert body["sub"] == found.id_token["sub"]
    assert {"auth_info", "tp_auth_info"} <= body.keys()
    assert shared.run(shared.rp.userinfo(method))["sub"] == body["sub"]


def test_userinfo_is_a_signed_jwt_for_a_client_that_registered_a_signing_algorithm(world: World) -> None:
    """Spec "Generations"; D22."""
    world.registers(userinfo_signing_alg="ES256")
    world.rp.userinfo_signed = True
    world.tokens()
    answer = world.userinfo()
    assert answer.headers["content-type"] == "application/jwt"
    assert jwt.peek(answer.text)[0]["alg"] == "ES256"
    claims = world.run(world.rp.userinfo())
    assert (claims["aud"], claims["iss"]) == ("rp-1", ISSUER)


@pytest.mark.parametrize("signed", [{}, {"userinfo_signing_alg": "ES256"}])
@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_userinfo_is_a_jwe_around_a_jws_for_a_client_that_registered_encryption(
    world: World, signed: dict[str, str], enc: str
) -> None:
    """D22: the signed answer nested."""
    world.registers(userinfo_encryption_enc=enc, **signed)
    world.tokens()
    answer = world.userinfo()
    assert answer.headers["content-type"] == "application/jwt"
    header, _ = jwt.peek(answer.text)
    assert (header["enc"], header["kid"]) == (enc, rp_keys("rp-1").encryption.get("kid"))
    world.rp.userinfo_signed, world.rp.userinfo_enc = True, enc
    assert "auth_info" in world.run(world.rp.userinfo())


def test_an_error_of_userinfo_is_no_token_either(world: World) -> None:
    """D27: never in clear what was registered to be encrypted."""
    world.registers(userinfo_encryption_enc="A256GCM")
    world.tokens()
    world.registers(userinfo_encryption_enc="A256GCM", jwks=ONLY_SIGNING)
    resource_refusal(world.userinfo(), 500, "server_error", CHALLENGE)
