"""What was shown when somebody decided is what is written, or nothing is (D68)."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from corpid.flows.directory.acceptance import accept_with_account, accept_with_new_account
from corpid.flows.directory.appointments import appoint_owner, find_new_owner
from corpid.flows.directory.approvals import read_request
from corpid.flows.directory.members import (
    change_member,
    end_member,
    preview_bulk,
    query_members,
    select_members,
    write_bulk,
)
from corpid.flows.directory.notice_texts import (
    RequestInWords,
    build_decided_email,
    build_owner_email,
    build_waiting_email,
)
from corpid.flows.directory.write import RequestDetails, write_changes
from corpid.rules.directory.access import CommandLine
from corpid.rules.directory.access_texts import RequestNames, title_changes
from corpid.rules.directory.memberships import MemberQuery, details_of, placeholder
from corpid.rules.directory.names import set_apart
from corpid.rules.directory.records import (
    Administrator,
    Assignment,
    Change,
    ChangedMeanwhile,
    Conflict,
    Membership,
    Service,
    User,
)
from corpid.rules.directory.values import Parameter, ParameterDefinition
from corpid.web.pages.emails import EmailRenderer
from tests.console.scene import WITHOUT_PASSKEY, in_console
from tests.manage.access_scene import checker, identifier, roles, staffed
from tests.manage.scene import ACME, appoint, go, in_portal
from tests.manage.test_attacks_on_names import EVIL, free, held
from tests.manage.test_identification import READER
from tests.manage.test_requests import ROLE, acme, requested
from tests.manage.test_third_parties import GRANT, three
from tests.manage.test_who_is_meant import INVITED, TOKEN, limit, member, owner, provisioned
from tests.sign_in.world import World, entity, new_world

NAME = "nora@acme.example"
TABLE = "user_name,service,role,parameter:Permit Year\nmarcus,HARBOUR,Checker,"


async def test_a_role_for_many_is_not_given_to_an_invitation_that_goes_elsewhere_by_now(made: World) -> None:
    """D68, D81: a provisioning token redirects one of them after the page was compared."""
    await free(made)
    registry, actor = made.provider.registry, owner(made)
    cora = await member(made, "id-cora")
    selected = await select_members(registry, [INVITED.membership_id, cora.membership_id], actor=actor)
    preview = await preview_bulk(registry, selected, replace(ROLE, user_id=""), actor=actor, today="2027-01-15")
    await provisioned(made, INVITED, email=EVIL)
    asking = RequestDetails("r", made.clock(), made.provider.new_id())
    with suppress(ChangedMeanwhile):
        await write_bulk(registry, preview, actor=actor, asking=asking)
    assert await held(made, INVITED.user_id) == []


async def test_an_owner_is_whoever_was_found_and_nobody_who_has_the_name_by_now(made: World) -> None:
    """D53, D68: a token moves the name from Nora to Cora between the check and the write."""
    await free(made)
    await made.write(
        User(user_id="id-nora", user_name="nora", name="Nora Ng"),
        Membership(user_id="id-nora", entity_id=ACME, membership_id="m-nora", name="Nora Ng"),
    )
    await provisioned(made, await member(made, "id-nora"), user_name=NAME)
    registry, actor = made.provider.registry, CommandLine(by="root@host", reason="New owner")
    found = await find_new_owner(registry, ACME, NAME, actor=actor)
    assert found.user.user_id == "id-nora"
    await provisioned(made, await member(made, "id-nora"), user_name="other")
    await provisioned(made, await member(made, "id-cora"), user_name=NAME)
    with pytest.raises(ChangedMeanwhile):
        await appoint_owner(registry, ACME, found, actor=actor, now=made.clock(), new_id=made.provider.new_id)
    assert {each.record.user_id for each in await registry.directory.administrators(ACME)}.isdisjoint(
        {"id-cora", "id-nora"}
    )


async def test_a_line_that_changed_nothing_gives_nobody_what_was_ended_meanwhile(made: World) -> None:
    """D68: the page said "No change"; another owner ends the role before it is confirmed."""
    await staffed(made)
    await made.write(checker(end_date="2099-12-31"))
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table=f"{TABLE}2026\nnadia,HARBOUR,Checker,2026")
    assert "This makes 1 change." in browser.page.text
    [given] = await roles(made)
    await made.provider.registry.directory.write([Change(given, None)])
    await browser.fill_and_submit("table", button="confirm")
    assert not await roles(made)


async def test_a_line_writes_the_days_that_were_shown(made: World) -> None:
    """D68: an empty cell keeps what is there, which has changed since."""
    await staffed(made)
    await made.write(checker(end_date="2027-01-31"))
    browser = await in_portal(made, "access/import")
    await browser.fill_and_submit("table", table=f"{TABLE}2027")
    assert "until 31 Jan 2027" in browser.page.text
    [given] = await roles(made)
    await made.write(replace(given, end_date="2099-12-31"))
    await browser.fill_and_submit("table", button="confirm")
    [now] = await roles(made)
    assert (now.end_date, now.parameters[0].value) != ("2099-12-31", "2027")


async def invite(made: World, number: int, email: str) -> Membership:
    invited = Membership(
        user_id=f"p{number}", entity_id=ACME, membership_id=f"m-{number}", invited=True, name="Mallory",
        user_name=email, email=email, created_at=5,
    )  # fmt: skip
    await made.write(placeholder(invited), invited)
    return invited


@pytest.mark.parametrize("email", ["daniel@acme.example", "mal@evil.example"])
async def test_a_client_writes_nobody_else_on_whoever_chose_the_user_name(made: World, email: str) -> None:
    """D65, D68: `dtan` chose it before the identity service has sent its colleague of that name."""
    await free(made)
    registry, now = made.provider.registry, made.clock()
    first = await invite(made, 1, "mal@evil.example")
    await accept_with_new_account(registry, first, "id-mal", user_name="dtan", name="Mallory", language="en", now=now)
    second = User(user_id="id-mal2", user_name="mal@evil.example", name="Mallory", email="mal@evil.example")
    await made.write(second)  # whose name takes the one that the entity gave to the first
    await accept_with_account(registry, await invite(made, 2, "mal2@evil.example"), second, now=now)
    query = MemberQuery(entity_id=ACME, conditions=(("user_name", "eq", "dtan"),), limit=5)
    _, [found] = await query_members(registry, query, actor=TOKEN)
    details = replace(details_of(found.membership), name="Daniel Tan", email=email)
    allowed = email == found.user.email
    with nullcontext() if allowed else pytest.raises(Conflict, match="another address"):
        await change_member(
            registry, limit(made), found.membership.membership_id, details,
            enabled=True, actor=TOKEN, now=now,
        )  # fmt: skip
    assert ((await member(made, "id-mal")).name == "Daniel Tan") is allowed


async def test_a_value_does_not_read_as_two_parameters(made: World) -> None:
    """D55, D68: Bob asks for every year; Alice would read 2026."""
    await acme(made)
    year, berth = ParameterDefinition(name="Permit Year", kind="year"), ParameterDefinition(name="Berth")
    await made.write(Service(service_id="PERMITS", name="Permits", roles=("Maker",), parameters=(berth, year)))
    row = replace(ROLE, parameters=(Parameter(name="Berth", value="5; Permit Year: 2026"),))
    found = await requested(made, Change(None, row))
    browser = await in_portal(made, f"requests/{found.request_id}")
    assert "Berth: “5; Permit Year: 2026”" in browser.page.text


async def test_the_approver_reads_which_role_changes_and_for_which_part(made: World) -> None:
    """D55, D68: of each change, on the pages that decide."""
    await acme(made)
    await made.write(Service(service_id="PERMITS", name="Permits", roles=("Viewer", "Approver"), sub_entity="optional"))
    canteen = replace(ROLE, role="Viewer", sub_entity="Canteen", end_date="2027-06-30")
    treasury = replace(ROLE, role="Approver", sub_entity="Treasury", end_date="2027-06-30")
    await made.write(canteen, treasury)
    found = await requested(
        made,
        Change(canteen, replace(canteen, end_date="2027-07-31")),
        Change(treasury, replace(treasury, end_date="2099-12-31")),
    )
    browser = await in_portal(made)
    for page in (f"requests/{found.request_id}", f"requests/decide/{found.request_id}"):
        await go(made, browser, page)
        assert {
            each for each in ("Viewer", "Canteen", "Approver", "Treasury") if each not in browser.page.text
        } == set()


async def test_the_approver_reads_which_authorisation_changes(made: World) -> None:
    """D55, D56: one organisation can have several at a service."""
    await three(made, approvals="roles")
    acme_, other = (
        entity(ACME, "Acme Pte. Ltd.", approvals="roles"),
        replace(GRANT, role="Checker", sub_entity="Treasury"),
    )
    await made.person("bob", acme_, name="Bob Lim")
    await appoint(made, who="bob")
    await made.write(GRANT, other)
    found = await requested(made, Change(other, replace(other, end_date="2099-01-31")))
    browser = await in_portal(made)
    for page in (f"requests/{found.request_id}", f"requests/decide/{found.request_id}", "requests"):
        await go(made, browser, page)
        assert {each for each in ("Checker", "Treasury") if each not in browser.page.text} == set()


async def test_nobody_is_invited_whom_the_list_did_not_show(made: World) -> None:
    """D60, D68: the page that asks has the fields, too; whoever changes them is asked again."""
    await staffed(made)
    browser = await in_portal(made, "invite/several")
    await browser.fill_and_submit("people", people="ian@acme.example")
    assert browser.page.heading == "Invite 1 person?"
    await browser.fill_and_submit("people", people="ian@acme.example\nmallory@evil.example", access="PERMITS/Maker")
    found = await made.provider.registry.directory.page(Membership, {"entity_id": ACME}, after=("", ""), limit=100)
    assert [each.email for each in found if each.invited] == []
    assert browser.page.heading == "Invite 2 people?"


async def test_the_review_says_what_stays_when_roles_are_removed(made: World) -> None:
    """D57: a level, and roles for other organisations."""
    await staffed(made)
    level = Administrator(user_id="id-nadia", entity_id=ACME, level="sub_administrator", services="all")
    await made.write(checker("nadia"), level)
    browser = await in_portal(made, "access-review?begin=yes")
    assert browser.response is not None
    [name] = re.findall(r'name="(select-m-nadia[^"]*)"', browser.response.text)
    await browser.fill_and_submit(**{name: "yes"}, button="remove")
    assert "levels such as sub-administrator stay" in browser.page.text


async def test_a_part_that_somebody_typed_is_no_link_in_the_email_about_a_request(made: World) -> None:
    """D68: mail programs make a link of an address."""
    await acme(made)
    ended = replace(ROLE, sub_entity="www.evil.example/approve", end_date="2026-06-30")
    await made.write(ended)
    found = await requested(made, Change(ended, replace(ended, end_date="2099-12-31")))
    names = RequestNames(people={"id-cora": "cora (Cora Chan)"}, entities={}, services={})
    words = RequestInWords(record=found, change=title_changes(found.changes, names), requester="bob")
    sent = EmailRenderer(name="CorpID", timezone=UTC).render(build_waiting_email(READER, [words], 1))
    for text in (sent.text, sent.html, str(sent.subject)):
        assert "evil.example" not in text
        assert "evil.\u2060example" in text, text


async def test_an_operator_reads_for_which_invitation_a_role_was_requested() -> None:
    """D57, D68: as the portal says it."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await acme(made)
        await made.write(placeholder(INVITED), INVITED)
        await requested(made, Change(None, replace(ROLE, user_id=INVITED.user_id)))
        browser = await in_console(made, "operator", f"audit?entity={ACME}")
        assert "(invited) gina@acme.example" in browser.page.text
        assert "removed person" not in browser.page.text


