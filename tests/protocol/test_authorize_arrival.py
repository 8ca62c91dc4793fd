"""Arriving with a pushed request: once in time, as often as one likes (Spec 4.2; D15, D30, D32, D40)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.protocol.deployment import AUTHORIZE, ISSUER
from tests.protocol.expectations import EVERY, PUSHED
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import is_public

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

pytestmark = pytest.mark.generations(*PUSHED)
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def world(worlds: Worlds) -> World:
    """A provider without single sign-on, as it is by default."""
    return worlds.fresh(session_seconds=0)


def begin(world: World) -> str:
    world.rp.restart()
    world.rp.parameters = {"state": "st4te"}
    return world.run(world.rp.begin())


def entered(answer: httpx.Response) -> str:
    """The page that an arrival is sent to (Spec "The order of a request": 303 to the interaction's page)."""
    assert (answer.status_code, answer.content) == (303, b"")
    assert answer.headers.get_list("cache-control") == ["no-store"]
    where = str(answer.headers["location"])
    assert where.startswith("/sign-in/")
    return where


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 302
    told = query(answer.headers["location"])
    assert (told["error"], told["state"]) == ("invalid_request_uri", "st4te")
    is_public(told["error_description"], "invalid_request_uri")


def test_the_first_arrival_gets_a_page_of_its_own_and_a_cookie(world: World) -> None:
    """D15, D34."""
    url = begin(world)
    answer = world.get(url)
    where = entered(answer)
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-corpid=")
    assert {"Path=/", "HttpOnly", "Secure", "SameSite=Lax"} <= set(cookie.split("; "))
    assert world.get(f"{ISSUER}{where}").status_code == 200


@pytest.mark.parametrize(("later", "in_time"), [(0, True), (59, True), (59.99, True), (60, False), (61, False)])
def test_sixty_seconds_govern_arriving(world: World, later: float, in_time: bool) -> None:
    """Spec 8: request_uri lifetime 60 s; D15."""
    url = begin(world)
    world.clock.now += later
    answer = world.get(url)
    (entered if in_time else refused)(answer)


def test_within_the_sixty_seconds_the_same_browser_comes_back_to_its_page_and_spends_nothing(world: World) -> None:
    """D15: reload, Back, a second tab."""
    url = begin(world)
    where = entered(world.get(url))
    for later in (0, 20, 39):
        world.clock.now += later
        with world.nothing_spent():
            answer = world.get(url)
            assert entered(answer) == where
            assert "set-cookie" not in answer.headers


def test_after_them_only_a_browser_that_arrived_in_time_is_let_in_again(world: World) -> None:
    """D15: until its own ten minutes end."""
    url, start = begin(world), world.clock.now
    where = entered(world.get(url))
    for later in (60, 300, 599.9):
        world.clock.now = start + later
        with world.nothing_spent():
            assert entered(world.get(url)) == where
            refused(world.get(url, world.new_browser()))
    world.clock.now = start + 600
    with world.nothing_spent():
        refused(world.get(url))


def test_each_browser_has_its_own_page_and_cannot_open_anothers(world: World) -> None:
    """D15: interactions are bound to the browser."""
    url = begin(world)
    other = world.new_browser()
    mine, theirs = entered(world.get(url)), entered(world.get(url, other))
    assert mine != theirs
    assert world.get(f"{ISSUER}{mine}", other).status_code == 403


def test_at_most_ten_browsers_open_a_request_and_those_ten_are_let_in_again(world: World) -> None:
    """D15: at most 10 interactions per request; who came in keeps their page, who did not never gets one."""
    url = begin(world)
    known = world.new_browser()
    another = begin(world)
    entered(world.get(another, known))
    world.rp.sign_in.request_uri = query(url)["request_uri"]
    browsers: list[Browser] = [world.new_browser() for _ in range(10)]
    pages = [entered(world.get(url, browser)) for browser in browsers]
    assert len(set(pages)) == 10
    for _ in range(2):
        refused(world.get(url, world.new_browser()))
        refused(world.get(url, known))
    assert [entered(world.get(url, browser)) for browser in browsers] == pages


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_purpose": "prefetch"},
        {"sec_purpose": "prefetch;prerender"},
        {"sec_fetch_dest": "iframe"},
        {"sec_fetch_dest": "empty"},
    ],
)
def test_looking_spends_nothing_so_the_person_can_still_come(world: World, headers: dict[str, str]) -> None:
    """D15: prefetch, second tab."""
    url = begin(world)
    entered(world.get(url, world.new_browser(), **headers))
    assert "code=" in world.through_the_pages(url)


