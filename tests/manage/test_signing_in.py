"""Signing in to the portal: the entity that is administered, and a sign-in that is recent (D53, D54)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Entity
from corpid.web.http.server import bind
from tests.machine import free_port
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, portal, send
from tests.sign_in.world import World, cookies_of, entity, form_of, new_world, shown_again
from tests.world.provider import served

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser


async def test_the_only_organisation_that_a_person_administers_is_chosen_without_a_question(made: World) -> None:
    """D54."""
    await appoint(made, ACME)
    browser = await in_portal(made)
    assert browser.page.heading == "Home"
    assert "Acme Pte. Ltd." in browser.page.text


async def test_of_several_organisations_the_person_chooses_one_at_sign_in(made: World) -> None:
    """D54."""
    await appoint(made, ACME)
    await appoint(made, BANYAN, level="administrator")
    browser = await in_portal(made)
    assert browser.page.heading == "Choose who you act for"
    await browser.fill_and_submit(entity=BANYAN)
    assert browser.page.heading == "Home"
    assert "Banyan Trading" in browser.page.text


async def act_for(made: World, browser: Browser, entity_id: str) -> None:
    """Change the organisation."""
    await browser.open(urljoin(made.base, link(browser, "Change organisation")), site="same-origin")
    await browser.fill_and_submit(entity=entity_id)


def link(browser: Browser, text: str) -> str:
    """The target of the page's first link of this text."""
    return next(url for url, shown in browser.page.links if shown == text)


async def test_another_organisation_is_chosen_without_another_sign_in_as_often_as_wanted(made: World) -> None:
    """D54."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    await browser.fill_and_submit(entity=ACME)
    for entity_id, name in [(BANYAN, "Banyan Trading"), (ACME, "Acme Pte. Ltd."), (BANYAN, "Banyan Trading")]:
        await act_for(made, browser, entity_id)
        assert browser.page.heading == "Home"
        assert name in browser.page.text


async def test_another_organisation_makes_a_sign_in_no_younger(made: World) -> None:
    """D54: a change needs a sign-in of the last 15 minutes, and the audit names the organisation."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    await browser.fill_and_submit(entity=ACME)
    made.clock.pass_(901)
    await act_for(made, browser, BANYAN)
    assert browser.page.heading == "Home"
    assert await go(made, browser, "invite") == "Confirm it is you, Alice Tan"
    made.clock.pass_(60)
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == "Invite a person"
    assert "Banyan Trading" in browser.page.text
    await browser.fill_and_submit("form_token", name="Priya Nair", email="priya@example.org")
    [event] = await made.audit("membership.invite")
    assert event.entity_id == BANYAN


async def test_who_administers_one_organisation_is_not_offered_another(made: World) -> None:
    """D54."""
    await appoint(made, ACME)
    browser = await in_portal(made)
    assert "Change organisation" not in browser.page.text
    assert await go(made, browser, "organisation") == "Home"
    await appoint(made, BANYAN)
    await go(made, browser)
    assert "Change organisation" in browser.page.text
    [banyan] = (await made.provider.registry.directory.read(Entity, [(BANYAN,)])).values()
    await made.write(replace(banyan, enabled=False))
    await go(made, browser)
    assert "Change organisation" not in browser.page.text


async def test_a_forged_organisation_changes_nothing(made: World) -> None:
    """D35, D54: neither one of others, nor one that a form of another site or of another session names."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    await made.person("bob", entity("200000009Z", "Zircon"), name="Bob")
    await appoint(made, "200000009Z", who="bob")
    browser, another = await in_portal(made), await in_portal(made)
    await browser.fill_and_submit(entity=ACME)
    await another.fill_and_submit(entity=ACME)
    await go(made, another, "organisation")
    await go(made, browser, "organisation")
    mine, theirs = form_of(browser, "entity"), form_of(another, "entity")
    await shown_again(browser, await send(made, browser, "organisation", **{**mine, "entity": "200000009Z"}))
    await send(made, browser, "organisation", **{**theirs, "entity": BANYAN})
    await send(made, browser, "organisation", site="cross-site", **{**mine, "entity": BANYAN})
    assert await go(made, browser) == "Home"
    assert "Acme Pte. Ltd." in browser.page.text


async def test_a_form_of_the_organisation_before_changes_nothing_of_the_next_one(made: World) -> None:
    """D35, D54: two tabs, one of which changes the organisation."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    await browser.fill_and_submit(entity=ACME)
    await go(made, browser, "invite")
    form = {**form_of(browser, "form_token", "email"), "name": "Priya Nair", "email": "priya@example.org"}
    await act_for(made, browser, BANYAN)
    answer = await send(made, browser, "invite", **form)
    assert answer.status_code == 303
    assert await made.audit("membership.invite") == []


async def test_a_person_without_a_level_is_told_so(made: World) -> None:
    """D53."""
    browser = await in_portal(made, "?x=1")
    assert browser.page.heading == "You do not administer an organisation"


