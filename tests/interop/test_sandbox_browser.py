"""The scripted browser behaves as a real one does where the provider depends on it."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import httpx
import pytest

from corpid.web.pages.rendering import Renderer
from corpid_dev.readiness.observation import RelyingPartyPage
from corpid_dev.readiness.visitor import Visitor
from corpid_dev.relying_party import browser as html_pages
from corpid_dev.relying_party import people
from corpid_dev.relying_party.browser import Browser, DeadEndError
from corpid_dev.relying_party.people import Person
from tests.browser.states import STATES

if TYPE_CHECKING:
    from corpid.web.pages.components import View

PAGE = """<!DOCTYPE html><title>T</title><h1>Choose  <bdi>one</bdi></h1>
<form method="get" action="/search"><input type="search" name="query"><button>Search</button></form>
<form method="post" action="/next">
  <input type="hidden" name="form_token" value="t&amp;1"><input name="user_name" value="old">
  <input type="radio" name="entity" value="A" checked><input type="radio" name="entity" value="B">
  <input type="radio" name="entity" value="C" disabled>
  <input type="checkbox" name="box"><select name="s"><option value="1">one<option value="2">two</select>
  <textarea name="long">text</textarea><input type="submit" name="go" value="now">
  <button name="decision" value="agree">Agree and continue</button><button type="submit" form="cancel">Cancel</button>
</form>
<form id="cancel" method="post" action="/cancel"><input type="hidden" name="step" value="1"></form>
<template><form><button form="cancel">Not there</button></form></template>"""


@pytest.fixture
def person() -> Person:
    return Person(user_name="rina", password="-", totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")


def browser(answer: Callable[[httpx.Request], httpx.Response]) -> Browser:
    return Browser(httpx.AsyncClient(transport=httpx.MockTransport(answer)))


UNUSUAL = (
    *(
        "",
        "text",
        "a < b & c",
        "<!-- <a href=x>y</a> --><a href=z>w</a>",
        "<A HREF='x'>y</A>",
        "<p a=b c='d'>",
        "<br/>",
        "<",
    ),
    *(
        "<script>if (a < b) {}</script><h1>t</h1>",
        '<script src="x"></script><h1>t</h1>',
        "<style>a > b {}</style>",
        "<scrip",
    ),
    *(
        '<input name="a" value="&lt;&amp;" disabled>',
        "<textarea><b>&lt;</textarea>",
        '<a href="x>y">z</a',
        "</p x></a>",
    ),
)


@pytest.mark.full
@pytest.mark.parametrize("pages", [STATES, UNUSUAL], ids=["ours", "unusual"])
def test_a_page_is_read_as_pythons_own_parser_reads_it(pages: Mapping[str, View] | Iterable[str]) -> None:
    """Which takes more than twice as long."""
    renderer = Renderer(developer_mode=True, added="corpid_dev")
    every = (
        [renderer.render(view).decode() for view in pages.values()] if isinstance(pages, Mapping) else [*pages, PAGE]
    )
    read = [html_pages.parse(each) for each in every]
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(html_pages._Reader, "feed")
        assert [html_pages.parse(each) for each in every] == read


def test_a_form_sends_what_a_browser_would_send() -> None:
    form = html_pages.parse(PAGE).form_with("user_name", "entity")
    assert form is not None
    form.fill("user_name", "rina")
    form.fill("entity", "B")
    assert list(form.fields(form.buttons[1])) == [
        ("form_token", "t&1"), ("user_name", "rina"), ("entity", "B"), ("s", "1"), ("long", "text"),
        ("decision", "agree"),
    ]  # fmt: skip
    with pytest.raises(LookupError, match="entity"):
        form.fill("entity", "C")
    with pytest.raises(LookupError, match="code"):
        form.fill("code", "1")


def test_a_button_of_another_form_belongs_to_that_form_and_a_template_is_no_page() -> None:
    page = html_pages.parse(PAGE)
    assert page.heading == "Choose one"
    assert [[button.label for button in form.buttons] for form in page.forms] == [
        ["Search"], ["", "Agree and continue"], ["Cancel"],
    ]  # fmt: skip


async def test_a_form_post_is_same_origin_and_carries_the_pages_origin() -> None:
    """D35: what the provider judges a POST by."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, html=PAGE)

    walker = browser(answer)
    await walker.open("https://op.example/start")
    await walker.fill_and_submit(user_name="rina", button="Agree and continue")
    arrival, post = seen
    assert (arrival.headers["sec-fetch-site"], post.headers["sec-fetch-site"]) == ("cross-site", "same-origin")
    assert post.headers["origin"] == "https://op.example"
    assert ("decision", "agree") in parse_qsl(post.content.decode())


