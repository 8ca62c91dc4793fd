"""Any request in a query, and any bearer token, is answered: never by a 500 (R-10.2; Spec 4.5; D14, D16, D24, D25)."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import strategies as st

from corpid.jose.encoding import base64url
from corpid.jose.key_ring import ACCESS_TOKEN
from corpid.rules.oauth import tokens as token_rules
from corpid.rules.oauth.authorization_request import REQUEST_PARAMETERS
from corpid.rules.oauth.discovery import AUTHORIZATION_PATH, TOKEN_PATH
from corpid.rules.oauth.token_request import TOKEN_PARAMETERS
from corpid.rules.oauth.tokens import LegacyClaims, Parties
from tests.fuzz.examples import TIERS, hold, tokens
from tests.fuzz.provider import (
    FORM,
    HEADERS,
    ISSUER,
    LINES,
    NAMES,
    Asked,
    World,
    form,
    header_value,
    proofs,
    with_assertion,
)
from tests.unit.jose.signed import key
from tests.unit.rules.oauth.given import CLIENT, NOW, PARAMETERS, VERIFIER, grant

pytestmark = pytest.mark.full

MODES = st.sampled_from(["query", "fragment", "form_post", "jwt", ""])
PROMPTS = st.sampled_from(["none", "login", "consent"])


@pytest.mark.parametrize("examples", TIERS)
def test_requests_in_the_query_that_are_nearly_right(world: World, examples: int) -> None:
    """In each response mode, of which the one that posts answers with a page."""
    statuses = set()
    asked = st.fixed_dictionaries({}, optional={"response_mode": MODES, "prompt": PROMPTS})
    queries = asked.flatmap(lambda more: form({**PARAMETERS, **more}, REQUEST_PARAMETERS))
    requests = st.builds(
        Asked,
        method=st.sampled_from(["GET", "GET", "HEAD", "POST"]),
        path=st.just(AUTHORIZATION_PATH.encode()),
        query=queries,
        headers=st.lists(st.tuples(NAMES.filter(lambda name: name != b"host"), LINES), max_size=2).map(
            lambda found: [FORM, *found]
        ),
        body=queries,
    )
    for more, status in (
        ({}, 303),
        ({"prompt": "none"}, 302),
        ({"prompt": "none", "response_mode": "form_post"}, 200),
        ({"client_id": "nobody"}, 400),
    ):
        honest = urlencode({**PARAMETERS, **more}).encode()
        assert world.answered(Asked(method="GET", path=AUTHORIZATION_PATH.encode(), query=honest, headers=[])) == status
    hold(examples, requests, lambda request: statuses.add(world.answered(request)))
    assert {302, 303} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_token_requests_with_a_code_of_legacy_that_are_nearly_right(world: World, examples: int) -> None:
    statuses = set()
    valid = {
        "grant_type": "authorization_code", "code": "l" + "x" * 43, "code_verifier": VERIFIER,
        "redirect_uri": CLIENT.redirect_uris[0],
    }  # fmt: skip
    proof = proofs("POST", TOKEN_PATH).map(lambda one: [(b"dpop", one)])
    asked = st.builds(
        Asked,
        method=st.just("POST"),
        path=st.just(TOKEN_PATH.encode()),
        headers=(st.just([]) | proof).map(lambda more: [FORM, *more]),
        body=with_assertion(valid, TOKEN_PARAMETERS),
    )
    hold(examples, asked, lambda request: statuses.add(world.answered(request)))
    assert {400, 401} <= statuses


@pytest.mark.parametrize("examples", TIERS)
def test_bearer_tokens_that_are_nearly_right(world: World, examples: int) -> None:
    """A packed subject in any shape, a bound token, another scheme, and headers of every kind beside it."""
    ring = world.runner.run(world.application.provider.signing_keys.keys_at(NOW)).ring
    packed = LegacyClaims(sub="s=S1,uuid=user-1,u=200000001AS1,c=SG", attributes={})
    parties = Parties(user_id="user-1", entity_id="200000001A", user_attributes={}, entity_attributes={}, packed=packed)
    claims = token_rules.access_token_claims(
        grant(jkt=None), parties, "user", issuer=ISSUER, audience=[ISSUER + "/authorization-info"],
        token_id=base64url(b"jti"), now=int(NOW),
    )  # fmt: skip
    right = ring.sign(msgspec.json.encode(claims), ACCESS_TOKEN)
    bound = {**claims, "cnf": {"jkt": key().thumbprint()}}
    header = {"typ": "at+jwt", "kid": ring.active.kid}
    texts = st.just(right) | tokens(header, claims, ring.active.private) | tokens(header, bound, ring.active.private)
    statuses = set()

    def check(given: tuple[str, bytes, str, list[tuple[bytes, bytes]]]) -> None:
        method, scheme, text, more = given
        headers = [(b"authorization", scheme + b" " + header_value(text)), *more]
        statuses.add(world.answered(Asked(method=method, path=b"/authorization-info", headers=headers)))

    schemes = st.sampled_from([b"Bearer", b"Bearer", b"bearer", b"DPoP", b"Basic", b""])
    others = HEADERS.map(lambda found: [one for one in found if one[0] != b"host"])
    hold(examples, st.tuples(st.sampled_from(["GET", "POST"]), schemes, texts, others), check)
    assert {200, 401} <= statuses
