"""The generations, as data (Spec "Generations", Spec 2.8, 8)."""

from __future__ import annotations

import pytest

from corpid.jose.keys import ALGORITHMS
from corpid.rules.oauth.client_registration import CONTEXT_TYPES, DEFAULT
from corpid.rules.oauth.generations import CURRENT, GENERATIONS, Generation

EVERY = list(GENERATIONS.values())


def test_current_is_what_the_table_says() -> None:
    assert CURRENT.pushed
    assert CURRENT.scheme == "DPoP"
    assert [resource.path for resource in CURRENT.resources] == ["/userinfo"]
    assert not CURRENT.returns_iss
    assert CURRENT.required_parameters == {"state", "nonce", "authentication_context_type"}
    assert CURRENT.key_binding_required
    assert CURRENT.bad_verifier_code == "invalid_request"
    assert CURRENT.statuses == {}
    assert CURRENT.unknown_acr_refused
    assert CURRENT.assertion_algorithms == CURRENT.proof_algorithms == ("ES256", "ES256K", "ES384", "ES512")
    assert (CURRENT.assertion_seconds, CURRENT.assertion_iat_required, CURRENT.assertion_jti_required) == (
        120,
        True,
        True,
    )
    assert CURRENT.response_modes == ("query",)
    assert CURRENT.id_token_encrypted
    assert CURRENT.userinfo_signed


@pytest.mark.parametrize("generation", EVERY, ids=lambda one: one.name)
def test_a_generation_speaks_of_algorithms_that_exist_es256_first(generation: Generation) -> None:
    for listed in filter(None, (generation.assertion_algorithms, generation.proof_algorithms)):
        assert listed[0] == "ES256"
        assert set(listed) <= set(ALGORITHMS)
    assert generation.sender_constrained is (generation.scheme == "DPoP")
    assert generation.bad_verifier_code in {"invalid_request", "invalid_grant"}


def test_the_first_character_of_a_code_names_one_generation() -> None:
    prefixes = [generation.code_prefix for generation in EVERY]
    assert len(set(prefixes)) == len(prefixes)
    assert all(len(prefix) == 1 for prefix in prefixes)
    assert all(name == generation.name for name, generation in GENERATIONS.items())


def test_the_context_type_of_every_client_is_one_of_the_list() -> None:
    """D11, R-5.2."""
    assert DEFAULT == "APP_AUTHENTICATION_DEFAULT"
    assert DEFAULT in CONTEXT_TYPES
    assert all(name == name.strip().upper() for name in CONTEXT_TYPES)
