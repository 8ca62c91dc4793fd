"""The last change of a person in a browser, undone within ten minutes (D80)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory.approvals import approve_request, load_names
from corpid.flows.directory.undo import NothingToUndo, find_undoable, keep_for_undo, undo_changes
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.flows.request_context import RequestContext, request_context
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_texts import describe_done
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    ChangeRequest,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyGrant,
    User,
    is_undoable,
)
from corpid.rules.limits import UNDO_SECONDS
from tests.manage.access_scene import staffed
from tests.manage.scene import ACME, appoint, go, in_portal, portal
from tests.manage.test_requests import ROLE, acme
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, entity

if TYPE_CHECKING:
    from corpid_dev.relying_party.browser import Browser

FIRM = entity(ACME, "Acme Pte. Ltd.")
MEMBER = Membership(user_id="u", entity_id=ACME, invited=True, email="a@acme.example")
PERSON = User(user_id="u", user_name="u", name="U")
PERMITS = Service(service_id="PERMITS", name="Permits", roles=("Maker", "Checker"))


async def context(made: World) -> RequestContext:
    return await request_context(made.provider, request_id="r1", address="192.0.2.1")


async def firm(made: World) -> None:
    await acme(made)
    await made.write(PERMITS)
    await made.write(replace(FIRM, approvals="none"))


async def write(made: World, *changes: Change, session: str = "s1") -> None:
    alice = replace(owner(made, "alice"), request_id="r1")
    await write_changes(made.provider.registry, alice, changes)
    await keep_for_undo(await context(made), session, alice, changes)


async def undo(made: World, *, who: str = "alice", session: str = "s1", **acting: Any) -> ChangeRequest | None:
    now = made.clock()
    actor = replace(owner(made, who), request_id="r2", **acting)
    asked, asking = await context(made), RequestDetails("A mistake", now, "u1")
    found = await find_undoable(asked, session, actor)
    return await undo_changes(asked, session, actor, asking, named=found.name if found is not None else "")


async def held(made: World) -> list[Assignment]:
    found = await made.provider.registry.directory.read(Assignment, [ROLE.key])
    return [*found.values()]


async def test_a_role_that_was_given_changed_or_taken_is_as_before(made: World) -> None:
    await firm(made)
    longer = replace(ROLE, end_date="2028-12-31")
    for change, before in ((Change(None, ROLE), []), (Change(ROLE, longer), [ROLE]), (Change(longer, None), [longer])):
        await write(made, change)
        assert await undo(made) is None
        assert await held(made) == before
        await made.write(*([change.record] if change.after is not None else []))
    with pytest.raises(NothingToUndo):
        await undo(made)


async def test_several_changes_are_undone_together_and_the_history_says_so(made: World) -> None:
    """D84: what belongs together has the same `batch` in its events."""
    await firm(made)
    other = replace(ROLE, role="Checker")
    await write(made, Change(None, ROLE), Change(None, other))
    await undo(made)
    assert await made.provider.registry.directory.read(Assignment, [ROLE.key, other.key]) == {}
    events = [each for each in await made.provider.registry.audit.entries() if each.action.startswith("assignment.")]
    assert [each.action for each in events] == [*["assignment.add"] * 2, *["assignment.remove"] * 2]
    assert [each.detail.get("batch", "") for each in events] == ["r1", "r1", "r2", "r2"]
    assert {each.actor for each in events} == {"user:id-alice"}


async def test_only_the_person_undoes_it_in_the_browser_and_within_ten_minutes(made: World) -> None:
    await firm(made)
    await write(made, Change(None, ROLE))
    for other in ({"who": "bob"}, {"session": "s2"}):
        with pytest.raises(NothingToUndo):
            await undo(made, **other)
    made.clock.pass_(UNDO_SECONDS)
    with pytest.raises(NothingToUndo):
        await undo(made)
    assert await held(made) == [ROLE]


async def test_a_record_that_was_changed_since_stays(made: World) -> None:
    await firm(made)
    await write(made, Change(None, ROLE))
    await made.write(replace(ROLE, end_date="2028-12-31"))
    with pytest.raises(ChangedMeanwhile):
        await undo(made)
    assert [each.end_date for each in await held(made)] == ["2028-12-31"]


async def test_it_takes_the_right_and_the_fresh_sign_in_of_now(made: World) -> None:
    """D54: an undo is a change as every other."""
    await firm(made)
    await write(made, Change(None, ROLE))
    with pytest.raises(Forbidden):
        await undo(made, auth_time=made.clock() - 901)
    await appoint(made, level="sub_administrator")
    with pytest.raises(Forbidden):
        await undo(made)
    assert await held(made) == [ROLE]


async def test_it_waits_for_approval_if_that_is_needed_by_now(made: World) -> None:
    await firm(made)
    await write(made, Change(None, ROLE))
    await made.write(replace(FIRM, approvals="roles"))
    request = await undo(made)
    assert request is not None
    assert await held(made) == [ROLE]
    bob, now = owner(made, "bob"), made.clock()
    await approve_request(made.provider.registry, request.request_id, actor=bob, reason="Yes", now=now)
    assert await held(made) == []


SUSPEND = "person/m-marcus/suspend"
GRANT = ThirdPartyGrant(client_entity_id=ACME, entity_id="X", service_id="PERMITS")
NEVER = {
    "a level": Change(None, Administrator(user_id="u", entity_id=ACME, level="owner")),
    "an operator": Change(Operator(user_id="u", level="support"), Operator(user_id="u", level="operator")),
    "an invitation": Change(None, MEMBER),
    "another address": Change(MEMBER, replace(MEMBER, email="b@acme.example")),
    "an ended membership": Change(MEMBER, None),
    "approvals": Change(FIRM, replace(FIRM, approvals="roles")),
    "approvals of a service": Change(PERMITS, replace(PERMITS, approval_required=True)),
    "an authorisation": Change(GRANT, replace(GRANT, end_date="2030-01-01")),
    "an address": Change(PERSON, replace(PERSON, email="c@acme.example")),
}


@pytest.mark.parametrize("what", NEVER)
async def test_what_is_never_undone_is_not_kept(made: World, what: str) -> None:
    assert not is_undoable(NEVER[what])
    assert not await keep_for_undo(await context(made), "s1", owner(made, "alice"), [Change(None, ROLE), NEVER[what]])


@pytest.mark.parametrize(
    "record", [FIRM, PERMITS, PERSON, replace(MEMBER, invited=False)], ids=lambda each: type(each).__name__
)
def test_a_switch_is_undone(record: Entity | Service | User | Membership) -> None:
    assert is_undoable(Change(record, replace(record, enabled=False)))


async def member(made: World) -> Membership:
    found: Membership = (await made.provider.registry.directory.read(Membership, [("id-marcus", ACME)]))[
        "id-marcus", ACME
    ]
    return found


def offers_undo(browser: Browser) -> bool:
    return any(each.label == "Undo" for form in browser.page.forms for each in form.buttons)


async def press_undo(browser: Browser) -> None:
    form = next(form for form in browser.page.forms if any(each.label == "Undo" for each in form.buttons))
    await browser.submit(form)


async def test_the_page_after_a_change_offers_to_undo_it_and_the_button_does(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    assert "1 person suspended: marcus (Marcus Lee)" in browser.page.text
    assert not (await member(made)).enabled
    await press_undo(browser)
    assert "Undone. The membership of marcus (Marcus Lee) was restored" in browser.page.text
    assert (browser.page.heading, (await member(made)).enabled) == ("marcus (Marcus Lee)", True)
    assert not offers_undo(browser)


async def test_an_undo_leads_back_to_the_list_as_it_was_narrowed_and_never_to_a_page_that_is_gone(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "people?q=marcus")
    for page, heading in ((None, "People"), ("nowhere", "Home"), ("https://evil.example", "Home")):
        await go(made, browser, "people?q=marcus")
        await browser.fill_and_submit(**{"select-m-marcus": "yes"}, button="Suspend")
        await browser.fill_and_submit("confirmed")
        if page is None:
            await press_undo(browser)
        else:
            await browser.fill_and_submit("undone", page=page)
        assert "Undone. The membership of marcus (Marcus Lee) was restored" in browser.page.text
        assert browser.page.heading == heading
        assert (await member(made)).enabled


async def test_an_undo_is_offered_for_ten_minutes_at_home_and_in_the_history(made: World) -> None:
    """D80: also after the page that offered it was left."""
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    for page in ("", "history"):
        await go(made, browser, page)
        assert "1 person suspended: marcus (Marcus Lee)" in browser.page.text
        assert offers_undo(browser)
    await go(made, browser, "people")
    assert not offers_undo(browser)
    await go(made, browser)
    await press_undo(browser)
    assert "Undone. The membership of marcus (Marcus Lee) was restored" in browser.page.text
    assert not offers_undo(browser)
    made.clock.pass_(601)
    await go(made, browser)
    assert not offers_undo(browser)


async def test_what_is_changed_next_takes_the_place_of_the_last_change(made: World) -> None:
    """An invitation that was sent cannot be undone, and neither can then what was changed before it."""
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    await go(made, browser, "invite")
    await browser.fill_and_submit(name="Priya Nair", email="priya@acme.example")
    assert not offers_undo(browser)
    await browser.open(portal(made, "undo"), site="same-origin")
    assert browser.page.heading == "Home"


async def test_a_change_that_was_changed_again_is_not_undone_and_the_page_says_why(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, SUSPEND)
    await browser.fill_and_submit("form_token", button="Suspend")
    await made.write(replace(await member(made), name="Marcus the Second"))
    await press_undo(browser)
    assert browser.page.heading == "The last change was not undone"
    assert "Something changed while you were on this page" in browser.page.text
    assert not (await member(made)).enabled


async def test_a_user_name_that_another_member_has_by_now_is_not_given_back(made: World) -> None:
    """D61: said in words, and nothing is written."""
    await firm(made)
    registry = made.provider.registry
    cora = await registry.directory.find(Membership, "id-cora", ACME)
    bob = await registry.directory.find(Membership, "id-bob", ACME)
    assert cora is not None
    assert bob is not None
    named = replace(cora, user_name="quay3")
    await made.write(named)
    await write(made, Change(named, replace(named, user_name="")))
    await made.write(replace(bob, user_name="quay3"))
    with pytest.raises(ChangedMeanwhile):
        await undo(made)


async def test_the_offer_to_undo_counts_what_it_does_not_name(made: World) -> None:
    """D68, D80: two roles that were removed by one button."""
    await firm(made)
    other = replace(ROLE, user_id="id-bob", role="Checker")
    await made.write(ROLE, other)
    await write(made, Change(ROLE, None), Change(other, None))
    found = await find_undoable(await context(made), "s1", replace(owner(made, "alice"), request_id="r2"))
    assert found is not None
    names = await load_names(made.provider.registry, ACME, found.changes)
    assert str(describe_done(found.changes, names)).endswith("cora (Cora Chan), and 1 more change")