async def test_an_organisation_of_others_is_neither_chosen_by_form_nor_by_address(made: World) -> None:
    """D53, D54."""
    await appoint(made, ACME)
    browser = await in_portal(made, f"?entity={BANYAN}")
    assert "Banyan" not in browser.page.text
    await appoint(made, "200000002A")
    other = await in_portal(made)
    token = form_of(other, "form_token")
    await shown_again(other, await send(made, other, "organisation", **token, entity="200000009Z"))


async def test_a_form_counts_only_for_the_organisation_that_it_was_shown_for(made: World) -> None:
    """D35, D54: another tab may have chosen another one meanwhile."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    token = form_of(browser, "form_token")
    await browser.fill_and_submit(entity=ACME)
    answer = await send(made, browser, "organisation", **token, entity=BANYAN)
    assert answer.status_code == 303
    assert await go(made, browser) == "Home"
    assert "Acme Pte. Ltd." in browser.page.text


async def test_a_level_that_ends_opens_nothing_more(made: World) -> None:
    """D50, D53."""
    await appoint(made, ACME)
    browser = await in_portal(made)
    await made.disable("alice")
    await browser.open(portal(made), site="none")
    assert browser.page.heading == "Sign in"


async def test_a_link_of_a_stranger_chooses_no_organisation(made: World) -> None:
    """D54: the person chooses; an address does so only after the sign-in that a change asked for."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made, f"?entity={BANYAN}")
    assert browser.page.heading == "Choose who you act for"
    await browser.open(portal(made, f"?entity={BANYAN}&again"), site="cross-site")
    assert browser.page.heading == "Choose who you act for"


async def test_a_person_whose_level_ended_at_one_organisation_goes_on_to_another_one(made: World) -> None:
    """D50, D54: the choice is open to them, without another sign-in."""
    await appoint(made, ACME)
    await appoint(made, BANYAN)
    browser = await in_portal(made)
    await browser.fill_and_submit(entity=ACME)
    [acme] = (await made.provider.registry.directory.read(Entity, [(ACME,)])).values()
    await made.write(replace(acme, enabled=False))
    assert await go(made, browser) == "You cannot open this page"
    await act_for(made, browser, BANYAN)
    assert browser.page.heading == "Home"
    assert "Banyan Trading" in browser.page.text


async def test_the_portal_can_be_switched_off() -> None:
    async with new_world(manage_enabled=False) as made:
        browser = await made.browser()
        await browser.open(portal(made), site="none")
        assert browser.response is not None
        assert browser.response.status_code == 404


async def too_late(made: World) -> tuple[Browser, str]:
    """A browser in which Alice's form came too late, at the sign-in that this asks for, and what she had typed."""
    await appoint(made, ACME)
    browser = await in_portal(made, "invite")
    form = {**form_of(browser, "form_token", "email"), "name": "Grace Ho"}
    made.clock.pass_(901)
    answer = await send(made, browser, "invite", **form)
    made.clock.pass_(60)
    await browser.open(urljoin(made.base, answer.headers["Location"]), site="same-origin")
    return browser, "Grace Ho"


async def test_a_form_that_came_too_late_is_shown_once_after_the_sign_in(made: World) -> None:
    """D54."""
    browser, typed = await too_late(made)
    await made.factors(browser, made.people["alice"])
    assert typed in page_of(browser)
    await browser.open(browser.url, site="same-origin")
    assert typed not in page_of(browser)


@pytest.mark.parametrize(("method", "purpose"), [("HEAD", ""), ("GET", "prefetch"), ("GET", "prefetch;prerender")])
async def test_a_page_that_is_fetched_ahead_leaves_the_form_for_its_person(
    made: World, method: str, purpose: str
) -> None:
    """D54, RFC 9110 §9.3.2: at a real server, which answers HEAD as it does GET."""
    browser, typed = await too_late(made)
    await go(made, browser, "invite/several")
    await made.factors(browser, made.people["alice"])
    port = free_port()
    sent = {"Host": urlsplit(made.base).netloc, "Sec-Fetch-Site": "same-origin"}
    sent |= {"Cookie": f"corpid={cookies_of(browser)['corpid']}"}
    page = f"http://127.0.0.1:{port}/manage/invite?again"
    async with served(made.application.asgi, bind("127.0.0.1", port)), httpx.AsyncClient(trust_env=False) as http:
        ahead = await http.request(method, page, headers=sent | ({"Sec-Purpose": purpose} if purpose else {}))
        assert ahead.status_code == 200
        assert typed in (await http.get(page, headers=sent)).text
        assert typed not in (await http.get(page, headers=sent)).text


async def test_a_form_that_came_too_late_is_not_shown_to_another_person(made: World) -> None:
    """D54."""
    browser, typed = await too_late(made)
    await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob")
    await appoint(made, ACME, who="bob")
    await browser.fill_and_submit("decision", button="other_account")
    await made.factors(browser, made.people["bob"])
    assert browser.page.heading == "Home"
    for page in ("invite", "invite?again", "invite?cancelled"):
        await browser.open(portal(made, page), site="same-origin")
        assert "Bob" in page_of(browser)
        assert typed not in page_of(browser)


def page_of(browser: Browser) -> str:
    """The page that is shown, as it was sent."""
    assert browser.response is not None
    return browser.response.text
