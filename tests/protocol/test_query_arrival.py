"""A browser that brings its request in the query: reload, Back, tabs, silence, prefetch, POST (D15, D30, D32, D40, D50)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from corpid_dev.relying_party import people
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.deployment import AUTHORIZE, ISSUER, LIVE
from tests.protocol.refusals import error_page, told, told_error
from tests.world.clients import FAR
from tests.world.provider import EVENT

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser
    from tests.protocol.provider import World, Worlds

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY without single sign-on, as it is by default."""
    return worlds.fresh(generations=("legacy",), session_seconds=0)


@pytest.fixture
def signed_in(worlds: Worlds) -> World:
    """LEGACY with single sign-on; Alice is signed in, in the world's browser."""
    made = worlds.fresh(generations=("legacy",), session_seconds=3600)
    made.sign_in()
    return made


def begin(world: World, **sent: Any) -> str:
    """The URL of a request that was not seen before."""
    world.rp.restart()
    return world.asked(**sent)


def entered(answer: httpx.Response) -> str:
    """The page that an arrival is sent to (Spec "The order of a request": 303 to its page)."""
    assert (answer.status_code, answer.content) == (303, b""), answer.headers
    assert answer.headers.get_list("cache-control") == ["no-store"]
    where = str(answer.headers["location"])
    assert where.startswith("/sign-in/")
    assert "?" not in where
    return where


def shown(world: World, url: str, browser: Browser | None = None) -> str:
    """The page that an arrival is sent to, once its browser has been there."""
    where = entered(world.get(url, browser))
    assert world.get(f"{ISSUER}{where}", browser).status_code == 200
    return where


def test_the_first_arrival_gets_a_page_of_its_own_and_a_cookie(world: World) -> None:
    """D34; nothing is stored before the browser has shown its cookie."""
    answer = world.get(begin(world))
    where = entered(answer)
    names = [cookie.partition("=")[0] for cookie in answer.headers.get_list("set-cookie")]
    assert names == ["__Host-corpid", "__Host-corpid_arrival"]
    assert world.kinds() == []
    assert world.get(f"{ISSUER}{where}").status_code == 200
    assert world.kinds() == ["arrival", "interaction", "unfinished"]


def test_reload_and_back_come_to_the_same_page_until_its_ten_minutes_end(world: World) -> None:
    """D15: looking again spends nothing; a sign-in that has ended is begun anew."""
    url, start = begin(world), world.clock.now
    where = shown(world, url)
    for later in (0, 61, 599.9):
        world.clock.now = start + later
        with world.nothing_spent():
            answer = world.get(url)
            assert entered(answer) == where
            assert "set-cookie" not in answer.headers
    world.clock.now = start + 600
    assert entered(world.get(url)) != where


def test_after_completion_the_same_query_begins_another_sign_in(world: World) -> None:
    """D15: nothing but the interaction's own completing URL repeats a code."""
    url, pages, codes = begin(world), set(), set()
    for _ in range(2):
        pages.add(entered(world.get(url)))
        codes.add(world.rp.callback(world.through_the_pages(url)))
    assert (len(pages), len(codes)) == (2, 2)
    assert [world.redeem(code).status_code for code in codes] == [200, 200]


def test_each_query_of_one_browser_is_a_tab_of_its_own(world: World) -> None:
    """D34: tabs do not overwrite each other; each is completed by itself."""
    parties = [world.party(), world.party()]
    urls = [world.asked(rp) for rp in parties]
    first, second = (entered(world.get(url)) for url in urls)
    assert first != second
    for rp, url in zip(parties, urls, strict=True):
        tokens = world.run(rp.redeem(world.through_the_pages(url)))
        assert tokens.id_token["nonce"] == rp.sign_in.nonce


def test_each_browser_has_its_own_page_and_cannot_open_anothers(world: World) -> None:
    """D15: interactions are bound to the browser."""
    url, other = begin(world), world.new_browser()
    mine, theirs = shown(world, url), shown(world, url, other)
    assert mine != theirs
    assert world.get(f"{ISSUER}{mine}", other).status_code == 403


def test_another_client_with_the_same_parameters_has_a_page_of_its_own(world: World) -> None:
    """D15, docs/architecture.md, "One-time use": the client is part of every key."""
    url = begin(world)
    mine = entered(world.get(url))
    assert entered(world.get(url.replace("client_id=rp-1", "client_id=rp-2"))) != mine


def test_with_a_session_each_get_of_the_same_query_is_answered_with_a_code_of_its_own(signed_in: World) -> None:
    """D30: a query names no request that could be used up."""
    url = begin(signed_in)
    codes = [told(signed_in.get(url))["code"] for _ in range(2)]
    assert len(set(codes)) == 2
    assert [signed_in.redeem(code).status_code for code in codes] == [200, 200]


