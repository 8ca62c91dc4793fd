"""Which generations a client is registered for, until when, and which keys that needs (Spec "Generations")."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from corpid.jose.keys import WRAPS
from corpid.rules.oauth.client_registration import RegistrationError, pkce_optional, register, serves, used_generations
from corpid.rules.oauth.generations import CURRENT, FAPI2, GENERATIONS, INTERMEDIATE, LEGACY, Generation
from tests.unit.rules.oauth.clients import CLIENT, ENCRYPTION, SIGNING, jwk, on, rules_of

LAST_DAY = "2027-03-31"
ONLY_SIGNING = json.dumps({"keys": [SIGNING]})
NO_SUCH_DAY = "no generation of this client has such a day: name legacy among them, or give no day"
ENDING: dict[str, Any] = {"generations": ("current", "legacy"), "legacy_until": LAST_DAY}


def reasons(pushed: Generation | None = CURRENT, **members: object) -> list[str]:
    try:
        register(msgspec.structs.replace(CLIENT, **members), rules_of(pushed=pushed))
    except RegistrationError as error:
        return [f"{fault.member}: {fault.reason}" for fault in error.faults]
    return []


@pytest.mark.parametrize(
    ("members", "faults"),
    [
        (ENDING, []),
        ({**ENDING, "generations": ("legacy",), "endpoint_audience_until": "2026-12-31"}, []),
        ({**ENDING, "legacy_until": None}, [
            "legacy_until: legacy is served until an end date only: name its last day, YYYY-MM-DD"]),
        ({**ENDING, "legacy_until": "2027-02-30"}, [
            "legacy_until: '2027-02-30' is not a date: write a day that exists, YYYY-MM-DD"]),
        ({**ENDING, "legacy_until": "20270331"}, [
            "legacy_until: '20270331' is not a date: write a day that exists, YYYY-MM-DD"]),
        ({**ENDING, "endpoint_audience_until": "tomorrow"}, [
            "endpoint_audience_until: 'tomorrow' is not a date: write a day that exists, YYYY-MM-DD"]),
        ({**ENDING, "pkce": "optional", "pkce_optional_until": LAST_DAY}, []),
        ({"pkce": "optional"}, []),
        ({**ENDING, "pkce": "optional", "pkce_optional_until": "2027-02-30"}, [
            "pkce_optional_until: '2027-02-30' is not a date: write a day that exists, YYYY-MM-DD"]),
        ({**ENDING, "pkce_optional_until": LAST_DAY}, [
            "pkce_optional_until: pkce is required: register pkce optional, or give no day"]),
        ({"pkce": "optional", "pkce_optional_until": LAST_DAY}, [
            f"pkce_optional_until: {NO_SUCH_DAY}"]),
        ({"legacy_until": LAST_DAY}, [
            f"legacy_until: {NO_SUCH_DAY}"]),
        ({"generations": ("intermediate",), "endpoint_audience_until": LAST_DAY}, []),
        ({"endpoint_audience_until": LAST_DAY}, []),
        ({**ENDING, "generations": ("legacy", "current", "legacy", "legacy")}, [
            "generations: legacy is named more than once: once is enough"]),
    ],
)  # fmt: skip
def test_a_generation_that_ends_is_named_with_its_last_day(members: dict[str, Any], faults: list[str]) -> None:
    """D8; Spec "No downgrade": LEGACY is named per client, with an end date."""
    assert reasons(**members) == faults


@pytest.mark.parametrize(
    ("pushed", "generations"), [(CURRENT, ("fapi2",)), (CURRENT, ("current", "fapi2")), (FAPI2, ())]
)
def test_a_client_of_fapi2_names_the_issuer_alone_as_audience(pushed: Generation, generations: tuple[str, ...]) -> None:
    """D64: never in FAPI2, whether the client names it or the deployment serves it."""
    [reason] = reasons(pushed, generations=generations, endpoint_audience_until=LAST_DAY)
    assert reason.startswith("endpoint_audience_until: with fapi2 every client's assertions name the issuer alone")
    assert reasons(pushed, generations=generations) == []


def test_a_client_of_no_generation_has_no_audience_of_its_own() -> None:
    """D64: where nothing is pushed, a client that names no generation has none."""
    [reason] = reasons(None, endpoint_audience_until=LAST_DAY)
    assert reason.startswith("endpoint_audience_until: this client is registered for no generation: name current, ")


@pytest.mark.parametrize(
    ("members", "today", "optional"),
    [
        ({}, "2026-01-01", False),
        ({"pkce": "optional"}, LAST_DAY, True),
        ({"pkce": "optional"}, "2027-04-01", False),
        ({"pkce": "optional", "pkce_optional_until": "2026-12-31"}, "2026-12-31", True),
        ({"pkce": "optional", "pkce_optional_until": "2026-12-31"}, "2027-01-01", False),
        ({"pkce": "optional", "generations": ("current",)}, "2026-01-01", False),
    ],
)
def test_pkce_is_optional_in_legacy_alone_for_a_client_that_is_registered_so_until_its_day(
    members: dict[str, Any], today: str, *, optional: bool
) -> None:
    """Spec "LEGACY without PKCE"; who may not use LEGACY any more may not leave PKCE out there."""
    client = msgspec.structs.replace(CLIENT, **{**ENDING, **members})
    allowed = {generation.name for generation in GENERATIONS.values() if pkce_optional(client, generation, today)}
    assert allowed == ({"legacy"} if optional else set())


def test_the_last_day_is_served_and_the_next_is_not() -> None:
    client = msgspec.structs.replace(CLIENT, **ENDING)
    assert serves(client, LEGACY, LAST_DAY)
    assert not serves(client, LEGACY, "2027-04-01")
    assert serves(client, CURRENT, "2027-04-01")


@pytest.mark.parametrize("generation", GENERATIONS.values(), ids=lambda one: one.name)
def test_who_names_no_generation_uses_the_pushed_one_alone(generation: Generation) -> None:
    assert serves(CLIENT, generation, LAST_DAY) is generation.pushed
    assert used_generations(CLIENT, rules_of(pushed=FAPI2)) == (FAPI2,)
    assert used_generations(CLIENT, rules_of()) == ()
    assert used_generations(msgspec.structs.replace(CLIENT, **ENDING), rules_of(pushed=INTERMEDIATE)) == (
        LEGACY,
        CURRENT,
    )


@pytest.mark.parametrize(
    ("pushed", "members"),
    [
        (CURRENT, {}),
        (FAPI2, {"generations": ("fapi2", "current")}),
        (None, {"generations": ("legacy",), "legacy_until": LAST_DAY}),
        (FAPI2, {"id_token_encryption_alg": WRAPS[2]}),
        (FAPI2, {"id_token_encryption_alg": "key"}),
    ],
)
def test_a_client_whose_id_tokens_are_encrypted_needs_a_key_for_it(
    pushed: Generation | None, members: dict[str, Any]
) -> None:
    """D21, D27."""
    [reason] = reasons(pushed, jwks=ONLY_SIGNING, **members)
    assert reason.startswith("jwks: no usable encryption key for ID tokens: an EC key with use enc")


def signing(*curves: str) -> dict[str, str]:
    """A key set with a signing key on each of these curves, and an encryption key."""
    return {"jwks": json.dumps({"keys": [*(on(curve) for curve in curves), ENCRYPTION]})}


@pytest.mark.parametrize(
    ("pushed", "members", "unfit"),
    [
        (FAPI2, signing("P-384"), "ES384"),
        (FAPI2, signing("P-384", "P-521"), "ES384, ES512"),
        (CURRENT, {**signing("P-521"), "generations": ("fapi2", "current")}, "ES512"),
        (FAPI2, signing("P-384", "P-256"), None),
        (FAPI2, {**signing("P-384"), "generations": ("current",)}, None),
        (CURRENT, signing("P-521"), None),
        (None, signing("P-384"), None),
    ],
)
def test_a_key_set_has_a_signing_key_that_each_generation_of_the_client_accepts(
    pushed: Generation | None, members: dict[str, Any], unfit: str | None
) -> None:
    """D8: said at registration, not when its first assertion is refused."""
    fault = "jwks: no signing key for fapi2: client assertions are signed with ES256 there, and the keys here are for "
    assert reasons(pushed, **members) == ([fault + unfit] if unfit else [])


def test_no_encryption_key_is_needed_where_nothing_is_encrypted() -> None:
    """Spec "Generations": a signed-only ID token unless the client registered an algorithm."""
    assert reasons(FAPI2, jwks=ONLY_SIGNING) == []
    assert reasons(CURRENT, jwks=ONLY_SIGNING, generations=("fapi2",)) == []
    assert reasons(FAPI2, jwks=ONLY_SIGNING, userinfo_signing_alg="ES256") == []
    assert reasons(FAPI2, jwks=ONLY_SIGNING, userinfo_encryption_enc="A256GCM") == [
        "jwks: no usable encryption key for userinfo: an EC key with use enc and a kid"
    ]


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_registered_wrap_needs_a_key_that_has_it_or_names_none(wrap: str) -> None:
    """D21."""
    other = next(each for each in WRAPS if each != wrap)
    fitting, unfit = jwk("enc", "e", alg=wrap), jwk("enc", "e", alg=other)
    for key in (fitting, ENCRYPTION):
        assert reasons(jwks=json.dumps({"keys": [SIGNING, key]}), id_token_encryption_alg=wrap) == []
    assert reasons(jwks=json.dumps({"keys": [SIGNING, unfit]}), id_token_encryption_alg=wrap) == [
        f"jwks: no usable encryption key for ID tokens: an EC key with use enc, a kid, and the alg {wrap} or none is needed"
    ]


@pytest.mark.parametrize("wrap", [*WRAPS, None])
@pytest.mark.parametrize("pushed", [CURRENT, FAPI2])
def test_the_wrap_of_the_key_fits_every_key(wrap: str | None, pushed: Generation) -> None:
    """D21: so that a preset can register it for clients whose keys nobody knows yet."""
    key = jwk("enc", "e", **({"alg": wrap} if wrap else {}))
    assert reasons(pushed, jwks=json.dumps({"keys": [SIGNING, key]}), id_token_encryption_alg="key") == []


def test_what_a_key_set_behind_a_url_holds_is_not_known_at_registration() -> None:
    """D27: it is looked at when it is fetched."""
    members: dict[str, Any] = {"jwks": None, "jwks_uri": "https://rp.example/jwks"}
    assert reasons(CURRENT, **members, id_token_encryption_alg=WRAPS[0]) == []