async def test_an_operator_reads_an_address_in_small_letters() -> None:
    """D68: a capital I looks like a small l."""
    async with new_world(**WITHOUT_PASSKEY) as made:
        await acme(made)
        await made.write(entity(ACME, "Acme Pte. Ltd.", approvals="all"))
        address = "Ian@harbourIabs.example"
        await requested(made, Change(None, replace(INVITED, email=address, user_name=address)))
        browser = await in_console(made, "operator", f"audit?entity={ACME}")
        assert "Invite ian@harbouriabs.example" in browser.page.text


@pytest.mark.parametrize("name", ["corpid-approvals.evil.example (Bob Lim)", "bob (www.evil.example/approve)"])
async def test_no_name_in_an_email_to_those_who_decide_is_a_link(made: World, name: str) -> None:
    """D68: mail programs make a link of what has dots or colons; a word joiner ends it."""
    await acme(made)
    found = await requested(made)
    names = RequestNames(people={"id-cora": "cora (Cora Chan)"}, entities={}, services={})
    waiting = RequestInWords(record=found, change=title_changes(found.changes, names), requester=name)
    approved = replace(found, state="approved", decided_reason="r")
    decided = replace(waiting, record=approved, requester="bob", decided_by=name)
    for email in (
        build_waiting_email(READER, [waiting], 1),
        build_decided_email(READER, [decided], 1),
        build_owner_email(READER, [("appointed", name)], by=["bob"], at=5),
        build_owner_email(READER, [("appointed", "cora")], by=[name], at=5),
    ):
        sent = EmailRenderer(name="CorpID", timezone=UTC).render(email)
        for text in (sent.text, sent.html, sent.subject):
            assert "evil.example" not in text