def test_head_is_answered_like_get(world: World) -> None:
    """D32: HEAD answers where GET does."""
    answer = world.run(world.http.head(begin(world)))
    assert (answer.status_code, answer.content) == (303, b"")


@pytest.mark.parametrize(("more", "kept"), [({}, {}), ({"prompt": "none", "x": "é&="}, {})])
def test_a_post_is_sent_on_to_the_get(world: World, more: dict[str, str], kept: dict[str, str]) -> None:
    """D40: 303 to the GET, with the two parameters alone; nothing is spent."""
    begin(world)
    sent = {"client_id": "rp-1", "request_uri": world.rp.sign_in.request_uri}
    with world.nothing_spent():
        answer = _post(world, urlencode({**sent, **more}))
    assert answer.status_code == 303
    assert answer.headers.get_list("cache-control") == ["no-store"]
    location = str(answer.headers["location"])
    assert location.startswith("/mga/sps/oauth/oauth20/authorize?")
    assert query(f"{ISSUER}{location}") == {**sent, **kept}
    entered(world.get(f"{ISSUER}{location}"))


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("", FORM),
        ("client_id=%zz", FORM),
        ('{"client_id": "rp-1"}', "application/json"),
    ],
)
def test_a_post_that_says_nothing_usable_is_an_error_page(world: World, content: str, media_type: str) -> None:
    """D14, D16."""
    answer = _post(world, content, media_type)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")


def test_what_a_post_repeats_is_still_repeated_in_the_get(world: World) -> None:
    """D14, D16, D40."""
    answer = _post(world, "client_id=a&client_id=b&request_uri=x")
    assert answer.status_code == 303
    page = world.get(f"{ISSUER}{answer.headers['location']}")
    assert (page.status_code, page.headers["content-type"]) == (400, "text/html; charset=utf-8")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_405(world: World, method: str) -> None:
    """D32."""
    answer = world.run(world.http.request(method, AUTHORIZE))
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, HEAD")


@pytest.mark.generations(*EVERY, differ=True)
def test_the_callback_carries_code_and_state_and_iss_where_discovery_says_so_and_nothing_else(world: World) -> None:
    """Spec 4.2; RFC 9207; the code begins with its generation's letter (Spec "Generations")."""
    state = "".join(map(chr, range(0x20, 0x7F)))
    world.rp.parameters = {"state": state}
    told = query(world.sign_in())
    assert told.keys() == {"code", "state", *(["iss"] if world.expected.iss else [])}
    assert told["state"] == state
    assert told.get("iss") == (ISSUER if world.expected.iss else None)
    assert len(told["code"]) == 44
    assert told["code"].startswith(world.expected.code)


@pytest.mark.generations(*EVERY)
def test_the_code_is_nowhere_in_the_database(world: World) -> None:
    """D15: derived again, never stored in clear."""
    code = query(world.sign_in())["code"]
    stored = b"".join(path.read_bytes() for path in world.directory.glob("corpid.sqlite*"))
    assert code.encode() not in stored
    assert code[1:].encode() not in stored


def _post(world: World, content: Any, media_type: str = FORM) -> httpx.Response:
    headers = {"Content-Type": media_type, "Sec-Fetch-Site": "cross-site", "Origin": "https://rp.example"}
    return world.run(world.http.post(AUTHORIZE, content=content, headers=headers))
