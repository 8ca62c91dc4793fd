"""Change requests in the portal: seen, approved, declined, withdrawn, and by whom not (D53, D55)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corpid.flows.directory.approvals import read_request
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.access import CommandLine, EntityAdministrator
from corpid.rules.directory.access_texts import RequestNames, summarise_change, title_changes
from corpid.rules.directory.records import (
    Administrator,
    AdministratorLevel,
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    Membership,
    Service,
    ThirdPartyGrant,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition
from tests import contexts
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.manage.walking import follow, token
from tests.sign_in.world import World, entity, form_of, new_world, shown_again

FIRM = entity(ACME, "Acme")
ROLE = Assignment(user_id="id-cora", entity_id=ACME, service_id="PERMITS", role="Maker", end_date="2027-12-31")

HEADING = "Give access to cora (Cora Chan)"
TITLE = f"{HEADING}: Maker at Permits, until 31 Dec 2027"


async def acme(made: World) -> None:
    """Alice and Bob own Acme, where access needs approval; Cora is a member."""
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="roles"))
    await made.person("bob", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Bob Lim")
    await made.person("cora", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Cora Chan")
    await appoint(made)
    await appoint(made, who="bob")


async def requested(
    made: World,
    *changes: Change,
    who: str = "bob",
    level: AdministratorLevel = "owner",
    services: tuple[str, ...] = (),
) -> ChangeRequest:
    """A request as another door makes it."""
    actor = EntityAdministrator(
        user_id=f"id-{who}", entity_id=ACME, level=level, services=services, alone=False,
        auth_time=made.clock(), now=made.clock(),
    )  # fmt: skip
    wanted = changes or (Change(None, ROLE),)
    found = await write_changes(
        made.provider.registry,
        actor,
        wanted,
        planned=True,
        asking=RequestDetails("Cora joins the team", made.clock(), f"r{made.clock()}".replace(".", "-")),
    )
    assert found is not None
    return found


async def state(made: World, found: ChangeRequest) -> str:
    now: dict[tuple[str, ...], ChangeRequest] = await made.provider.registry.directory.read(ChangeRequest, [found.key])
    return now[found.key].state


async def roles(made: World) -> list[Assignment]:
    return list((await made.provider.registry.directory.read(Assignment, [ROLE.key])).values())


async def test_the_link_of_an_e_mail_leads_to_that_request_through_the_sign_in(made: World) -> None:
    """docs/decisions/0022."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/{found.request_id}?of={ACME}")
    assert browser.page.heading == HEADING
    assert "Cora joins the team" in browser.page.text


async def test_another_administrators_request_is_read_and_approved(made: World) -> None:
    """D55: what changes, before and after, requester, reason; at approval the change is made."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, "requests")
    await follow(browser, TITLE)
    assert browser.page.heading == HEADING
    assert "cora (Cora Chan) may act as Maker at Permits for Acme Pte. Ltd. until 31 Dec 2027." in browser.page.text
    assert all(each in browser.page.text for each in ("Bob Lim", "Cora joins the team", "Expires"))
    assert "Who can decide alice (Alice Tan)" in browser.page.text
    assert browser.page.text.count("Maker") == 1
    await browser.fill_and_submit("reason", button="approve", reason="She starts on Monday")
    assert "The request has been approved, and the change has been made." in browser.page.text
    assert await state(made, found) == "approved"
    assert await roles(made) == [ROLE]
    (event,) = await made.audit("approval.approve")
    assert event.actor == "user:id-alice"


async def test_a_decision_that_comes_too_late_is_made_only_after_a_sign_in_that_shows_the_request_again(
    made: World,
) -> None:
    """D54, D68: with the reason, and with the names as they are by then."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/{found.request_id}")
    made.clock.pass_(901)
    await browser.fill_and_submit("reason", button="approve", reason="She starts on Monday")
    assert browser.page.heading == "Confirm it is you, Alice Tan"
    await made.factors(browser, made.people["alice"])
    assert browser.page.heading == HEADING
    assert "Nothing has changed yet" in browser.page.text
    assert await state(made, found) == "pending"
    assert form_of(browser, "reason")["reason"].strip() == "She starts on Monday"
    await browser.fill_and_submit("reason", button="approve")
    assert await state(made, found) == "approved"


