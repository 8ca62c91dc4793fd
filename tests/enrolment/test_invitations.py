"""Invitations of entities: their pages, accepted with an account, or declined (D60)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import Membership
from tests.account.scene import at_account
from tests.enrolment import invited, newcomer
from tests.enrolment.invited import (
    ACCEPTED,
    ASKS,
    DECLINED,
    HARBOUR,
    INVITES,
    MAILBOX,
    NAME,
    SIGN_IN,
    WAITING,
    asked,
    at_profile,
    decide,
    enrolled,
    membership,
    newcomers_id,
    stands,
)
from tests.enrolment.newcomer import GONE
from tests.postbox import Postbox
from tests.sign_in.test_entity_selection import statements
from tests.sign_in.world import FORM, World, form_of, new_world


async def test_the_page_of_an_invitation_says_who_invites_and_offers_two_ways(made: World) -> None:
    """D60"""
    await invited.invite(made)
    browser = await invited.opened(made)
    assert browser.page.heading == INVITES
    for text in (HARBOUR, "I have an account with CorpID", "I am new", "I do not want this"):
        assert text in browser.page.text
    assert newcomer.status(browser) == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_looking_at_any_address_of_an_invitation_answers_and_spends_nothing(made: World, method: str) -> None:
    """D34, D60: mail scanners, with the reader's cookie or without, also when the reader is signed in."""
    await invited.invite(made)
    url = await invited.link(made)
    browser = await asked(made, url)
    scanner = await made.http("192.0.2.77")
    opened = f"{made.base}/link/{browser.url.rpartition('/')[2]}"
    for address in (url, opened, browser.url, *(f"{each}?decision=accept" for each in (opened, browser.url))):
        for http in (scanner, browser.http):
            answer = await http.request(method, address, follow_redirects=True)
            assert answer.status_code == 200, address
    assert await stands(made)
    assert await decide(browser, "accept") == ACCEPTED


async def test_an_account_accepts_while_signed_in_and_nothing_of_how_it_signs_in_changes() -> None:
    """D60: the membership moves to the account, under its identifier; the placeholder ends."""
    postbox = Postbox()

    async with new_world(postbox=postbox) as made:
        alice = await made.provider.registry.directory.user("id-alice")
        await made.write(replace(alice, email="alice@example.org"))
        before = await newcomer.credentials(made, "id-alice")
        waiting = await invited.invite(made)
        url = await invited.link(made)
        browser = await asked(made, url)
        assert "Alice Tan" in browser.page.text
        assert await stands(made)
        assert await decide(browser, "accept") == ACCEPTED
        found = await membership(made)
        assert found is not None
        assert (found.membership_id, found.invited, found.email) == (waiting.membership_id, False, MAILBOX)
        assert await made.provider.registry.directory.user(WAITING) is None
        assert await newcomer.credentials(made, "id-alice") == replace(
            before, totp_last_step=(await newcomer.credentials(made, "id-alice")).totp_last_step
        )
        after = await made.provider.registry.directory.user("id-alice")
        assert (after.user_name, after.name, after.email) == ("alice", "Alice Tan", "alice@example.org")
        [event] = await made.audit("membership.accept")
        assert event.actor == "user:id-alice"
        assert str(postbox.emails[-1].subject) == ACCEPTED
        assert postbox.emails[-1].to == "alice@example.org"
        await browser.reload()
        assert browser.page.heading == ACCEPTED
        assert (await invited.opened(made, url)).page.heading == GONE


async def test_who_is_signed_in_to_the_account_already_is_asked_at_once_and_can_take_another_account(
    made: World,
) -> None:
    """D60: but never accepts by that."""
    await made.person("bob", name="Bob Lim")
    await invited.invite(made)
    url = await invited.link(made)
    browser = await at_account(made)
    await invited.opened(made, url, browser)
    assert await decide(browser, "sign_in") == ASKS
    assert "Alice Tan" in browser.page.text
    assert await stands(made)
    made.clock.pass_(60)
    assert await decide(browser, "other_account") == SIGN_IN
    await made.factors(browser, made.people["bob"])
    assert "Bob Lim" in browser.page.text
    assert await decide(browser, "accept") == ACCEPTED
    assert await membership(made) is None
    assert await membership(made, "id-bob") is not None


@pytest.mark.parametrize("case", ["no token", "of the link's page", "another browser's", "another site's"])
async def test_only_the_form_of_the_page_accepts(made: World, case: str) -> None:
    """D35: CSRF."""
    await invited.invite(made)
    url = await invited.link(made)
    browser, other = await asked(made, url), await asked(made, url)
    tokens = {
        "no token": "",
        "another browser's": form_of(other, "decision")["form_token"],
        "another site's": form_of(browser, "decision")["form_token"],
    }
    where = browser.url
    if case == "of the link's page":
        await browser.open(f"{made.base}/link/{where.rpartition('/')[2]}")
        tokens[case] = form_of(browser, "decision")["form_token"]
    site = "cross-site" if case == "another site's" else "same-origin"
    fields = {"form_token": tokens[case], "step": "", "decision": "accept"}
    for target in (where, f"{made.base}/link/{where.rpartition('/')[2]}"):
        await browser.http.post(
            target, content=urlencode(fields), headers={"Content-Type": FORM, "Sec-Fetch-Site": site}
        )
    assert await stands(made)


