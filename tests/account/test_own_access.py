"""A person's own access, and requests for more (D53, D54, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import Refused
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import EntityAdministrator, Forbidden
from corpid.rules.directory.records import Administrator, Change, Membership, is_undoable
from corpid.rules.limits import ACCESS_REQUESTS_PER_DAY
from corpid.web.pages.role_fields import value_field
from tests.account.scene import at_account, go, hidden, send
from tests.manage.access_scene import HARBOUR, NOTICES, checker, confirm, employed, follow, requests, roles
from tests.manage.scene import ACME
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

YEAR = value_field(HARBOUR, "Permit Year")


async def managed(made: World) -> None:
    """Nadia owns Acme, where Alice has no role yet."""
    await made.write(HARBOUR, NOTICES)
    await employed(made, "nadia", "Nadia Rahman")
    await made.write(Administrator(user_id="id-nadia", entity_id=ACME, level="owner"))


async def nadia(made: World) -> EntityAdministrator:
    registry, now = made.provider.registry, made.clock()
    return await load_administrator(registry, "id-nadia", ACME, auth_time=now, now=now)


async def asked(made: World) -> Browser:
    """A browser in which Alice has asked to be a Checker."""
    browser = await at_account(made, "access/ask")
    await go(made, browser, f"access/ask?entity={ACME}&service=HARBOUR")
    await confirm(browser, role="Checker", end="year-end", reason="I check permits now", **{YEAR: "2026"})
    return browser


async def test_a_person_reads_their_roles_in_sentences_with_who_gave_them(made: World) -> None:
    """D61, D65: by name if the giver belongs to the organisation."""
    await managed(made)
    event = AuditEvent(actor="user:id-nadia", action=AuditAction.ASSIGNMENT_ADD, object="x", entity_id=ACME)
    mine = checker("alice", end_date="2099-12-31")
    await made.provider.registry.directory.write([Change(None, mine, event)])
    browser = await at_account(made, "access")
    text = browser.page.text
    assert "You may act as Checker at Harbour permits for Acme Pte. Ltd. until 31 Dec" in text
    assert "Permit Year: 2026" in text
    assert "Given by nadia (Nadia Rahman)" in text
    level = Administrator(user_id="id-nadia", entity_id=ACME, level="owner")
    await made.provider.registry.directory.write([Change(level, None), Change(await _membership(made, "nadia"), None)])
    await go(made, browser, "access")
    assert "Nadia" not in browser.page.text


async def test_a_person_reads_that_nobody_can_decide(made: World) -> None:
    """D53, D55: before they ask in vain."""
    await managed(made)
    page, nobody = f"access/ask?entity={ACME}&service=HARBOUR", "Nobody else in your organisation can decide"
    browser = await at_account(made, page)
    assert nobody not in browser.page.text
    sub_administrator = Administrator(
        user_id="id-nadia", entity_id=ACME, level="sub_administrator", services=("NOTICES",)
    )
    await made.write(sub_administrator)
    await go(made, browser, page)
    assert nobody in browser.page.text
    await made.write(replace(sub_administrator, services=("HARBOUR",)))
    await go(made, browser, page)
    assert nobody not in browser.page.text


async def test_a_membership_is_suspended_and_an_organisation_disabled(made: World) -> None:
    """docs/wording.md: two states, two words."""
    await managed(made)
    member = await _membership(made, "alice")
    await made.write(replace(member, enabled=False))
    browser = await at_account(made, "access")
    assert "Acme Pte. Ltd. Suspended" in browser.page.text
    await made.write(member, replace(entity(ACME, "Acme Pte. Ltd."), enabled=False))
    await go(made, browser, "access")
    assert "Acme Pte. Ltd. Disabled" in browser.page.text


async def test_many_organisations_are_folded_and_few_are_not(made: World) -> None:
    """Without a script: each opens with the keyboard, and says how many roles are in it."""
    await managed(made)
    await made.write(checker("alice", end_date="2099-12-31"))
    browser = await at_account(made, "access")
    assert browser.response is not None
    assert "<details" not in browser.response.text
    for number in range(10, 14):
        more = entity(f"2000000{number}A", f"Works {number}")
        await made.write(more, Membership(user_id="id-alice", entity_id=more.entity_id, membership_id=f"m-{number}"))
    await go(made, browser, "access")
    assert browser.response.text.count("<details") == browser.response.text.count("<summary") >= 5
    assert "Acme Pte. Ltd. 1 role" in browser.page.text
    assert "Works 13 No role" in browser.page.text


async def _membership(made: World, user_name: str) -> Membership:
    key = (f"id-{user_name}", ACME)
    found: Membership = (await made.provider.registry.directory.read(Membership, [key]))[key]
    return found


async def test_a_person_asks_for_a_role_and_sees_what_became_of_it(made: World) -> None:
    """D55: it always needs approval, also where the organisation demands none."""
    await managed(made)
    browser = await at_account(made, "access")
    await follow(browser, "Ask for access")
    await browser.fill_and_submit(service="HARBOUR")
    await confirm(browser, role="Checker", end="year-end")
    assert "Enter the Permit Year. Harbour permits needs it." in browser.page.text
    assert "Say why you need it." in browser.page.text
    await confirm(browser, reason="I check permits now", **{YEAR: "2026"})
    assert "Your request has been sent" in browser.page.text
    assert "You asked to act as Checker at Harbour permits" in browser.page.text
    assert await roles(made, "alice") == []
    [request] = await requests(made)
    registry, now = made.provider.registry, made.clock()
    await approvals.comment_on_request(
        registry, request.request_id, actor=await nadia(made), text="I ask your manager", now=now
    )
    await go(made, browser, "access")
    assert "nadia (Nadia Rahman), 15 Jan 2027: I ask your manager" in browser.page.text.replace(" ,", ",")
    await approvals.approve_request(registry, request.request_id, actor=await nadia(made), reason="Agreed", now=now)
    [row] = await roles(made, "alice")
    assert row.role == "Checker"
    await go(made, browser, "access")
    assert "Approved" in browser.page.text
    assert "Answer: Agreed" in browser.page.text
    assert "Given by nadia (Nadia Rahman)" in browser.page.text
    [added] = await made.audit("assignment.add")
    assert (added.actor, added.detail["requested_by"]) == ("user:id-nadia", "user:id-alice")


async def test_what_was_approved_for_somebody_is_not_to_be_undone(made: World) -> None:
    """D80: an approval is no change of one's own."""
    await managed(made)
    await asked(made)
    [request] = await requests(made)
    approver, now = await nadia(made), made.clock()
    await approvals.approve_request(made.provider.registry, request.request_id, actor=approver, reason="Yes", now=now)
    assert not [each for each in approver.written if is_undoable(each)]


