"""Administrators in the portal: who may appoint whom, and what the page says before (D53, D54, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory import appointments
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import Refused, RequestDetails, write_changes
from corpid.rules.directory.records import Administrator, Change, ChangeRequest, Entity, Service
from corpid.web.sites import version_of
from tests import contexts
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.sign_in.world import World, entity, form_of, shown_again

if TYPE_CHECKING:
    from corpid.stores.sql.registry import Registry


async def colleague(made: World, name: str = "Bob Lim", *, who: str = "bob", of: str = ACME) -> str:
    """A member of an entity; the identifier of the membership."""
    known = {ACME: "Acme Pte. Ltd.", BANYAN: "Banyan Trading"}
    await made.person(who, entity(of, known[of]), name=name)
    return await membership_of(made, who, of)


async def membership_of(made: World, who: str, of: str = ACME) -> str:
    registry: Registry = made.provider.registry
    belonging = await contexts.belonging(registry, of, limit=100)
    return next(held.membership_id for held, user in belonging if user.user_name == who)


async def level_of(made: World, who: str = "bob", of: str = ACME) -> Administrator | None:
    registry: Registry = made.provider.registry
    key = (f"id-{who}", of)
    return (await registry.directory.read(Administrator, [key])).get(key)


async def test_an_owner_appoints_a_sub_administrator_for_chosen_services_after_a_summary(made: World) -> None:
    """D53: member by search, level, services, a sentence, confirmed."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    browser = await in_portal(made, "administrators/appoint?find=bo")
    assert "Bob Lim" in browser.page.text
    assert "alice" not in browser.page.text
    assert await go(made, browser, f"administrators/{bob}") == "Appoint bob (Bob Lim)"
    assert "Tax filing" not in browser.page.text
    await browser.fill_and_submit("level", level="sub_administrator")
    await browser.fill_and_submit("level", **{"service-TAX": "yes"})
    assert "bob (Bob Lim) becomes a sub-administrator of Acme Pte. Ltd. for Tax filing." in browser.page.text
    assert await level_of(made) is None
    await browser.fill_and_submit("confirmed")
    assert "The level has been changed." in browser.page.text
    held = await level_of(made)
    assert held is not None
    assert (held.level, held.services) == ("sub_administrator", ("TAX",))
    assert "Gives and removes access at Tax filing." in browser.page.text


async def test_a_sub_administrator_needs_a_service_and_every_appointment_a_level(made: World) -> None:
    """D53: an empty list gives nothing, so the page asks for one; what was chosen is kept."""
    await appoint(made)
    bob = await colleague(made)
    browser = await in_portal(made, f"administrators/{bob}")
    await browser.fill_and_submit("level")
    assert "Choose a level." in browser.page.text
    await browser.fill_and_submit("level", level="sub_administrator")
    assert "Choose at least one service." not in browser.page.text
    await browser.fill_and_submit("level", "all_services")
    assert "Choose at least one service." in browser.page.text
    assert browser.response is not None
    assert "entered=" in browser.url
    await browser.fill_and_submit("level", all_services="yes")
    assert "for every service." in browser.page.text


