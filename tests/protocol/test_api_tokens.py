"""Tokens of the admin API as the API sees them, and where they are refused (D59; RFC 9449 §7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.rules.directory.access import ApiClient
from corpid.rules.oauth.api_client import API_SCOPES
from corpid.rules.oauth.errors import (
    CredentialsRequired,
    InvalidDPoPProof,
    InvalidRequest,
    InvalidToken,
    OAuthError,
    UseDPoPNonce,
)
from corpid.rules.oauth.refusals import Reason
from corpid_dev.relying_party.jwt import peek
from tests.protocol import directory
from tests.protocol.api_callers import PATH, ApiCaller, registered, registers
from tests.protocol.deployment import ISSUER, USERINFO, other_key
from tests.protocol.refusals import resource_refusal

if TYPE_CHECKING:
    from tests.protocol.provider import World, Worlds

HARBOUR = directory.HARBOUR.entity_id
FOREIGN = directory.FOREIGN.entity_id


@pytest.fixture
def api(world: World) -> ApiCaller:
    return registers(world)


def refused(api: ApiCaller, error: type[OAuthError], reason: Reason, token: str, **call: Any) -> None:
    """A call is refused for this reason; an honest one before it spent nothing of the token."""
    with pytest.raises(error) as raised:
        api.verified(token, **call)
    assert raised.value.reason is reason


def test_a_call_is_that_of_a_client_with_the_scopes_of_its_token(api: ApiCaller) -> None:
    """D59: what authorise judges by; a token is good for many calls, each with a proof of its own."""
    token = api.access_token(scope="directory.read audit.read")
    expected = ApiClient(client_id="api-1", scopes=frozenset({"directory.read", "audit.read"}))
    assert [api.verified(token), api.verified(token, method="POST", scheme="dpop")] == [expected] * 2


def test_a_client_of_an_entity_acts_for_that_entity(world: World) -> None:
    """D59: two roles, by the record."""
    api = registers(world, entity_id=HARBOUR)
    found = api.verified(api.access_token())
    assert found == ApiClient(client_id="api-1", scopes=frozenset(API_SCOPES), entity_id=HARBOUR)
    assert found.role == "API client of an entity"


def test_the_address_of_a_proof_is_the_path_as_it_was_sent(worlds: Worlds) -> None:
    """RFC 9449 §4.3: also below a path of base_url."""
    api = registers(worlds.fresh())
    token = api.access_token()
    for path in ("/api/v1/entities?limit=1".partition("?")[0], "/api/v1/x%20y", "/api/v1"):
        api.verified(token, path=path)
    refused(api, InvalidDPoPProof, Reason.PROOF_URL, token, htu=f"{ISSUER}/api/v1/entities/other")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"htu": USERINFO}, Reason.PROOF_URL),
        ({"htu": f"{ISSUER}/api/token"}, Reason.PROOF_URL),
        ({"htm": "POST"}, Reason.PROOF_METHOD),
        ({"ath": None}, Reason.PROOF_TOKEN_HASH),
        ({"ath": "x" * 43}, Reason.PROOF_TOKEN_HASH),
        ({"jti": None}, Reason.PROOF_JTI_MISSING),
        ({"iat": 0}, Reason.PROOF_TOO_OLD),
    ],
)
def test_a_proof_for_another_request_is_refused(api: ApiCaller, changes: dict[str, Any], reason: Reason) -> None:
    """RFC 9449 §4.3, D7."""
    refused(api, InvalidDPoPProof, reason, api.access_token(), **changes)


def test_a_token_works_with_the_key_that_it_is_bound_to_alone(api: ApiCaller) -> None:
    """RFC 9449 §7.1, D6."""
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_KEY, api.access_token(), key=other_key())


def test_a_proof_works_once(api: ApiCaller) -> None:
    """D7."""
    token = api.access_token()
    proof = api.proof("GET", f"{ISSUER}{PATH}", token)
    api.shown([f"DPoP {token}"], [proof])
    with pytest.raises(InvalidDPoPProof) as raised:
        api.shown([f"DPoP {token}"], [proof])
    assert raised.value.reason is Reason.PROOF_REPLAYED
    assert raised.value.client_id == "api-1"


def test_headers_that_are_missing_foreign_or_repeated_are_refused(api: ApiCaller) -> None:
    """D24, RFC 9449 §7.1, §7.2."""
    token = api.access_token()
    proof = api.proof("GET", f"{ISSUER}{PATH}", token)
    dpop = f"DPoP {token}"
    for authorization, proofs, error in (
        ([], [proof], CredentialsRequired),
        ([f"Bearer {token}"], [proof], CredentialsRequired),
        (["Basic YTpi"], [], CredentialsRequired),
        ([dpop, dpop], [proof], InvalidRequest),
        ([dpop], [], InvalidRequest),
        ([dpop], [proof, proof], InvalidDPoPProof),
        (["DPoP"], [proof], InvalidToken),
        (["DPoP a.b.c"], [proof], InvalidToken),
    ):
        with pytest.raises(error):
            api.shown(authorization, proofs)
    api.shown([dpop], [proof])


def test_a_token_ends_after_ten_minutes(api: ApiCaller) -> None:
    """D59."""
    token = api.access_token()
    api.clock.now += 599  # type: ignore[attr-defined]
    api.verified(token)
    api.clock.now += 1  # type: ignore[attr-defined]
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_EXPIRED, token)


def test_a_changed_token_is_refused(api: ApiCaller) -> None:
    """RFC 7515 §5.2: scopes are not to be had by writing them."""
    token = api.access_token(scope="directory.read")
    head, _, signature = token.split(".")
    other = api.access_token(scope="directory.write").split(".")[1]
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_FOREIGN, f"{head}.{other}.{signature}")


# What has ended since


def test_a_disabled_or_removed_client_ends_its_tokens(api: ApiCaller) -> None:
    """D50."""
    token = api.access_token()
    registers(api.world, enabled=False)
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_CLIENT, token)
    registers(api.world)
    api.verified(token)
    api.world.deletes(registered())
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_CLIENT, token)


def test_a_scope_that_is_taken_away_ends_the_tokens_that_carry_it(api: ApiCaller) -> None:
    """D50."""
    both, one = api.access_token(scope="directory.read audit.read"), api.access_token(scope="directory.read")
    registers(api.world, scopes=("directory.read",))
    refused(api, InvalidToken, Reason.SCOPE_WITHDRAWN, both)
    api.verified(one)


@pytest.mark.parametrize(("before", "after"), [("", HARBOUR), (HARBOUR, FOREIGN), (HARBOUR, "")])
def test_another_binding_ends_a_token(world: World, before: str, after: str) -> None:
    """D59: a token never outgrows the entity that it was given for, nor escapes from it."""
    api = registers(world, entity_id=before)
    token = api.access_token()
    registers(world, entity_id=after)
    refused(api, InvalidToken, Reason.API_CLIENT_ENTITY, token)


def test_a_disabled_or_removed_entity_ends_the_tokens_of_its_clients(world: World) -> None:
    """D50, D59; those of other clients stay."""
    bound, free = registers(world, entity_id=HARBOUR), registers(world, "api-2")
    token, other = bound.access_token(), free.access_token()
    world.writes(replace(directory.HARBOUR, enabled=False))
    refused(bound, InvalidToken, Reason.API_CLIENT_ENTITY, token)
    world.writes(directory.HARBOUR)
    bound.verified(token)
    world.deletes(directory.HARBOUR)
    refused(bound, InvalidToken, Reason.API_CLIENT_ENTITY, token)
    free.verified(other)


# Tokens of one server at the other


def test_a_token_of_the_api_is_refused_at_userinfo(api: ApiCaller) -> None:
    """D59: by issuer and audience; with a proof for userinfo."""
    rp = api.world.party("rp-1")
    rp.sign_in.dpop_key = api.sign_in.dpop_key
    resource_refusal(api.world.userinfo(rp, token=api.access_token()), 401, "invalid_token")


@pytest.mark.generations("legacy")
def test_a_token_of_the_api_is_refused_at_authorization_info(api: ApiCaller) -> None:
    """D59."""
    answer = api.world.userinfo(api.world.party("rp-1"), token=api.access_token())
    resource_refusal(answer, 401, "invalid_token", f'Bearer realm="{ISSUER}"')


def test_a_token_of_the_core_is_refused_at_the_api(api: ApiCaller) -> None:
    """D59: also one of a relying party that has the identifier of a client of the API."""
    tokens = api.world.tokens()
    api.sign_in.dpop_key = api.world.rp.sign_in.dpop_key
    refused(api, InvalidToken, Reason.ACCESS_TOKEN_FOREIGN, tokens.raw["access_token"])


@pytest.mark.parametrize(
    ("claims", "typ", "reason"),
    [
        ({"iss": ISSUER}, "at+jwt", Reason.ACCESS_TOKEN_FOREIGN),
        ({"aud": [USERINFO]}, "at+jwt", Reason.ACCESS_TOKEN_AUDIENCE),
        ({"aud": [f"{ISSUER}/api"]}, "at+jwt", Reason.ACCESS_TOKEN_AUDIENCE),
        ({"aud": f"{ISSUER}/api/v1"}, "at+jwt", Reason.ACCESS_TOKEN_AUDIENCE),
        ({"sub": "api-2"}, "at+jwt", Reason.ACCESS_TOKEN_FOREIGN),
        ({"entity_id": 1}, "at+jwt", Reason.ACCESS_TOKEN_FOREIGN),
        ({"cnf": None}, "at+jwt", Reason.ACCESS_TOKEN_KEY),
        ({}, "JWT", Reason.ACCESS_TOKEN_FOREIGN),
    ],
    ids=str,
)
def test_what_the_provider_signed_for_something_else_is_refused(
    api: ApiCaller, claims: dict[str, Any], typ: str, reason: Reason
) -> None:
    """RFC 9068 §4, D59: one key ring signs for both servers, so the claims keep them apart."""
    import msgspec

    _, known = peek(api.access_token())
    provider = api.world.provider
    ring = api.world.run(provider.signing_keys.keys_at(api.clock())).ring
    forged = ring.sign(msgspec.json.encode({**(known or {}), **claims}), typ)
    refused(api, InvalidToken, reason, forged)


def test_nonces_are_demanded_of_calls_too(worlds: Worlds) -> None:
    """RFC 9449 §8, D7."""
    world = worlds.fresh(dpop_nonces=True)
    api = registers(world)
    nonce = api.ask().headers["dpop-nonce"]
    answer = api.ask({"DPoP": api.proof("POST", f"{ISSUER}/api/token", nonce=nonce)})
    token = answer.json()["access_token"]
    with pytest.raises(UseDPoPNonce):
        api.verified(token)
    api.verified(token, nonce=nonce)