async def test_nobody_approves_what_they_asked_for_themselves(made: World) -> None:
    """D54, D55: not even an owner."""
    await managed(made)
    await made.write(Administrator(user_id="id-alice", entity_id=ACME, level="owner"))
    await asked(made)
    [request] = await requests(made)
    registry, now = made.provider.registry, made.clock()
    alice = await load_administrator(registry, "id-alice", ACME, auth_time=now, now=now)
    with pytest.raises(Forbidden, match="nobody can decide on their own request"):
        await approvals.approve_request(registry, request.request_id, actor=alice, reason="Mine", now=now)


async def test_the_request_of_somebody_who_left_cannot_be_approved(made: World) -> None:
    """D50, D55."""
    await managed(made)
    await asked(made)
    [request] = await requests(made)
    await made.write(replace(await _membership(made, "alice"), enabled=False))
    registry, now = made.provider.registry, made.clock()
    with pytest.raises(Refused, match="no longer acts for this entity"):
        await approvals.approve_request(registry, request.request_id, actor=await nadia(made), reason="Late", now=now)


async def test_a_request_is_made_once_and_withdrawn_by_the_person_who_made_it(made: World) -> None:
    """D55."""
    await managed(made)
    browser = await asked(made)
    await go(made, browser, f"access/ask?entity={ACME}&service=HARBOUR")
    await confirm(browser, role="Checker", end="none", reason="Again", **{YEAR: "2027"})
    assert "You have already asked for this" in browser.page.text
    [request] = await requests(made)
    await made.person("mallory")
    other = await at_account(made, who="mallory")
    foreign = {**hidden_of(other), "request": request.request_id}
    assert (await send(made, other, "access", **foreign)).status_code in {303, 404}
    assert len(await requests(made)) == 1
    await go(made, browser, "access")
    await browser.fill_and_submit("request")
    assert "Your request has been withdrawn." in browser.page.text
    assert await requests(made) == []


def hidden_of(browser: Browser) -> dict[str, str]:
    return hidden(browser) if any("form_token" in form.names() for form in browser.page.forms) else {}


async def test_nobody_asks_for_an_organisation_that_they_do_not_belong_to(made: World) -> None:
    """D53, D55."""
    await managed(made)
    browser = await at_account(made, "access/ask")
    await go(made, browser, f"access/ask?entity={ACME}&service=NOTICES")
    sent = {**hidden(browser), "entity": "200000009Z", "service": "NOTICES", "end": "none", "reason": "x"}
    assert (await send(made, browser, "access/ask", **sent)).status_code == 404
    await made.write(replace(await _membership(made, "alice"), enabled=False))
    assert (await send(made, browser, "access/ask", **{**sent, "entity": ACME})).status_code == 404
    assert await requests(made) == []
    await go(made, browser, "access/ask")
    assert "Banyan Trading" in browser.page.text


async def test_a_person_asks_so_often_a_day_and_no_more(made: World) -> None:
    """D47, D55."""
    await managed(made)
    browser = await at_account(made, "access")
    for number in range(ACCESS_REQUESTS_PER_DAY + 1):
        await go(made, browser, f"access/ask?entity={ACME}&service=HARBOUR")
        fields = {YEAR: "2026", value_field(HARBOUR): f"Branch {number}"}
        await confirm(browser, role="Checker", end="none", reason="Every branch", **fields)
    assert "Try again tomorrow." in browser.page.text
    assert len(await requests(made)) == ACCESS_REQUESTS_PER_DAY
