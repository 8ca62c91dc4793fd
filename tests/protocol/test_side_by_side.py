"""CURRENT and LEGACY side by side: nobody is led from one into the other (Spec "Side by side", Spec "No downgrade")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corpid import settings
from corpid.settings.fields import SettingsError
from corpid_dev.relying_party.interfaces import INTERFACES
from tests.protocol.deployment import ISSUER, TOKEN, USERINFO
from tests.protocol.refusals import error_page, json_refusal, resource_refusal, told, told_error
from tests.world.clients import CALLBACK, FAR
from tests.world.clock import NOON

if TYPE_CHECKING:
    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

LEGACY = INTERFACES["legacy"]
BOTH: dict[str, Any] = {"generations": ("legacy", "current"), "legacy_until": FAR}
UNKNOWN = f"urn:ietf:params:oauth:request_uri:{'A' * 43}"
OTHER_URI = "https://rp.example/other?kept=1"


@pytest.fixture
def world(worlds: Worlds) -> World:
    """Both are served, as a migration needs it; Alice is signed in, and no client is marked for LEGACY yet."""
    made = worlds.fresh(generations=("current", "legacy"))
    made.sign_in()
    return made


def both(world: World, client_id: str = "rp-1", **changes: Any) -> tuple[RelyingParty, RelyingParty]:
    """The same client, which may use either: as it pushes, and as it asks in the query."""
    world.registers(client_id, **BOTH, **changes)
    world.rp = world.party(client_id)
    return world.rp, world.party(client_id, interface=LEGACY)


# No downgrade


@pytest.mark.full
@pytest.mark.parametrize(
    "registration",
    [
        {},
        {"generations": ("current",)},
        {"generations": ("current",), "legacy_until": FAR},
        {"generations": ("legacy", "current")},
        {"generations": ("legacy", "current"), "legacy_until": "2027-01-14"},
    ],
)
@pytest.mark.parametrize(
    "sent",
    [
        {}, {"prompt": "none"}, {"response_mode": "fragment"}, {"response_mode": "form_post"}, {"response_mode": "jwt"}, {"request": "x"},
        {"request_uri": ""}, {"request_uri": "https://rp.example/object"}, {"request_uri": UNKNOWN}, {"request_uri": [UNKNOWN, UNKNOWN]},
        {"scope": "openid entity.identity"}, {"redirect_uri": "https://evil.example/"}, {"redirect_uri": [CALLBACK, CALLBACK]},
    ],
)  # fmt: skip
def test_a_client_that_is_not_marked_is_never_driven_through_the_front_channel(
    world: World, registration: dict[str, Any], sent: dict[str, Any]
) -> None:
    """Whatever the query holds it is an error page, never a redirect, also for a browser that is signed in."""
    world.registers(**registration)
    url = world.asked(world.party(interface=LEGACY), state="st4te", **sent)
    for browser in (world.browser, world.new_browser()):
        with world.nothing_spent():
            error_page(world.get(url, browser), hides=("st4te", "evil.example"))


def test_a_client_that_lists_only_legacy_cannot_push(world: World) -> None:
    """Spec "Generations": unauthorized_client 400; nothing is spent."""
    rp = world.registers(generations=("legacy",), legacy_until=FAR)
    with world.nothing_spent():
        json_refusal(world.push(rp, state="s"), 400, "unauthorized_client", state="s")


def test_one_client_uses_both_in_one_browser(world: World) -> None:
    """Spec "Generations": over the same users, keys and directory."""
    pushing, asking = both(world)
    modern, old = world.tokens(pushing), world.tokens(asking)
    assert (modern.raw["token_type"], old.raw["token_type"]) == ("DPoP", "Bearer")
    assert world.run(pushing.userinfo())["auth_info"] == world.run(asking.userinfo())["AuthInfo"]


# Parameters mixed between the channels


@pytest.mark.parametrize("marked", [True, False])
def test_what_was_pushed_is_never_overridden_by_the_query(world: World, marked: bool) -> None:
    """D16: extra query parameters are ignored, never trusted."""
    pushing = both(world)[0] if marked else world.rp
    pushing.restart()
    asked = world.asked(pushing, scope="openid")
    assert "request_uri=" in asked
    foreign = world.party(interface=LEGACY).request_parameters()
    mixed = {**foreign, "redirect_uri": OTHER_URI, "response_mode": "fragment", "prompt": "login", "max_age": "0"}
    answer = world.get(pushing.authorization_url(**mixed))
    found = told(answer, "query", uri=CALLBACK)
    assert found.keys() == {"code", "state"}
    assert found["state"] == pushing.sign_in.state
    assert found["code"].startswith("c")
    pushing.scope = "openid"
    tokens = world.run(pushing.believe(world.redeem(found["code"], pushing)))
    assert tokens.id_token["nonce"] == pushing.sign_in.nonce
    assert tokens.scope == "openid"


@pytest.mark.parametrize("whose", ["another client's", "nobody's", "one that has expired"])
def test_a_reference_that_leads_nowhere_is_not_replaced_by_the_query_beside_it(world: World, whose: str) -> None:
    """D16: unknown or another client's request_uri is an error page; expired is told where it was pushed to."""
    pushing, asking = both(world)
    other = both(world, "rp-2")[0]
    owner = other if whose == "another client's" else pushing
    world.asked(owner, state="st4te")
    request_uri = UNKNOWN if whose == "nobody's" else owner.sign_in.request_uri
    world.clock.now += 61 if whose == "one that has expired" else 0
    world.run(asking.discover())
    answer = world.get(asking.authorization_url(request_uri=request_uri, response_mode="form_post", state="0ther"))
    if whose == "one that has expired":
        told_error(answer, "invalid_request_uri", state="st4te")
    else:
        error_page(answer, hides=("0ther",))


