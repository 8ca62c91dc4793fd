"""The people of an organisation, and one person's page (D53, D54, D55, D61)."""

from __future__ import annotations

import csv
import re

from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.actors import load_administrator
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.audit import AuditEvent
from corpid.rules.directory.memberships import placeholder
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    Membership,
    Precondition,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from tests.manage.access_scene import checker, confirm, demand, employed, follow, identifier, requests, roles, staffed
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal, send
from tests.manage.test_undo import FIRM
from tests.manage.test_who_is_meant import owner
from tests.sign_in.world import World, form_of, shown_again


async def membership(made: World, user_name: str = "marcus") -> Membership | None:
    key = (f"id-{user_name}", ACME)
    found: Membership | None = (await made.provider.registry.directory.read(Membership, [key])).get(key)
    return found


async def invited(made: World, name: str = "Priya Nair") -> None:
    """Somebody who has not accepted yet; the e-mail went out long ago."""
    priya = Membership(
        user_id="p-priya", entity_id=ACME, membership_id="m-priya", invited=True, name=name,
        email="priya@acme.example", user_name="priya@acme.example", invitation_sent_at=1,
    )  # fmt: skip
    guard = Precondition(Membership, priya.key, None)
    await made.provider.registry.directory.write(
        [guard, Change(None, priya, AuditEvent(actor="system", action="test"))]
    )