@pytest.mark.parametrize(
    "headers",
    [{"sec_purpose": "prefetch"}, {"sec_purpose": "prefetch;prerender"}, {"sec_fetch_dest": "iframe"}, {"sec_fetch_dest": "empty"}],
)  # fmt: skip
def test_a_prefetch_or_embedded_fetch_never_completes(signed_in: World, headers: dict[str, str]) -> None:
    """D30."""
    url = begin(signed_in)
    entered(signed_in.get(url, **headers))
    assert signed_in.kinds().count("completed") == 1
    assert "code" in told(signed_in.get(url))


def test_head_is_answered_and_never_completes(signed_in: World) -> None:
    """D30, D32."""
    for url in (begin(signed_in), begin(signed_in, response_mode="form_post")):
        answer = signed_in.run(signed_in.browser.http.head(url))
        entered(answer)
    assert signed_in.kinds().count("completed") == 1
    silent = signed_in.run(signed_in.browser.http.head(begin(signed_in, prompt="none", state="st4te")))
    told_error(silent, "interaction_required", state="st4te", iss=ISSUER)
    assert signed_in.kinds().count("completed") == 1


@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
@pytest.mark.parametrize(
    ("error", "sent", "user"),
    [("login_required", {}, ""), ("login_required", {"max_age": "0"}, "alice"), ("interaction_required", {}, "bob")],
)
def test_silence_is_told_what_page_is_missing_and_spends_nothing(
    signed_in: World, mode: str, error: str, sent: dict[str, str], user: str
) -> None:
    """D40; no page and no cookie."""
    browser = signed_in.new_browser()
    if user:
        signed_in.sign_in(signed_in.party(), user, browser)
        signed_in.clock.now += 1
    url = begin(signed_in, prompt="none", state="st4te", response_mode=mode, **sent)
    with signed_in.nothing_spent():
        told_error(signed_in.get(url, browser), error, state="st4te", mode=mode, iss=ISSUER)


def test_silence_is_answered_where_nothing_has_to_be_asked(signed_in: World) -> None:
    """D40."""
    assert "code" in told(signed_in.get(begin(signed_in, prompt="none")))


@pytest.mark.parametrize(
    "sent", [{"prompt": "login"}, {"max_age": "0"}, {"max_age": "29"}, {"prompt": "select_account"}]
)
def test_a_prompt_or_max_age_that_wants_a_page_gets_one_and_auth_time_tells(
    signed_in: World, sent: dict[str, str]
) -> None:
    """D40: sign in anew or show the choice; auth_time in the ID token in every generation."""
    before = int(signed_in.clock.now)
    signed_in.clock.now += 30
    url = begin(signed_in, **sent)
    entered(signed_in.get(url))
    callback = signed_in.through_the_pages(url)
    anew = signed_in.run(signed_in.rp.redeem(callback)).id_token["auth_time"]
    assert anew == (before if sent == {"prompt": "select_account"} else int(signed_in.clock.now))


def test_consent_is_asked_only_where_it_is_asked_for_and_names_everything_that_is_told(signed_in: World) -> None:
    """R-4.3: none by itself, also of a private client; D40: consent: ask; R-12.2: the tokens tell all of it."""
    signed_in.registers(generations=("legacy",), legacy_until=FAR, sector="private")
    assert "code" in told(signed_in.get(begin(signed_in)))
    silent = signed_in.get(begin(signed_in, prompt="consent none", state="st4te"))
    told_error(silent, "invalid_request", state="st4te", iss=ISSUER)
    page = signed_in.run(signed_in.browser.open(begin(signed_in, prompt="consent", scope="openid")))
    for words in ("share", "Your name", "identity number", "organisation's type", "organisation's name", "status"):
        assert words in page.text
    signed_in.run(signed_in.browser.fill_and_submit("decision", button="agree"))
    assert "code=" in str(signed_in.browser.left)


def test_a_post_is_sent_on_to_the_get_with_everything_it_said(world: World) -> None:
    """D40: 303 to the GET; OpenID Connect Core §3.1.2.1. Nothing is spent, unknown parameters are left out."""
    sent = {
        **world.rp.request_parameters(),
        "client_id": "rp-1",
        "state": "é&=+ %",
        "prompt": "login",
        "max_age": "5",
        "acr_values": "a b",
        "response_mode": "form_post",
        "request": "x",
    }
    with world.nothing_spent():
        answer = _post(world, urlencode({**sent, "display": "popup"}))
    assert (answer.status_code, answer.content) == (303, b"")
    assert answer.headers.get_list("cache-control") == ["no-store"]
    location = urlsplit(answer.headers["location"])
    assert location.path == urlsplit(AUTHORIZE).path
    assert dict(parse_qsl(location.query, strict_parsing=True)) == sent


