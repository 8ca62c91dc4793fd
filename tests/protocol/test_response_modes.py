"""How an answer of LEGACY comes: query, fragment or form_post (Spec "Generations"; D17, D37, D38; OAuth 2.0 Form Post)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import parse
from corpid_dev.relying_party.people import Person
from corpid_dev.relying_party.verification import Callback
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.refusals import is_public, told, told_error
from tests.world.clients import CALLBACK

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.relying_party import RelyingParty
    from tests.protocol.provider import World, Worlds

MODES = ["query", "fragment", "form_post"]
URIS = [CALLBACK, "https://rp.example/other?kept=1"]
NASTY = "\"><script>alert('1')</script>&amp;</form><input name=code value=x> #?=+%41\\"


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY with single sign-on; nobody is signed in."""
    return worlds.fresh(generations=("legacy",))


def asking(world: World, mode: str | None, uri: str = CALLBACK, **parameters: Any) -> RelyingParty:
    world.rp = world.party(response_mode=mode, redirect_uri=uri, parameters=parameters)
    return world.rp


def leaving(world: World, url: str, user: str = "alice") -> str:
    """Sign in through the pages; the completing URL, which answers for sixty seconds."""
    page = world.run(world.browser.open(url))
    assert page.heading == "Sign in"
    where = world.browser.url
    person = Person(user_name=user, password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    world.run(people.finish(world.browser, person, now=world.clock))
    return f"{where}/leave"


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("mode", MODES)
def test_a_code_comes_as_it_was_asked_for_and_a_registered_query_is_kept(world: World, mode: str, uri: str) -> None:
    """D38; the strict relying party believes it, from the pages and by single sign-on."""
    rp = asking(world, mode, uri)
    callback = world.sign_in(rp)
    assert isinstance(callback, Callback)
    assert {name for name, pairs in callback.carried().items() if dict(pairs).keys() - {"kept"}} == {mode}
    assert parse_qs(urlsplit(callback).query).get("kept") == (["1"] if "kept" in uri else None)
    assert world.run(rp.redeem(callback)).raw["token_type"] == "Bearer"
    rp.restart()
    found = told(world.get(world.asked(rp)), mode, uri=uri)
    assert found.keys() == {"code", "state", "iss"}
    assert (found["state"], found["iss"]) == (rp.sign_in.state, ISSUER)
    assert world.redeem(found["code"], rp).status_code == 200


def test_without_response_mode_it_is_the_query(world: World) -> None:
    """OAuth 2.0 Multiple Response Type Encoding Practices §2.1: the default of response_type code."""
    callback = world.sign_in(asking(world, None))
    assert world.run(world.rp.redeem(callback)).raw["token_type"] == "Bearer"


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize("mode", MODES)
def test_cancel_is_access_denied_in_the_same_mode(world: World, mode: str, uri: str) -> None:
    """D17: with state and iss."""
    rp = asking(world, mode, uri)
    world.run(world.browser.open(world.asked(rp)))
    callback = world.run(people.cancel(world.browser))
    carried = {name: dict(pairs) for name, pairs in callback.carried().items()}
    found = carried.pop(mode)
    assert not {name for pairs in carried.values() for name in pairs} - {"kept"}
    assert found.pop("kept", None) == ("1" if mode == "query" and "kept" in uri else None)
    is_public(found.pop("error_description"), "access_denied")
    assert found == {"error": "access_denied", "state": rp.sign_in.state, "iss": ISSUER}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("error", "sent"),
    [
        ("request_not_supported", {"request": "x"}),
        ("invalid_request", {"response_type": "token"}),
        ("invalid_request", {"scope": ["openid", "openid"]}),
        ("invalid_request", {"nonce": "%zz", "max_age": "x"}),
        ("invalid_scope", {"scope": "openid nothing"}),
        ("login_required", {"prompt": "none"}),
    ],
)
def test_an_error_comes_in_the_mode_that_was_asked_for(
    world: World, mode: str, error: str, sent: dict[str, Any]
) -> None:
    """Afterwards callbacks with `state` in the requested response mode."""
    url = world.asked(response_mode=mode, state="st4te", **sent)
    with world.nothing_spent():
        told_error(world.get(url, world.new_browser()), error, state="st4te", mode=mode, iss=ISSUER)


@pytest.mark.parametrize("asked", [["fragment", "fragment"], ["form_post", ""], "jwt", "FRAGMENT", "fragment "])
def test_a_mode_that_is_not_served_or_repeated_is_told_by_query(world: World, asked: Any) -> None:
    """Spec "Unserved modes and endpoints": unserved or unknown response_mode: invalid_request, by query."""
    answer = world.get(world.asked(response_mode=asked, state="st4te"), world.new_browser())
    told_error(answer, "invalid_request", state="st4te", iss=ISSUER)


