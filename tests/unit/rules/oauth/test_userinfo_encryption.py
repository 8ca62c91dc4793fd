"""Which encryption of userinfo a client can register, and what each generation makes of it (Spec 2.8, D22, Spec "Generations")."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from corpid.jose.keys import WRAPS
from corpid.rules.oauth.client_registration import RegistrationError, new_client, register
from corpid.rules.oauth.generations import CURRENT, FAPI2, GENERATIONS, INTERMEDIATE, LEGACY, Generation, Nesting
from tests.unit.jose.signed import public_jwk, rsa_key
from tests.unit.rules.oauth.clients import CLIENT, ENCRYPTION, SIGNING, jwk, rules_of

ALGS = ("ECDH-ES", "RSA-OAEP", "RSA-OAEP-256")
ENCS = ("A128CBC-HS256", "A128GCM", "A256CBC-HS512", "A256GCM")
RSA = public_jwk(rsa_key(), use="enc", kid="r")
EVERY_KEY = json.dumps({"keys": [SIGNING, ENCRYPTION, RSA]})
DAY = "2027-03-31"
ALONE: dict[str, Any] = {"generations": ("legacy",), "legacy_until": DAY}
BOTH: dict[str, Any] = {"generations": ("legacy", "current"), "legacy_until": DAY}


def reasons(**members: Any) -> list[str]:
    try:
        register(msgspec.structs.replace(CLIENT, **{"jwks": EVERY_KEY, **members}), rules_of(pushed=CURRENT))
    except RegistrationError as error:
        return [f"{fault.member}: {fault.reason}" for fault in error.faults]
    return []


def encrypted(alg: str | None, enc: str | None) -> dict[str, Any]:
    return {"userinfo_encryption_alg": alg, "userinfo_encryption_enc": enc}


@pytest.mark.parametrize("enc", ENCS)
@pytest.mark.parametrize("alg", ALGS)
def test_legacy_takes_each_alg_with_each_enc(alg: str, enc: str) -> None:
    """Spec 2.8: of what it publishes all that public keys allow."""
    assert reasons(**ALONE, **encrypted(alg, enc)) == []
    (resource,) = LEGACY.resources
    assert resource.nesting(alg, enc) == Nesting(alg=alg, enc=enc)


@pytest.mark.parametrize("registered", [ALONE, BOTH, {}])
@pytest.mark.parametrize("alg", ["dir", "A128KW", "A256KW"])
def test_what_needs_a_shared_secret_is_refused_with_that_sentence(alg: str, registered: dict[str, Any]) -> None:
    """Spec "Generations": no client has a shared secret."""
    (reason,) = reasons(**registered, **encrypted(alg, "A256GCM"))
    assert reason.startswith(f"userinfo_encryption_alg: {alg} needs a shared secret, which no client has: name one of ")
    assert all(each in reason for each in (*ALGS, *WRAPS))


@pytest.mark.parametrize("alg", ["RSA1_5", "ECDH-ES+A512KW", "", "rsa-oaep", "A192KW"])
def test_an_alg_that_nobody_offers_is_refused(alg: str) -> None:
    (reason,) = reasons(**encrypted(alg, "A256GCM"))
    assert reason.startswith(f"userinfo_encryption_alg: {alg!r} is not one of ")


NO_EFFECT = "userinfo_encryption_enc: it has no effect: legacy encrypts authorization-info only for a client with userinfo_encryption_alg; "


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({**ALONE, **encrypted(None, "A256GCM")}, NO_EFFECT + "name one of ECDH-ES, RSA-OAEP, RSA-OAEP-256 there, or give no enc"),
        ({**ALONE, **encrypted("RSA-OAEP", None)}, ("userinfo_encryption_alg: it has no effect without userinfo_encryption_enc: "
            "give one of A128CBC-HS256, A128GCM, A256CBC-HS512, A256GCM, or no alg")),
        ({**ALONE, **encrypted(WRAPS[2], "A256GCM")}, ("userinfo_encryption_alg: ECDH-ES+A256KW is not offered by a generation of this "
            "client, but by intermediate, current, fapi2: name another alg, or give none")),
        (encrypted("RSA-OAEP", "A256GCM"), ("userinfo_encryption_alg: RSA-OAEP is not offered by a generation of this client, but by "
            "legacy: name another alg, or give none")),
        ({"generations": ("fapi2",), **encrypted("ECDH-ES", "A256GCM")}, ("userinfo_encryption_alg: ECDH-ES is not offered by a "
            "generation of this client, but by legacy: name another alg, or give none")),
        (encrypted(None, "A128GCM"), "userinfo_encryption_enc: A128GCM is not offered by current: name one of A256CBC-HS512, A256GCM"),
        ({**BOTH, **encrypted("ECDH-ES", "A128GCM")}, ("userinfo_encryption_enc: A128GCM is not offered by current: "
            "name one of A256CBC-HS512, A256GCM")),
    ],
)  # fmt: skip
def test_what_would_have_no_effect_or_less_than_it_says_is_refused(members: dict[str, Any], expected: str) -> None:
    """A client that registers an encryption must not be answered in clear where it is offered (D22)."""
    assert reasons(**members) == [expected]


@pytest.mark.parametrize(
    ("members", "legacy", "current"),
    [
        ({**BOTH, **encrypted(None, "A256GCM")}, None, Nesting(alg=None, enc="A256GCM")),
        ({**BOTH, **encrypted("RSA-OAEP", "A256GCM")}, Nesting(alg="RSA-OAEP", enc="A256GCM"), Nesting(alg=None, enc="A256GCM")),
        ({**BOTH, **encrypted(WRAPS[0], "A256GCM")}, None, Nesting(alg=WRAPS[0], enc="A256GCM")),
        ({**BOTH, **encrypted(None, None)}, None, None),
    ],
)  # fmt: skip
def test_a_client_of_two_generations_gets_from_each_what_that_one_offers(
    members: dict[str, Any], legacy: Nesting | None, current: Nesting | None
) -> None:
    """One alg of one generation neither opens the other's answer nor changes what its enc alone asks for."""
    assert reasons(**members) == []
    chosen = members["userinfo_encryption_alg"], members["userinfo_encryption_enc"]
    assert [LEGACY.resources[0].nesting(*chosen), CURRENT.resources[0].nesting(*chosen)] == [legacy, current]