async def test_a_request_is_approved_without_a_reason(made: World) -> None:
    """D55: the requester has given one."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    await browser.fill_and_submit(button="approve")
    assert await state(made, found) == "approved"


async def test_to_decline_needs_a_reason_and_a_declined_request_changes_nothing(made: World) -> None:
    """D55."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    await browser.fill_and_submit(button="decline")
    assert "Enter a reason." in browser.page.text
    await browser.fill_and_submit(button="decline", reason="She leaves")
    assert await state(made, found) == "declined"
    assert await roles(made) == []
    assert await go(made, browser, "requests?state=declined") == "Requests"
    assert "She leaves" in browser.page.text
    await follow(browser, TITLE)
    assert "She leaves" in browser.page.text
    assert "Alice Tan" in browser.page.text


async def test_nobody_decides_on_their_own_request_and_they_read_why(made: World) -> None:
    """D55."""
    await acme(made)
    found = await requested(made, who="alice")
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "another administrator has to decide" in browser.page.text
    assert browser.page.form_with("reason") is None
    await go(made, browser, f"requests/withdraw/{found.request_id}")
    kept = token(browser)
    answer = await send(
        made, browser, f"requests/decide/{found.request_id}", **kept, decision="approve", reason="I may"
    )
    answer = await shown_again(browser, answer)
    assert await state(made, found) == "pending"


async def test_where_nobody_can_approve_a_request_the_pages_say_what_to_do() -> None:
    """D55: before it is sent, and of one that waits."""
    promise, nobody = (
        "the approval of another administrator",
        "Nobody else in your organisation can approve",
    )

    async with new_world() as made:
        await acme(made)
        await made.write(entity(ACME, "Acme Pte. Ltd."), Service(service_id="TAX", name="Tax", approval_required=True))
        found = await requested(
            made,
            Change(None, replace(ROLE, service_id="TAX", role="")),
            who="alice",
        )  # fmt: skip
        page, form = (
            f"requests/{found.request_id}",
            "access/new?person=id-cora&access=TAX&check=all&start=today&end=none",
        )
        registry = made.provider.registry
        [cora] = [held for held, user in await contexts.belonging(registry, ACME, limit=10) if user.user_name == "cora"]
        form = form.replace("id-cora", cora.membership_id)
        browser = await in_portal(made, page)
        assert nobody not in browser.page.text
        await go(made, browser, form)
        assert promise in browser.page.text
        await appoint(made, who="bob", level="sub_administrator", services=("TAX",))
        await go(made, browser, page)
        assert nobody not in browser.page.text  # Bob can, at this service
        await appoint(made, who="bob", level="sub_administrator", services=("PERMITS",))
        await go(made, browser, page)
        assert nobody in browser.page.text
        assert "another administrator has to decide" not in browser.page.text
        await go(made, browser, form)
        assert nobody in browser.page.text
        assert promise not in browser.page.text
        await follow(browser, "Appoint somebody")
        assert browser.page.heading == "Choose a person"
        await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="roles"))
        await go(made, browser, page)
        assert "Ask the operator of this service" in browser.page.text  # an appointment would wait, too


async def test_a_request_is_withdrawn_by_the_person_who_made_it_without_a_reason(made: World) -> None:
    """D55."""
    await acme(made)
    found = await requested(made, who="alice")
    browser = await in_portal(made, f"requests/withdraw/{found.request_id}")
    await browser.fill_and_submit(button="Withdraw the request")
    assert "Your request has been withdrawn." in browser.page.text
    assert await state(made, found) == "withdrawn"


