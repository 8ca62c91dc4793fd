"""What a person shares by consent: the list in the account, and ending it (D29)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.authentication import consents
from corpid.rules.directory.records import Membership
from corpid.rules.limits import ACCESS_TOKEN_SECONDS
from corpid.rules.oauth.consent import Consent
from tests.account.scene import at_account, go, hidden, send
from tests.sign_in.factors import ALICE
from tests.sign_in.world import World, entity, new_world, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ACME, BANYAN = "200000001A", "200000002A"
NAME = "openid user.name"
LIST = "Services you share data with"
STOP = "Stop sharing with Relying Party 1?"
DAY = 86400
YEAR = 365 * DAY
GIVEN = Consent(
    user_id=ALICE, entity_id=ACME, client_id="rp1", issuer_id="first", scopes=("openid", "user.name"), given_at=0,
    expires_at=0,
)  # fmt: skip


async def give(made: World, **more: Any) -> Consent:
    """Store a consent as if it had been given now."""
    now = int(made.clock())
    consent = replace(GIVEN, **{"given_at": now, "expires_at": now + YEAR, **more})
    event = (await made.provider.registry.audit.entries(limit=1))[0]
    assert await made.provider.registry.consents.give(consent, event)
    return consent


async def stored(made: World, user_id: str = ALICE) -> list[Consent]:
    found: list[Consent] = await made.provider.registry.consents.list_for_user(user_id, now=made.clock())
    return found


def links(browser: Browser, begins: str) -> list[str]:
    return [target for target, _ in browser.page.links if target.startswith(begins)]


def page_of(target: str) -> str:
    return target.removeprefix("/account/")


async def test_without_any_consent_the_list_says_when_there_will_be_one() -> None:
    """D29, docs/accessibility.md."""
    async with new_world(entities=1) as made:
        browser = await at_account(made)
        assert f"{LIST} None" in browser.page.text
        assert await go(made, browser, "sharing") == LIST
        assert "There are none." in browser.page.text


async def test_what_was_agreed_to_is_listed_with_whom_for_whom_what_and_how_long() -> None:
    """D29."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser = await made.browser()
        await walk_to(made, browser, await made.relying_party(scope=NAME), ("password", "code"))
        await browser.fill_and_submit("decision", button="agree")
        browser = await at_account(made)
        assert f"{LIST} 1 service" in browser.page.text
        await go(made, browser, "sharing")
        [consent] = await stored(made)
        until = made.provider.policy.timezone
        assert consent.expires_at - consent.given_at == YEAR
        assert until is not None
        for said in ("Relying Party 1", "For Acme Pte. Ltd.", "Since ", ", until ", "Your name"):
            assert said in browser.page.text


async def test_who_stops_sharing_confirms_it_and_is_asked_again_by_that_service(made: World) -> None:
    """D29: the audit says what ended; nothing else does."""
    await made.client(sector="private")
    await give(made)
    await give(made, scopes=("authinfo", "openid"))
    other = await give(made, entity_id=BANYAN)
    browser = await at_account(made)
    assert f"{LIST} 1 service" in browser.page.text
    await go(made, browser, "sharing")
    assert len(links(browser, "/account/stop-sharing/")) == 2
    for target in links(browser, "/account/stop-sharing/"):
        assert await go(made, browser, page_of(target)) == STOP
        if "For Acme" in browser.page.text:
            break
    assert "your name" in browser.page.text
    assert "your roles there" in browser.page.text
    assert len(await stored(made)) == 3
    await browser.submit(next(form for form in browser.page.forms if form.action == target))
    assert browser.page.heading == LIST
    assert "You no longer share your data with that service." in browser.page.text
    assert await stored(made) == [other]
    [event] = await made.audit("consent.withdraw")
    assert (event.actor, event.client_id, event.entity_id) == (f"user:{ALICE}", "rp1", ACME)
    assert event.detail["scopes"] == "authinfo openid user.name"
    made.clock.pass_(60)
    again = await made.browser()
    await walk_to(made, again, await made.relying_party(scope=NAME), ("password", "code", "entity"))
    assert again.page.heading == "Do you agree to share this?"


