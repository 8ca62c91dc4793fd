"""What strangers begin: nothing is stored before their browser has shown a cookie, and little then (D15, D34, D47)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from corpid.flows.namespaces import UNTOUCHED_SECONDS
from corpid.jose.encoding import from_base64url
from corpid.rules.limits import ARRIVALS_PER_BROWSER, PUSHED_REQUEST_KEPT_SECONDS
from corpid_dev.relying_party import people
from corpid_dev.relying_party.people import Person
from tests.protocol import directory
from tests.protocol.deployment import ISSUER
from tests.protocol.provider import World, Worlds, query
from tests.protocol.refusals import error_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from corpid_dev.relying_party.browser import Browser

FORM = "application/x-www-form-urlencoded"
COOKIE, HELD = "__Host-corpid", "__Host-corpid_arrival"
LONG_STATE = "s" * 2048


@pytest.fixture
def world(worlds: Worlds) -> World:
    """LEGACY without single sign-on, as it is by default."""
    return worlds.fresh(generations=("legacy",), session_seconds=0)


@pytest.fixture
def limited() -> Iterator[World]:
    """Three sign-ins a minute from one network, and five from all."""
    with World(generations=("legacy",), session_seconds=0, arrivals_per_network=3, arrivals_in_all=5) as made:
        yield made


def begin(world: World, **sent: Any) -> str:
    """The URL of a request that was not seen before."""
    world.rp.restart()
    return world.asked(**sent)


def arrive(world: World, browser: Browser | None = None, url: str = "", **sent: Any) -> str:
    """Where a browser is sent that arrives; it has not been there yet."""
    answer = world.get(url or begin(world, **sent), browser)
    assert answer.status_code == 303, answer.text
    return f"{ISSUER}{answer.headers['location']}"


def page(world: World, where: str, browser: Browser | None = None, **headers: str) -> int:
    return world.get(where, browser, **headers).status_code


def shown(world: World, browser: Browser | None = None, **sent: Any) -> str:
    where = arrive(world, browser, **sent)
    assert page(world, where, browser) == 200
    return where


def wear(browser: Browser, **cookies: str) -> None:
    """Give a browser exactly these cookies: `own`, `held`."""
    browser.http.cookies.clear()
    for name, value in cookies.items():
        browser.http.cookies.set({"own": COOKIE, "held": HELD}[name], value, domain="op.example")


def worn(browser: Browser) -> dict[str, str]:
    return {cookie.name: cookie.value or "" for cookie in browser.http.cookies.jar}


def person(name: str = "alice") -> Person:
    return Person(user_name=name, password=directory.PASSWORD, totp_secret=directory.TOTP_SECRET)


# Nothing is stored for a browser that has shown no cookie


async def strangers(world: World, url: Any) -> None:
    async with world.running.connect() as http:
        for number in range(250):
            headers = {"X-Forwarded-For": f"192.0.2.{number}"}
            requests = (
                ("GET", url, headers),
                ("HEAD", url, headers),
                ("GET", url, {**headers, "Sec-Purpose": "prefetch"}),
                ("GET", f"{ISSUER}/account", headers),
            )
            for method, where, sent in requests:
                http.cookies.clear()
                answer = await http.request(method, where, headers=sent)
                assert answer.status_code == 303
            http.cookies.clear()
            assert (await http.get(f"{ISSUER}{answer.headers['location']}")).status_code == 403


@pytest.mark.full
def test_a_thousand_anonymous_arrivals_leave_nothing_in_the_store(world: World) -> None:
    """D34: GET, HEAD and prefetch, at the client's request, the account and a forgotten password."""
    url, before = begin(world), world.stored()

    world.run(strangers(world, url))
    assert world.stored() == before


def test_what_a_browser_holds_is_encrypted_and_in_no_address(world: World) -> None:
    """D34: within a cookie's size, with the attributes of our cookie."""
    answer = world.get(begin(world, state="st4te-of-the-rp", nonce="n0nce-of-the-rp"))
    own, held = answer.headers.get_list("set-cookie")
    name, _, rest = held.partition("=")
    value, *attributes = rest.split("; ")
    assert name == HELD
    assert {one for one in attributes if not one.startswith("Max-Age=")} == {
        "Path=/",
        "HttpOnly",
        "SameSite=Lax",
        "Secure",
    }
    assert "Max-Age=600" in attributes
    assert "Domain" not in held + own
    interaction_id, _, sealed = value.partition(".")
    assert answer.headers["location"] == f"/sign-in/{interaction_id}"
    contents = from_base64url(sealed)
    for secret in (b"st4te", b"n0nce", b"rp-1", b"callback", interaction_id.encode()):
        assert secret not in contents
    assert len(held) < 2048