@pytest.mark.parametrize("mode", MODES)
def test_the_completing_url_repeats_the_same_answer_for_sixty_seconds(world: World, mode: str) -> None:
    """D15: then it is access_denied, in the same mode; the code stays good once."""
    asking(world, mode, state="st4te")
    where = leaving(world, world.asked())
    start = world.clock.now
    codes = set()
    for later in (0, 30, 59.9):
        world.clock.now = start + later
        with world.nothing_spent():
            codes.add(told(world.get(where), mode)["code"])
    assert len(codes) == 1
    assert world.redeem(codes.pop()).status_code == 200
    world.clock.now = start + 60
    with world.nothing_spent():
        told_error(world.get(where), "access_denied", state="st4te", mode=mode, iss=ISSUER)
    assert world.get(where, world.new_browser()).status_code in (403, 404)


# The page of form_post


def test_the_page_says_who_is_answered_in_the_language_that_they_asked_for(world: World) -> None:
    """OpenID Connect Core §3.1.2.1: after a sign-in, by single sign-on, and with an error."""
    asking(world, "form_post", ui_locales="ta")
    world.run(world.browser.open(world.asked()))
    where = world.browser.url
    person = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    world.run(people.finish(world.browser, person, now=world.clock))
    addresses = (f"{where}/leave", world.asked(), world.asked(scope="openid nothing"))
    answers = [world.get(address) for address in addresses]
    for answer in answers:
        assert answer.headers["content-language"] == "ta"
        assert world.client().name in answer.text
    assert ["Harbour Works Pte. Ltd." in answer.text for answer in answers] == [True, True, False]


def form_post(world: World, **sent: Any) -> httpx.Response:
    """The page that a signed-in browser gets from authorize."""
    world.sign_in(world.party())
    return world.get(world.asked(response_mode="form_post", **sent))


def test_the_page_may_post_anywhere_and_runs_one_script_of_our_own(world: World) -> None:
    """D36, D37: no form-action, else browsers would refuse the relying party's redirects; nothing inline."""
    answer = form_post(world)
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        **dict.fromkeys(("script-src", "style-src", "img-src", "font-src", "connect-src"), "'self'"),
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    scripts = re.findall(r"<script\b([^>]*)>([^<]*)</script>", answer.text)
    assert {content for _, content in scripts} == {""}
    assert not re.search(r"\son[a-z]+=|javascript:", answer.text)
    (sources,) = [source for source in scripts if "form_post" in source[0]]
    source = re.search(r'src="([^"]+)"', sources[0])
    assert source is not None
    script = world.run(world.http.get(f"{ISSUER}{source[1]}"))
    assert (script.status_code, script.headers["content-type"].partition(";")[0]) == (200, "text/javascript")
    assert "submit()" in script.text


def test_every_other_page_keeps_form_action(world: World) -> None:
    """D36."""
    page = world.run(world.new_browser().http.get(world.asked(response_mode="form_post"), follow_redirects=True))
    assert "form-action 'self'" in page.headers["content-security-policy"]
    refused = world.get(world.asked(response_mode="form_post", client_id="nobody"))
    assert "form-action 'self'" in refused.headers["content-security-policy"]


def test_the_page_works_without_a_script(world: World) -> None:
    """D37: a visible Continue button, and hidden fields only."""
    (form,) = parse(form_post(world).text).forms
    assert [(button.label, button.name) for button in form.buttons] == [("Continue", "")]
    assert {control.kind for control in form.controls} == {"hidden"}
    assert {control.name for control in form.controls} == {"code", "state", "iss"}


@pytest.mark.parametrize("state", [NASTY, "'\"`<>&", "</script><script>", "{{7*7}}", "x" * 2048])
@pytest.mark.parametrize("fails", [False, True])
def test_no_state_breaks_out_of_its_hidden_field(world: World, state: str, fails: bool) -> None:
    """D13: returned whole, also beside an error."""
    sent = {"scope": "openid nothing"} if fails else {}
    answer = form_post(world, state=state, **sent)
    found = told(answer, "form_post")
    assert found["state"] == state
    assert found.keys() == ({"error", "error_description"} if fails else {"code"}) | {"state", "iss"}
    assert "<" not in state or state not in answer.text
    assert answer.text.count("<script") == form_post(world, state="plain").text.count("<script")


@pytest.mark.parametrize("state", [NASTY, "".join(map(chr, range(0x20, 0x7F)))])
@pytest.mark.parametrize("mode", MODES)
def test_state_is_returned_whole_in_every_mode(world: World, mode: str, state: str) -> None:
    """D13; and no header or page is split by it."""
    world.sign_in(world.party())
    assert told(world.get(world.asked(response_mode=mode, state=state)), mode)["state"] == state


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("returns", [True, False])
def test_iss_is_in_every_mode_exactly_where_discovery_says_so(worlds: Worlds, mode: str, returns: bool) -> None:
    """RFC 9207 §2; a setting overrides the generation's."""
    world = worlds.fresh(generations=("legacy",), return_iss=returns)
    published = world.run(world.rp.discover(again=True))["authorization_response_iss_parameter_supported"]
    assert published is returns
    world.sign_in()
    expected = ISSUER if returns else None
    assert told(world.get(world.asked(response_mode=mode)), mode).get("iss") == expected
    refused = world.get(world.asked(response_mode=mode, state="st4te", request="x"))
    told_error(refused, "request_not_supported", state="st4te", mode=mode, iss=expected)