async def test_tokens_that_were_issued_end_by_themselves() -> None:
    """D29, D50: userinfo is answered until then, as the page says."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(scope=f"{NAME} authinfo")
        await walk_to(made, browser, rp, ("password", "code"))
        await browser.fill_and_submit("decision", button="agree")
        await rp.redeem(browser.left or "")
        at = await at_account(made, "sharing")
        await go(made, at, page_of(links(at, "/account/stop-sharing/")[0]))
        assert f"for about {ACCESS_TOKEN_SECONDS // 60} minutes" in at.page.text
        await at.submit(next(form for form in at.page.forms if "stop-sharing" in form.action))
        assert await stored(made) == []
        assert await rp.userinfo()


async def test_a_form_that_is_sent_twice_ends_it_once() -> None:
    """It leads to the list both times."""
    async with new_world(entities=1) as made:
        await give(made)
        browser = await at_account(made, "sharing")
        page = page_of(links(browser, "/account/stop-sharing/")[0])
        await go(made, browser, page)
        form = hidden(browser)
        answers = [await send(made, browser, page, **form) for _ in range(2)]
        answers += await asyncio.gather(*(send(made, browser, page, **form) for _ in range(2)))
        assert {each.status_code for each in answers} == {303}
        assert all("/account/sharing" in each.headers["location"] for each in answers)
        assert len(await made.audit("consent.withdraw")) == 1
        assert await go(made, browser, page) == LIST


async def test_nobody_ends_or_sees_the_consent_of_somebody_else() -> None:
    """D29: its name in the address is worth nothing to another person."""
    async with new_world(entities=1) as made:
        bob = await made.person("bob", entity(ACME, "Acme Pte. Ltd."), name="Bob Lim")
        await give(made)
        hers = await at_account(made, "sharing")
        page = page_of(links(hers, "/account/stop-sharing/")[0])
        browser = await at_account(made, "sharing", who=bob.user_name)
        assert "There are none." in browser.page.text
        assert await go(made, browser, page) == LIST
        await go(made, browser, "language")
        answer = await send(made, browser, page, **hidden(browser))
        assert answer.status_code == 303
        assert len(await stored(made)) == 1
        assert await made.audit("consent.withdraw") == []


@pytest.mark.parametrize("forged", ["site", "token", "session"])
async def test_a_forged_form_ends_nothing(forged: str) -> None:
    """D35: from another site, without the page's token, or with that of another browser."""
    async with new_world(entities=1) as made:
        await give(made)
        other = await at_account(made, "language")
        browser = await at_account(made, "sharing")
        page = page_of(links(browser, "/account/stop-sharing/")[0])
        await go(made, browser, page)
        form = hidden(browser)
        match forged:
            case "site":
                answer = await send(made, browser, page, site="cross-site", **form)
                assert answer.status_code >= 400
            case "token":
                await send(made, browser, page, **{**form, "form_token": "x"})
            case "session":
                await send(made, browser, page, **{**form, "form_token": hidden(other)["form_token"]})
        assert len(await stored(made)) == 1


@pytest.mark.parametrize("page", ["stop-sharing/0123456789abcdef", "sharing/2", "sharing/99999"])
async def test_an_address_that_leads_to_nothing_leads_to_the_list(page: str) -> None:
    """One that was kept, or one whose consent was withdrawn elsewhere."""
    async with new_world(entities=1) as made:
        assert await go(made, await at_account(made), page) == LIST


@pytest.mark.parametrize("page", ["stop-sharing/", "stop-sharing/x", "sharing/0", "sharing/-1", "sharing/1000000"])
async def test_other_addresses_are_not_found(page: str) -> None:
    """Neither a part that no list can have, nor a path below one."""
    async with new_world(entities=1) as made:
        browser = await at_account(made)
        answer = await browser.http.get(f"{made.base}/account/{page}")
        assert answer.status_code == 404


async def test_a_long_list_is_shown_in_parts_the_latest_first() -> None:
    """docs/costs.md: a page costs the same for any number of entities."""
    number = consents.SHARES_SHOWN + 1

    async with new_world(entities=1) as made:
        for each in range(number):
            one = entity(f"E{each:03}", f"Entity {each:03}")
            await made.write(one, Membership(user_id=ALICE, entity_id=one.entity_id))
            await give(made, entity_id=one.entity_id, given_at=int(made.clock()) + each)
        browser = await at_account(made, "sharing")
        assert len(links(browser, "/account/stop-sharing/")) == consents.SHARES_SHOWN
        assert f"Entity {number - 1:03}" in browser.page.text
        assert "Entity 000" not in browser.page.text
        assert links(browser, "/account/sharing") == ["/account/sharing/2"]
        await go(made, browser, "sharing/2")
        assert "Entity 000" in browser.page.text
        assert len(links(browser, "/account/stop-sharing/")) == 1
        assert set(links(browser, "/account/sharing")) == {"/account/sharing"}


@pytest.mark.parametrize(("site", "told"), [("same-origin", True), ("none", False), ("cross-site", False)])
async def test_a_link_from_elsewhere_cannot_say_that_something_was_changed(
    made: World, site: str, *, told: bool
) -> None:
    """D35: "Your password has been changed." in somebody's e-mail would lend them our name."""
    browser = await at_account(made)
    await browser.open(f"{made.base}/account?saved=password", site=site)
    assert ("Your password has been changed." in browser.page.text) == told


@pytest.mark.parametrize(("days", "again"), [(0, True), (365, False)])
async def test_the_list_says_whether_a_service_asks_again(days: int, again: bool) -> None:
    """D29: without a memory an earlier consent still has its end, and spares no question."""
    async with new_world(consent_days=days) as made:
        await give(made)
        browser = await at_account(made, "sharing")
        assert ("You are now asked again each time you sign in there." in browser.page.text) is again
        assert ("without asking you again" in browser.page.text) is not again
        await go(made, browser, page_of(links(browser, "/account/stop-sharing/")[0]))
        assert ("If you stop, you will be asked again" in browser.page.text) is not again