def test_on_plain_http_the_cookie_has_no_prefix() -> None:
    """D34: browsers refuse the prefix there."""
    with World(
        base_url="http://localhost:8080", developer_mode=True, generations=("legacy",), session_seconds=0
    ) as world:
        answer = world.get(begin(world))
        names = [cookie.partition("=")[0] for cookie in answer.headers.get_list("set-cookie")]
        assert names == ["corpid", "corpid_arrival"]
        assert "Secure" not in "".join(answer.headers.get_list("set-cookie"))
        assert world.get(f"{world.issuer}{answer.headers['location']}").status_code == 200


# The browser comes back with its cookie


def test_with_its_cookie_the_sign_in_is_stored_once_and_the_cookie_is_taken_back(world: World) -> None:
    """D34: reload and a second copy of the cookie change nothing."""
    where = arrive(world)
    cookies = worn(world.browser)
    answer = world.get(where)
    assert answer.status_code == 200
    assert [one.partition(";")[0] for one in answer.headers.get_list("set-cookie")] == [f"{HELD}="]
    assert list(worn(world.browser)) == [COOKIE]
    with world.nothing_spent():
        assert page(world, where) == 200
        wear(world.browser, own=cookies[COOKIE], held=cookies[HELD])
        assert page(world, where) == 200


async def both(where: Any, world: World) -> list[httpx.Response]:
    return await asyncio.gather(*(world.browser.http.get(where) for _ in range(5)))


def test_two_landings_at_the_same_moment_are_one_sign_in(world: World) -> None:
    """D34: a double click on the link, a reload before the answer."""
    where = arrive(world)

    assert {answer.status_code for answer in world.run(both(where, world))} == {200}
    assert world.kinds() == ["arrival", "interaction", "unfinished"]


def test_what_another_browser_holds_opens_nothing(world: World) -> None:
    """D34: bound to its browser, whether that has a cookie of ours or none."""
    where = arrive(world)
    held, stranger = worn(world.browser)[HELD], world.new_browser()
    world.get(begin(world), stranger)
    with world.nothing_spent():
        wear(stranger, own=worn(stranger)[COOKIE], held=held)
        assert page(world, where, stranger) == 404
        wear(stranger, held=held)
        answer = world.get(where, stranger)
        assert answer.status_code == 403
        assert "Cookies are needed to sign in" in answer.text
    assert page(world, where) == 200
    assert page(world, where, stranger) == 403


@pytest.mark.parametrize("at", [0, 10, 50, 100, -1])
def test_what_was_changed_opens_nothing(world: World, at: int) -> None:
    """D34: authenticated encryption."""
    where = arrive(world)
    cookies = worn(world.browser)
    value = cookies[HELD]
    changed = "A" if value[at] != "A" else "E"
    wear(world.browser, own=cookies[COOKIE], held=value[:at] + changed + (value[at + 1 :] if at >= 0 else ""))
    with world.nothing_spent():
        assert page(world, where) == 404


@pytest.mark.parametrize("value", ["", ".", "x.y", "é", "A" * 43, "." * 9, "A" * 3000])
def test_nonsense_in_the_cookie_is_no_fault(world: World, value: str) -> None:
    """D34."""
    where = arrive(world)
    own = worn(world.browser)[COOKIE]
    cookies = f"{COOKIE}={own}; {HELD}={value}".encode()
    world.browser.http.cookies.clear()
    for url, status in ((where, 404), (where.rpartition("/")[0] + f"/{value}".strip(), 404)):
        answer = world.run(world.http.get(url, headers=[(b"Cookie", cookies)]))
        assert answer.status_code == status, url


