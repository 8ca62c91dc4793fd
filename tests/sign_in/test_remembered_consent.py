"""Consent that was given before: when it spares the page, and when it does not (D29, D30, D40, D50)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from corpid.rules.directory.records import Change, Membership, User
from corpid_dev.relying_party.people import cancel
from tests.sign_in.world import EVERY_SCOPE, World, form_of, new_world, post, query_of, walk_to

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

ASKS = "Do you agree to share this?"
NAME = "openid user.name"
HOUR, DAY = 3600, 86400


async def arrive(
    made: World, *steps: str, scope: str = NAME, browser: Browser | None = None, **parameters: str
) -> Browser:
    """A browser after these steps of Alice's sign-in, of password, code and entity."""
    made.clock.pass_(60)
    browser = browser or await made.browser()
    rp = await made.relying_party(scope=scope, **parameters)
    await walk_to(made, browser, rp, steps or ("password", "code"))
    return browser


async def agree(browser: Browser) -> None:
    await browser.fill_and_submit("decision", button="agree")


def asked(browser: Browser) -> bool:
    """Whether consent is asked for; if not, the sign-in is over, with a code."""
    if browser.left is None:
        assert browser.page.heading == ASKS
        return True
    assert "code" in query_of(browser.left)
    return False


async def given(made: World, *steps: str, scope: str = NAME, browser: Browser | None = None) -> Browser:
    """A browser in which Alice has agreed, and the private client that she agreed to."""
    await made.client(sector="private")
    browser = await arrive(made, *steps, scope=scope, browser=browser)
    await agree(browser)
    assert not asked(browser)
    return browser


async def stored(made: World) -> list[Any]:
    found: list[Any] = await made.provider.registry.consents.list_for_user("id-alice", now=made.clock())
    return found


async def test_who_has_agreed_is_not_asked_again() -> None:
    """D29: in any browser; the audit has what was agreed to, and until when."""
    async with new_world(entities=1) as made:
        first = await given(made)
        then = int(made.clock())
        assert not asked(await arrive(made, browser=first))
        assert not asked(await arrive(made))
        [event] = await made.audit("consent.give")
        assert (event.actor, event.object, event.client_id) == ("user:id-alice", "rp1", "rp1")
        assert event.entity_id == "200000001A"
        assert event.detail["scopes"] == NAME
        assert event.detail["expires_at"] == str(then + 365 * DAY)
        assert len(await made.audit("sign_in.complete")) == 3


async def test_fewer_scopes_need_no_asking_and_more_do() -> None:
    """D29: asked again when the scopes grow; each set is remembered."""
    async with new_world(entities=1) as made:
        await given(made, scope=f"{NAME} entity.identity")
        assert not asked(await arrive(made))
        assert not asked(await arrive(made, scope="openid entity.identity"))
        grown = await arrive(made, scope=f"{NAME} authinfo")
        assert asked(grown)
        await agree(grown)
        assert not asked(await arrive(made, scope=f"{NAME} authinfo"))
        assert asked(await arrive(made, scope=f"{NAME} authinfo entity.identity"))


async def test_consent_for_one_entity_is_none_for_another(made: World) -> None:
    """D29: per entity. The choice comes first, and decides whether consent is asked for."""
    await given(made, "password", "code", "entity")
    browser = await arrive(made)
    assert browser.page.heading == "Choose who you act for"
    assert "Step " not in browser.page.text
    await browser.fill_and_submit(entity="200000002A")
    assert asked(browser)
    assert not asked(await arrive(made, "password", "code", "entity"))


async def test_consent_to_one_client_is_none_to_another() -> None:
    """D29: per client."""
    async with new_world(entities=1) as made:
        await given(made)
        await made.client("rp2", sector="private")
        made.clock.pass_(60)
        browser, rp = await made.browser(), await made.relying_party("rp2", scope=NAME)
        await walk_to(made, browser, rp, ("password", "code"))
        assert asked(browser)


async def test_a_client_may_have_it_asked_again_and_that_renews_it() -> None:
    """D29, D40: prompt=consent."""
    async with new_world(entities=1) as made:
        await given(made)
        [before] = await stored(made)
        browser = await arrive(made, prompt="consent")
        assert asked(browser)
        await agree(browser)
        [after] = await stored(made)
        assert after.expires_at > before.expires_at
        assert len(await made.audit("consent.give")) == 2


async def test_consent_ends_with_its_days() -> None:
    """D29: `consent_days`, to the second."""
    async with new_world(entities=1, consent_days=2) as made:
        await given(made)
        made.clock.pass_(2 * DAY - 61)
        assert not asked(await arrive(made))
        made.clock.pass_(1)
        assert asked(await arrive(made))


async def test_withdrawn_consent_is_asked_for_again() -> None:
    """D29."""
    async with new_world(entities=1) as made:
        await given(made)
        event = (await made.audit("consent.give"))[0]
        assert await made.provider.registry.consents.withdraw("id-alice", "200000001A", "rp1", event)
        assert asked(await arrive(made))


