"""Where an error at authorize goes: a page before the redirect URI is proven, the client after it (Spec 4.2, 7.2; D16)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from corpid_dev.relying_party.browser import parse
from tests.protocol.deployment import AUTHORIZE, ISSUER, LIVE
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import is_public, logged
from tests.world.clients import CALLBACK

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.generations(*PUSHED)
UNKNOWN = f"urn:ietf:params:oauth:request_uri:{'A' * 43}"
MARK = "m4rkedV4lue"


def pushed(world: World, **form: Any) -> str:
    """A request_uri of rp-1, fresh."""
    answer = world.push(state="st4te", **form)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["request_uri"])


def error_page(world: World, *pairs: tuple[str, str], status: int = 400) -> httpx.Response:
    """An error page for this query: no redirect, no cookie, no value of the query, and nothing spent."""
    with world.nothing_spent():
        answer = world.get(f"{AUTHORIZE}?{urlencode(pairs)}", world.new_browser())
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "location" not in answer.headers
    assert "set-cookie" not in answer.headers
    assert "st4te" not in answer.text
    for _, value in pairs:
        assert len(value) < 5 or value not in answer.text
    reference = answer.text.partition("eference")[2].partition("<code>")[2].partition("</code>")[0].strip()
    assert logged(reference)["error"]
    return answer


def callback(
    world: World, answer: httpx.Response, error: str, *, uri: str = CALLBACK, state: str = "st4te"
) -> dict[str, str]:
    """An error that the client is told in the query of its redirect URI, with iss where it is on (Spec 7.2, D38)."""
    assert (answer.status_code, answer.content) == (302, b"")
    assert answer.headers.get_list("cache-control") == ["no-store"]
    location = answer.headers["location"]
    assert location.startswith(f"{uri}{'&' if '?' in uri else '?'}")
    told = query(location)
    assert (told["error"], told["state"]) == (error, state)
    assert told.get("iss") == (ISSUER if world.expected.iss else None)
    assert told.keys() - {"kept", "iss"} == {"error", "error_description", "state"}
    is_public(told["error_description"], error)
    return told


@pytest.mark.parametrize("name", ["client_id", "request_uri"])
@pytest.mark.parametrize("how", ["absent", "empty", "repeated", "repeated with the same value"])
def test_a_missing_or_repeated_parameter_is_an_error_page(shared: World, name: str, how: str) -> None:
    """D16: which client's redirect URI would it be?"""
    honest = {"client_id": "rp-1", "request_uri": pushed(shared)}
    more = {
        "absent": [],
        "empty": [(name, "")],
        "repeated": [(name, honest[name]), (name, MARK)],
        "repeated with the same value": [(name, honest[name])] * 2,
    }[how]
    error_page(shared, *((key, value) for key, value in honest.items() if key != name), *more)


@pytest.mark.parametrize("client_id", ["nobody", "RP-1", "rp-1 ", "<b>bold</b>", "rp-2"])
def test_an_unknown_client_or_one_that_did_not_push_the_request_is_an_error_page(shared: World, client_id: str) -> None:
    """Spec 4.2: client_id must equal that of the push; D16."""
    error_page(shared, ("client_id", client_id), ("request_uri", pushed(shared)))


def test_an_error_page_speaks_to_the_person_not_to_the_developer(shared: World) -> None:
    """D16, D28: plain words and the reference; the names of parameters stand in the log."""
    unknown = error_page(shared, ("client_id", "nobody"), ("request_uri", pushed(shared)))
    expired = error_page(shared, ("client_id", "rp-1"), ("request_uri", UNKNOWN))
    incomplete = error_page(shared, ("client_id", "rp-1"))
    assert (
        "The service you came from is not registered here. This is a fault at that service, not yours." in unknown.text
    )
    assert "Starting again does not help. Tell the service you came from" in unknown.text
    assert "start again" not in unknown.text
    assert "has expired" in expired.text
    assert "in a way that we cannot use" in incomplete.text
    for page in (unknown, expired, incomplete):
        assert "client_id" not in page.text
        assert "request_uri" not in page.text


def test_an_error_page_names_the_client_once_it_is_known_and_leads_to_its_registered_site(shared: World) -> None:
    """D16: to the origin of a registered redirect URI, whatever the query says."""
    name = shared.client().name
    for more in (
        (),
        (("request_uri", UNKNOWN),),
        (("request_uri", UNKNOWN), ("redirect_uri", "https://evil.example/")),
    ):
        page = parse(error_page(shared, ("client_id", "rp-1"), *more).text)
        assert "Go back to" in page.text
        assert ("https://rp.example/", f"Go to {name}") in page.links
        assert "evil" not in page.text
    unknown = parse(error_page(shared, ("client_id", "nobody"), ("request_uri", UNKNOWN)).text)
    assert not [target for target, _ in unknown.links if target.startswith("https:")]


@pytest.mark.parametrize(
    "request_uri",
    [
        UNKNOWN,
        UNKNOWN[:-1],
        "urn:ietf:params:oauth:request_uri:",
        "A" * 43,
        "https://evil.example/object",
        f"x{UNKNOWN}",
        f"{UNKNOWN}\x00",
        "é" * 9,
    ],
)
def test_an_unknown_request_uri_is_an_error_page(shared: World, request_uri: str) -> None:
    """D16."""
    error_page(shared, ("client_id", "rp-1"), ("request_uri", request_uri))


@pytest.mark.parametrize("broken", ["client_id=%zz", "client_id=%ff", "request_uri=%", "%ff=x"])
def test_a_query_that_cannot_be_decoded_is_an_error_page(shared: World, broken: str) -> None:
    """D14, D16."""
    answer = shared.get(f"{AUTHORIZE}?{broken}", shared.new_browser())
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")