async def test_redirects_and_refreshes_are_followed_until_they_leave_the_origin() -> None:
    """D37: 303 to the leaving page, its refresh to our own address, and 302 from there to the RP."""

    def answer(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/start":
                return httpx.Response(303, headers={"location": "/leave", "set-cookie": "c=1; Path=/"})
            case "/leave":
                return httpx.Response(200, html='<meta http-equiv="refresh" content="0; url=/out"><h1>Bye</h1>')
            case _:
                assert request.headers["cookie"] == "c=1"
                return httpx.Response(302, headers={"location": "https://rp.example/callback?code=1"})

    async def run() -> Browser:
        walker = browser(answer)
        await walker.open("https://op.example/start")
        return walker

    walker = await run()
    assert walker.left == "https://rp.example/callback?code=1"
    assert walker.page.heading == "Bye"


async def test_what_stands_behind_the_fragment_sign_is_kept_to_the_browser() -> None:
    """RFC 9110 §7.1: a fragment is not sent; D38: it is part of where the browser came back to."""

    def answer(request: httpx.Request) -> httpx.Response:
        assert not request.url.fragment
        target = "https://rp.example/callback#code=1" if request.url.path == "/out" else "/out#here"
        return httpx.Response(302, headers={"location": target})

    walker = browser(answer)
    await walker.open("https://op.example/start#top")
    assert walker.left == "https://rp.example/callback#code=1"


POSTING = """<!DOCTYPE html><h1>Going back</h1><form method="post" action="https://rp.example/callback">
<input type="hidden" name="code" value="c&amp;1"><input type="hidden" name="state" value="s">
<button type="submit">Continue</button></form>"""


async def test_a_form_for_another_site_is_the_way_back(person: Person) -> None:
    """D37: the form_post page, which a person without scripts leaves with its button; its `code` is no field to fill."""

    async def run() -> tuple[Browser, object]:
        walker = browser(lambda _: httpx.Response(200, html=POSTING))
        return walker, await people.sign_in(walker, "https://op.example/start", person)

    walker, callback = await run()
    assert callback is walker.left
    assert callback == "https://rp.example/callback"
    assert walker.left is not None
    assert walker.left.form == (("code", "c&1"), ("state", "s"))
    assert walker.left.state == "s"


async def test_cancel_may_end_in_a_form_for_another_site() -> None:
    """D17, D37."""
    pages = {"GET": '<form method="post" action="/cancel"><button>Cancel</button></form>', "POST": POSTING}

    walker = browser(lambda request: httpx.Response(200, html=pages[request.method]))
    await walker.open("https://op.example/start")
    assert (await people.cancel(walker)) == "https://rp.example/callback"


async def test_a_form_of_another_site_brings_no_cookie_and_the_redirect_after_it_does() -> None:
    """RFC 6265bis §5.2: SameSite=Lax, which both the provider and the demo RP use (D34)."""
    seen: dict[str, str | None] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        seen[f"{request.method} {request.url.path}"] = request.headers.get("cookie")
        match request.method, request.url.path:
            case "GET", "/start":
                return httpx.Response(200, html=POSTING, headers={"set-cookie": "op=1; Path=/"})
            case "POST", "/callback":
                return httpx.Response(303, headers={"location": "/result"})
            case _:
                return httpx.Response(200, html="<h1>Result</h1>", headers={"set-cookie": "rp=1; Path=/"})

    walker = browser(answer)
    walker.origins = frozenset({"https://op.example", "https://rp.example"})
    await walker.open("https://rp.example/")
    await walker.open("https://op.example/start")
    await walker.submit(walker.page.forms[0])
    assert (seen["POST /callback"], seen["GET /result"]) == (None, "rp=1")


async def test_a_missing_form_is_told_with_the_page_that_lacks_it() -> None:
    with pytest.raises(DeadEndError, match=r"400.*Something is wrong.*Expired"):
        walker = browser(lambda _: httpx.Response(400, html="<h1>Something is wrong</h1><p>Expired</p>"))
        await walker.open("https://op.example/start")
        await walker.fill_and_submit(code="123456")


def test_a_person_never_uses_a_code_twice(person: Person) -> None:
    """D45: a step works once; the next one is accepted, too."""
    now = 1_700_000_000.0
    first, second = person.fresh_code(now), person.fresh_code(now)
    assert first == person.code(now)
    assert second == person.code(now + 30)
    with pytest.raises(RuntimeError, match="wait"):
        person.fresh_code(now)
    assert person.fresh_code(now + 60) == person.code(now + 60)


@pytest.mark.full
async def test_an_endless_page_is_cut_and_a_slow_one_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relying party that is checked may send anything; packed, too."""

    async def endless() -> AsyncIterator[bytes]:
        yield b"<h1>Much</h1>"
        while True:
            yield b"a" * 65536

    async def slow() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b"a"

    page = await browser(lambda _: httpx.Response(200, content=endless())).open("http://rp.example/", site="none")
    assert page.heading == "Much"
    assert len(page.text) < html_pages.PAGE_BYTES
    packed = zlib.compress(bytes(40 * html_pages.PAGE_BYTES))
    answer = httpx.Response(200, headers={"content-encoding": "deflate"}, content=packed)
    bomb = browser(lambda _: answer)
    await bomb.open("http://rp.example/", site="none")
    assert bomb.response is not None
    assert len(bomb.response.content) == html_pages.PAGE_BYTES
    monkeypatch.setattr(html_pages, "PAGE_SECONDS", 0.1)
    with pytest.raises(httpx.ReadTimeout, match="not whole"):
        await browser(lambda _: httpx.Response(200, content=slow())).open("http://rp.example/", site="none")


@pytest.mark.full
@pytest.mark.parametrize("mischief", ["<a href=x>", "<h1>", "<button>", "<option>", "x<b>"])
def test_reading_a_page_takes_time_in_proportion_to_its_size(mischief: str) -> None:
    started = time.process_time()
    html_pages.parse("<a href=x><form><button>" + mischief * (html_pages.PAGE_BYTES // 8 // len(mischief)))
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"location": "http://127.0.0.1:99999/"}, ""),
        ({}, '<meta http-equiv="refresh" content="0;url=http://[">'),
        ({}, '<form action="http://["><button>Sign in</button></form>'),
    ],
)
async def test_what_is_no_address_is_a_dead_end(headers: dict[str, str], text: str) -> None:
    status = 302 if headers else 200

    with pytest.raises(DeadEndError, match="no address"):
        here = browser(lambda _: httpx.Response(status, headers=headers, html=text))
        page = await here.open("http://rp.example/", site="none")
        await here.submit(page.forms[0])


def test_a_page_in_an_encoding_that_is_none_of_text_is_read_all_the_same() -> None:
    answer = httpx.Response(200, headers={"content-type": "text/html; charset=rot13"}, content=b"<h1>One</h1>")
    assert asyncio.run(browser(lambda _: answer).open("http://rp.example/", site="none")).heading == "One"


async def test_a_link_that_is_no_address_hides_no_other() -> None:
    """`corpid rp-check` looks for the link that begins a login."""

    def answer(request: httpx.Request) -> httpx.Response:
        at_login = request.url.path == "/login"
        return httpx.Response(
            200, html="<h1>In</h1>" if at_login else '<a href="http://[">x</a><a href="/login">Log in</a>'
        )

    here = Visitor(httpx.AsyncClient(transport=httpx.MockTransport(answer)), issuer="http://op.example", marker=None)
    page = await here.log_in("http://rp.example/")
    assert isinstance(page, RelyingPartyPage)
    assert page.heading == "In"