async def test_another_persons_request_cannot_be_withdrawn(made: World) -> None:
    """D55."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    kept = token(browser)
    answer = await send(made, browser, f"requests/withdraw/{found.request_id}", **kept, decision="withdraw")
    answer = await shown_again(browser, answer)
    assert await state(made, found) == "pending"


async def test_a_stale_request_is_refused_with_the_reason_and_stays(made: World) -> None:
    """D55: at approval the rules are asked again on what is true then."""
    await acme(made)
    found = await requested(made)
    await made.write(replace(ROLE, end_date="2028-12-31"))
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    await browser.fill_and_submit(button="approve", reason="She starts on Monday")
    assert "has changed since it was made" in browser.page.text
    assert await state(made, found) == "pending"


async def test_a_refusal_of_the_flow_is_in_the_readers_language(made: World) -> None:
    """The reason, too."""
    await acme(made)
    found = await requested(made)
    await made.disable("bob")
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    await browser.open(f"{made.base}/language/ms?page=/manage/requests/decide/{found.request_id}", site="same-origin")
    await browser.fill_and_submit(button="approve", reason="Isnin")
    assert "Ini tidak boleh dilakukan: pemohon tidak lagi" in browser.page.text
    assert await state(made, found) == "pending"


async def test_a_second_decision_finds_that_it_was_decided(made: World) -> None:
    """D55: a request is decided once."""
    await acme(made)
    found = await requested(made)
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    kept = token(browser)
    first = {**kept, "decision": "decline", "reason": "No"}
    assert (await send(made, browser, f"requests/decide/{found.request_id}", **first)).status_code == 303
    second = {**first, "decision": "approve"}
    await shown_again(browser, await send(made, browser, f"requests/decide/{found.request_id}", **second))
    assert await state(made, found) == "declined"
    assert await roles(made) == []


async def test_a_request_of_another_organisation_is_not_found(made: World) -> None:
    """D54, D55: nor can it be decided on with a right token of one's own."""
    await acme(made)
    found = await requested(made)
    await made.person("dora", entity(BANYAN, "Banyan Trading"), name="Dora Ong")
    await appoint(made, BANYAN, who="dora")
    browser = await in_portal(made, "approvals-setting", who="dora")
    kept = token(browser)
    for page in (f"requests/{found.request_id}", f"requests/decide/{found.request_id}"):
        await go(made, browser, page)
        assert browser.response is not None
        assert browser.response.status_code == 404
    answer = await send(made, browser, f"requests/decide/{found.request_id}", **kept, decision="approve", reason="Mine")
    assert answer.status_code == 404
    assert await state(made, found) == "pending"


async def test_a_sub_administrator_decides_at_the_listed_services_only(made: World) -> None:
    """D53, D55."""
    await acme(made)
    await made.write(Service(service_id="TAX", name="Tax", roles=("Maker",)))
    here = await requested(made)
    tax = replace(ROLE, service_id="TAX")
    made.clock.pass_(1)
    there = await requested(made, Change(None, tax))
    await made.person("sub", entity(ACME, "Acme Pte. Ltd.", approvals="roles"), name="Sue Ho")
    await appoint(made, level="sub_administrator", who="sub", services=("PERMITS",))
    browser = await in_portal(made, "requests", who="sub")
    assert "at Permits" in browser.page.text
    assert "at Tax" not in browser.page.text
    assert await go(made, browser, f"requests/{there.request_id}") == "You cannot open this page"
    assert "you do not administer this service" in browser.page.text
    await go(made, browser, f"requests/decide/{here.request_id}")
    kept = token(browser)
    answer = await send(made, browser, f"requests/decide/{there.request_id}", **kept, decision="approve", reason="Mine")
    assert answer.status_code == 403
    assert await state(made, there) == "pending"
    await browser.fill_and_submit(button="approve", reason="Fits")
    assert await state(made, here) == "approved"