@pytest.mark.parametrize("level", ["owner", "administrator"])
@pytest.mark.parametrize("ticked", ["service-TAX", "all_services"])
@pytest.mark.parametrize("confirm", [{}, {"confirmed": "yes"}])
async def test_services_of_a_level_that_has_every_service_are_refused_and_appoint_nobody(
    made: World, level: str, ticked: str, confirm: dict[str, str]
) -> None:
    """D53: whoever ticks services does not mean somebody who has them all."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    browser = await in_portal(made, f"administrators/{bob}")
    form = {**form_of(browser, "level"), "level": level, ticked: "yes", **confirm}
    answer = await send(made, browser, f"administrators/{bob}", **form)
    answer = await shown_again(browser, answer)
    assert 'href="#level">Owners and administrators administer every service. For some services only' in answer.text
    assert await level_of(made) is None


async def test_the_services_of_a_sub_administrator_are_asked_on_a_page_with_an_address(made: World) -> None:
    """D53, D73: the step answers 303; reloading it or reading it in another language sends nothing again."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    browser = await in_portal(made, f"administrators/{bob}")
    form = {**form_of(browser, "level"), "level": "sub_administrator"}
    answer = await send(made, browser, f"administrators/{bob}", **form)
    step = f"/manage/administrators/{bob}?level=sub_administrator"
    assert (answer.status_code, answer.headers["Location"]) == (303, step)
    await go(made, browser, step.removeprefix("/manage/"))
    asked = browser.page.form_with("all_services")
    assert asked is not None
    assert "service-TAX" in asked.names()
    assert any("level%3Dsub_administrator" in target for target, name in browser.page.links if name == "தமிழ்")
    assert await level_of(made) is None


async def test_every_service_and_single_ones_together_are_refused(made: World) -> None:
    """D53."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    browser = await in_portal(made, f"administrators/{bob}")
    await browser.fill_and_submit("level", level="sub_administrator")
    await browser.fill_and_submit("level", **{"service-TAX": "yes"}, all_services="yes")
    assert "Choose either every service or some services, not both." in browser.page.text
    assert await level_of(made) is None


async def test_a_sub_administrator_who_becomes_an_administrator_loses_the_list_and_the_page_says_where_it_counts(
    made: World,
) -> None:
    """D53: the check page names the scope, and the services held so far contradict nothing."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    await appoint(made, level="sub_administrator", who="bob", services=("TAX",))
    browser = await in_portal(made, f"administrators/{bob}")
    await browser.fill_and_submit("level", level="administrator")
    assert "This applies to every service, including future ones." in browser.page.text
    await browser.fill_and_submit("confirmed")
    held = await level_of(made)
    assert held is not None
    assert (held.level, held.services) == ("administrator", ())


async def test_the_flow_refuses_services_of_another_level_by_the_rule_of_files_and_the_admin_api(made: World) -> None:
    """D53: one rule at every door."""
    await appoint(made)
    bob = await colleague(made)
    await made.write(Service(service_id="TAX", name="Tax filing"))
    registry, now = made.provider.registry, made.clock()
    actor = await load_administrator(registry, "id-alice", ACME, auth_time=now, now=now)
    held = await appointments.load_member_level(registry, actor, bob)
    assert held is not None
    with pytest.raises(Refused, match="administrator has every service"):
        level = Administrator(user_id="id-bob", entity_id=ACME, level="administrator", services=("TAX",))
        await write_changes(registry, actor, [Change(None, level)], asking=RequestDetails("", now, "unique"))
    assert await level_of(made) is None


async def test_the_last_owner_cannot_lose_the_level_and_is_told_before(made: World) -> None:
    """D54."""
    await appoint(made)
    bob = await colleague(made)
    browser = await in_portal(made, "administrators")
    assert "Owner" in browser.page.text
    mine = await membership_of(made, "alice")
    await go(made, browser, f"administrators/{mine}/remove")
    assert "This is the last owner, who must stay: appoint another owner first." in browser.page.text
    await go(made, browser, f"administrators/{bob}")
    token = form_of(browser, "level")
    sent = {**token, "step": version_of(await level_of(made, "alice"))}
    answer = await send(made, browser, f"administrators/{mine}/remove", **sent)
    answer = await shown_again(browser, answer)
    assert await level_of(made, "alice") is not None