@pytest.mark.parametrize("signed_in", [False, True])
async def test_declining_ends_the_invitation_and_tells_nothing_of_an_account(made: World, signed_in: bool) -> None:
    """D60: needs no account, and the history names the placeholder in either case."""
    await invited.invite(made)
    url = await invited.link(made)
    browser = await asked(made, url) if signed_in else await invited.opened(made, url)
    assert await decide(browser, "decline") == DECLINED
    assert await made.provider.registry.directory.user(WAITING) is None
    assert await membership(made) is None
    events = [each for each in await made.provider.registry.audit.entries(limit=1000) if each.entity_id == HARBOUR]
    assert [each.action for each in events if each.action.startswith("membership.")] == [
        "membership.add",
        "membership.decline",
    ]
    assert not any("alice" in str(each) for each in events)
    [declined] = await made.audit("membership.decline")
    assert declined.actor == f"user:{WAITING}"
    await browser.reload()
    assert browser.page.heading == DECLINED
    assert (await invited.opened(made, url)).page.heading == GONE


@pytest.mark.parametrize("suspended", [False, True])
async def test_who_belongs_to_the_entity_already_gets_a_sentence_and_the_inviter_nothing(
    made: World, suspended: bool
) -> None:
    """D60: the invitation stands, for another account."""
    await invited.invite(made)
    own = Membership(user_id="id-alice", entity_id=HARBOUR, enabled=not suspended)
    await made.write(own)
    url, before = await invited.link(made), await membership(made)
    events = len(await made.provider.registry.audit.entries(limit=1000))
    browser = await asked(made, url)
    assert "This account already belongs to " in browser.page.text
    assert 'value="accept"' not in newcomer.shown(browser).text
    fields = {**form_of(browser, "decision"), "decision": "accept"}
    answer = await browser.http.post(
        browser.url, content=urlencode(fields), headers={"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    )
    assert answer.status_code == 303
    assert await membership(made) == before
    assert await made.provider.registry.invitations.find(WAITING) is not None
    later = (await made.provider.registry.audit.entries(limit=1000))[: -events or None]
    assert not [each for each in later if each.entity_id == HARBOUR]


async def test_a_form_that_is_sent_twice_leads_to_the_same_page(made: World) -> None:
    """D15"""
    await invited.invite(made)
    browser = await asked(made)
    fields: dict[str, Any] = {**form_of(browser, "decision"), "decision": "accept"}
    sent = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin"}
    for _ in range(2):
        answer = await browser.http.post(browser.url, content=urlencode(fields), headers=sent, follow_redirects=True)
        assert ACCEPTED in answer.text
    assert len(await made.audit("membership.accept")) == 1


async def test_the_pages_of_an_invitation_are_the_same_whether_its_reader_has_an_account_or_not() -> None:
    """D60: text and number of statements; nothing looks for accounts before somebody signs in."""
    seen: list[tuple[str, list[int]]] = []
    for address in ("alice@example.org", "nobody@example.org"):
        async with new_world() as made:
            alice = await made.provider.registry.directory.user("id-alice")
            await made.write(replace(alice, email="alice@example.org"))
            await invited.invite(made, email=address)
            url = await invited.link(made)
            numbers = []
            with statements(made) as said:
                browser = await invited.opened(made, url)
                numbers.append(len(said))
                text = browser.page.text
                await decide(browser, "new")
                numbers.append(len(said))
                text += browser.page.text
                await browser.open(f"{made.base}/link/{browser.url.rpartition('/')[2]}")
                numbers.append(len(said))
            seen.append((text, numbers))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "rest", ["x", "a" * 43 + "/x", "a" * 42 + "%0d%0aSet-Cookie:%20a=b", "..%2f" * 20, "%C3%A9" * 43]
)
async def test_an_address_that_no_invitation_has_is_none(made: World, rest: str) -> None:
    """SECURITY.md: it never comes back in a redirect."""
    http = await made.http()
    for method in ("GET", "POST"):
        answer = await http.request(
            method,
            f"{made.base}/account/invitation/{rest}",
            headers={"Sec-Fetch-Site": "same-origin", "Content-Type": FORM},
        )
        assert answer.status_code == 404


async def test_whoever_is_invited_is_told_before_anything_that_the_organisation_sees_their_user_name(
    made: World,
) -> None:
    """D68: on the page of the link, on the page that asks, and in the e-mail."""
    await invited.invite(made)
    sender = invited.Sender(made=made)
    assert await sender.round() == 1
    assert f"If you accept, {NAME} sees the user name of your account." in sender.postbox.emails[0].text
    browser = await invited.opened(made, newcomer.link_in(sender.postbox))
    for _ in range(2):
        assert "It sees your name, user name and e-mail address." in browser.page.text
        if browser.page.heading != ASKS:
            made.clock.pass_(60)
            await decide(browser, "sign_in")
            await made.factors(browser, made.people["alice"])
    assert browser.page.heading == ASKS


async def test_the_history_of_an_entity_is_the_same_for_new_people_and_for_accounts() -> None:
    """D60: who accepted had an account before, or made one: the entity does not see which."""
    seen = []
    for new in (True, False):
        async with new_world() as made:
            await invited.invite(made)
            url = await invited.link(made)
            if new:
                assert await enrolled(made, await at_profile(made, url)) == ACCEPTED
                accepted = await newcomers_id(made)
            else:
                assert await decide(await asked(made, url), "accept") == ACCEPTED
                accepted = "id-alice"
            events = await made.provider.registry.audit.entries(limit=1000)
            own = [each for each in events if HARBOUR in (each.entity_id, each.other_entity_id)]
            members = (await membership(made, accepted), accepted)
            seen.append(
                [
                    (
                        each.action,
                        each.outcome,
                        *(_blind(value, accepted) for value in (each.actor, each.object, each.detail)),
                    )
                    for each in own
                ]
            )
            assert members[0] is not None
    assert seen[0] == seen[1]
    assert len(seen[0]) == 3


def _blind(value: object, person: str) -> str:
    """Without the identifiers that differ anyway."""
    return re.sub(
        r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID", str(value).replace(person, "PERSON").replace(WAITING, "WAITING")
    )