@pytest.mark.parametrize(
    "value",
    [
        "5\ua4fc Permit Year\ua4fd 2026",
        "5\ua4fc Permit Year\u02d0 2026",
        "5 \ua78f 6",
        "5 \u318d 6",
        "2026\ua4f9 2027",
        "1\u02cf 2",
    ],
)
def test_letters_that_look_like_separators_set_a_value_apart(value: str) -> None:
    """D55, D68: of a value, the approver reads where it ends."""
    assert set_apart(value) == f"“{value}”"


@pytest.mark.parametrize("value", ["North-East 5/6", "Zürich", "சென்னை", "北京", "Москва"])
def test_words_of_one_script_stand_as_they_are(value: str) -> None:
    """D68."""
    assert set_apart(value) == value


async def test_an_operator_does_not_read_one_value_as_two_parameters(made: World) -> None:
    """D55, D68: in what `corpid approval show` says of a request."""
    await acme(made)
    year, berth = ParameterDefinition(name="Permit Year", kind="year"), ParameterDefinition(name="Berth")
    service = Service(
        service_id="PERMITS", name="Permits", roles=("Maker",), parameters=(berth, year), sub_entity="optional"
    )
    await made.write(service)
    berths = (Parameter(name="Berth", value="5, Permit Year = 2026"),)
    row = replace(ROLE, sub_entity="North [only 2026]", parameters=berths)
    found = await requested(made, Change(None, row))
    actor = CommandLine(by="root@host", reason="r")
    shown = await read_request(made.provider.registry, actor, found.request_id, now=made.clock())
    [line] = shown.differences
    assert line.subject.endswith("in “North [only 2026]”")
    assert "parameters: Berth = “5, Permit Year = 2026”" in line.members