async def test_an_administrator_changes_neither_owners_nor_other_administrators_and_sees_why(made: World) -> None:
    """D53: no button where it cannot work, with the reason; a form of their own changes nothing either."""
    await appoint(made, level="administrator")
    bob = await colleague(made)
    carol = await colleague(made, "Carol Ng", who="carol")
    await appoint(made, level="owner", who="bob")
    browser = await in_portal(made, "administrators")
    assert "Only an owner can change this person's level." in browser.page.text
    assert "You cannot change your own level" in browser.page.text
    await go(made, browser, f"administrators/{carol}")
    form = browser.page.form_with("level")
    assert form is not None
    assert {each.value for each in form.controls if each.name == "level"} == {"sub_administrator"}
    assert "all_services" in form.names()
    token = form_of(browser, "level")
    higher = await send(made, browser, f"administrators/{carol}", **{**token, "level": "owner", "confirmed": "yes"})
    shown = version_of(await level_of(made))
    down = await send(made, browser, f"administrators/{bob}/remove", **{**token, "step": shown})
    for refused in (higher, down):
        await shown_again(browser, refused)
    assert await level_of(made, "carol") is None
    held = await level_of(made)
    assert held is not None
    assert held.level == "owner"


async def test_a_sub_administrator_sees_who_administers_and_appoints_nobody(made: World) -> None:
    """D53."""
    await appoint(made, level="sub_administrator", services=("PERMITS",))
    bob = await colleague(made)
    browser = await in_portal(made, "administrators")
    assert "Owners and administrators appoint people." in browser.page.text
    for page in ("administrators/appoint", f"administrators/{bob}", f"administrators/{bob}/remove", "tokens"):
        assert await go(made, browser, page) == "You cannot open this page"


async def test_members_of_another_organisation_are_not_found(made: World) -> None:
    """D61."""
    await appoint(made)
    stranger = await colleague(made, "Dan Other", who="dan", of=BANYAN)
    browser = await in_portal(made, "administrators/appoint?find=d")
    assert "Dan Other" not in browser.page.text
    await browser.open(f"{made.base}/manage/administrators/{stranger}", site="none")
    assert browser.response is not None
    assert browser.response.status_code == 404


async def test_a_form_that_comes_after_another_change_is_not_used(made: World) -> None:
    """D54: the second of two tabs sees what the first has done."""
    await appoint(made)
    bob = await colleague(made)
    browser = await in_portal(made, f"administrators/{bob}")
    token = form_of(browser, "level")
    await appoint(made, level="administrator", who="bob")
    answer = await send(made, browser, f"administrators/{bob}", **token, level="owner", confirmed="yes")
    answer = await shown_again(browser, answer)
    assert "has changed in the meantime" in answer.text
    held = await level_of(made)
    assert held is not None
    assert held.level == "administrator"


async def test_where_approval_is_asked_for_an_appointment_becomes_a_request_with_a_reason(made: World) -> None:
    """D55."""
    await appoint(made)
    bob = await colleague(made)
    directory = made.provider.registry.directory
    acme = (await directory.read(Entity, [(ACME,)]))[ACME,]
    await made.write(replace(acme, approvals="roles"))
    browser = await in_portal(made, f"administrators/{bob}")
    await browser.fill_and_submit("level", level="administrator")
    assert browser.page.heading == "Check and confirm"
    await browser.fill_and_submit("confirmed")
    assert "Say why, for the person who approves it." in browser.page.text
    assert await directory.page(ChangeRequest, {"state": "pending"}, after=("",), limit=5) == []
    await browser.fill_and_submit("confirmed", reason="Second pair of hands")
    assert "Your request has been sent." in browser.page.text
    assert await level_of(made) is None
    [waiting] = await directory.page(ChangeRequest, {"state": "pending"}, after=("",), limit=5)
    assert waiting.reason == "Second pair of hands"


async def test_taking_a_level_away_says_what_stays_and_is_confirmed(made: World) -> None:
    """D53: membership and access stay."""
    await appoint(made)
    bob = await colleague(made)
    await appoint(made, level="administrator", who="bob")
    browser = await in_portal(made, f"administrators/{bob}/remove")
    assert "still belongs to Acme Pte. Ltd. and keeps their access" in browser.page.text
    await browser.fill_and_submit("form_token", button="Remove the level")
    assert "The level has been removed." in browser.page.text
    assert await level_of(made) is None