def test_a_post_leads_where_the_get_leads(world: World) -> None:
    """D40: an honest one to its page, one that repeats something is still refused."""
    honest = urlencode({"client_id": "rp-1", **world.rp.request_parameters()})
    entered(world.get(f"{ISSUER}{_post(world, honest).headers['location']}"))
    again = world.get(f"{ISSUER}{_post(world, f'{honest}&redirect_uri=x').headers['location']}", world.new_browser())
    error_page(again)


def test_under_maintenance_the_client_is_told_once_its_redirect_uri_is_proven(world: World) -> None:
    """Spec 7.2, D16; in the mode that it asked for."""
    world.run(world.provider.registry.deployment.set_maintenance(True, EVENT))
    world.clock.now += LIVE
    for mode in ("query", "fragment", "form_post"):
        answer = world.get(begin(world, state="st4te", response_mode=mode), world.new_browser())
        told_error(answer, "temporarily_unavailable", state="st4te", mode=mode, iss=ISSUER)
    error_page(world.get(begin(world, redirect_uri="https://evil.example/"), world.new_browser()))
    world.run(world.provider.registry.deployment.set_maintenance(False, EVENT))


def test_a_store_that_fails_is_told_to_the_client_once_its_redirect_uri_is_proven(worlds: Worlds) -> None:
    """Spec 7.2, D16: also where it fails at the first look, at the browser's cookie; a table that somebody took away."""
    signed_in = worlds.fresh(generations=("legacy",), session_seconds=3600, one_database=True)
    signed_in.sign_in()
    with closing(sqlite3.connect(signed_in.directory / "corpid.sqlite", isolation_level=None)) as other:
        other.execute("ALTER TABLE transient RENAME TO taken")
        answer = signed_in.get(begin(signed_in, state="st4te", response_mode="fragment"))
        other.execute("ALTER TABLE taken RENAME TO transient")
    told_error(answer, "temporarily_unavailable", state="st4te", mode="fragment", iss=ISSUER)
    assert "code" in told(signed_in.get(begin(signed_in)))


@pytest.mark.parametrize("mode", ["query", "fragment", "form_post"])
def test_the_same_completing_form_twice_gives_one_code_and_the_same_answer(world: World, mode: str) -> None:
    """D15: completing is won once; a double click is led to the same answer."""
    person = Person(user_name="bob", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    browser, url = world.browser, begin(world, response_mode=mode)
    world.run(browser.open(url))
    for _ in range(2):
        world.run(people.answer_page(browser, person, now=world.clock))
    form = browser.page.form_with("entity")
    assert form is not None
    form.fill("entity", directory.FOREIGN.entity_id)
    content = urlencode(list(form.fields(None)))
    answers = world.run(_together(browser.http, f"{ISSUER}{form.action}", content, times=2))
    assert [answer.status_code for answer in answers] == [303, 303]
    assert world.kinds().count("code") == 1
    leave = f"{browser.url}/leave"
    codes = {told(world.get(leave), mode)["code"] for _ in answers}
    assert len(codes) == 1
    assert world.redeem(codes.pop()).status_code == 200


@pytest.mark.parametrize(
    "change", [{"generations": ("current",), "legacy_until": None}, {"legacy_until": "2027-01-14"}, {"scopes": ("openid",)}]
)  # fmt: skip
def test_what_the_client_may_no_longer_do_when_it_completes_is_access_denied(
    world: World, change: dict[str, Any]
) -> None:
    """D50: looked at again at completion; also its end date."""
    url = begin(world, state="st4te")
    world.run(world.browser.open(url))
    world.registers(**{"generations": ("legacy",), "legacy_until": FAR, **change})
    person = Person(user_name="alice", password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)
    callback = world.run(people.finish(world.browser, person, now=world.clock))
    found = dict(parse_qsl(urlsplit(callback).query))
    assert (found["error"], found["state"], found["iss"]) == ("access_denied", "st4te", ISSUER)
    assert "code" not in world.kinds()


async def _together(http: httpx.AsyncClient, url: str, content: str, *, times: int) -> list[httpx.Response]:
    headers = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    return await asyncio.gather(*(http.post(url, content=content, headers=headers) for _ in range(times)))


def _post(world: World, content: str) -> httpx.Response:
    headers = {"Content-Type": FORM, "Sec-Fetch-Site": "cross-site", "Origin": "https://rp.example"}
    return world.run(world.http.post(AUTHORIZE, content=content, headers=headers))
