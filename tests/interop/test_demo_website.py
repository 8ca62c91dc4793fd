"""The demo relying party's own website: whose answer is whose, and how it may come back."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from corpid_dev.demo.demo_rp import COOKIE, Attempt, DemoRP, Registration
from corpid_dev.relying_party.interfaces import CURRENT, INTERFACES, LEGACY, Interface
from corpid_dev.relying_party.jwt import RelyingPartyKeys
from corpid_dev.relying_party.people import Person
from tests.interop.counterpart import Counterpart

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RINA = Person(user_name="rina", password="harbour lights", totp_secret="JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
SITE = "http://127.0.0.1:8090"


@asynccontextmanager
async def demo_site(interface: Interface = LEGACY) -> AsyncIterator[tuple[DemoRP, httpx.AsyncClient]]:
    """The website, whose provider is a counterpart, and a browser's requests to it."""
    rp = Counterpart(interface).rp
    registration = Registration(
        issuer=rp.issuer, url=SITE, keys=RelyingPartyKeys.generate(), persons=(), interface=interface
    )
    website = DemoRP(registration, rp.http, rp.clock)
    transport = httpx.ASGITransport(app=website.app)
    async with httpx.AsyncClient(transport=transport, base_url=SITE) as http:
        yield website, http


def begun(website: DemoRP, interface: Interface = LEGACY, **options: str) -> Attempt:
    """A sign-in of the browser `one`."""
    rp = Counterpart(interface, **options).rp
    rp.redirect_uri = website.registration.redirect_uri
    attempt = Attempt(browser_id="one", relying_party=rp)
    website.attempts.keep(attempt)
    return attempt


@pytest.mark.parametrize("interface", INTERFACES.values(), ids=INTERFACES)
async def test_the_start_page_tells_the_generation_and_offers_what_it_has(interface: Interface) -> None:
    """Spec "Generations"."""
    async with demo_site(interface) as (_, http):
        page = (await http.get("/")).text
        assert f"<code>{interface.name}</code>" in page
        assert ("response_mode" in page) == (len(interface.response_modes) > 1)
        assert ("authentication_context_message" in page) == interface.message
        assert all((f'value="{scope}"' in page) == (scope in interface.scopes) for scope in CURRENT.scopes)


async def test_the_current_codes_are_for_its_own_pages() -> None:
    """D66, D35: as on the cards; never under another host's name, and no other site's script may read them."""
    async with demo_site() as (website, http):
        website.registration = replace(website.registration, persons=(RINA,))
        answer = await http.get("/codes")
        now = website.clock()
        assert answer.json() == {"seconds_left": 30 - int(now) % 30, "codes": {"rina": RINA.code(now)}}
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"
        assert (await http.get("/codes", headers={"Host": "evil.example"})).status_code == 421


async def test_an_answer_behind_the_fragment_sign_is_fetched_by_a_script_where_it_may_come_so() -> None:
    """D38: nothing but our own page may hand it over."""
    async with demo_site() as (website, http):
        page = await http.get("/callback")
        assert page.status_code == 200
        assert website.static.url("fragment.js") in page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]
        attempt = begun(website, response_mode="fragment")
        await attempt.begin()
        fields = {"fragment": f"code=c1&state={attempt.relying_party.sign_in.state}"}
        foreign = await http.post("/callback/fragment", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
        assert foreign.status_code == 403
        assert (await http.post("/callback/fragment", data=fields)).status_code == 400
        http.cookies.set(COOKIE, "one")
        assert (await http.post("/callback/fragment", data=fields)).status_code == 303
        assert attempt.answered


async def test_a_generation_without_fragments_has_no_page_for_them() -> None:
    async with demo_site(CURRENT) as (_, http):
        assert (await http.get("/callback")).status_code == 400


async def test_an_answer_that_was_posted_waits_for_its_own_browser() -> None:
    """D37, RFC 6749 §10.12: the form comes without a cookie, the redirect after it with one."""
    async with demo_site() as (website, http):
        attempt = begun(website, response_mode="form_post")
        await attempt.begin()
        fields = {"code": "c1", "state": attempt.relying_party.sign_in.state}
        posted = await http.post("/callback", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
        assert (posted.status_code, posted.headers["location"]) == (303, f"/sign-ins/{attempt.attempt_id}")
        assert (await http.get(posted.headers["location"])).status_code == 404
        assert not attempt.answered
        second = {**fields, "code": "another"}
        await http.post("/callback", data=second, headers={"Sec-Fetch-Site": "cross-site"})
        http.cookies.set(COOKIE, "one")
        assert (await http.get(posted.headers["location"])).status_code == 200
        assert attempt.relying_party.sign_in.code == "c1"


async def test_an_answer_with_a_state_that_nobody_sent_is_nobodys() -> None:
    """Spec 4.2."""
    async with demo_site() as (_, http):
        for answer in (
            await http.post("/callback", data={"state": "x", "code": "c1"}),
            await http.get("/callback", params={"state": "x", "code": "c1"}),
        ):
            assert answer.status_code == 400
            assert "This sign-in was not started in this browser" in answer.text
