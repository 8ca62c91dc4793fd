"""The cookie: its attributes, its replacement, and what the old value is worth (D34)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from corpid_dev.relying_party.people import sign_in
from tests.sign_in.world import World, cookies_of, form_of, new_world, post, query_of, walk_to, wear

if TYPE_CHECKING:
    import httpx


HTTPS = "https://op.example"


async def arrival(made: World) -> httpx.Response:
    browser, rp = await made.browser(), await made.relying_party()
    return await browser.http.get(await rp.begin())


def attributes(answer: httpx.Response) -> tuple[str, str, set[str]]:
    """Name, value and attributes (without the age) of the one Set-Cookie."""
    (header,) = answer.headers.get_list("set-cookie")
    pair, *rest = header.split("; ")
    name, _, value = pair.partition("=")
    return name, value, {one for one in rest if not one.startswith("Max-Age=")}


@pytest.mark.parametrize(
    ("base", "name", "secure"),
    [("http://localhost:8080", "corpid", set()), (HTTPS, "__Host-corpid", {"Secure"})],
)
async def test_the_cookie_has_the_attributes_that_its_scheme_allows(base: str, name: str, secure: set[str]) -> None:
    """D34: 32 random bytes; HttpOnly, SameSite=Lax, Path=/, no Domain; Secure and the prefix on https."""
    async with new_world(base=base) as made:
        got, value, rest = attributes(await arrival(made))
        assert got == name
        assert rest == {"Path=/", "HttpOnly", "SameSite=Lax"} | secure
        assert len(base64.urlsafe_b64decode(value + "=")) == 32
        assert attributes(await arrival(made))[1] != value


async def test_a_sign_in_over_https_works_under_a_path() -> None:
    """D32, D34: the cookie stays at Path=/, every address of the pages lies under base_url."""
    async with new_world(base=f"{HTTPS}/identity") as made:
        browser, rp = await made.browser(), await made.relying_party()
        callback = await sign_in(browser, await rp.begin(), made.people["alice"], now=made.clock)
        await rp.redeem(callback)


async def test_the_value_is_nowhere_in_the_database(made: World) -> None:
    """D34: stored hashed, before and after the sign-in."""
    browser, rp = await made.browser(), await made.relying_party()
    await browser.open(await rp.begin())
    values = set(cookies_of(browser).values())
    await made.factors(browser, made.people["alice"])
    values |= set(cookies_of(browser).values())
    assert len(values) == 2
    stored = b"".join(path.read_bytes() for path in made.directory.iterdir() if path.is_file())
    assert b"id-alice" in stored
    for value in values:
        assert value.encode() not in stored
        assert base64.urlsafe_b64decode(value + "=") not in stored


async def test_signing_in_replaces_the_value_and_kills_the_old_one(made: World) -> None:
    """D34: whoever kept it sees nothing and moves nothing."""
    browser, old, rp = await made.browser(), await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password",))
    before = cookies_of(browser)
    await made.code(browser, made.people["alice"])
    assert cookies_of(browser)["corpid"] != before["corpid"]
    wear(old, before)
    await old.open(browser.url)
    assert old.page.heading == "This sign-in belongs to another browser"
    fields = {**form_of(browser, "entity"), "entity": "200000001A"}
    old.url = browser.url
    assert (await post(old, "entity", fields)).status_code == 303
    await browser.reload()
    assert browser.page.heading == "Choose who you act for"
    assert await made.audit("sign_in.complete") == []


async def test_a_form_sent_with_the_old_value_gets_its_current_page_again(made: World) -> None:
    """D34: as when two tabs post at the same moment; the answer is read with the new value."""
    await made.client("rp2")
    browser, first, second = await made.browser(), await made.relying_party(), await made.relying_party("rp2")
    await browser.open(await second.begin())
    waiting, fields = browser.url, form_of(browser, "password")
    await walk_to(made, browser, first)
    old = cookies_of(browser)
    await made.factors(browser, made.people["alice"])
    new = cookies_of(browser)
    wear(browser, old)
    browser.url = waiting
    answer = await post(browser, "password", {**fields, "user_name": "alice", "password": "whatever it is"})
    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers
    wear(browser, new)
    await browser.open(f"{made.base}{answer.headers['location']}", site="same-origin")
    assert browser.page.heading == "Sign in"
    assert "Relying Party 2" in browser.page.text


async def test_a_planted_value_is_worth_nothing_once_its_victim_has_signed_in() -> None:
    """D34, session fixation: with single sign-on on, too."""
    async with new_world(entities=1, session_seconds=3600) as made:
        attacker, victim = await made.browser(), await made.browser()
        await walk_to(made, attacker, await made.relying_party())
        planted = cookies_of(attacker)
        wear(victim, planted)
        rp = await made.relying_party()
        await sign_in(victim, await rp.begin(), made.people["alice"], now=made.clock)
        assert cookies_of(victim) != planted
        await attacker.open(f"{victim.url.partition('?')[0]}/leave")
        assert attacker.left is None
        await attacker.open(await (await made.relying_party(prompt="none")).begin())
        assert query_of(attacker.left)["error"] == "login_required"
        made.clock.pass_(60)
        await victim.open(await (await made.relying_party(prompt="none")).begin())
        assert "code" in query_of(victim.left)


@pytest.mark.parametrize("value", ["x", "A" * 43, "A" * 8000, '"quoted"', "a=b"])
async def test_a_value_that_we_never_gave_is_not_adopted(made: World, value: str) -> None:
    """D34: the browser gets one of ours."""
    browser, rp = await made.browser(), await made.relying_party()
    url = await rp.begin()
    answer = await browser.http.get(url, headers={"Cookie": f"corpid={value}"})
    assert answer.status_code == 303
    assert attributes(answer)[1] != value


async def test_of_two_cookies_with_our_name_none_is_believed(made: World) -> None:
    """D34: somebody on a sibling host may have added one."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp)
    value = cookies_of(browser)["corpid"]
    stranger = await made.browser()
    for header in (f"corpid=planted; corpid={value}", f"corpid={value}; corpid=planted"):
        answer = await stranger.http.get(browser.url, headers={"Cookie": header})
        assert answer.status_code == 403


