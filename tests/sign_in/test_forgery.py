"""Forms that were not sent from our own pages, and the headers that guard the pages (D35, D36)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from corpid.rules.limits import INTERACTION_SECONDS
from tests.sign_in.world import BASE, EVERY_SCOPE, World, form_of, new_world, post, rejected, walk_to

if TYPE_CHECKING:
    import httpx


FORGED: list[tuple[str | None, dict[str, str]]] = [
    ("cross-site", {}),
    ("same-site", {}),
    ("none", {}),
    ("cross-site", {"Origin": BASE}),
    ("", {"Origin": BASE}),
    (None, {}),
    (None, {"Origin": "null"}),
    (None, {"Origin": "http://localhost:8081"}),
    (None, {"Origin": "https://localhost:8080"}),
    (None, {"Origin": f"{BASE}.evil.example"}),
    (None, {"Referer": f"{BASE}/sign-in/x"}),
]
POLICY = {
    "default-src": "'none'",
    **dict.fromkeys(("script-src", "style-src", "img-src", "font-src", "connect-src", "form-action"), "'self'"),
    **dict.fromkeys(("base-uri", "frame-ancestors"), "'none'"),
}


@pytest.mark.parametrize(("site", "headers"), FORGED, ids=str)
async def test_a_form_from_elsewhere_is_refused_on_every_step(
    made: World, site: str | None, headers: dict[str, str]
) -> None:
    """D35: Sec-Fetch-Site decides; without it Origin must be base_url's; with neither it is refused."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    typed = {**form_of(browser, "password"), "user_name": "alice", "password": made.people["alice"].password}
    sent = headers if site is None else {**headers, "Sec-Fetch-Site": site}
    for action in ("password", "passkey", "way", "code", "entity", "consent", "confirm", "cancel", "extend"):
        answer = await post(browser, action, typed, site=None, **sent)
        assert answer.status_code == 400, action
        assert "was not sent from a page of this site" in answer.text
    await browser.reload()
    assert browser.page.heading == "Sign in"


