"""Any request to any endpoint is answered: never by a 500, never by an exception (Spec 7, D14, D24, D32)."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote_plus

import msgspec
import pytest
from hypothesis import strategies as st

from corpid.jose.encoding import base64url
from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.rules.oauth import tokens as token_rules
from corpid.rules.oauth.authorization_request import PUSHED_PARAMETERS
from corpid.rules.oauth.client_assertion import ASSERTION_TYPE
from corpid.rules.oauth.discovery import AUTHORIZATION_PATH, PAR_PATH, TOKEN_PATH
from corpid.rules.oauth.token_request import TOKEN_PARAMETERS
from corpid.rules.oauth.tokens import Parties
from tests.fuzz.examples import TIERS, hold, tokens
from tests.fuzz.provider import (
    FORM,
    HEADERS,
    ISSUER,
    LINES,
    METHODS,
    NAMES,
    RAW_PATHS,
    Asked,
    World,
    assertion,
    called,
    form,
    header_value,
    proof_claims,
    proofs,
    with_assertion,
)
from tests.unit.jose.signed import key, public_jwk, sign
from tests.unit.rules.oauth.given import CLIENT, NOW, PARAMETERS, VERIFIER, grant

pytestmark = pytest.mark.full


@pytest.mark.parametrize("examples", TIERS)
def test_any_bytes_at_any_endpoint(world: World, examples: int) -> None:
    asked = st.builds(
        Asked,
        method=METHODS,
        path=RAW_PATHS,
        query=LINES
        | st.sampled_from([b"client_id=rp-1&request_uri=urn:ietf:params:oauth:request_uri:x", b"client_id"]),
        headers=HEADERS,
        body=st.binary(max_size=200) | form({}, PUSHED_PARAMETERS),
    )

    def check(request: Asked) -> None:
        world.answered(request)

    hold(examples, asked, check)


@pytest.mark.parametrize("examples", TIERS)
def test_pushed_requests_that_are_nearly_right(world: World, examples: int) -> None:
    statuses = set()
    asked = st.builds(
        Asked,
        method=st.just("POST"),
        path=st.just(PAR_PATH.encode()),
        headers=st.lists(proofs("POST", PAR_PATH), min_size=1, max_size=1).map(
            lambda found: [FORM, (b"dpop", found[0])]
        ),
        body=with_assertion(dict(PARAMETERS), PUSHED_PARAMETERS),
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {201, 400, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_token_requests_that_are_nearly_right(world: World, examples: int) -> None:
    statuses = set()
    valid = {
        "grant_type": "authorization_code", "code": "c" + "x" * 43, "code_verifier": VERIFIER,
        "redirect_uri": CLIENT.redirect_uris[0],
    }  # fmt: skip
    asked = st.builds(
        Asked,
        method=st.just("POST"),
        path=st.just(TOKEN_PATH.encode()),
        headers=proofs("POST", TOKEN_PATH).map(lambda proof: [FORM, (b"dpop", proof)]),
        body=with_assertion(valid, TOKEN_PARAMETERS),
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {400, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_userinfo_with_proofs_and_tokens_that_are_nearly_right(world: World, examples: int) -> None:
    ring = world.runner.run(world.application.provider.signing_keys.keys_at(NOW)).ring
    parties = Parties(user_id="user-1", entity_id="200000001A", user_attributes={}, entity_attributes={})
    claims = token_rules.access_token_claims(
        grant(jkt=key().thumbprint()), parties, "user", issuer=ISSUER, audience=[ISSUER + "/userinfo"],
        token_id=base64url(b"jti"), now=int(NOW),
    )  # fmt: skip
    right = ring.sign(msgspec.json.encode(claims), ACCESS_TOKEN)
    texts = st.just(right) | tokens({"typ": "at+jwt", "kid": ring.active.kid}, claims, ring.active.private)
    statuses = set()

    def check(given: tuple[str, str, bytes]) -> None:
        method, text, proof = given
        headers = [(b"authorization", b"DPoP " + header_value(text)), (b"dpop", proof)]
        statuses.add(world.answered(Asked(method=method, path=b"/userinfo", headers=headers)))

    methods = st.sampled_from(["GET", "POST"])
    ath = base64url(hashlib.sha256(right.encode()).digest())
    given = methods.flatmap(lambda method: st.tuples(st.just(method), texts, proofs(method, "/userinfo", ath=ath)))
    hold(examples, given, check)
    assert {200, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_arrivals_that_are_nearly_right(world: World, examples: int) -> None:
    body = "&".join(
        f"{name}={quote_plus(value)}"
        for name, value in {
            **PARAMETERS,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion(),
        }.items()
    )
    proof = sign(proof_claims("POST", PAR_PATH), typ="dpop+jwt", jwk=public_jwk(key()))
    pushed = Asked(method="POST", path=PAR_PATH.encode(), headers=[FORM, (b"dpop", proof.encode())], body=body.encode())
    status, _, content = world.runner.run(called(world.application, pushed))
    assert status == 201
    valid = {"client_id": "rp-1", "request_uri": json.loads(content)["request_uri"]}
    statuses = set()
    queries = form(valid, frozenset({"client_id", "request_uri", "state"}))
    asked = st.builds(
        Asked,
        method=st.sampled_from(["GET", "HEAD", "POST"]),
        path=st.just(AUTHORIZATION_PATH.encode()),
        query=queries,
        headers=st.lists(st.tuples(NAMES.filter(lambda name: name != b"host"), LINES), max_size=3),
        body=queries,
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {303, 400} <= statuses
