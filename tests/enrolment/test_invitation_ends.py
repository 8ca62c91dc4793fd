"""Invitations that have ended or change meanwhile, and who may open them (D60)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from corpid.flows.account import links
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.authentication import records
from corpid.rules.limits import MEMBERSHIP_LINK_SECONDS
from tests.account.scene import go
from tests.enrolment import invited, newcomer
from tests.enrolment.invited import (
    ACCEPTED,
    FIRST,
    HARBOUR,
    INVITES,
    NAME,
    asked,
    at_profile,
    decide,
    membership,
    named,
    revoke,
    stands,
)
from tests.enrolment.newcomer import ELSEWHERE, GONE
from tests.enrolment.test_links import heard
from tests.postbox import Postbox
from tests.sign_in.world import World, entity, new_world

if TYPE_CHECKING:
    from corpid.rules.emails import Email

CODE: Final = "Enter your code"
EXPIRED: Final = "This invitation has expired"


async def test_an_expired_invitation_says_whom_to_ask(made: World) -> None:
    """D60: also while its pages are open."""
    await invited.invite(made)
    url = await invited.link(made)
    browser = await invited.opened(made, url)
    made.clock.pass_(MEMBERSHIP_LINK_SECONDS)
    late = await invited.opened(made, url)
    assert late.page.heading == EXPIRED
    assert NAME in late.page.text
    assert newcomer.status(late) == 410
    await browser.reload()
    assert browser.page.heading in {EXPIRED, CODE}
    assert await stands(made)


@pytest.mark.parametrize("where", ["before opening", "opened", "asked", "setting up"])
async def test_a_revoked_invitation_opens_nothing(made: World, where: str) -> None:
    """D60: on whatever page its reader is."""
    await invited.invite(made)
    url = await invited.link(made)
    if where == "before opening":
        await revoke(made)
        assert (await invited.opened(made, url)).page.heading == GONE
    elif where == "opened":
        browser = await invited.opened(made, url)
        await revoke(made)
        assert await decide(browser, "new") == GONE
    elif where == "asked":
        browser = await asked(made, url)
        await revoke(made)
        assert await decide(browser, "accept") == GONE
        assert await membership(made) is None
    else:
        browser = await at_profile(made, url)
        await named(browser)
        await newcomer.password(browser)
        await newcomer.app(made, browser)
        await revoke(made)
        assert await newcomer.kept(browser) == GONE
        assert await made.provider.registry.directory.user_by_name("wei.ling") is None


@pytest.mark.parametrize("what", ["membership", "entity"])
async def test_what_is_disabled_cannot_be_accepted_until_it_is_restored(made: World, what: str) -> None:
    """D50, D60"""
    found = await invited.invite(made)
    url = await invited.link(made)
    stored = (await invited.of(made)).membership
    off = replace(stored, enabled=False) if what == "membership" else entity(HARBOUR, NAME, enabled=False)
    await made.write(off)
    assert (await invited.opened(made, url)).page.heading == GONE
    await made.write(stored if what == "membership" else entity(HARBOUR, NAME))
    assert (await invited.opened(made, url)).page.heading == INVITES
    assert found.invited


@pytest.mark.parametrize("moment", ["at the names", "at the last step"])
async def test_an_entity_that_changes_the_address_meanwhile_gets_no_account_with_it(made: World, moment: str) -> None:
    """D60, D61: an inviter opens an e-mail to itself, then writes somebody else's address into the invitation."""
    await invited.invite(made)
    browser = await at_profile(made)
    if moment != "at the names":
        await named(browser)
        await newcomer.password(browser)
        await newcomer.app(made, browser)
    another = replace((await invited.of(made)).membership, email="victim@example.org")
    await made.write(another)
    shown = await (newcomer.kept(browser) if moment == "at the last step" else named(browser))
    assert shown == GONE
    assert await made.provider.registry.directory.user_by_name("wei.ling") is None
    assert (await invited.of(made)).membership == another


async def test_an_invitation_accepted_in_one_tab_gives_the_other_nothing(made: World) -> None:
    """D60: the account of the first is untouched by what the second had typed."""
    await invited.invite(made)
    url = await invited.link(made)
    new = await at_profile(made, url)
    await named(new)
    await newcomer.password(new)
    await newcomer.app(made, new)
    browser = await asked(made, url)
    before = await newcomer.credentials(made, "id-alice")
    assert await decide(browser, "accept") == ACCEPTED
    assert await newcomer.kept(new) == GONE
    assert await newcomer.credentials(made, "id-alice") == before
    assert await made.provider.registry.directory.user_by_name("wei.ling") is None


async def test_only_one_browser_sets_up_and_an_opened_link_is_one_browsers(made: World) -> None:
    """D34"""
    await invited.invite(made)
    url = await invited.link(made)
    first = await at_profile(made, url)
    second = await invited.opened(made, url)
    assert await decide(second, "new") == ELSEWHERE
    third = await made.browser()
    await third.open(f"{made.base}/link/{second.url.rpartition('/')[2]}")
    assert third.page.heading == CODE
    assert await named(first) == FIRST


async def test_wrong_codes_are_slowed_as_those_of_other_links(made: World) -> None:
    """D47: and a right one from another address still opens."""
    await invited.invite(made)
    url = await invited.link(made)
    browser = await made.browser("192.0.2.5")
    await browser.open(f"{made.base}/enrol")
    for _ in range(20):
        await browser.fill_and_submit(code="0000-0000-0000-0000-0000")
        assert newcomer.status(browser) == 200
    # The first one beyond begins the delay.
    for _ in range(2):
        await browser.fill_and_submit(code="0000-0000-0000-0000-0000")
    assert newcomer.status(browser) == 429
    assert (await invited.opened(made, url)).page.heading == INVITES


async def test_no_address_that_is_asked_for_holds_the_code_of_an_invitation(made: World) -> None:
    """D48"""
    await invited.invite(made)
    url = await invited.link(made)
    code = url.partition("#")[2].replace("-", "")
    browser = await made.browser()
    with heard(browser) as answers:
        await invited.opened(made, url, browser)
        made.clock.pass_(60)
        await decide(browser, "sign_in")
        await made.factors(browser, made.people["alice"])
        await decide(browser, "accept")
    addresses = [str(answer.request.url) + answer.headers.get("location", "") for answer in answers]
    assert not any(code in address.replace("-", "") for address in addresses)
    assert await go(made, browser) == "Your account"


async def test_an_invitation_of_a_placeholder_is_no_way_into_an_account(made: World) -> None:
    """D60: a link of an invitation that names an account, by whatever mistake, opens nothing."""
    await invited.invite(made)
    code = records.code_from("forged")
    forged = replace(links.make_invitation_link(await invited.of(made), code, now=made.clock()), user_id="id-alice")
    event = AuditEvent(actor="system", action=AuditAction.LINK_MEMBERSHIP)
    await made.provider.registry.factors.keep_link(forged, event)
    browser = await invited.opened(made, f"{made.base}/enrol#{code}")
    assert browser.page.heading == GONE


@pytest.mark.full
async def test_the_running_provider_sends_what_is_due_by_itself() -> None:
    """D60"""

    class Signalling(Postbox):
        arrived = asyncio.Event()

        async def deliver(self, email: Email) -> None:
            await Postbox.deliver(self, email)
            self.arrived.set()

    postbox = Signalling()

    async with new_world(postbox=postbox) as made:
        await invited.invite(made)
        await asyncio.wait_for(postbox.arrived.wait(), 60)
        assert (await invited.opened(made, newcomer.link_in(postbox))).page.heading == INVITES
