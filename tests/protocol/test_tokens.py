"""What is in the tokens: exactly these claims, exactly these headers (Spec 2.4; D1, D2, D10, D20, D21)."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey

from corpid_dev.relying_party import jwt, people
from corpid_dev.relying_party.jwt import RelyingPartyKeys, public_members
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.deployment import ISSUER, USERINFO
from tests.protocol.expectations import EVERY, PUSHED, SIGNED
from tests.world.clients import rp_keys

if TYPE_CHECKING:
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

pytestmark = pytest.mark.generations(*SIGNED)
LEVEL_2 = "urn:idp:authentication:loa:2"
ALICE, HARBOUR = directory.ALICE.user_id, directory.HARBOUR.entity_id
ENTITY = {
    "entity.identity": {"entity_type": "UEN", "entity_reg_number": "209900042K", "entity_coi": "SG"},
    "entity.basic_profile.name": {"entity_name": "Harbour Works Pte. Ltd."},
    "entity.basic_profile.uen_status": {"entity_uen_status": "Registered"},
}
USER = {
    "user.identity": {"account_type": "standard", "identity_number": "S0000001X", "identity_coi": "SG"},
    "user.name": {"name": "Alice Ä. Example"},
}
ATTRIBUTES = {**ENTITY, **USER}


def tokens(world: World, rp: RelyingParty | None = None, scope: str = "openid") -> Any:
    rp = rp or world.rp
    rp.scope = scope
    return world.tokens(rp)


def parties(subject: str, scopes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The two parties as a token shows them (D2)."""

    def one(identifier: str, kind: str, known: dict[str, dict[str, str]]) -> dict[str, Any]:
        granted = {name: value for scope in scopes for name, value in known.get(scope, {}).items()}
        return {"sub": identifier, "sub_type": kind, **({"sub_attributes": granted} if granted else {})}

    user, entity = one(ALICE, "user", USER), one(HARBOUR, "entity", ENTITY)
    return {**user, "entity": entity} if subject == "user" else {**entity, "act": user}


@pytest.mark.generations(*PUSHED)
@pytest.mark.parametrize("subject", ["user", "entity"])
@pytest.mark.parametrize(
    "scopes", [(), *((scope,) for scope in ATTRIBUTES), tuple(ATTRIBUTES)], ids=lambda s: "+".join(s) or "openid"
)
def test_the_id_token_has_exactly_these_claims(world: World, subject: str, scopes: tuple[str, ...]) -> None:
    """D1, D2: attributes by granted scope, the other party's sub and sub_type always."""
    rp = world.registers(subject=subject)
    found = tokens(world, rp, " ".join(("openid", *scopes)))
    now = int(world.clock.now)
    assert found.id_token == {
        "iss": ISSUER,
        "aud": "rp-1",
        "iat": now,
        "exp": now + 600,
        "nonce": rp.sign_in.nonce,
        "at_hash": jwt.half_digest(found.access_token),
        "auth_time": now,
        "amr": ["pwd", "otp", "mfa"],
        "acr": LEVEL_2,
        **parties(subject, scopes),
    }


RESOURCES = {"intermediate": [USERINFO, f"{ISSUER}/entity-info"], "current": [USERINFO], "fapi2": [USERINFO]}


@pytest.mark.generations(*PUSHED, differ=True)
@pytest.mark.parametrize("subject", ["user", "entity"])
def test_the_access_token_has_exactly_these_claims_and_no_attributes(world: World, subject: str) -> None:
    """D20, RFC 9068 §2.2."""
    rp = world.registers(subject=subject)
    found = tokens(world, rp, "openid authinfo user.name")
    now = int(world.clock.now)
    jti = found.access_token_claims["jti"]
    assert found.access_token_claims == {
        "iss": ISSUER,
        "aud": RESOURCES[world.interface.name],
        **parties(subject),
        "client_id": "rp-1",
        "scope": "openid authinfo user.name",
        "iat": now,
        "exp": now + 600,
        "jti": jti,
        "auth_time": now,
        "acr": LEVEL_2,
        "cnf": {"jkt": rp.sign_in.dpop_key.thumbprint()},
    }


@pytest.mark.generations(*EVERY)
def test_the_headers_name_algorithm_type_and_key_and_nothing_else(shared: World) -> None:
    """D20: at+jwt; D21: JWT."""
    found = tokens(shared)
    kid = json.loads(shared.get(f"{ISSUER}/.well-known/keys").content)["keys"][0]["kid"]
    assert found.access_token_header == {"alg": "ES256", "kid": kid, "typ": "at+jwt"}
    assert found.id_token_header == {"alg": "ES256", "kid": kid, "typ": "JWT"}


def jwe_header(world: World, rp: RelyingParty) -> dict[str, Any]:
    """The header of the ID token's envelope, once the token inside was opened and verified."""
    header, _ = jwt.peek(tokens(world, rp).raw["id_token"])
    return {name: value for name, value in header.items() if name != "epk"}