def test_a_foreign_reference_beside_the_query_of_a_marked_client_is_not_supported(world: World) -> None:
    """D14: there it would be a request object by reference."""
    _, asking = both(world)
    url = world.asked(asking, state="st4te", request_uri="https://rp.example/object")
    told_error(world.get(url), "request_uri_not_supported", state="st4te")


# Codes


@pytest.mark.parametrize(
    ("generation", "prefix"), [*(("current", letter) for letter in "lifx"), *(("legacy", letter) for letter in "cifx")]
)
@pytest.mark.parametrize("proven", [True, False])
def test_a_code_under_another_letter_yields_nothing_and_harms_nothing(
    world: World, generation: str, prefix: str, proven: bool
) -> None:
    """Spec "The generation of a token request": the first character names the generation and is part of the hashed key."""
    rp = dict(zip(("current", "legacy"), both(world), strict=True))[generation]
    code = world.code(rp)
    headers = {"DPoP": world.rp.proof("POST", TOKEN, key=rp.sign_in.dpop_key) if proven else None}
    answer = world.redeem(prefix + code[1:], rp, headers=headers)
    needs_proof = prefix != "l"
    json_refusal(answer, 400, "invalid_request" if needs_proof and not proven else "invalid_grant")
    found = world.run(rp.believe(world.redeem(code, rp)))
    assert found.raw["token_type"] == rp.interface.scheme
    assert world.userinfo(rp).status_code == 200


def test_each_code_wants_what_its_generation_wants(world: World) -> None:
    """Spec "Generations": a DPoP header beside a LEGACY code is not looked at; none beside a CURRENT one: D6."""
    pushing, asking = both(world)
    tokens = world.redeem(world.code(asking), asking, headers={"DPoP": pushing.proof("POST", TOKEN)})
    assert (tokens.status_code, tokens.json()["token_type"]) == (200, "Bearer")
    modern = world.code(pushing)
    with world.nothing_spent():
        json_refusal(world.redeem(modern, pushing, headers={"DPoP": None}), 400, "invalid_request")
    assert world.redeem(modern, pushing).status_code == 200


@pytest.mark.parametrize(
    "change", [{"generations": ("current",)}, {"generations": ("legacy", "current"), "legacy_until": "2027-01-14"}]
)
def test_a_client_that_left_redeems_no_legacy_code(world: World, change: dict[str, Any]) -> None:
    """Spec "The order of a request": client still lists the generation; the code is spent."""
    _, asking = both(world)
    code = world.code(asking)
    world.registers(**change)
    json_refusal(world.redeem(code, asking), 400, "invalid_grant")
    world.registers(**BOTH)
    json_refusal(world.redeem(code, asking), 400, "invalid_grant")