async def test_an_administrator_cannot_approve_what_only_an_owner_may_do(made: World) -> None:
    """D55: the approver needs the right to make the change."""
    await acme(made)
    was = entity(ACME, "Acme Pte. Ltd.", approvals="roles")
    lower = Change(was, replace(was, approvals="none"))
    found = await requested(made, lower)
    await appoint(made, level="administrator")
    browser = await in_portal(made, f"requests/decide/{found.request_id}")
    assert "You can decline it, but not approve it" in browser.page.text
    kept = token(browser)
    answer = await send(
        made, browser, f"requests/decide/{found.request_id}", **kept, decision="approve", reason="Why not"
    )
    answer = await shown_again(browser, answer)
    assert await state(made, found) == "pending"


async def test_an_owner_alone_cannot_turn_approvals_on(made: World) -> None:
    """D55: only with two people who can approve."""
    await appoint(made)
    browser = await in_portal(made, "approvals-setting")
    await browser.fill_and_submit(approvals="all")
    assert "At least two people are needed" in browser.page.text
    key = (ACME,)
    assert (await made.provider.registry.directory.read(Entity, [key]))[key].approvals == "none"


@pytest.mark.parametrize(
    ("becomes", "said"),
    [
        (None, "Acme is removed."),
        (replace(FIRM, enabled=False), "Acme is disabled."),
        (replace(FIRM, name="Acme Foods"), "The details of Acme Foods change."),
        (replace(FIRM, approvals="all"), "The approval setting changes."),
    ],
)
def test_a_change_of_an_organisation_says_what_it_is(becomes: Entity | None, said: str) -> None:
    """D55: whoever approves it reads that, not that a setting changes."""
    assert summarise_change(Change(FIRM, becomes), RequestNames(people={}, entities={}, services={})) == said


async def test_more_approval_is_chosen_at_once_and_less_is_requested(made: World) -> None:
    """D55: lowering `approvals` needs approval itself."""
    await acme(made)
    browser = await in_portal(made, "approvals-setting")
    await browser.fill_and_submit(approvals="all")
    assert "Every change needs approval" in browser.page.text
    await go(made, browser, "approvals-setting")
    await browser.fill_and_submit(approvals="none")
    assert "Say why, for the person who approves it." in browser.page.text
    await browser.fill_and_submit(approvals="none", reason="We are small")
    assert browser.page.heading == "Change what needs approval"
    assert "Nobody" not in browser.page.text
    assert "Who can decide bob (Bob Lim)" in browser.page.text
    assert "The approval setting changes." in browser.page.text
    key = (ACME,)
    assert (await made.provider.registry.directory.read(Entity, [key]))[key].approvals == "all"


async def test_the_setting_is_for_owners(made: World) -> None:
    """D53."""
    await acme(made)
    await appoint(made, level="administrator")
    browser = await in_portal(made, "approvals-setting")
    assert browser.response is not None
    assert browser.response.status_code == 404


