"""Who is asked what may be shared, and when (D29, D40)."""

from __future__ import annotations

import pytest

from corpid.rules.oauth.generations import IDENTITY_SCOPES
from corpid_dev.relying_party.people import cancel, sign_in
from tests.sign_in.world import EVERY_SCOPE, IDENTITY, World, form_of, new_world, post, query_of, walk_to

ROLES = "Your roles for the organisation, service by service"
WITHOUT_IDENTITY = ("openid", "openid authinfo", "openid tpauthinfo", "openid authinfo tpauthinfo")


async def asked(made: World, sector: str, scope: str, **parameters: str) -> list[str]:
    """The lines of the consent page, empty where the sign-in ended without one."""
    await made.client(sector=sector)
    browser, rp = await made.browser(), await made.relying_party(scope=scope, **parameters)
    await walk_to(made, browser, rp, ("password", "code"))
    if browser.left is not None:
        assert "code" in query_of(browser.left)
        return []
    assert browser.page.heading == "Do you agree to share this?"
    assert browser.response is not None
    listed = browser.response.text.partition("</main>")[0].split("<li>")[1:]
    return [line.partition("</li>")[0] for line in listed]


@pytest.mark.parametrize("scope", IDENTITY_SCOPES)
async def test_a_private_client_that_asks_for_one_fact_has_the_person_agree_to_that_fact(scope: str) -> None:
    """D29: for each entity.* and user.* scope, in plain words."""
    async with new_world(entities=1) as made:
        first, told, last = await asked(made, "private", f"openid authinfo {scope}")
        assert first.startswith("That you signed in")
        assert told.startswith("The organisation" if scope.startswith("entity") else "Your ")
        assert last == ROLES


async def test_everything_that_is_asked_for_stands_on_the_page() -> None:
    """D29, Spec 4.9: also the roles and the third parties, which are read at userinfo."""
    async with new_world(entities=1) as made:
        lines = await asked(made, "private", EVERY_SCOPE)
        assert len(lines) == len(EVERY_SCOPE.split())
        assert lines[-2:] == [
            ROLES,
            "Other organisations that the organisation may act for, and your roles for each of them",
        ]


@pytest.mark.parametrize("scope", WITHOUT_IDENTITY)
async def test_a_private_client_that_asks_for_roles_alone_needs_no_consent(scope: str) -> None:
    """D29: never for openid, authinfo, tpauthinfo alone."""
    async with new_world(entities=1) as made:
        assert await asked(made, "private", scope) == []


async def test_a_client_of_the_government_needs_no_consent() -> None:
    """D29."""
    async with new_world(entities=1) as made:
        assert await asked(made, "government", EVERY_SCOPE) == []


async def test_a_client_of_the_government_may_have_consent_asked() -> None:
    """D40: prompt=consent."""
    async with new_world(entities=1) as made:
        assert len(await asked(made, "government", EVERY_SCOPE, prompt="consent")) == len(EVERY_SCOPE.split())


@pytest.mark.generations("legacy", "current", differ=True)
async def test_consent_that_is_asked_for_roles_alone_says_what_is_told(speaking: str) -> None:
    """D40: never a page without a single line; a packed subject tells everything there is (R-12.2), and both blocks
    are read without their scopes (Spec "LEGACY's authorization-info")."""
    async with new_world(generations=(speaking,), entities=1) as made:
        lines = await asked(made, "government", "openid authinfo", prompt="consent")
        unasked = ["tpauthinfo", *IDENTITY.split()] if speaking == "legacy" else []
        assert len(lines) == len(["openid", "authinfo", *unasked])
        assert ROLES in lines
        assert any(line.startswith("Other organisations") for line in lines) is (speaking == "legacy")
        assert ("Your name" in lines) is (speaking == "legacy")


async def test_consent_is_asked_every_time_if_it_is_not_remembered() -> None:
    """D29: also of the same person by the same client, minutes later; the audit says that it was given."""
    async with new_world(entities=1, consent_days=0) as made:
        await made.client(sector="private")
        for _ in range(2):
            browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
            await walk_to(made, browser, rp, ("password", "code"))
            assert browser.page.heading == "Do you agree to share this?"
            await browser.fill_and_submit("decision", button="agree")
            await rp.redeem(browser.left or "")
            made.clock.pass_(60)
        assert await made.provider.registry.consents.list_for_user("id-alice", now=made.clock()) == []
        given = await made.audit("consent.give")
        assert [each.detail.get("expires_at") for each in given] == [None, None]


@pytest.mark.generations("legacy", "current")
async def test_who_refuses_consent_shares_nothing(speaking: str) -> None:
    """D17, D29."""
    async with new_world(generations=(speaking,), entities=1) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(**made.decided)
        callback = await sign_in(browser, await rp.begin(), made.people["alice"], agree=False, now=made.clock)
        answer = query_of(callback)
        assert (answer["error"], answer["state"]) == ("access_denied", rp.sign_in.state)
        assert await made.audit("sign_in.complete") == []


async def test_consent_cannot_be_skipped_with_another_form() -> None:
    """D29: confirm, entity and consent without a decision complete nothing."""
    async with new_world(entities=1) as made:
        await made.client(sector="private")
        browser, rp = await made.browser(), await made.relying_party(scope=EVERY_SCOPE)
        await walk_to(made, browser, rp, ("password", "code"))
        fields = form_of(browser, "decision")
        more: dict[str, dict[str, str]] = {
            "consent": {},
            "entity": {"entity": "200000001A"},
            "confirm": {"decision": "continue"},
            "code": {"code": "000000"},
        }
        for action, added in more.items():
            answer = await post(browser, action, {**fields, **added})
            assert answer.status_code in (303, 303)
            assert await made.audit("sign_in.complete") == []
        await browser.reload()
        assert "error" in query_of(await cancel(browser))