@pytest.mark.parametrize("generation", [INTERMEDIATE, CURRENT, FAPI2], ids=lambda one: one.name)
@pytest.mark.parametrize("alg", [None, *WRAPS])
def test_the_others_take_their_own_algs_or_the_key_s(generation: Generation, alg: str | None) -> None:
    """D22: A256GCM or A256CBC-HS512."""
    members = {"generations": (generation.name,)}
    for enc in ENCS:
        offered = enc in {"A256GCM", "A256CBC-HS512"}
        assert (reasons(**members, **encrypted(alg, enc)) == []) == offered
        for resource in generation.resources:
            assert resource.nesting(alg, enc) == (Nesting(alg=alg, enc=enc) if offered else None)


def keys(*more: dict[str, Any]) -> str:
    return json.dumps({"keys": [SIGNING, *more]})


@pytest.mark.parametrize(
    ("alg", "fitting", "unfit", "needed"),
    [
        ("ECDH-ES", jwk("enc", "e", alg="ECDH-ES"), RSA, "an EC key with use enc, a kid, and the alg ECDH-ES or none"),
        ("RSA-OAEP", {**RSA, "alg": "RSA-OAEP"}, {**RSA, "alg": "RSA-OAEP-256"},
         "an RSA key of at least 2048 bits with use enc, a kid, and the alg RSA-OAEP or none"),
        ("RSA-OAEP-256", RSA, jwk("enc", "f"), "an RSA key of at least 2048 bits with use enc, a kid, and the alg RSA-OAEP-256 or none"),
    ],
)  # fmt: skip
def test_the_key_set_needs_a_key_for_the_alg(
    alg: str, fitting: dict[str, Any], unfit: dict[str, Any], needed: str
) -> None:
    """D21, D27: said at registration, not when the first answer cannot be encrypted."""
    members = {**ALONE, **encrypted(alg, "A128GCM")}
    assert reasons(**members, jwks=keys(ENCRYPTION, fitting)) == []
    only_agreed = jwk("enc", "e", alg=WRAPS[0])
    assert reasons(**members, jwks=keys(only_agreed, *([unfit] if unfit.get("kty") == "RSA" else []))) == [
        f"jwks: no usable encryption key for userinfo: {needed}"
    ]


def test_an_rsa_key_alone_serves_no_id_token() -> None:
    """D21: RSA keys are for the oldest generation's userinfo only."""
    (reason,) = reasons(**ALONE, **encrypted("RSA-OAEP", "A256GCM"), jwks=keys(RSA))
    assert reason.startswith("jwks: no usable encryption key for ID tokens: an EC key with use enc")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, "A256GCM"),
        ({"generations": ("current", "legacy")}, "A256GCM"),
        ({"generations": ("legacy",)}, None),
        ({"generations": ("legacy",), "userinfo_encryption_alg": "RSA-OAEP"}, "A256GCM"),
        ({"generations": ("legacy",), "userinfo_encryption_alg": None}, None),
        ({"generations": ("legacy",), "userinfo_encryption_enc": "A128GCM"}, "A128GCM"),
        ({"userinfo_encryption_enc": None}, None),
    ],
)
def test_an_enc_that_a_preset_gives_is_left_out_where_it_has_no_effect(
    said: dict[str, Any], expected: str | None
) -> None:
    """Else a preset would make every new client of legacy alone impossible to register; what is said stands as it is."""
    rules = rules_of(pushed=CURRENT, new_client={"subject": "entity", "userinfo_encryption_enc": "A256GCM"})
    members = new_client(rules, said)
    assert members.get("userinfo_encryption_enc") == expected
    assert members["subject"] == "entity"
    assert members.keys() >= said.keys()


def test_nothing_is_said_of_the_effect_if_no_generation_is_known() -> None:
    """A deployment of legacy alone, and a client that names no generation: that is another fault's to say."""
    client = msgspec.structs.replace(CLIENT, jwks=EVERY_KEY, **encrypted("RSA-OAEP", "A256GCM"))
    assert register(client, rules_of()) == ()


def test_every_published_enc_of_the_pushed_generations_is_offered() -> None:
    """Spec 2.8, D41: only what is implemented is published."""
    for generation in (each for each in GENERATIONS.values() if each.pushed):
        for resource in generation.resources:
            published = generation.metadata["userinfo_encryption_enc_values_supported"]
            assert set(resource.encryption_encs) == set(published)  # type: ignore[call-overload]