def test_a_disabled_client_is_an_error_page(world: World) -> None:
    """D16, D50."""
    request_uri = pushed(world)
    world.registers(enabled=False)
    error_page(world, ("client_id", "rp-1"), ("request_uri", request_uri))


def test_a_redirect_uri_that_is_no_longer_registered_is_an_error_page(world: World) -> None:
    """D16: never a redirect to it."""
    request_uri = pushed(world)
    world.registers(redirect_uris=("https://rp.example/other?kept=1",))
    error_page(world, ("client_id", "rp-1"), ("request_uri", request_uri))


@pytest.mark.parametrize(
    "sent",
    [
        {"redirect_uri": CALLBACK, "response_type": "code", "scope": "openid", "state": MARK},
        {"request": MARK},
        {"scope": MARK, "display": "popup"},
    ],
)
def test_a_front_channel_request_is_an_error_page(shared: World, sent: dict[str, str]) -> None:
    """D16, Spec "No downgrade": an error page, never a redirect."""
    error_page(shared, ("client_id", "rp-1"), *sent.items())


def test_extra_parameters_are_ignored_and_never_trusted(shared: World) -> None:
    """Spec 4.2: no other parameters are sent; D16."""
    rp = shared.rp
    rp.sign_in.request_uri = pushed(shared)
    url = rp.authorization_url(
        redirect_uri="https://evil.example/", state=MARK, scope="openid user.name", prompt="none", x=["1", "2"]
    )
    answer = shared.get(url, shared.new_browser())
    assert answer.status_code == 303
    page = shared.run(shared.new_browser().open(url))
    assert MARK not in page.text


@pytest.mark.parametrize("uri", [CALLBACK, "https://rp.example/other?kept=1"])
def test_an_expired_request_is_told_to_the_client_as_long_as_the_record_lives(world: World, uri: str) -> None:
    """Spec 7.2; D16; D38: a registered query is kept, ours appended."""
    request_uri = pushed(world, redirect_uri=uri)
    url = f"{AUTHORIZE}?{urlencode({'client_id': 'rp-1', 'request_uri': request_uri})}"
    start = world.clock.now
    for later in (60, 61, 719):
        world.clock.now = start + later
        with world.nothing_spent():
            told = callback(world, world.get(url, world.new_browser()), "invalid_request_uri", uri=uri)
        assert "60 seconds" in told["error_description"]
        assert told.get("kept") == ("1" if "kept" in uri else None)
    world.clock.now = start + 720
    error_page(world, ("client_id", "rp-1"), ("request_uri", request_uri))


def test_a_completed_request_is_told_to_the_client(world: World) -> None:
    """D16: invalid_request_uri, whichever browser asks, in time or not; the first code stays good."""
    world.rp.parameters = {"state": "st4te"}
    code = query(world.sign_in())["code"]
    for browser in (world.browser, world.new_browser()):
        for later in (0, 40):
            world.clock.now += later
            with world.nothing_spent():
                callback(world, world.get(world.rp.authorization_url(), browser), "invalid_request_uri")
        world.clock.now -= 40
    assert world.redeem(code).status_code == 200


@pytest.mark.generations(*EVERY, differ=True)
@pytest.mark.parametrize("returns", [True, False, None])
def test_iss_is_in_every_callback_exactly_where_discovery_says_so(worlds: Worlds, returns: bool | None) -> None:
    """Spec 4.2; RFC 9207 §2; a setting overrides the generation's; prompt=none shows an error."""
    world = worlds.fresh(session_seconds=0, **({} if returns is None else {"return_iss": returns}))
    expected = world.expected.iss if returns is None else returns
    told = query(world.sign_in())
    world.rp.restart()
    refused = query(world.get(world.asked(prompt="none")).headers["location"])
    assert {told.get("iss"), refused.get("iss")} == ({world.issuer} if expected else {None})
    assert told.keys() - {"iss"} == {"code", "state"}
    assert refused.keys() - {"iss"} == {"error", "error_description", "state"}
    published = world.run(world.rp.discover(again=True))["authorization_response_iss_parameter_supported"]
    assert published is expected


@pytest.mark.generations(*EVERY)
def test_a_person_without_a_usable_entity_is_told_and_the_client_gets_access_denied(world: World) -> None:
    """D17: a page explains first."""
    world.rp.parameters = {"state": "st4te"}
    told = query(world.sign_in(user="carol"))
    assert (told["error"], told["state"]) == ("access_denied", "st4te")


def test_what_nobody_foresaw_is_a_server_error_for_the_client_and_completes_nothing(worlds: Worlds) -> None:
    """Spec 7.2: a row that somebody broke by hand, met after the redirect URI is proven."""
    world = worlds.fresh(session_seconds=3600)
    world.sign_in()
    url = f"{AUTHORIZE}?{urlencode({'client_id': 'rp-1', 'request_uri': pushed(world)})}"
    with closing(sqlite3.connect(world.directory / "corpid.sqlite", isolation_level=None)) as other:
        whole = other.execute("SELECT service_id, roles FROM services").fetchall()
        other.execute("UPDATE services SET roles = '['")
        world.clock.now += LIVE
        with world.nothing_spent():
            told = callback(world, world.get(url), "server_error")
        other.executemany("UPDATE services SET roles = ?2 WHERE service_id = ?1", whole)
    assert "roles" not in told["error_description"]
    assert "code" in query(world.get(url).headers["location"])