async def test_a_request_of_many_like_parts_is_one_sentence_and_one_table_of_people(made: World) -> None:
    """D55, D68: each with what identifies them; the buttons stand above what is long."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    invited = [
        Membership(
            user_id=f"id-x{each}", entity_id=ACME, membership_id=f"m-x{each}", invited=True,
            email=f"x{each}@acme.example", name=f"Xi {each}",
        )
        for each in range(10)
    ]  # fmt: skip
    roles = [replace(ROLE, user_id=each.user_id) for each in invited]
    found = await requested(made, *(Change(None, each) for each in (*invited, *roles)))
    title = "Invite 10 people: Maker at Permits, until 31 Dec 2027"
    browser = await in_portal(made, "requests")
    await follow(browser, title)
    assert browser.page.heading == "Invite 10 people"
    text = browser.page.text
    assert text.count(title) == 1
    assert "Before" not in text
    assert all(text.count(f"x{each}@acme.example (Xi {each})") == 1 for each in range(10))
    assert text.index("Decline") < text.index("x0@acme.example")
    await browser.fill_and_submit(button="approve")
    assert await state(made, found) == "approved"


async def suspended(made: World, *who: str) -> list[Membership]:
    """Members of Acme who are suspended; Cora is a sub-administrator."""
    await acme(made)
    held = [await made.provider.registry.directory.find(Membership, f"id-{each}", ACME) for each in who]
    found = [replace(each, enabled=False) for each in held if each is not None]
    await made.write(
        *found, Administrator(user_id="id-cora", entity_id=ACME, level="sub_administrator", services=("PERMITS",))
    )
    return found


async def test_who_approves_the_return_of_people_reads_their_levels(made: World) -> None:
    """D55, D68: a level takes effect again with the membership; so it is said of one person and of each of several."""
    await made.person("dora", FIRM, name="Dora Ng")
    cora, dora = await suspended(made, "cora", "dora")
    back = [Change(each, replace(each, enabled=True)) for each in (cora, dora)]
    alone = await requested(made, back[0])
    browser = await in_portal(made, f"requests/{alone.request_id}")
    who = "cora (Cora Chan), Sub-administrator"
    assert browser.page.heading == f"Restore {who}"
    assert f"{who} can act for the organisation again, with the access from before." in browser.page.text
    made.clock.now += 1
    together = await requested(made, *back)
    browser = await in_portal(made, f"requests/{together.request_id}")
    assert browser.page.heading == "Restore 2 people"
    assert f"{who} dora (Dora Ng)" in browser.page.text.partition("People Person")[2]


async def test_who_approves_a_return_with_another_level_looks_again(made: World) -> None:
    """D55, D68: the level is kept with the request, as names are; what was decided says it later, too."""
    [cora] = await suspended(made, "cora")
    found = await requested(made, Change(cora, replace(cora, enabled=True)))
    browser = await in_portal(made, f"requests/{found.request_id}")
    await made.write(Administrator(user_id="id-cora", entity_id=ACME, level="owner"))
    await browser.fill_and_submit(button="approve")
    assert "Names have changed since this was requested." in browser.page.text
    assert "cora (Cora Chan), Sub-administrator cora (Cora Chan), Owner" in browser.page.text
    assert await state(made, found) == "pending"
    await browser.fill_and_submit(button="approve")
    assert await state(made, found) == "approved"
    await go(made, browser, f"requests/{found.request_id}")
    assert browser.page.heading == "Restore cora (Cora Chan), Sub-administrator"


async def test_a_return_with_other_details_names_the_level(made: World) -> None:
    """D55, D68: as a program can ask for."""
    [cora] = await suspended(made, "cora")
    found = await requested(made, Change(cora, replace(cora, enabled=True, department="Sales")))
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "cora (Cora Chan), Sub-administrator" in browser.page.text
    told = await read_request(
        made.provider.registry, CommandLine(by="op", reason="look"), found.request_id, now=made.clock()
    )
    assert "cora (Cora Chan), Sub-administrator" in f"{told.differences}"


async def test_who_approves_a_suspension_reads_whose_it_is(made: World) -> None:
    """D55, D68: not that something recorded about them changes."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    await made.write(Administrator(user_id="id-cora", entity_id=ACME, level="administrator"))
    held = await made.provider.registry.directory.find(Membership, "id-cora", ACME)
    assert held is not None
    found = await requested(made, Change(held, replace(held, enabled=False)))
    browser = await in_portal(made, f"requests/{found.request_id}")
    who = "cora (Cora Chan), Administrator"
    assert f"{who} can no longer act for the organisation until they are restored." in browser.page.text


async def test_who_is_given_something_else_instead_reads_as_given_access(made: World) -> None:
    """D55: a title that names one of two says what is given, not what goes with it."""
    await acme(made)
    await made.write(ROLE)
    instead = replace(ROLE, role="Checker")
    found = await requested(made, Change(ROLE, None), Change(None, instead))
    names = RequestNames(people={"id-cora": "cora"}, entities={}, services={"PERMITS": "Permits"})
    assert (
        str(title_changes(found.changes, names))
        == "Give access to cora: Checker at Permits, until 31 Dec 2027, and 1 more change"
    )