def test_after_ten_minutes_what_a_browser_holds_is_worth_nothing(world: World) -> None:
    """D15: shorter than a pushed request is kept."""
    where = arrive(world)
    cookies = worn(world.browser)
    world.clock.now += 600
    wear(world.browser, own=cookies[COOKIE], held=cookies[HELD])
    with world.nothing_spent():
        assert page(world, where) == 404


def test_after_the_sign_in_the_old_cookies_bring_nothing_back(world: World) -> None:
    """D34: the old value is dead, and so is what was held with it."""
    url = begin(world)
    where = arrive(world, url=url)
    cookies = worn(world.browser)
    world.run(world.browser.open(where))
    for _ in range(2):
        world.run(people.answer_page(world.browser, person("bob"), now=world.clock))
    assert worn(world.browser)[COOKIE] != cookies[COOKIE]
    thief = world.new_browser()
    wear(thief, own=cookies[COOKIE], held=cookies[HELD])
    with world.nothing_spent():
        assert page(world, where, thief) == 403
        anew = arrive(world, thief, url=url)
    assert anew != where


def test_a_made_up_cookie_is_no_browser_of_ours(world: World) -> None:
    """D34: the value proves itself; only its end is stored."""
    where = arrive(world)
    cookies = worn(world.browser)
    for made_up in ("A" * 43, "A" * 42 + "E", cookies[COOKIE][:-2] + "AA", cookies[COOKIE] + "A"):
        wear(world.browser, own=made_up, held=cookies[HELD])
        with world.nothing_spent():
            assert page(world, where) == 404
    world.clock.now += 86400
    wear(world.browser, own=cookies[COOKIE])
    answer = world.get(begin(world))
    assert len(answer.headers.get_list("set-cookie")) == 2, "a day later it is a new browser"


def test_what_is_stored_of_a_stranger_ends_as_soon_as_a_pushed_request(world: World) -> None:
    """D34: not two hours; also of one that asks for more time, and of one that cancels."""
    assert UNTOUCHED_SECONDS == PUSHED_REQUEST_KEPT_SECONDS
    for action in ("", "extend"):
        world.run(world.browser.open(shown(world)))
        if action:
            form = next(form for form in world.browser.page.forms if form.action.endswith(f"/{action}"))
            world.run(world.browser.submit(form))
        last = max(row[4] for row in world.stored() if row[0] not in {"rate", "step"})
        assert last <= (world.clock.now + PUSHED_REQUEST_KEPT_SECONDS) * 1000
    world.clock.now += PUSHED_REQUEST_KEPT_SECONDS
    assert world.kinds() == []


# Tabs, reload, HEAD


def test_a_second_tab_before_the_first_page_is_there_leaves_both_alive(world: World) -> None:
    """D34: tabs do not overwrite each other."""
    parties = [world.party(), world.party()]
    pages = [arrive(world, url=world.asked(rp)) for rp in parties]
    assert len(set(pages)) == 2
    assert [page(world, where) for where in pages] == [200, 200]
    for rp, where in zip(parties, pages, strict=True):
        world.clock.now += 30
        callback = world.run(people.sign_in(world.browser, where, person(), now=world.clock))
        assert world.run(rp.redeem(callback)).id_token["nonce"] == rp.sign_in.nonce


def test_head_prefetch_and_reload_before_the_page_is_there_come_to_the_same_page(world: World) -> None:
    """D15, D30, D32."""
    url = begin(world)
    first = world.run(world.browser.http.head(url)).headers["location"]
    assert world.kinds() == []
    assert world.get(url, sec_purpose="prefetch").headers["location"] == first
    assert world.get(url).headers["location"] == first
    assert page(world, f"{ISSUER}{first}") == 200
    assert world.kinds() == ["arrival", "interaction", "unfinished"]


# Too long for a cookie


def test_a_request_that_is_too_long_for_a_cookie_comes_back_in_a_form(world: World) -> None:
    """D34: behind a cookie check, without a script, in no address of ours; `state` comes back whole."""
    url = begin(world, state=LONG_STATE)
    with world.nothing_spent():
        world.run(world.browser.open(url))
    assert world.browser.url == url
    assert list(worn(world.browser)) == [COOKIE]
    form = world.browser.page.form_with("arrive")
    assert form is not None
    assert "?" not in form.action
    callback = world.run(_through_the_form(world))
    told = query(callback)
    assert told["state"] == LONG_STATE
    assert world.redeem(told["code"]).status_code == 200


