"""An authorization request in the query: each rule, and where its refusal goes (R-10.2; Spec "The order of a request", D14, D16)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.oauth.authorization_request import PARAMETERS
from tests.protocol.deployment import AUTHORIZE, ISSUER
from tests.protocol.provider import World, Worlds
from tests.protocol.refusals import LOG, error_page, told, told_error
from tests.world.clients import CALLBACK, FAR, rp_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "m4rkedV4lue"
SIGNING_ONLY = json.dumps({"keys": [key for key in rp_keys("rp-1").public()["keys"] if key["use"] == "sig"]})


@pytest.fixture(scope="module")
def legacy() -> Iterator[World]:
    """A provider of LEGACY alone, for tests that leave it as it was."""
    with World(generations=("legacy",)) as made:
        yield made


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A provider of LEGACY alone, of the test's own."""
    return worlds.fresh(generations=("legacy",))


def marked(world: World, **changes: Any) -> None:
    world.registers(**{"generations": ("legacy",), "legacy_until": FAR, **changes})


def refused(world: World, error: str, /, **sent: Any) -> str:
    """The client is told by query, nothing is spent, and nobody gets a cookie."""
    url = world.asked(state="st4te", **sent)
    with world.nothing_spent():
        return told_error(world.get(url, world.new_browser()), error, state="st4te", iss=ISSUER)


def shown_page(world: World, /, **sent: Any) -> None:
    """An error page, which repeats nothing; nothing is spent."""
    url = world.asked(**{"state": MARK, **sent})
    with world.nothing_spent():
        error_page(world.get(url, world.new_browser()), hides=(MARK, "evil.example"))


def enters(world: World, /, **sent: Any) -> None:
    answer = world.get(world.asked(**sent), world.new_browser())
    assert answer.status_code == 303, answer.headers
    assert answer.headers["location"].startswith("/sign-in/")


# Before the redirect URI is proven


@pytest.mark.parametrize("client_id", [None, "", ["rp-1", "rp-1"], ["rp-1", MARK], "nobody", "RP-1", "<b>bold</b>"])
def test_a_client_that_cannot_be_told_is_an_error_page(legacy: World, client_id: Any) -> None:
    """D16: client_id missing or repeated, unknown client."""
    shown_page(legacy, client_id=client_id)


@pytest.mark.parametrize(
    "redirect_uri",
    [
        None, "", [CALLBACK, CALLBACK], [CALLBACK, "https://evil.example/"], ["https://evil.example/", CALLBACK], [CALLBACK, ""],
        "https://evil.example/", f"{CALLBACK}/", f"{CALLBACK}?x=1", f"{CALLBACK}#", CALLBACK.upper(), f" {CALLBACK}",
        "https://rp.example/other", "https://rp.example/other?kept=2", "http://rp.example/callback", f"{CALLBACK}\x00",
    ],
)  # fmt: skip
def test_a_redirect_uri_that_is_not_proven_is_an_error_page(legacy: World, redirect_uri: Any) -> None:
    """Spec "The order of a request": once and registered; D38: exact string match."""
    shown_page(legacy, redirect_uri=redirect_uri)


@pytest.mark.parametrize("request_uri", [[MARK, MARK], ["urn:ietf:params:oauth:request_uri:x", MARK], [MARK, ""]])
def test_a_repeated_request_uri_is_an_error_page(legacy: World, request_uri: Any) -> None:
    """D16: request_uri repeated."""
    shown_page(legacy, request_uri=request_uri)


@pytest.mark.parametrize(
    "broken", ["%ff=x", "redirect_uri=%zz", "redirect_uri=%ff", "redirect_uri=https://rp.example/\xe9"]
)
def test_what_cannot_be_decoded_before_the_redirect_uri_is_known_is_an_error_page(legacy: World, broken: str) -> None:
    """D14, D16."""
    error_page(legacy.get(f"{AUTHORIZE}?client_id=rp-1&{broken}", legacy.new_browser()))


@pytest.mark.parametrize(
    "changes",
    [
        {"enabled": False},
        {"generations": (), "legacy_until": None},
        {"generations": ("current",), "legacy_until": None},
        {"generations": ("current",)},
        {"legacy_until": None},
        {"redirect_uris": ("https://rp.example/new",)},
    ],
)
def test_a_client_that_is_disabled_or_not_marked_is_an_error_page(world: World, changes: dict[str, Any]) -> None:
    """Spec "The order of a request": known, enabled, marked for LEGACY; no downgrade: never a redirect."""
    enters(world)
    marked(world, **changes)
    shown_page(world)
    shown_page(world, response_mode="form_post", prompt="none", scope=MARK)


