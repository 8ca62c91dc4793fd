"""authorization-info nested in a JWE, for a client that registered an alg of LEGACY (Spec 2.8, D22, Spec "Generations")."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from joserfc import jwe
from joserfc.jwk import ECKey, RSAKey

from corpid_dev.relying_party import jwt
from corpid_dev.relying_party.interfaces import INTERFACES
from tests.protocol.deployment import ISSUER
from tests.protocol.directory import AUTH_INFO
from tests.protocol.refusals import not_cached, resource_refusal
from tests.world.clients import FAR, rp_keys

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

ALGS = ("ECDH-ES", "RSA-OAEP", "RSA-OAEP-256")
ENCS = ("A128CBC-HS256", "A128GCM", "A256CBC-HS512", "A256GCM")
REGISTRY = jwe.JWERegistry(algorithms=[*ALGS, *ENCS, "ECDH-ES+A256KW"])
LEGACY = INTERFACES["legacy"]


@cache
def private(alg: str) -> ECKey | RSAKey:
    return ECKey.generate_key("P-384") if alg == "ECDH-ES" else RSAKey.generate_key(2048)


def key_set(*algs: str) -> str:
    """The relying party's own keys, and one for each alg."""
    more = [{**private(alg).as_dict(private=False), "use": "enc", "kid": f"for {alg}", "alg": alg} for alg in algs]
    return json.dumps({"keys": [*rp_keys("rp-1").public()["keys"], *more]})


def opened(answer: httpx.Response, alg: str, enc: str) -> str:
    """The signed answer inside, read by another library with the private key."""
    assert answer.status_code == 200, answer.text
    found = jwe.decrypt_compact(answer.text, private(alg), registry=REGISTRY)
    header = found.headers()
    header.pop("epk", None)
    assert header == {"alg": alg, "enc": enc, "kid": f"for {alg}", "typ": "JWT", "cty": "JWT"}
    assert found.plaintext is not None
    return found.plaintext.decode()


def claims(world: World, rp: RelyingParty, signed: str) -> Any:
    """The claims of an answer whose signature was verified."""
    _, found = world.run(rp._signed("authorization-info", signed, types=("JWT",)))
    return found


@pytest.mark.parametrize("enc", ENCS)
@pytest.mark.parametrize("alg", ALGS)
def test_the_signed_answer_comes_nested_as_it_was_registered(worlds: Worlds, alg: str, enc: str) -> None:
    """Spec 2.8, 2.6: the same claims, verified; D22: in the way of userinfo."""
    world = worlds.fresh(generations=("legacy",))
    registered = {"userinfo_encryption_alg": alg, "userinfo_encryption_enc": enc}
    rp = world.registers(generations=("legacy",), legacy_until=FAR, jwks=key_set(alg), **registered)
    tokens = world.tokens(rp)
    answer = world.userinfo(rp, "POST")
    assert answer.headers["content-type"] == "application/jwt"
    assert not_cached(answer)
    found = claims(world, rp, opened(answer, alg, enc))
    assert (found["iss"], found["aud"], found["sub"]) == (ISSUER, "rp-1", tokens.id_token["sub"])
    assert found["AuthInfo"] == AUTH_INFO


def test_the_id_token_is_encrypted_as_ever(worlds: Worlds) -> None:
    """D21: an RSA key, and a key for agreement alone, are for authorization-info."""
    world = worlds.fresh(generations=("legacy",))
    registered = {"userinfo_encryption_alg": "RSA-OAEP", "userinfo_encryption_enc": "A128GCM"}
    rp = world.registers(generations=("legacy",), legacy_until=FAR, jwks=key_set(*ALGS), **registered)
    header = jwt.peek(world.redeem(world.code(rp), rp).json()["id_token"])[0]
    own = rp_keys("rp-1").encryption
    assert (header["alg"], header["enc"], header["kid"]) == ("ECDH-ES+A256KW", "A256CBC-HS512", own.get("kid"))


@pytest.mark.parametrize("enc", ["A256GCM", "A256CBC-HS512"])
def test_an_enc_alone_leaves_it_signed(worlds: Worlds, enc: str) -> None:
    """R-15: the libraries of LEGACY read a compact JWS; the preset gives every new client an enc, which is CURRENT's."""
    world = worlds.fresh(generations=("current", "legacy"))
    world.sign_in()
    both: dict[str, Any] = {"generations": ("current", "legacy"), "legacy_until": FAR, "userinfo_encryption_enc": enc}
    world.registers(**both)
    asking = world.party(interface=LEGACY)
    world.tokens(asking)
    assert claims(world, asking, world.userinfo(asking, "POST").text)["AuthInfo"] == AUTH_INFO
    pushing = world.party()
    world.tokens(pushing)
    assert jwt.peek(world.userinfo(pushing).text)[0]["enc"] == enc


def test_a_client_of_both_has_each_answer_as_its_generation_offers_it(worlds: Worlds) -> None:
    """Spec "Generations": data decide; CURRENT has no RSA, so the alg is that of the client's key there."""
    world = worlds.fresh(generations=("current", "legacy"))
    world.sign_in()
    registered = {"userinfo_encryption_alg": "RSA-OAEP-256", "userinfo_encryption_enc": "A256GCM"}
    world.registers(generations=("current", "legacy"), legacy_until=FAR, jwks=key_set("RSA-OAEP-256"), **registered)
    asking = world.party(interface=LEGACY)
    world.tokens(asking)
    signed = opened(world.userinfo(asking, "POST"), "RSA-OAEP-256", "A256GCM")
    assert claims(world, asking, signed)["AuthInfo"] == AUTH_INFO
    pushing = world.party()
    world.tokens(pushing)
    header = jwt.peek(world.userinfo(pushing).text)[0]
    assert (header["alg"], header["kid"]) == ("ECDH-ES+A256KW", rp_keys("rp-1").encryption.get("kid"))


@pytest.mark.parametrize("alg", ["ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"])
def test_the_alg_of_a_pushed_generation_is_the_client_s_choice_too(worlds: Worlds, alg: str) -> None:
    """D22: of a key without alg, the wrap that was registered."""
    world = worlds.fresh()
    world.sign_in()
    (signing, encryption) = rp_keys("rp-1").public()["keys"]
    jwks = json.dumps({"keys": [signing, {name: value for name, value in encryption.items() if name != "alg"}]})
    world.registers(jwks=jwks, userinfo_encryption_alg=alg, userinfo_encryption_enc="A256GCM")
    code = world.code()
    token = world.redeem(code).json()["access_token"]
    assert jwt.peek(world.userinfo(token=token).text)[0]["alg"] == alg


@pytest.mark.parametrize("alg", ALGS)
def test_without_a_key_for_it_the_answer_is_an_error_and_never_in_clear(worlds: Worlds, alg: str) -> None:
    """D27: server_error that names what is missing, also if other encryption keys are there."""
    world = worlds.fresh(generations=("legacy",))
    registered = {"userinfo_encryption_alg": alg, "userinfo_encryption_enc": "A128GCM"}
    own = rp_keys("rp-1").public()["keys"]
    rp = world.registers(generations=("legacy",), legacy_until=FAR, jwks=json.dumps({"keys": own}), **registered)
    world.tokens(rp)
    sentence = resource_refusal(world.userinfo(rp, "POST"), 500, "server_error")
    assert f"alg {alg}" in sentence