@pytest.mark.parametrize("left", [False, True])
async def test_a_removed_person_is_not_called_by_what_the_organisation_wrote(made: World, left: bool) -> None:
    """D57, D68: the history names nobody by an address or a name that the entity wrote."""
    await free(made)
    registry = made.provider.registry
    cora = await member(made, "id-cora")
    await provisioned(made, cora, user_name="cora", name="Bob Lim", email="bob@acme.example")
    if left:
        await end_member(registry, cora.membership_id, actor=TOKEN)
    gone = Change(await registry.directory.user("id-cora"), None)
    await write_changes(registry, CommandLine(by="root@host", reason="Left"), [gone], planned=True)
    browser = await in_portal(made, "history")
    assert "was changed" in browser.page.text
    assert "bob@acme.example" not in browser.page.text
    assert "(removed person)" in browser.page.text


@pytest.mark.parametrize("page", ["new", "change"])
async def test_access_ends_on_the_day_that_was_shown(made: World, page: str) -> None:
    """D54, D68: whoever confirms after midnight what was shown before it."""
    await staffed(made)
    address = "access/new?person=m-marcus&access=NOTICES&"
    if page == "change":
        given = Assignment(user_id="id-marcus", entity_id=ACME, service_id="NOTICES", end_date="2027-06-30")
        await made.write(given)
        address = f"access/change/{identifier(given)}?"
    zone = made.provider.policy.timezone
    year = datetime.fromtimestamp(made.clock(), zone).year
    made.clock.pass_(datetime(year, 12, 31, 23, 54, tzinfo=zone).timestamp() - made.clock())
    browser = await in_portal(made, f"{address}start=today&end=year-end&check=all")
    assert f"until 31 Dec {year}" in browser.page.text
    made.clock.pass_(600)
    await browser.fill_and_submit("names")
    assert f"{year + 1}-12-31" not in {each.end_date for each in await roles(made)}


@pytest.mark.parametrize(
    "mark", ["\u2033", "\u02ee", "\u05f4", "\uff02", "\u301e", "\u275e", "''", "\u2036", "\u02ba", "\u3003"]
)
def test_a_value_in_quotation_marks_does_not_end_them(mark: str) -> None:
    """D55, D68: a value with such a mark reads as two values in quotation marks."""
    shown = set_apart(f"5{mark}; Permit Year: {mark}2026")
    assert mark not in shown