@pytest.mark.parametrize("enc", ["A256CBC-HS512", "A256GCM"])
@pytest.mark.parametrize("wrap", ["ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"])
@pytest.mark.parametrize("curve", ["P-256", "P-384", "P-521"])
def test_the_id_token_is_nested_in_a_jwe_for_the_clients_key(world: World, curve: str, wrap: str, enc: str) -> None:
    """D21: alg from the key, enc as registered, header kid of that key, cty JWT."""
    keys = dataclasses.replace(
        rp_keys("rp-1"), encryption=RelyingPartyKeys.generate(encryption_curve=curve, wrap=wrap).encryption
    )
    rp = world.registers(jwks=json.dumps(keys.public()), id_token_encryption_enc=enc)
    rp.keys, rp.id_token_enc = keys, enc
    header = jwe_header(world, rp)
    assert header.pop("typ", "JWT") == "JWT"
    assert header == {"alg": wrap, "enc": enc, "kid": keys.encryption.get("kid"), "cty": "JWT"}


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ([("P-256", "ECDH-ES+A256KW"), ("P-384", "ECDH-ES+A128KW")], 1),
        ([("P-521", "ECDH-ES+A128KW"), ("P-384", "ECDH-ES+A256KW")], 0),
        ([("P-256", "ECDH-ES+A128KW"), ("P-256", "ECDH-ES+A192KW")], 1),
        ([("P-256", "ECDH-ES+A256KW"), ("P-256", "ECDH-ES+A256KW")], 0),
        ([("P-256", "RSA-OAEP"), ("P-256", "ECDH-ES+A128KW")], 1),
        ([("P-256", None), ("P-256", "ECDH-ES+A192KW")], 0),
        ([("secp256k1", "ECDH-ES+A256KW"), ("P-256", "ECDH-ES+A128KW")], 1),
    ],
)
def test_of_several_encryption_keys_the_strongest_is_used(
    world: World, offered: list[tuple[str, str | None]], chosen: int
) -> None:
    """D21: strongest curve, then strongest wrap, then order; a key without alg: A256KW."""
    made = [ECKey.generate_key(curve, {"kid": f"enc-{n}", "use": "enc"}) for n, (curve, _) in enumerate(offered)]
    described = [
        {**public_members(key, "kid", "use"), **({"alg": alg} if alg else {})}
        for key, (_, alg) in zip(made, offered, strict=True)
    ]
    world.registers(jwks=json.dumps({"keys": [*described, rp_keys("rp-1").public()["keys"][0]]}))
    header, _ = jwt.peek(world.redeem(world.code()).json()["id_token"])
    assert (header["kid"], header["alg"]) == (f"enc-{chosen}", offered[chosen][1] or "ECDH-ES+A256KW")


@pytest.mark.generations(*PUSHED)
def test_acr_states_what_was_done_under_the_prefix_of_the_deployment(worlds: Worlds) -> None:
    """D10."""
    world = worlds.fresh(acr_prefix="urn:example:loa:")
    found = world.tokens(acr_values="urn:example:loa:2")
    assert found.id_token["acr"] == found.access_token_claims["acr"] == "urn:example:loa:2"


@pytest.mark.generations(*PUSHED)
def test_scopes_are_granted_in_the_order_asked(shared: World) -> None:
    """Spec 2.4: granted scopes."""
    found = tokens(shared, scope="tpauthinfo openid user.name authinfo")
    assert found.scope == found.access_token_claims["scope"] == "tpauthinfo openid user.name authinfo"


@pytest.mark.generations(*PUSHED)
def test_a_foreign_entity_shows_its_own_number_and_no_registration_status(world: World) -> None:
    """R-12.4: the status is told of UEN entities alone."""
    world.rp.scope = " ".join(("openid", *ENTITY))
    url = world.run(world.rp.begin())
    bob = Person(user_name="bob", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    callback = world.run(people.sign_in(world.browser, url, bob, directory.FOREIGN.entity_id, now=world.clock))
    claims = world.run(world.rp.redeem(callback)).id_token
    assert claims["sub"] == directory.BOB.user_id
    assert "sub_attributes" not in claims
    assert claims["entity"] == {
        "sub": "C12345678D",
        "sub_type": "entity",
        "sub_attributes": {
            "entity_type": "NON-UEN",
            "entity_reg_number": "HRB 4711",
            "entity_coi": "DE",
            "entity_name": "Nordwerk GmbH",
        },
    }


@pytest.mark.generations(*EVERY)
def test_times_are_whole_seconds_of_the_providers_clock(world: World) -> None:
    """RFC 7519 §2; D49: one reading per request."""
    world.sign_in()
    world.clock.now += 0.75
    claims = world.tokens().id_token
    assert claims["iat"] == int(world.clock.now)
    assert claims["exp"] - claims["iat"] == 600
    assert all(isinstance(claims[name], int) for name in ("iat", "exp", "auth_time"))