@pytest.mark.parametrize(
    ("zone", "last_second"), [("UTC", 16 * 3600 - 1), ("Asia/Singapore", 8 * 3600 - 1), ("America/Lima", 21 * 3600 - 1)]
)
def test_the_last_day_is_included_and_ends_in_the_time_zone_of_the_deployment(
    worlds: Worlds, zone: str, last_second: int
) -> None:
    """Spec "The order of a request": before its end date; the clock begins at 2027-01-15 08:00 UTC."""
    world = worlds.fresh(generations=("legacy",), timezone=zone)
    begun = world.clock.now
    marked(world, legacy_until="2027-01-15")
    world.clock.now = begun + last_second
    enters(world)
    world.clock.now = begun + last_second + 1
    shown_page(world)
    marked(world, legacy_until="2027-01-16")
    enters(world)


# Afterwards


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        ("request_not_supported", {"request": MARK}),
        ("request_not_supported", {"request": "e30.e30."}),
        ("request_uri_not_supported", {"request_uri": "https://rp.example/object"}),
        ("request_uri_not_supported", {"request_uri": f"urn:ietf:params:oauth:request_uri:{'A' * 43}"}),
    ],
)
def test_request_objects_are_not_supported(legacy: World, error: str, sent: dict[str, str]) -> None:
    """D14; OpenID Connect Core §3.1.2.6."""
    refused(legacy, error, **sent)


def test_a_query_cannot_speak_to_the_person(legacy: World) -> None:
    """R-10.2, D12, D14: anybody can write a query, so what only a push may hold is ignored like any unknown parameter."""
    said = "Account locked. Call 1800 555 0100 now"
    pushed_only = [each.name for each in PARAMETERS if each.pushed_only]
    assert {"authentication_context_message", "authentication_context_type"} <= {*pushed_only}
    for name in pushed_only:
        more: dict[str, Any] = {name: said}
        answer = legacy.get(legacy.asked(**more), legacy.new_browser())
        assert answer.status_code == 303, answer.text
    browser = legacy.new_browser()
    page = legacy.run(browser.http.get(legacy.asked(authentication_context_message=said), follow_redirects=True))
    assert page.status_code == 200
    assert "Account locked" not in page.text


@pytest.mark.parametrize(
    "name",
    [
        "response_type", "scope", "nonce", "code_challenge", "code_challenge_method", "acr_values", "response_mode",
        "prompt", "max_age", "request",
    ],
)  # fmt: skip
@pytest.mark.parametrize("second", ["the same", "x", ""])
def test_a_repeated_parameter_is_invalid_request(legacy: World, name: str, second: str) -> None:
    """RFC 6749 §3.1, D14: also with the same value, also without one."""
    first = legacy.rp.request_parameters().get(name, "1")
    sentence = refused(legacy, "invalid_request", **{name: [first, first if second == "the same" else second]})
    assert sentence == f"parameter {name} is repeated"


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        *(("invalid_request", {"response_type": value}) for value in (None, "", "token", "code id_token", "id_token", "CODE", "none")),
        *(("invalid_request", {"response_mode": value}) for value in ("jwt", "query.jwt", "QUERY", "web_message", "x" * 99)),
        *(("invalid_request", {"code_challenge": value}) for value in (None, "", "A" * 42, "A" * 44, "A" * 42 + "=", "A" * 42 + "B", "+" * 43)),
        *(("invalid_request", {"code_challenge_method": value}) for value in (None, "", "plain", "s256", "S512")),
        *(("invalid_request", {"nonce": value}) for value in ("n" * 513, "é", "a\nb")),
        *(("invalid_request", {"scope": value}) for value in (None, "")),
        *(("invalid_request", {"prompt": value}) for value in ("none login", "NONE", "create")),
        *(("invalid_request", {"max_age": value}) for value in ("-1", "1.5", "soon", "9" * 10)),
        *(
            ("invalid_scope", {"scope": value})
            for value in ("authinfo", "openid  authinfo", " openid", "openid offline_access", "OPENID")
        ),
    ],
)  # fmt: skip
def test_a_parameter_that_is_missing_or_malformed_is_told_to_the_client(
    legacy: World, error: str, sent: dict[str, str | None]
) -> None:
    """R-10.2; PKCE required, S256 only (Spec "Generations"); D5, D10, D11, D12, D13, D14, D18, D40."""
    refused(legacy, error, **sent)


@pytest.mark.parametrize(
    "scope",
    ["entity.identity", "entity.basic_profile.name", "entity.basic_profile.uen_status", "user.identity", "user.name"],
)
def test_scopes_of_later_generations_are_invalid_scope_even_for_a_client_that_lists_them(
    legacy: World, scope: str
) -> None:
    """Spec "Generations": LEGACY has openid, authinfo, tpauthinfo."""
    refused(legacy, "invalid_scope", scope=f"openid {scope}")