async def test_the_list_shows_name_user_name_address_state_level_and_number_of_roles(made: World) -> None:
    """D53, D61."""
    await staffed(made)
    await made.write(checker(), Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES"))
    await invited(made)
    browser = await in_portal(made, "people")
    text = browser.page.text
    assert browser.page.heading == "People"
    for shown in ("Marcus Lee", "marcus@acme.example", "2 roles", "Priya Nair", "Invited", "Owner", "Active"):
        assert shown in text


async def test_the_list_is_searched_and_filtered_without_a_script(made: World) -> None:
    """D61: by what the organisation sees."""
    await staffed(made)
    await made.write(checker())
    await invited(made)
    browser = await in_portal(made, "people")
    await browser.fill_and_submit(q="lee marcus")
    assert "Marcus Lee" in browser.page.text
    assert "Nadia Rahman" not in browser.page.text
    await go(made, browser, "people?state=invited")
    assert "Priya Nair" in browser.page.text
    assert "Marcus Lee" not in browser.page.text
    await go(made, browser, "people?service=HARBOUR")
    assert "Marcus Lee" in browser.page.text
    assert "Nadia Rahman" not in browser.page.text
    await go(made, browser, "people?q=nobody")
    assert "Nobody matches this search." in browser.page.text
    assert await go(made, browser, "people?after=nonsense&service=X&state=X") == "People"


async def test_another_language_keeps_search_and_filters_and_nothing_else(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "people")
    await go(made, browser, "people?q=Lee+%26+%2Fx&state=active&again&saved=person-ended&next=//evil.example")
    await follow(browser, "Bahasa Melayu")
    assert browser.url == f"{made.base}/manage/people?q=Lee+%26+%2Fx&state=active"
    assert 'lang="ms"' in browser.response.text.partition(">")[2]  # type: ignore[union-attr]
    await go(made, browser, "people?state=%3Cscript%3E")
    await follow(browser, "English")
    assert browser.url == f"{made.base}/manage/people?state=%3Cscript%3E"


async def test_a_long_list_is_turned_page_by_page(made: World) -> None:
    """D83: with the numbers of the rows."""
    await staffed(made)
    for number in range(60):
        await employed(made, f"person{number:02}", f"Person {number:02}")
    browser = await in_portal(made, "people")
    assert "Person 60" not in browser.page.text
    assert "Person 10" in browser.page.text
    assert "1–50 of 63" in browser.page.text  # noqa: RUF001 - a dash
    await follow(browser, "Next page")
    assert "Person 59" in browser.page.text
    assert "Person 10" not in browser.page.text
    assert "51–63 of 63" in browser.page.text  # noqa: RUF001
    await browser.open(browser.url.replace("row=", "row=x"), site="none")
    assert "63 in this list" in browser.page.text
    await follow(browser, "Previous page")
    assert "Person 10" in browser.page.text
    assert "1–50 of 63" in browser.page.text  # noqa: RUF001
    await go(made, browser, "people?q=person")
    await follow(browser, "Next page")
    assert "Person 59" in browser.page.text
    await follow(browser, "First page")
    assert "Person 59" not in browser.page.text


async def test_the_head_of_a_column_sorts_the_list_and_the_address_says_how(made: World) -> None:
    """D83: both ways, page by page, in the file, and without a script."""
    await appoint(made)
    for number in range(60):
        await employed(made, f"temp{number:03}", "Temp")
        held = await membership(made, f"temp{number:03}")
        assert held is not None
        await made.write(replace(held, email=f"{99 - number}@acme.example"))
    browser = await in_portal(made, "people?q=temp")

    def listed() -> list[str]:
        text = browser.response.text if browser.response else ""
        return re.findall(r"<bdi[^>]*>(\d\d)@<wbr>acme", text)

    def sorted_by() -> list[tuple[str, str]]:
        text = browser.response.text if browser.response else ""
        return re.findall(r'aria-sort="(\w+)"><a href="[^"]+">([^<]+)', text)

    assert sorted_by() == [("ascending", "User name")]
    await follow(browser, "E-mail address")
    assert (browser.url.partition("/manage/")[2], sorted_by()) == (
        "people?q=temp&sort=email",
        [("ascending", "E-mail address")],
    )
    assert listed() == [f"{number}" for number in range(40, 90)]
    await follow(browser, "Next page")
    assert listed() == [f"{number}" for number in range(90, 100)]
    await follow(browser, "Previous page")
    assert listed()[0] == "40"
    await follow(browser, "E-mail address")
    assert (listed(), sorted_by()) == (
        [f"{number}" for number in range(99, 49, -1)],
        [("descending", "E-mail address")],
    )
    await follow(browser, "Download as CSV")
    lines = browser.response.text.splitlines() if browser.response else []
    assert [line.split(",")[2][:2] for line in (lines[1], lines[-1])] == ["99", "40"]
    await go(made, browser, "people?q=temp&sort=state")
    assert sorted_by() == [("ascending", "User name")]


async def test_people_are_sorted_by_the_name_that_the_list_shows(made: World) -> None:
    """D61, D83: that of the organisation, else the person's own, else the address of an invitation; both ways."""
    await appoint(made)
    for number, (own, theirs) in enumerate((("zoe", ""), ("Bo", "alma"), ("Cy", ""), ("Al", "Dee"))):
        await employed(made, f"temp{number}", own)
        held = await membership(made, f"temp{number}")
        assert held is not None
        await made.write(replace(held, name=theirs, department="Temps"))
    waiting = Membership(
        user_id="invited", entity_id=ACME, membership_id="m-invited", invited=True, email="BEA@acme.example",
        department="Temps",
    )  # fmt: skip
    await made.write(placeholder(waiting), waiting)

    def listed() -> list[str]:
        text = browser.response.text if browser.response else ""
        return re.findall(r'/manage/person/m-[^"]+"><bdi[^>]*>([^<]+)', text.replace("<wbr>", ""))

    browser = await in_portal(made, "people?q=temps")
    await follow(browser, "Name")
    assert listed() == ["alma", "bea@acme.example", "Cy", "Dee", "zoe"]
    assert "People by name" in browser.page.text
    await made.write(User(user_id="id-temp2", user_name="temp2", name="Al"))
    await follow(browser, "Name")
    assert listed() == ["zoe", "Dee", "bea@acme.example", "alma", "Al"]


async def test_people_of_another_organisation_are_neither_listed_nor_opened(made: World) -> None:
    """D53, D61."""
    await staffed(made)
    await employed(made, "zoe", "Zoe Banyan", BANYAN)
    browser = await in_portal(made, "people?q=zoe")
    assert "Zoe" not in browser.page.text
    await browser.open(made.base + "/manage/person/m-zoe", site="none")
    assert browser.response is not None
    assert browser.response.status_code == 404
    await go(made, browser, "person/m-marcus/suspend")
    token = form_of(browser, "form_token")
    for action in ("suspend", "end", "details", "revoke", "restore", "send-again"):
        assert (await send(made, browser, f"person/m-zoe/{action}", **token, name="x")).status_code == 404
    assert await made.provider.registry.directory.read(Membership, [("id-zoe", BANYAN)])


async def test_a_persons_page_says_what_they_may_do_with_links_to_change_it(made: World) -> None:
    """D61."""
    await staffed(made)
    row = checker(sub_entity="Jurong", end_date="2027-12-31")
    await made.write(
        row,
        Administrator(user_id="id-marcus", entity_id=ACME, level="sub_administrator", services=("HARBOUR",)),
        ThirdPartyGrant(client_entity_id=BANYAN, entity_id=ACME, service_id="NOTICES"),
        ThirdPartyAssignment(user_id="id-marcus", entity_id=ACME, client_entity_id=BANYAN, service_id="NOTICES"),
    )
    browser = await in_portal(made, "person/m-marcus")
    text = browser.page.text
    assert browser.page.heading == "marcus (Marcus Lee)"
    assert "Checker Permit Year: 2026 Harbour permits Jurong 31 Dec 2027" in text
    assert "No end Banyan Trading" in text
    assert "sub-administrator of Acme Pte. Ltd. for: Harbour permits" in text
    targets = {target for target, _ in browser.page.links}
    for target in (
        "access/new?person=m-marcus",
        f"access/change/{identifier(row)}",
        f"access/remove/{identifier(row)}",
    ):
        assert f"/manage/{target}" in targets


async def test_a_persons_page_says_who_gave_and_who_approved_each_role(made: World) -> None:
    """D61: to those who see the history."""
    await staffed(made)
    await appoint(made, who="nadia", level="administrator")
    await made.write(replace(FIRM, approvals="roles"))
    alice, nadia = owner(made, "alice"), replace(owner(made, "nadia"), level="administrator")
    asking = RequestDetails("Holidays", made.clock(), "r1")
    request = await write_changes(made.provider.registry, alice, [Change(None, checker())], asking=asking)
    assert request is not None
    await approvals.approve_request(
        made.provider.registry, request.request_id, actor=nadia, reason="Yes", now=made.clock()
    )
    browser = await in_portal(made, "person/m-marcus")
    text = browser.page.text
    assert "Given by Approved by" in text
    assert "Nadia Rahman" in text.partition("Given by Approved by")[2].partition("Last changes")[0]
    await appoint(made, level="sub_administrator", services=("HARBOUR",))
    await go(made, browser, "person/m-marcus")
    assert "Given by" not in browser.page.text


async def test_person_and_list_have_the_last_sign_in_for_this_organisation_only(made: World) -> None:
    """D84: for those who see the history."""
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus")
    assert "Last sign-in for Acme Pte. Ltd. None on record" in browser.page.text
    for entity_id in (ACME, BANYAN):
        event = AuditEvent(actor="user:id-marcus", action="sign_in.complete", object="s1", entity_id=entity_id)
        await made.provider.registry.audit.write(event)
        made.clock.pass_(120)
    await go(made, browser, "person/m-marcus")
    assert "Last sign-in for Acme Pte. Ltd. 15 Jan 2027, 08:01" in browser.page.text
    await go(made, browser, "people")
    row = browser.page.text.partition("marcus@acme.example")[2].partition("Nadia")[0]
    assert "15 Jan 2027, 08:01" in row
    assert browser.page.text.count("15 Jan 2027") == 1
    await go(made, browser, "people/list.csv")
    assert browser.response is not None
    lines = {
        each["user_name"]: each for each in csv.DictReader(browser.response.text.removeprefix("\ufeff").splitlines())
    }
    assert {name: each["last_sign_in"] for name, each in lines.items()} == {
        "alice": "",
        "marcus": "2027-01-15T08:01:00+00:00",
        "nadia": "",
    }
    await appoint(made, level="sub_administrator", services=("HARBOUR",))
    await go(made, browser, "people")
    assert "Last sign-in" not in browser.page.text
    await go(made, browser, "people/list.csv")
    assert "last_sign_in" not in browser.response.text


async def test_what_the_organisation_may_not_know_of_a_person_is_not_shown(made: World) -> None:
    """D61: no identity number, no other organisation."""
    await staffed(made)
    await made.write(
        User(
            user_id="id-marcus", user_name="marcus", name="Marcus Lee", email="marcus@acme.example",
            identity_number="S1234567D", identity_country="SG",
        ),
        Membership(user_id="id-marcus", entity_id=BANYAN, membership_id="m-other"),
    )  # fmt: skip
    browser = await in_portal(made, "person/m-marcus")
    assert browser.response is not None
    for secret in ("S1234567D", "567D", "Banyan", "m-other"):
        assert secret not in browser.response.text


async def test_a_membership_is_suspended_and_restored(made: World) -> None:
    """D60: level and roles stay."""
    await staffed(made)
    await made.write(checker())
    browser = await in_portal(made, "person/m-marcus")
    await follow(browser, "Suspend")
    assert "comes back" not in browser.page.text
    await confirm(browser)
    assert "1 person suspended: marcus (Marcus Lee)" in browser.page.text
    found = await membership(made)
    assert found is not None
    assert not found.enabled
    assert len(await roles(made)) == 1
    await follow(browser, "Restore")
    await confirm(browser)
    found = await membership(made)
    assert found is not None
    assert found.enabled


async def test_the_end_of_a_membership_says_what_it_takes_away_and_takes_it(made: World) -> None:
    """D53: level, roles and third-party rows end with it; a second request finds nobody."""
    await staffed(made)
    await made.write(
        checker(), Administrator(user_id="id-marcus", entity_id=ACME, level="sub_administrator", services="all")
    )
    browser = await in_portal(made, "person/m-marcus")
    await follow(browser, "End the membership")
    assert "marcus (Marcus Lee) may act as Checker at Harbour permits" in browser.page.text
    assert "The level of sub-administrator" in browser.page.text
    token = form_of(browser, "form_token")
    await confirm(browser)
    assert "The membership has been ended." in browser.page.text
    assert await membership(made) is None
    assert await roles(made) == []
    assert [entry.actor for entry in await made.audit("membership.remove")] == ["user:id-alice"]
    made.clock.pass_(601)
    assert (await send(made, browser, "person/m-marcus/end", **token)).status_code == 404


async def test_what_needs_approval_becomes_a_request_and_says_so(made: World) -> None:
    """D55: with a reason; nothing changes before."""
    await staffed(made)
    await appoint(made, who="nadia")
    await demand(made, "all")
    browser = await in_portal(made, "person/m-marcus/end")
    assert "This needs the approval of another administrator." in browser.page.text
    await confirm(browser)
    assert "Say why, for the person who approves it." in browser.page.text
    await confirm(browser, reason="He has left us")
    assert "Your request has been sent." in browser.page.text
    assert await membership(made) is not None
    assert [each.reason for each in await requests(made)] == ["He has left us"]
    for action, typed in (("suspend", {}), ("details", {"name": "Marc"})):
        await go(made, browser, f"person/m-marcus/{action}")
        await confirm(browser, reason="Because", **typed)
        assert "Your request has been sent." in browser.page.text
    assert len(await requests(made)) == 3
    assert await membership(made) is not None


async def test_a_person_page_leads_to_the_requests_on_that_person_that_wait(made: World) -> None:
    """D55: to those that the reader may see."""
    await staffed(made)
    await appoint(made, who="nadia")
    await demand(made, "all")
    browser = await in_portal(made, "person/m-marcus")
    assert "Waiting for a decision" not in browser.page.text
    await go(made, browser, "person/m-marcus/end")
    await confirm(browser, reason="He has left us")
    await go(made, browser, "person/m-nadia")
    assert "Waiting for a decision" not in browser.page.text
    await go(made, browser, "person/m-marcus")
    assert "Waiting for a decision" in browser.page.text
    await follow(browser, "End the membership of marcus (Marcus Lee)")
    assert "He has left us" in browser.page.text
    await appoint(made, level="sub_administrator", services=("NOTICES",))
    await go(made, browser, "person/m-marcus")
    assert "Waiting for a decision" in browser.page.text  # their own request
    [request] = await requests(made)
    await made.write(replace(request, requester="user:id-nadia"))
    await go(made, browser, "person/m-marcus")
    assert "Waiting for a decision" not in browser.page.text


async def test_the_end_that_was_requested_takes_roles_and_level_with_it_once_it_is_approved(made: World) -> None:
    """D53, D55: each of them is in the request, and in the history."""
    await staffed(made)
    await made.write(
        checker(), Administrator(user_id="id-marcus", entity_id=ACME, level="sub_administrator", services="all")
    )
    await appoint(made, who="nadia")
    await demand(made, "roles")
    browser = await in_portal(made, "person/m-marcus/end")
    await confirm(browser, reason="He has left us")
    [request] = await requests(made)
    assert {each.kind for each in request.changes} == {"assignment", "administrator", "membership"}
    registry, now = made.provider.registry, made.clock()
    nadia = await load_administrator(registry, "id-nadia", ACME, auth_time=now, now=now)
    await approvals.approve_request(registry, request.request_id, actor=nadia, reason="Yes", now=now)
    assert await membership(made) is None
    assert len(await made.audit("assignment.remove")) == 1


async def test_an_organisation_changes_what_it_calls_a_person_and_never_the_account(made: World) -> None:
    """D61."""
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus/details")
    await confirm(browser, name="Marcus (Jurong)", email="nobody")
    assert "Enter an e-mail address such as name@example.com." in browser.page.text
    await confirm(browser, email="jurong@acme.example")
    assert "The details have been changed." in browser.page.text
    assert browser.page.heading == "marcus (Marcus [Jurong])"
    found = await membership(made)
    assert found is not None
    assert (found.name, found.email) == ("Marcus (Jurong)", "jurong@acme.example")
    user = await made.provider.registry.directory.user("id-marcus")
    assert (user.name, user.email) == ("Marcus Lee", "marcus@acme.example")


async def test_a_form_on_what_was_changed_meanwhile_changes_nothing(made: World) -> None:
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus/details")
    found = await membership(made)
    assert found is not None
    await made.write(replace(found, name="Other", changed_at=99))
    await confirm(browser, name="Mine")
    assert "Something changed while you were on this page." in browser.page.text
    now = await membership(made)
    assert now is not None
    assert now.name == "Other"


async def test_nobody_changes_their_own_membership_nor_that_of_the_last_owner(made: World) -> None:
    """D54."""
    await staffed(made)
    mine = await membership(made, "alice")
    assert mine is not None
    browser = await in_portal(made, f"person/{mine.membership_id}")
    assert "This is you." in browser.page.text
    for action in ("end", "suspend", "details"):
        await go(made, browser, f"person/{mine.membership_id}/{action}")
        assert "This is you." in browser.page.text
    await go(made, browser, "person/m-marcus/suspend")
    token = form_of(browser, "form_token")
    for action in ("end", "suspend", "details"):
        answer = await send(made, browser, f"person/{mine.membership_id}/{action}", **token, name="x")
        answer = await shown_again(browser, answer)
    assert await membership(made, "alice") == mine


async def test_an_administrator_changes_no_owner(made: World) -> None:
    """D53."""
    await staffed(made, level="administrator")
    await appoint(made, who="marcus")
    await appoint(made, who="nadia")
    browser = await in_portal(made, "person/m-marcus")
    assert "Only an owner can change this membership." in browser.page.text
    await go(made, browser, "invite")
    token = form_of(browser, "form_token")
    await shown_again(browser, await send(made, browser, "person/m-marcus/end", **token))
    assert await membership(made) is not None


async def test_a_sub_administrator_sees_people_and_access_at_their_services_and_changes_no_membership(
    made: World,
) -> None:
    """D53."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    await made.write(checker(), Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES"))
    browser = await in_portal(made, "people?service=HARBOUR")
    assert "1 role" in browser.page.text
    assert "2 roles" not in browser.page.text
    assert "Invite a person" not in browser.page.text
    await go(made, browser, "person/m-marcus")
    assert "The service as a whole Notices" in browser.page.text
    assert "Harbour permits" not in browser.page.text
    assert "End the membership" not in browser.page.text
    assert await go(made, browser, "invite") == "You cannot open this page"
    await go(made, browser, "person/m-marcus/end")
    assert form_of_or_none(browser) is None
    await go(made, browser, "access/new?person=m-nadia&access=NOTICES&start=today&end=none&check=all")
    token = form_of(browser, "form_token")
    for action in ("end", "suspend", "details"):
        answer = await send(made, browser, f"person/m-marcus/{action}", **token, name="x")
        assert answer.status_code == 403
    found = await membership(made)
    assert found is not None
    assert (found.enabled, found.name) == (True, "")


async def test_access_that_the_reader_may_not_change_has_no_links_and_says_why(made: World) -> None:
    """D54: an administrator's access is changed by owners only."""
    await staffed(made, level="sub_administrator", services=("NOTICES",))
    await made.write(Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES"))
    browser = await in_portal(made, "person/m-marcus")
    assert "Remove" in browser.page.text
    await appoint(made, who="marcus")
    await go(made, browser, "person/m-marcus")
    assert "The service as a whole Notices" in browser.page.text
    assert "Remove" not in browser.page.text
    assert "Only an owner can change this access." in browser.page.text


def form_of_or_none(browser: object) -> object:
    """The form that changes something; None if there is none."""
    return browser.page.form_with("form_token", "step")  # type: ignore[attr-defined]


async def test_an_invitation_is_sent_again_after_a_while_and_revoked(made: World) -> None:
    """D60."""
    await staffed(made)
    await invited(made)
    browser = await in_portal(made, "person/m-priya")
    assert "has not accepted yet" in browser.page.text
    await follow(browser, "Send the invitation again")
    token = form_of(browser, "form_token")
    await confirm(browser)
    assert "The invitation has been sent again." in browser.page.text
    [priya] = (await made.provider.registry.directory.read(Membership, [("p-priya", ACME)])).values()
    await made.write(replace(priya, invitation_sent_at=int(made.clock())))
    await go(made, browser, "person/m-priya/send-again")
    assert "The e-mail was sent less than 30 minutes ago." in browser.page.text
    made.clock.pass_(61)
    await shown_again(browser, await send(made, browser, "person/m-priya/send-again", **token, reason="again"))
    await go(made, browser, "person/m-priya")
    await follow(browser, "Revoke the invitation")
    await confirm(browser)
    assert "The invitation has been revoked." in browser.page.text
    assert (await send(made, browser, "person/m-priya/revoke", **token)).status_code == 404


async def test_the_history_of_a_person_names_who_did_what(made: World) -> None:
    """D57, D61."""
    await staffed(made)
    browser = await in_portal(made, "person/m-marcus/suspend")
    await confirm(browser)
    text = browser.page.text
    assert "The membership of marcus (Marcus Lee) was suspended" in text
    assert text.count("Alice Tan") == 2  # once as the reader
    assert "/manage/history?person=m-marcus" in {target for target, _ in browser.page.links}