async def test_an_older_browser_without_sec_fetch_site_is_let_in_by_its_origin(made: World) -> None:
    """D35."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    fields = {**form_of(browser, "password"), "user_name": "alice", "password": made.people["alice"].password}
    answer = await post(browser, "password", fields, site=None, Origin=BASE)
    assert answer.status_code == 303
    await browser.reload()
    assert browser.page.heading == "Enter your 6-digit code"


async def test_a_form_token_of_another_browser_or_interaction_or_none_is_refused(made: World) -> None:
    """D35: it is bound to both; nothing moves."""
    browser, other = await made.browser(), await made.browser()
    await walk_to(made, other, await made.relying_party())
    foreign = form_of(other, "password")["form_token"]
    await walk_to(made, browser, await made.relying_party())
    sibling = form_of(browser, "password")["form_token"]
    await walk_to(made, browser, await made.relying_party())
    fields = form_of(browser, "password")
    typed = {"step": fields["step"], "user_name": "alice", "password": made.people["alice"].password}
    own = fields["form_token"]
    nonce, mac = own.split(".")
    swapped = (f"{foreign.split('.')[0]}.{mac}", f"{nonce}.{sibling.split('.')[1]}", f".{mac}", mac, nonce, ".")
    for token in (foreign, sibling, "", own[:-1], own + "A", own.swapcase(), "ä", *swapped):
        answer = await post(browser, "password", {**typed, "form_token": token})
        assert answer.status_code == 400, token
    assert (await post(browser, "password", typed)).status_code == 400
    assert (await post(browser, "password", {**typed, "form_token": own})).status_code == 303


async def test_looking_at_the_address_of_a_step_does_nothing(made: World) -> None:
    """D35: a GET, as an image or a link of another site would make it, is sent to the page."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party(), ("password",))
    for action in ("cancel", "extend", "passkey", "way", "consent", "entity", "leave", "return", "nonsense"):
        answer = await browser.http.get(f"{browser.url}/{action}")
        assert answer.status_code == 303
        assert answer.headers["location"] == browser.url.removeprefix(made.base)
    await browser.reload()
    assert browser.page.heading == "Enter your 6-digit code"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"form_token=a&form_token=b", "application/x-www-form-urlencoded"),
        (b"\xff\xfe=%zz&&=&%00", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"form_token=a", "text/plain"),
        (b"", "multipart/form-data"),
    ],
)
async def test_a_broken_form_is_an_error_page(made: World, content: bytes, media_type: str) -> None:
    """D14: 400, never 500."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    headers = {"Content-Type": media_type, "Sec-Fetch-Site": "same-origin"}
    answer = await browser.http.post(f"{browser.url}/password", content=content, headers=headers)
    assert answer.status_code == 400
    assert "text/html" in answer.headers["content-type"]


async def pages(made: World) -> list[httpx.Response]:
    """One of each kind of page, those of errors too."""
    await made.client(sector="private")
    browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
    found = []
    for steps in ((), ("password",), ("password", "code"), ("password", "code", "entity")):
        rp = await made.relying_party(scope=EVERY_SCOPE)
        await walk_to(made, browser, rp, steps)
        found.append(browser.response)
        made.clock.pass_(60)
    answer = await post(browser, "consent", {**form_of(browser, "decision"), "decision": "agree"})
    found.append(await browser.http.get(answer.headers["location"]))
    stranger = await made.browser()
    found.append(await stranger.http.get(browser.url))
    await walk_to(made, browser, await made.relying_party())
    found.append(await rejected(browser, await post(browser, "password", form_of(browser, "password"))))
    found.append(await post(browser, "password", {}))
    found.append(await post(browser, "password", {}, site="cross-site"))
    made.clock.pass_(INTERACTION_SECONDS)
    found.append(await browser.http.get(browser.url))
    html = {"Accept": "text/html"}
    for path in ("/", "/sign-out", "/nothing-here", "/sign-in/unknown", "/mga/sps/oauth/oauth20/authorize"):
        found.append(await browser.http.get(f"{made.base}{path}", headers=html))
    return [page for page in found if page is not None]


async def test_every_page_has_the_headers_that_keep_others_out(made: World) -> None:
    """D36, D31: errors too; HSTS only where it is true."""
    found = await pages(made)
    assert {page.status_code for page in found} == {200, 400, 403, 404}
    assert len(found) == 15
    for page in found:
        assert "text/html" in page.headers["content-type"], page.url
        policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
        assert policy == POLICY
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "same-origin"
        assert page.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in page.headers


async def test_on_https_every_page_has_hsts_for_a_year() -> None:
    """D36."""
    async with new_world(base="https://op.example") as made:
        for page in await pages(made):
            assert page.headers["strict-transport-security"] == "max-age=31536000"


async def test_no_page_needs_what_the_policy_forbids(made: World) -> None:
    """D36: no script, style or event attribute within the page, nothing from elsewhere."""
    for page in await pages(made):
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=", page.text), page.url
        for address in re.findall(r'(?:src|action)="([^"]*)"|<link[^>]* href="([^"]*)"', page.text):
            assert "".join(address).startswith("/"), page.url


async def test_a_host_that_is_not_ours_is_misdirected(made: World) -> None:
    """D35: 421."""
    browser = await made.browser()
    await walk_to(made, browser, await made.relying_party())
    answer = await browser.http.get(browser.url, headers={"Host": "evil.example"})
    assert answer.status_code == 421


async def test_a_page_never_repeats_a_value_of_the_query() -> None:
    """D16."""
    async with new_world(base="https://op.example") as made:
        browser = await made.browser()
        for query in (
            "client_id=ZZTOP&request_uri=ZZTOP",
            "request_uri=ZZTOP&error=ZZTOP",
            "client_id=rp1&request_uri=ZZTOP",
        ):
            answer = await browser.http.get(f"{made.base}/mga/sps/oauth/oauth20/authorize?{query}")
            assert answer.status_code == 400
            assert "ZZTOP" not in answer.text


async def test_in_developer_mode_a_page_shows_a_received_value_as_text(made: World) -> None:
    """D28: what was received; never as markup."""
    browser = await made.browser()
    path = "/mga/sps/oauth/oauth20/authorize?client_id=%3Cb%3EZZTOP&request_uri=ZZTOP"
    answer = await browser.http.get(f"{made.base}{path}")
    assert answer.status_code == 400
    assert "client_id &lt;b&gt;ZZTOP" in answer.text