async def test_a_person_cannot_be_signed_in_as_somebody_else_by_a_form_of_theirs(made: World) -> None:
    """D35, login CSRF: neither from their site nor with their own form in the victim's browser."""
    attacker, victim = await made.browser(), await made.browser()
    await walk_to(made, attacker, await made.relying_party(), ("password", "code"))
    await walk_to(made, victim, await made.relying_party())
    fields = {**form_of(attacker, "entity"), "entity": "200000001A"}
    victim.url = attacker.url
    assert (await post(victim, "entity", fields, site="cross-site")).status_code == 400
    answer = await post(victim, "entity", fields)
    assert answer.status_code == 303
    await victim.open(f"{made.base}{answer.headers['location']}")
    assert victim.page.heading == "This sign-in belongs to another browser"
    assert await made.audit("sign_in.complete") == []


async def test_a_double_click_whose_first_answer_the_browser_dropped_still_arrives(made: World) -> None:
    """D15, D34: the very form that made the cookie value old gets a new value again, for a minute; no other does."""
    browser, rp = await made.browser(), await made.relying_party()
    await walk_to(made, browser, rp, ("password",))
    before = cookies_of(browser)
    form = form_of(browser, "code") | {"code": made.people["alice"].fresh_code(made.clock())}
    for _ in range(2):
        wear(browser, before)
        answer = await post(browser, "code", form)
        assert answer.status_code == 303
        assert cookies_of(browser) != before
    wear(browser, before)
    other = await post(browser, "code", form | {"code": "000000"})
    assert (other.status_code, other.headers.get("set-cookie")) == (303, None)
    made.clock.pass_(61)
    late = await post(browser, "code", form)
    assert late.headers.get("set-cookie") is None