async def _through_the_form(world: World) -> str:
    await world.browser.fill_and_submit("arrive")
    assert re.fullmatch(rf"{ISSUER}/sign-in/[\w-]{{43}}", world.browser.url)
    return await people.finish(world.browser, person(), now=world.clock)


def test_without_its_cookie_or_from_elsewhere_the_form_stores_nothing(world: World) -> None:
    """D34, D35."""
    world.run(world.browser.open(begin(world, state=LONG_STATE)))
    form = world.browser.page.form_with("arrive")
    assert form is not None
    content = urlencode(list(form.fields(None)))
    stranger, own = world.new_browser(), {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    with world.nothing_spent():
        forged = world.run(
            world.browser.http.post(
                f"{ISSUER}{form.action}", content=content, headers={**own, "Sec-Fetch-Site": "cross-site"}
            )
        )
        error_page(forged)
        for body in (content, "", "arrive=x", f"{content}&{content}"):
            world.run(stranger.http.post(f"{ISSUER}{form.action}", content=body, headers=own))
        where = f"{ISSUER}{form.action}".removesuffix("/arrive")
        answer = world.get(where, stranger)
    assert answer.status_code == 403
    assert "Cookies are needed to sign in" in answer.text


@pytest.mark.parametrize(
    "name", ["%0D%0ASet-Cookie%3A%20corpid%3Dstolen", "%F0%9F%91%8D", "%C3%A9", "%00", "a%3Fb%23c"]
)
def test_an_address_with_any_characters_is_led_to_as_it_was_written(world: World, name: str) -> None:
    """RFC 9110 §5.5: nothing of a caller's ends a header; where nothing is held, the page says so as everywhere."""
    answer = world.run(
        world.http.post(
            f"{ISSUER}/sign-in/{name}/arrive",
            content="arrive=x",
            headers={"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"},
            follow_redirects=False,
        )
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/sign-in/{name}"
    assert "set-cookie" not in answer.headers
    assert page(world, f"{ISSUER}{answer.headers['location']}", world.new_browser()) == 403


# Ten of a browser


def test_a_browser_has_at_most_ten_unfinished_and_the_oldest_ends(world: World) -> None:
    """D34."""
    pages = []
    for _ in range(ARRIVALS_PER_BROWSER + 3):
        pages.append(shown(world))
        world.clock.now += 1
    assert world.kinds().count("interaction") == ARRIVALS_PER_BROWSER
    assert [page(world, where) for where in pages] == [404] * 3 + [200] * 10


def test_one_in_which_somebody_has_signed_in_stays_and_one_that_is_over_goes_first(world: World) -> None:
    """D34: a page that opens tabs takes no sign-in from its person."""
    world.clock.now += 30
    oldest = shown(world)
    world.run(world.browser.open(oldest))
    for _ in range(2):
        world.run(people.answer_page(world.browser, person("bob"), now=world.clock))
    over = shown(world)
    world.run(world.browser.open(over))
    cancel = next(form for form in world.browser.page.forms if form.action.endswith("/cancel"))
    world.run(world.browser.submit(cancel))
    others = []
    for _ in range(ARRIVALS_PER_BROWSER - 1):
        world.clock.now += 1
        others.append(shown(world))
    assert page(world, over) == 404
    assert [page(world, where) for where in (oldest, *others)] == [200] * 10
    shown(world)
    assert [page(world, where) for where in (oldest, *others)] == [200, 404, *[200] * 8]


def test_the_account_counts_among_the_ten(world: World) -> None:
    """D34: anybody can begin there, too."""
    shown(world)
    for _ in range(2 * ARRIVALS_PER_BROWSER):
        assert world.get(f"{ISSUER}/account").status_code == 303
    assert world.kinds().count("interaction") == ARRIVALS_PER_BROWSER


async def all_at_once(urls: Any, world: World) -> list[httpx.Response]:
    return await asyncio.gather(*(world.browser.http.get(url) for url in urls))


def test_a_browser_that_begins_many_at_the_same_moment_still_has_ten(world: World) -> None:
    """docs/architecture.md, "One-time use": places are taken, not counted and then written."""
    shown(world)
    urls = [begin(world) for _ in range(40)]

    assert {answer.status_code for answer in world.run(all_at_once(urls, world))} == {303}
    assert world.kinds().count("interaction") == ARRIVALS_PER_BROWSER
    assert world.kinds().count("unfinished") == ARRIVALS_PER_BROWSER


# Limits


def told_to_wait(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (429, "text/html; charset=utf-8")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert re.search(r"Wait \d+ seconds?, then reload this page", answer.text)


@pytest.mark.parametrize(("near", "far"), [("192.0.2.{}", "198.51.100.{}"), ("2001:db8:1:{}::1", "2001:db8:2:{}::1")])
def test_one_network_is_told_to_wait_and_the_others_go_on(limited: World, near: str, far: str) -> None:
    """D47: a /24, a /48; what is over the limit is not stored, and its browser comes in a minute later."""
    for number in range(3):
        browser = limited.new_browser()
        assert page(limited, arrive(limited, browser), browser, x_forwarded_for=near.format(number)) == 200
    late = limited.new_browser()
    where = arrive(limited, late)
    with limited.nothing_spent():
        told_to_wait(limited.get(where, late, x_forwarded_for=near.format(9)))
    assert page(limited, where, late, x_forwarded_for=far.format(1)) == 200
    waits = limited.new_browser()
    where = arrive(limited, waits)
    told_to_wait(limited.get(where, waits, x_forwarded_for=near.format(9)))
    limited.clock.now += 60
    assert page(limited, where, waits, x_forwarded_for=near.format(9)) == 200


def test_all_networks_together_have_a_limit_and_known_browsers_are_spared(limited: World) -> None:
    """D47: whoever signed in here before is no stranger."""
    limited.clock.now += 30
    limited.run(people.sign_in(limited.browser, arrive(limited), person(), now=limited.clock))
    limited.clock.now += 60
    for number in range(5):
        browser = limited.new_browser()
        assert page(limited, arrive(limited, browser), browser, x_forwarded_for=f"198.51.{number}.1") == 200
    late = limited.new_browser()
    told_to_wait(limited.get(arrive(limited, late), late, x_forwarded_for="203.0.113.1"))
    for _ in range(8):
        shown(limited)


def test_a_browser_that_repeats_requests_is_counted_with_its_network(limited: World) -> None:
    """D34: with a cookie that it was given before, its arrivals are stored at once."""
    answers = [limited.get(begin(limited)) for _ in range(6)]
    assert [answer.status_code for answer in answers[:4]] == [303] * 4
    assert limited.kinds().count("interaction") == 3
    assert "error=temporarily_unavailable" in answers[5].headers["location"]


def test_an_arrival_at_a_pushed_request_stays_as_it_was() -> None:
    """D15: ten interactions a request, which only a client can push."""
    with World(session_seconds=0, arrivals_per_network=1, arrivals_in_all=1) as world:
        url = world.asked()
        for _ in range(10):
            browser = world.new_browser()
            answer = world.get(url, browser)
            assert len(answer.headers.get_list("set-cookie")) == 1
            assert page(world, f"{ISSUER}{answer.headers['location']}", browser) == 200
        assert world.kinds().count("interaction") == 10
        assert "browser" not in world.kinds()
        assert "error=invalid_request_uri" in world.get(url, world.new_browser()).headers["location"]


def test_what_fails_when_the_browser_comes_back_names_who_asked_and_can_be_tried_again(limited: World) -> None:
    """D16, D47: in a cookie, and in a form, whose page has to be sent again."""
    for _ in range(3):
        shown(limited, limited.new_browser())
    short, long = limited.new_browser(), limited.new_browser()
    limited.run(short.open(begin(limited)))
    limited.run(long.open(begin(limited, state=LONG_STATE)))
    limited.run(long.fill_and_submit("arrive"))
    for browser in (short, long):
        assert browser.response is not None
        told_to_wait(browser.response)
        assert limited.client().name in browser.page.text
        assert "Cookies are needed" not in browser.page.text
    limited.clock.now += 60
    limited.run(short.reload())
    assert short.page.heading == "Sign in"
    assert [text for _, text in long.page.links if "again" in text] == []