def test_a_code_that_is_written_on_the_last_day_is_not_redeemed_after_it(world: World) -> None:
    """Spec "Generations": an end date is the end of everything that came from it."""
    world.registers(generations=("legacy", "current"), legacy_until="2027-01-15")
    asking = world.party(interface=LEGACY)
    world.clock.now = NOON + 16 * 3600 - 30
    code = world.code(asking)
    world.clock.now += 30
    json_refusal(world.redeem(code, asking), 400, "invalid_grant")


def test_what_a_deployment_asks_of_proofs_concerns_no_legacy_code(worlds: Worlds) -> None:
    """D6, D7: neither server nonces nor another error for a wrong key, with a proof beside the code and without."""
    world = worlds.fresh(generations=("current", "legacy"), dpop_nonces=True, dpop_mismatch_error="invalid_dpop_proof")
    world.registers("rp-1", **BOTH)
    asking = world.party("rp-1", interface=LEGACY)
    for headers in ({"DPoP": asking.proof("POST", TOKEN)}, None):
        answer = world.redeem(world.code(asking), asking, headers=headers)
        assert "dpop-nonce" not in answer.headers
        world.run(asking.believe(answer))
    assert "dpop-nonce" not in world.userinfo(asking).headers


# Tokens


def test_a_token_of_the_wrong_kind_is_invalid_token(world: World) -> None:
    """D25: a bound one under Bearer at authorization-info, an unbound one under DPoP at userinfo."""
    pushing, asking = both(world)
    bound, bearer = world.tokens(pushing).access_token, world.tokens(asking).access_token
    bearer_challenge = f'Bearer realm="{ISSUER}"'
    resource_refusal(world.userinfo(asking, token=bound), 401, "invalid_token", bearer_challenge)
    proof = pushing.proof("GET", USERINFO, bearer)
    resource_refusal(world.userinfo(pushing, token=bearer, DPoP=proof), 401, "invalid_token")
    for rp, token, scheme in ((asking, bound, "DPoP"), (pushing, bearer, "Bearer")):
        answer = world.userinfo(rp, Authorization=f"{scheme} {token}")
        assert (answer.status_code, answer.content) == (401, b"")
        assert len(answer.headers.get_list("www-authenticate")) == 1


def test_each_generation_tells_only_its_own_claims(world: World) -> None:
    """D2, R-12.2: the same client, person and entity."""
    pushing, asking = both(world)
    modern, old = world.tokens(pushing).id_token, world.tokens(asking).id_token
    ours = {"sub_type", "entity", "act", "sub_attributes", "acr"}
    theirs = {"userInfo", "entityInfo"}
    assert not ours & old.keys()
    assert theirs <= old.keys()
    assert not theirs & modern.keys()
    assert modern["sub"] in old["sub"]


# iss, and what cannot be served together


@pytest.mark.parametrize(("setting", "returns"), [(None, False), (True, True), (False, False)])
def test_one_iss_flag_governs_the_callbacks_of_both(worlds: Worlds, setting: bool | None, returns: bool) -> None:
    """Spec "Side by side": CURRENT's document, and RFC 9207 §2.4; errors too."""
    world = worlds.fresh(generations=("current", "legacy"), return_iss=setting)
    world.sign_in()
    published = world.run(world.rp.discover(again=True))["authorization_response_iss_parameter_supported"]
    assert published is returns
    expected = ISSUER if returns else None
    for rp in both(world):
        assert told(world.get(world.asked(rp))).get("iss") == expected
    refused = world.get(world.asked(rp, state="st4te", request="x"))
    told_error(refused, "request_not_supported", state="st4te", iss=expected)


@pytest.mark.parametrize(
    "generations",
    ["fapi2,legacy", "legacy,fapi2", "current,intermediate", "current,fapi2", "legacy,legacy", "older", ","],
)
def test_what_cannot_be_served_together_does_not_start(generations: str, tmp_path: Any) -> None:
    """Spec "Side by side": FAPI2 together with LEGACY refuses to start; at most one pushed generation."""
    with pytest.raises(SettingsError, match="generation"):
        settings.load(data_dir=tmp_path, generations=generations)