async def test_a_client_that_becomes_private_has_to_have_it_asked() -> None:
    """D29: and one of the government needs none."""
    async with new_world(entities=1) as made:
        assert not asked(await arrive(made))
        await given(made)
        await made.client(sector="government")
        assert not asked(await arrive(made, scope=EVERY_SCOPE))
        await made.client(sector="private")
        assert asked(await arrive(made, scope=EVERY_SCOPE))
        assert not asked(await arrive(made))


@pytest.mark.parametrize("sector", ["government", "private"])
async def test_what_only_the_client_wants_asked_is_not_remembered(sector: str) -> None:
    """D29, D40: it would not be asked for again in any case, so that there is nothing to withdraw."""
    async with new_world(entities=1) as made:
        await made.client(sector=sector)
        browser = await arrive(made, scope="openid authinfo", prompt="consent")
        assert asked(browser)
        await agree(browser)
        assert await stored(made) == []
        [event] = await made.audit("consent.give")
        assert "expires_at" not in event.detail


async def test_refusing_stores_nothing() -> None:
    """D17, D29."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser = await arrive(made)
        assert query_of(await cancel(browser))["error"] == "access_denied"
        assert await stored(made) == []
        assert await made.audit("consent.give") == []


async def test_agreeing_to_what_is_no_longer_allowed_stores_nothing() -> None:
    """D29, D50: the client may ask for less by then."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser = await arrive(made)
        await made.client(sector="private", scopes=("openid",))
        await agree(browser)
        assert query_of(browser.left)["error"] == "access_denied"
        assert await stored(made) == []
        assert await made.audit("consent.give") == []


async def test_a_form_that_is_sent_twice_gives_consent_once() -> None:
    """D15, D29."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser = await arrive(made)
        fields = {**form_of(browser, "decision"), "decision": "agree"}
        answers = await asyncio.gather(*(post(browser, "consent", fields) for _ in range(3)))
        assert {each.status_code for each in answers} == {303}
        assert len(await made.audit("consent.give")) == 1
        assert len(await made.audit("sign_in.complete")) == 1


async def test_a_form_from_another_site_or_without_its_token_gives_no_consent() -> None:
    """D35."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser = await arrive(made)
        fields = {**form_of(browser, "decision"), "decision": "agree"}
        assert (await post(browser, "consent", fields, site="cross-site")).status_code >= 400
        assert (await post(browser, "consent", {**fields, "form_token": "x"})).status_code >= 400
        assert await stored(made) == []


async def test_two_tabs_that_both_ask_are_both_answered_by_their_own_form() -> None:
    """D29: consent from another tab is remembered by then, and the form still counts."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        one, other = await arrive(made), await arrive(made)
        await agree(one)
        await agree(other)
        assert not asked(other)
        assert len(await stored(made)) == 1


async def test_a_session_completes_without_a_page_once_consent_is_remembered() -> None:
    """D29, D30, D40: also with prompt=none, which is refused before."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await arrive(made, scope="openid authinfo")
        await made.client(sector="private")
        await arrive(made, "none", browser=browser, prompt="none")
        assert query_of(browser.left)["error"] == "consent_required"
        await given(made, "none", browser=browser)
        for parameters in ({}, {"prompt": "none"}):
            assert not asked(await arrive(made, "none", browser=browser, **parameters))
        await arrive(made, "none", browser=browser, prompt="none", scope=f"{NAME} authinfo")
        assert query_of(browser.left)["error"] == "consent_required"


async def test_without_a_page_several_entities_leave_open_which_consent_counts() -> None:
    """D29, D40: interaction_required, whatever is remembered."""
    async with new_world(session_seconds=HOUR) as made:
        browser = await given(made, "password", "code", "entity")
        await arrive(made, "none", browser=browser, prompt="none")
        assert query_of(browser.left)["error"] == "interaction_required"


async def test_consent_that_is_withdrawn_while_a_page_waits_is_asked_for() -> None:
    """D29, D30, D50: the confirmation's form leads to the page for consent, and completes nothing."""
    async with new_world(entities=1, session_seconds=HOUR) as made:
        browser = await given(made)
        made.clock.pass_(60)
        rp = await made.relying_party(scope=NAME)
        answer = await browser.http.get(await rp.begin(), headers={"Sec-Purpose": "prefetch"})
        await browser.open(f"{made.base}{answer.headers['location']}")
        assert browser.page.heading == "Continue as Alice Tan?"
        event = (await made.audit("consent.give"))[0]
        await made.provider.registry.consents.withdraw("id-alice", "200000001A", "rp1", event)
        await browser.fill_and_submit("decision", button="continue")
        assert browser.page.heading == ASKS
        assert len(await made.audit("sign_in.complete")) == 1
        await agree(browser)
        assert not asked(browser)


@pytest.mark.parametrize("ends", ["person", "membership", "client"])
async def test_nothing_is_remembered_of_what_was_removed(ends: str) -> None:
    """D29: a person's erasure takes their consents with it."""
    async with new_world(entities=1) as made:
        await given(made)
        registry = made.provider.registry
        records: dict[str, Any] = {
            "person": (await registry.directory.read(User, [("id-alice",)])).get(("id-alice",)),
            "membership": Membership(user_id="id-alice", entity_id="200000001A"),
            "client": await registry.clients.get("rp1"),
        }
        await registry.directory.write([Change(records[ends], None)])
        assert await stored(made) == []
