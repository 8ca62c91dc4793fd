"""The pages in the language of their reader: asked for by the relying party, picked, or known of the browser.

OpenID Connect Core §3.1.2.1 (`ui_locales`), RFC 9110 §8.5 (Content-Language), §12.5.4 (Accept-Language).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from corpid.rules.oauth.errors import OAuthError
from tests.sign_in.world import BASE, World, cookies_of, new_world, walk_to

if TYPE_CHECKING:
    import httpx

    from corpid_dev.relying_party.browser import Browser

SIGN_IN = {"en": "Sign in", "zh-Hans": "登录", "ms": "Log masuk", "ta": "உள்நுழைக"}
CODE = {"en": "Enter your 6-digit code", "ms": "Masukkan kod 6 digit anda", "ta": "உங்கள் 6 இலக்கக் குறியீட்டை உள்ளிடுங்கள்"}


async def pick(browser: Browser, tag: str) -> None:
    """Follow a link in the foot of the page that is shown."""
    await browser.open(f"{BASE}/language/{tag}", site="same-origin")


async def at_sign_in(made: World, **asked: str) -> Browser:
    browser, rp = await made.browser(), await made.relying_party(**asked)
    await browser.open(await rp.begin())
    return browser


def language(answer: httpx.Response | None) -> str:
    """What the header says, which is what the page says of itself."""
    assert answer is not None
    tag = answer.headers["content-language"]
    assert f'<html lang="{tag}" dir="ltr">' in answer.text
    return str(tag)


@pytest.mark.parametrize("tag", SIGN_IN)
async def test_the_relying_party_asks_for_a_language_and_a_whole_sign_in_speaks_it(made: World, tag: str) -> None:
    browser, rp = await made.browser(), await made.relying_party(ui_locales=f"xx-unknown {tag} en")
    await walk_to(made, browser, rp)
    assert (language(browser.response), browser.page.heading) == (tag, SIGN_IN[tag])
    await made.factors(browser, made.people["alice"])
    assert language(browser.response) == tag
    await browser.fill_and_submit(entity="200000001A")
    assert browser.left is not None


@pytest.mark.parametrize("generation", ["legacy"])
async def test_a_query_asks_for_a_language_as_a_pushed_request_does(generation: str) -> None:
    async with new_world(generations=(generation,)) as made:
        browser = await at_sign_in(made, ui_locales="ta")
        assert browser.page.heading == SIGN_IN["ta"]


@pytest.mark.parametrize("wish", ["xx", "klingon-Latn 123 !!", "-", "*", "a" * 256])
async def test_a_language_that_nobody_speaks_stops_nobody(made: World, wish: str) -> None:
    assert (await at_sign_in(made, ui_locales=wish)).page.heading == SIGN_IN["en"]


async def test_a_wish_without_end_is_refused(made: World) -> None:
    rp = await made.relying_party(ui_locales="a " * 200)
    with pytest.raises(Exception, match="ui_locales must be at most 256 characters") as refused:
        await rp.begin()
    assert not isinstance(refused.value, OAuthError)


async def test_what_a_person_picks_wins_over_the_relying_party_to_the_end_of_the_sign_in_and_stays(made: World) -> None:
    browser = await at_sign_in(made, ui_locales="ms")
    where = browser.url
    await pick(browser, "ta")
    assert (browser.url, browser.page.heading) == (where, SIGN_IN["ta"])
    await made.password(browser, made.people["alice"])
    assert browser.page.heading == CODE["ta"]
    # In the next one the relying party is heard again, and where it has no wish the pick is.
    await browser.open(await (await made.relying_party(ui_locales="ms")).begin())
    assert browser.page.heading == SIGN_IN["ms"]
    await browser.open(await (await made.relying_party()).begin())
    assert browser.page.heading == SIGN_IN["ta"]


async def test_a_pick_beside_an_error_leads_back_to_the_page_and_nothing_is_spent(made: World) -> None:
    browser = await at_sign_in(made)
    await browser.fill_and_submit(user_name="alice", password="wrong")
    await pick(browser, "ms")
    assert browser.page.heading == SIGN_IN["ms"]
    await made.factors(browser, made.people["alice"])
    assert language(browser.response) == "ms"


async def test_a_search_stays_when_another_language_is_picked(made: World) -> None:
    browser = await at_sign_in(made)
    await made.factors(browser, made.people["alice"])
    await browser.open(f"{browser.url.partition('?')[0]}?query=banyan", site="same-origin")
    await pick(browser, "ms")
    assert browser.url.endswith("?query=banyan")
    assert language(browser.response) == "ms"


@pytest.mark.parametrize("query", ["", "harbour & söhne?x=//evil.example"])
async def test_a_browser_that_does_not_say_where_it_comes_from_is_led_back_by_the_link(made: World, query: str) -> None:
    """Into the sign-in, with what was searched for; the link is on the page in every state of it."""
    browser = await at_sign_in(made)
    await made.factors(browser, made.people["alice"])
    where = f"{browser.url.partition('?')[0]}{'?' + urlencode({'query': query}) if query else ''}"
    await browser.open(where, site="same-origin")
    link = next(target for target, text in browser.page.links if text == "Bahasa Melayu")
    answer = await browser.http.get(f"{BASE}{link}")
    assert answer.headers["location"] == where
    assert "ms." in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "page",
    [
        "", "https://evil.example/", "//evil.example/", "/id//evil.example", "/id/\\evil.example", "/elsewhere", "/id", "id/x",
        "/id/../elsewhere", "/id/x?next=//evil.example", "/id/x#//evil.example", "/id/x\r\nSet-Cookie: a=b", "/id/@evil.example", "/id/x" * 500,
        "/id/x?a=b&c=//evil.example", "/id/x?a", "/id/x?a=b&&c=d", "/id/.", "/id/x/..", "/id/x?a=%0a\r",
    ],
)  # fmt: skip
async def test_a_link_that_names_no_page_of_ours_leads_home(page: str) -> None:
    """SECURITY.md: no open redirects."""
    async with new_world(base="https://op.example/id") as made:
        answer = await (await made.http()).get("https://op.example/id/language/ms", params={"page": page})
        assert answer.headers["location"] == "https://op.example/id/"


@pytest.mark.parametrize(("accepts", "tag"), [("zh-SG,zh;q=0.9", "zh-Hans"), ("ms-MY", "ms"), ("fr", "en"), ("", "en")])
async def test_a_browser_that_asked_for_nothing_else_gets_what_it_accepts(made: World, accepts: str, tag: str) -> None:
    http = await made.http()
    for path in ("/", "/sign-out", "/sign-in/unknown", "/nowhere", "/mga/sps/oauth/oauth20/authorize"):
        answer = await http.get(path, headers={"Accept": "text/html", "Accept-Language": accepts})
        assert language(answer) == tag, path
        assert answer.headers["cache-control"] == "no-store"
        assert {"Accept-Language", "Cookie"} <= set(answer.headers["vary"].split(", "))


@pytest.mark.parametrize(
    ("base", "name", "secure"),
    [(BASE, "corpid_language", set()), ("https://op.example", "__Host-corpid_language", {"Secure"})],
)
async def test_the_pick_is_kept_for_a_year(base: str, name: str, secure: set[str]) -> None:
    async with new_world(base=base) as made:
        answer = await (await made.http()).get("/language/ms", headers={"Referer": f"{base}/sign-in/abcdefghijkl"})
        pair, *attributes = answer.headers["set-cookie"].split("; ")
        assert pair == f"{name}=ms.abcdefgh"
        assert set(attributes) == {"Path=/", "Max-Age=31536000", "HttpOnly", "SameSite=Lax"} | secure
        assert answer.headers["location"] == f"{base}/sign-in/abcdefghijkl"


@pytest.mark.parametrize(
    "referrer",
    [
        "", "https://evil.example/", "https://evil.example/id/sign-in/x", "//evil.example/", "https://op.example//evil.example/",
        "https://op.example.evil.example/id/", "http://op.example/id/", "https://op.example@evil.example/id/", "https://op.example/\\evil.example", "/id/",
        "https://op.example:444/id/", "https://op.example/elsewhere", "https://op.example/id/../elsewhere/../../x:y", "https://[",
    ],
)  # fmt: skip
async def test_a_pick_leads_to_no_other_site(referrer: str) -> None:
    """SECURITY.md: no open redirects. Whatever the browser says, the way back begins with our own path."""
    async with new_world(base="https://op.example/id") as made:
        answer = await (await made.http()).get("https://op.example/id/language/ms", headers={"Referer": referrer})
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("https://op.example/id/")


@pytest.mark.parametrize("written", [";Path=/x", ";Domain=", "a,b c", "ab\t; x"])
async def test_an_address_that_somebody_made_up_writes_no_part_of_the_cookie(made: World, written: str) -> None:
    """RFC 6265 §4.1.1: what stands in it of a page is letters, digits, `-` and `_`."""
    where = {"Referer": f"{BASE}/sign-in/{written}/zzz"}
    answer = await (await made.http()).get("/language/ms", headers=where)
    value, *attributes = answer.headers["set-cookie"].split("; ")
    assert re.fullmatch(r"[A-Za-z_]+=[A-Za-z0-9_.-]+", value)
    assert attributes == ["Path=/", "Max-Age=31536000", "HttpOnly", "SameSite=Lax"]


async def test_a_language_that_is_not_there_is_no_page(made: World) -> None:
    browser = await made.browser()
    for tag in ("fr", "", "ms%0d%0aSet-Cookie:%20a=b", "%5b"):
        answer = await browser.http.get(f"{BASE}/language/{tag}", headers={"Accept": "text/html"})
        assert answer.status_code == 404
    assert cookies_of(browser) == {}