@pytest.mark.parametrize(
    "sent",
    [
        {"state": None}, {"nonce": None}, {"state": None, "nonce": None}, {"state": ""}, {"scope": "openid"}, {"scope": "tpauthinfo openid"},
        {"acr_values": "urn:idp:authentication:loa:9"}, {"esrvcID": "X"}, {"esrvcID": ["X", "Y"]}, {"display": ["page", "popup"]},
        {"dpop_jkt": "A" * 43}, {"client_assertion": MARK}, {"login_hint": "%"}, {"ui_locales": "xx !! ta"}, {"request": ""}, {"request_uri": ""}, {"response_mode": ""},
    ],
)  # fmt: skip
def test_what_may_be_absent_and_what_is_not_known_stops_nobody(legacy: World, sent: dict[str, Any]) -> None:
    """Spec "Generations": nothing is required beyond OAuth; D10; D14: unknown ones, repeated or not, are ignored."""
    enters(legacy, **sent)


@pytest.mark.parametrize(
    ("state", "echoed"),
    [
        (None, None),
        ("", None),
        (["st4te", "st4te"], None),
        (["st4te", ""], None),
        ("é", None),
        ("a\nb", None),
        ("s" * 2049, None),
        ("s" * 2048, "s" * 2048),
        ("".join(map(chr, range(0x20, 0x7F))), "".join(map(chr, range(0x20, 0x7F)))),
    ],
)
def test_state_is_echoed_if_it_was_sent_once_and_is_well_formed(legacy: World, state: Any, echoed: str | None) -> None:
    """D4, D13: the redirect URI is proven, so the client is told in any case."""
    answer = legacy.get(legacy.asked(state=state, response_type="token"), legacy.new_browser())
    told_error(answer, "invalid_request", state=echoed, iss=ISSUER)


@pytest.mark.parametrize("state", ["é", "a\nb", "s" * 2049, ["a", "b"]])
def test_a_state_that_cannot_be_returned_whole_is_invalid_request(legacy: World, state: Any) -> None:
    """D13, D14."""
    answer = legacy.get(legacy.asked(state=state), legacy.new_browser())
    told_error(answer, "invalid_request", state=None, iss=ISSUER)


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        ("invalid_request", {"response_mode": "jwt", "request": MARK}),
        ("invalid_request", {"response_mode": "jwt", "scope": "openid x"}),
        ("request_not_supported", {"request": MARK, "request_uri": MARK}),
        ("request_not_supported", {"request": MARK, "scope": "openid x"}),
        ("invalid_scope", {"scope": "openid x", "response_type": "token"}),
    ],
)
def test_the_first_of_several_failures_answers(legacy: World, error: str, sent: dict[str, str]) -> None:
    """Spec "The order of a request", authorize (LEGACY): response_mode, then content, which begins with request objects."""
    refused(legacy, error, **sent)


# The client's keys


def test_a_key_set_without_a_key_to_encrypt_to_is_invalid_request_before_anybody_signs_in(world: World) -> None:
    """D27: callback invalid_request at LEGACY authorize; after the content (Spec "The order of a request")."""
    marked(world, jwks=SIGNING_ONLY)
    assert "enc" in refused(world, "invalid_request")
    refused(world, "invalid_scope", scope="openid x")
    world.sign_in(world.party("rp-2"))
    marked(world, jwks=SIGNING_ONLY)
    with world.nothing_spent():
        answer = world.get(world.asked(state="st4te"))
        told_error(answer, "invalid_request", state="st4te", iss=ISSUER)


def test_a_key_set_that_cannot_be_fetched_is_server_error(world: World) -> None:
    """Spec 7.2, D27: no set at all; this address is not a public one."""
    marked(world, jwks=None, jwks_uri="https://localhost/keys")
    refused(world, "server_error")
    refused(world, "invalid_scope", scope="openid x")


def test_a_session_answers_an_honest_request_at_once(world: World) -> None:
    """D30: what the refusals above differ from."""
    world.sign_in()
    found = told(world.get(world.asked(state="st4te")))
    assert found.keys() == {"code", "state", "iss"}
    assert found["code"].startswith("l")
    assert len(found["code"]) == 44


def test_nothing_of_a_query_stands_in_the_log(legacy: World) -> None:
    """D48: never a query string, a state, a nonce or a code, in whatever way the request ends."""
    secret: dict[str, Any] = {
        "state": "s3cretState",
        "nonce": "s3cretNonce",
        "acr_values": "s3cretAcr",
        "login_hint": "s3cretHint",
    }
    legacy.sign_in()
    code = told(legacy.get(legacy.asked(**secret)))["code"]
    for wrong in ({}, {"scope": "openid other"}, {"client_id": "another-client"}, {"request": "s3cretObject"}):
        legacy.get(legacy.asked(**{**secret, **wrong}), legacy.new_browser())
    assert b"s3cret" not in LOG.getvalue()
    assert code.encode() not in LOG.getvalue()