async def test_a_title_says_what_is_done(made: World) -> None:
    """D55: to give and to remove the same role are told apart, in lists and e-mails."""
    await acme(made)
    names = RequestNames(people={"id-cora": "cora", "id-bob": "bob"}, entities={}, services={"PERMITS": "Permits"})
    role = replace(ROLE, end_date="9999-12-31")
    other, key = replace(role, user_id="id-bob"), ("id-cora", ACME)
    member_of = (await made.provider.registry.directory.read(Membership, [key]))[key]
    off = replace(member_of, enabled=False)
    for changes, title in (
        ([Change(None, role)], "Give access to cora: Maker at Permits"),
        ([Change(role, None)], "Remove the access of cora: Maker at Permits"),
        ([Change(None, role), Change(None, other)], "Give access to 2 people: Maker at Permits"),
        ([Change(None, role), Change(other, None)], "Give access to cora: Maker at Permits, and 1 more change"),
        ([Change(role, None), Change(member_of, None)], "End the membership of cora"),
        ([Change(member_of, off)], "Suspend cora"),
        ([Change(off, member_of)], "Restore cora"),
    ):
        assert str(title_changes(changes, names)) == title


def test_the_title_of_a_grant_says_who_offers_and_who_accepts() -> None:
    """D55, D56."""
    names = RequestNames(people={}, entities={ACME: "Acme", BANYAN: "Banyan"}, services={"PERMITS": "Permits"})
    offered = ThirdPartyGrant(client_entity_id=ACME, entity_id=BANYAN, service_id="PERMITS", state="offered")
    accepted = replace(offered, state="accepted")
    assert str(title_changes([Change(None, offered)], names)) == "Authorise Banyan: Permits"
    assert str(title_changes([Change(offered, accepted)], names)) == "Accept the offer of Acme: Permits"
    assert str(title_changes([Change(accepted, offered)], names)) == "Change the authorisation of Banyan: Permits"
    assert str(title_changes([Change(accepted, None)], names)) == "End the authorisation of Banyan: Permits"


async def test_the_limits_in_the_list_are_those_of_what_its_title_names(made: World) -> None:
    """D55: also where one role takes the place of another."""
    await acme(made)
    year = ParameterDefinition(name="Permit Year", kind="year", mandatory=True)
    harbour = Service(service_id="HARBOUR", name="Harbour permits", roles=("Checker", "Approver"), parameters=(year,))
    was = replace(ROLE, service_id="HARBOUR", role="Checker", parameters=(Parameter(name="Permit Year", value="2026"),))
    await made.write(harbour, was)
    becomes = replace(was, role="Approver", parameters=(Parameter(name="Permit Year", value="2030"),))
    await requested(made, Change(was, None), Change(None, becomes))
    browser = await in_portal(made, "requests")
    assert "Approver at Harbour permits" in browser.page.text
    assert "Permit Year: 2030" in browser.page.text
    assert "2026" not in browser.page.text


async def test_what_differs_between_people_is_shown_whatever_they_are_called(made: World) -> None:
    """D55, D68: a name that the entity wrote hides nothing."""
    await acme(made)
    await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
    invited = [
        Membership(
            user_id=f"id-{each}", entity_id=ACME, membership_id=f"m-{each}", invited=True,
            email=f"{each}@acme.example", name=name, department=department,
        )
        for each, name, department in (("xia", "Xia", "Tax"), ("yan", "Yan Sales", "Sales"))
    ]  # fmt: skip
    found = await requested(made, *(Change(None, each) for each in invited))
    browser = await in_portal(made, f"requests/{found.request_id}")
    people = browser.page.text.partition("People Person")[2]
    assert people.startswith(" Department xia@acme.example (Xia) Tax yan@acme.example (Yan Sales) Sales")
