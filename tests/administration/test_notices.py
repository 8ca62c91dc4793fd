"""Notices by e-mail about the administration of an entity (docs/decisions/0022)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory import access_review, approvals
from corpid.flows.directory.notice_texts import MANAGE_PATH
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import CommandLine, DirectoryFile
from corpid.rules.directory.access_review import REMIND_SECONDS, YEAR_SECONDS
from corpid.rules.directory.memberships import SENDING_SECONDS
from corpid.rules.directory.notices import COLLECTED_SECONDS, LONGEST_WAIT_SECONDS, NoticeGroup
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import Administrator, Change, Membership, Operator
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused
from corpid.rules.limits import DAY, NOTICES_PER_MINUTE, NOTICES_PER_PERSON
from tests.administration.scene import HARBOUR, NAME, Process, acting, ask, begun, change, given, role, taken
from tests.sign_in.world import BASE, World, entity

if TYPE_CHECKING:
    from tests.postbox import Sent

COMMAND = CommandLine(by="lee@node1")
FILE = DirectoryFile.from_content("people.yaml", b"", by=COMMAND)
CHANGED = f"What you may do for {NAME} has changed"
GIVEN = f"You may now act for {NAME}: Maker at Permits"


def owner_level(who: str) -> Administrator:
    return Administrator(user_id=f"id-{who}", entity_id=HARBOUR, level="owner")


async def test_changes_of_one_persons_access_are_one_email_in_their_language(made: World) -> None:
    process = await begun(made)
    mira = await made.provider.registry.directory.user("id-mira")
    await made.write(replace(mira, language="ms"))
    await change(made, given(role("mira")), given(role("mira", "Checker", end_date="2027-12-31")))
    await change(made, taken(role("mira")))
    [sent] = await process.sent()
    assert (sent.to, sent.subject, sent.language) == ("mira@harbour.example", CHANGED, "ms")
    assert "Given: Maker at Permits" in sent.text
    assert "Given: Checker at Permits, until 31 Dec 2027" in sent.text
    assert "Ended: Maker at Permits" in sent.text
    assert "By: olivia" in sent.text
    assert f"{BASE}/account/access\n" in sent.text
    assert await process.sent() == []


async def test_nobody_is_told_of_their_own_changes_nor_of_those_of_a_file(made: World) -> None:
    """D54: an owner alone changes their own roles; a file or SCIM has its own register."""
    process = await begun(made)
    own = AuditEvent(actor="user:id-mira", action=AuditAction.ASSIGNMENT_ADD, object="id-mira/x", entity_id=HARBOUR)
    await made.provider.registry.directory.write([Change(None, role("mira"), own)])
    await change(made, given(role("mira", "Checker")), actor=FILE)
    assert await process.sent() == []


@pytest.mark.parametrize(
    ("becomes", "subject", "sentence", "word"),
    [
        (
            {"enabled": False},
            f"Your membership of {NAME} was suspended",
            f"olivia suspended your membership of {NAME}.",
            "Suspended: acting for",
        ),
        (None, f"Your membership of {NAME} has ended", f"olivia ended your membership of {NAME}.", "Ended: acting for"),
    ],
)
async def test_a_suspended_or_ended_membership_is_told_with_who_did_it(
    made: World, becomes: dict[str, Any] | None, subject: str, sentence: str, word: str
) -> None:
    """docs/decisions/0022: who did what, for which organisation."""
    process = await begun(made)
    key = ("id-mira", HARBOUR)
    was = (await made.provider.registry.directory.read(Membership, [key]))[key]
    after = replace(was, **becomes) if becomes else None
    await change(made, Change(was, after))
    [sent] = await process.sent()
    assert sent.subject == subject
    assert sentence in sent.text
    assert f"{word} {NAME}" in sent.text


async def test_an_owner_is_told_to_every_other_administrator(made: World) -> None:
    """D53."""
    process = await begun(made)
    await change(made, given(owner_level("mira")), actor=COMMAND)
    sent = await process.sent()
    assert [each.to.partition("@")[0] for each in sent] == ["adam", "mira", "olivia"]
    assert [each.subject for each in sent[::2]] == [f"mira is now an owner of {NAME}"] * 2
    assert "New owner: mira" in sent[0].text
    assert "By: The operator" in sent[0].text
    assert f"{BASE}{MANAGE_PATH}/administrators?of={HARBOUR}\n" in sent[0].text
    assert sent[1].subject == CHANGED
    assert f"Given: administration of {NAME}, as owner" in sent[1].text


async def test_an_owner_whose_account_is_removed_is_told_to_the_others(made: World) -> None:
    """D53, D57: their name is gone with the account."""
    process = await begun(made)
    await change(made, given(owner_level("mira")), actor=COMMAND)
    await process.sent()
    await change(made, Change(await made.provider.registry.directory.user("id-mira"), None), actor=COMMAND)
    sent = await process.sent()
    assert [each.to.partition("@")[0] for each in sent] == ["adam", "olivia"]
    assert {each.subject for each in sent} == {f"(removed person) is no longer an owner of {NAME}"}


async def test_the_first_owners_that_a_file_gives_a_new_entity_are_no_news(made: World) -> None:
    """Otherwise the first import of a nation writes to everybody in it."""
    process = await begun(made)
    new = entity("200000088J", "Jetty Works")
    members = [Membership(user_id=f"id-{who}", entity_id="200000088J") for who in ("mira", "adam")]
    owners = [replace(owner_level(who), entity_id="200000088J") for who in ("mira", "adam")]
    await change(
        made,
        Change(None, new),
        *(Change(None, each) for each in members),
        *map(given, owners),
        actor=FILE,
    )
    assert await process.sent() == []
    await change(made, taken(owners[0]), actor=FILE)
    made.clock.pass_(2 * DAY)
    await change(made, given(owners[0]), actor=FILE)
    assert [each.to for each in await process.sent()] == ["adam@harbour.example"]


async def test_a_request_is_told_to_those_who_may_approve_it_and_its_decision_to_the_requester(made: World) -> None:
    """D55."""
    process = await begun(made, approvals="all")
    request = await ask(made, given(role("mira")))
    [sent] = await process.sent(later=1)
    asked = "Give access to mira: Maker at Permits"
    assert (sent.to, sent.subject) == ("adam@harbour.example", f"Request at {NAME}: {asked}")
    assert f"Requested change: {asked} Requested by: olivia Reason: New colleague" in sent.text
    assert f"{BASE}{MANAGE_PATH}/requests/{request.request_id}?of={HARBOUR}\n" in sent.text
    registry = made.provider.registry
    await approvals.decline_request(
        registry, request.request_id, actor=await acting(made, "adam"), reason="Not yet", now=made.clock()
    )
    [decided] = await process.sent(later=1)
    assert (decided.to, decided.subject) == ("olivia@harbour.example", f"Your request at {NAME} was declined: {asked}")
    assert f"Requested change: {asked} Outcome: Declined Decided by: adam Reason: Not yet" in decided.text
    assert f"{BASE}{MANAGE_PATH}/requests/{request.request_id}?of={HARBOUR}\n" in decided.text


async def test_a_comment_is_told_to_the_requester_and_to_those_who_commented(made: World) -> None:
    """D55: with its text; not to its author, and not to who may no longer decide."""
    process = await begun(made, approvals="all")
    registry = made.provider.registry
    request = await ask(made, given(role("mira")))
    await process.sent()

    async def comment(who: str, text: str) -> list[Sent]:
        await approvals.comment_on_request(
            registry, request.request_id, actor=await acting(made, who), text=text, now=made.clock()
        )
        return await process.sent()

    [asked] = await comment("adam", "Since when?")
    change_ = "Give access to mira: Maker at Permits"
    assert (asked.to, asked.subject) == ("olivia@harbour.example", f"Comment on a request at {NAME}: {change_}")
    assert f"Requested change: {change_} adam wrote: Since when?" in asked.text
    assert f"{BASE}{MANAGE_PATH}/requests/{request.request_id}?of={HARBOUR}\n" in asked.text
    [answered] = await comment("olivia", "Since May.")
    assert answered.to == "adam@harbour.example"
    assert "olivia wrote: Since May." in answered.text
    assert "Since when?" not in answered.text
    await change(made, taken(Administrator(user_id="id-adam", entity_id=HARBOUR, level="administrator")), actor=COMMAND)
    assert [each.subject for each in await comment("olivia", "Hello?") if "Comment" in each.subject] == []


async def test_a_comment_that_is_written_a_second_later_stands_in_its_email(made: World) -> None:
    """D55: the moment of the request is not that of its event."""
    process = await begun(made, approvals="all")
    request = await ask(made, given(role("mira")))
    await process.sent()
    came, who = made.clock(), await acting(made, "adam")
    made.clock.pass_(1)
    await approvals.comment_on_request(
        made.provider.registry, request.request_id, actor=who, text="Since when?", now=came
    )
    [mail] = await process.sent()
    assert "adam wrote: Since when?" in mail.text


async def test_who_has_left_reads_no_comment_on_what_they_requested(made: World) -> None:
    """D55, D61."""
    process = await begun(made, approvals="all")
    registry = made.provider.registry
    request = await ask(made, given(role("mira")), by="adam")
    await process.sent()
    await change(made, Change(await registry.directory.find(Membership, "id-adam", HARBOUR), None), actor=COMMAND)
    await process.sent()
    await approvals.comment_on_request(
        registry, request.request_id, actor=await acting(made), text="He was dismissed", now=made.clock()
    )
    assert await process.sent() == []


async def test_an_operator_who_decides_in_place_of_the_entity_is_told_the_command(made: World) -> None:
    """D55: the portal has no page for them."""
    process = await begun(made, approvals="all")
    await made.write(Operator(user_id="id-mira", level="operator"))
    await made.disable("adam")
    request = await ask(made, given(role("mira")))
    [sent] = await process.sent(later=1)
    assert sent.to == "mira@harbour.example"
    assert f"use the command corpid approval show {request.request_id}." in sent.text
    assert MANAGE_PATH not in sent.text


async def test_an_operator_who_can_decide_no_longer_when_the_email_leaves_is_not_told(made: World) -> None:
    """D53: of the levels, only that of an operator decides."""
    process = await begun(made, approvals="all")
    await made.write(Operator(user_id="id-mira", level="operator"))
    await made.disable("adam")
    await ask(made, given(role("mira")))
    await process.notices.round()
    await made.write(Operator(user_id="id-mira", level="support"))
    assert await process.sent(later=1) == []


async def test_several_requests_are_one_email_that_leads_to_each(made: World) -> None:
    """docs/decisions/0022."""
    process = await begun(made, approvals="all")
    requests = [await ask(made, given(role("mira", name)), unique=name) for name in ("Maker", "Checker")]
    [sent] = await process.sent(later=1)
    assert sent.subject == f"2 requests at {NAME} need your decision"
    for name, request in zip(("Maker", "Checker"), requests, strict=True):
        assert f"Requested change: Give access to mira: {name} at Permits" in sent.text
        assert f"{BASE}{MANAGE_PATH}/requests/{request.request_id}?of={HARBOUR}\n" in sent.text
    assert f"{BASE}{MANAGE_PATH}/requests?of={HARBOUR}\n" in sent.text


async def test_a_request_that_was_decided_before_its_email_left_is_not_told(made: World) -> None:
    process = await begun(made, approvals="all")
    request = await ask(made, given(role("mira")))
    await process.notices.round()
    await approvals.withdraw_request(
        made.provider.registry, request.request_id, actor=await acting(made), reason="", now=made.clock()
    )
    assert await process.sent(later=1) == []
    assert process.counted == ["dropped"]


async def test_an_end_in_thirty_days_is_told_once_to_the_person_and_to_administrators(made: World) -> None:
    process = await begun(made)
    await made.write(role("mira", end_date="2027-02-15"), role("mira", "Checker", end_date="2027-02-14"))
    made.clock.pass_(DAY)
    sent = await process.sent()
    assert [(each.to.partition("@")[0], each.subject) for each in sent] == [
        ("adam", f"Access of people at {NAME} ends soon"),
        ("mira", f"Your access for {NAME} ends after 15 Feb 2027: Maker at Permits"),
        ("olivia", f"Access of people at {NAME} ends soon"),
    ]
    assert "Until 15 Feb 2027: Maker at Permits" in sent[1].text
    assert "mira: Maker at Permits, until 15 Feb 2027" in sent[0].text
    assert "Checker" not in sent[1].text, "it ended within 30 days when it was given"
    assert await process.sent() == []
    made.clock.pass_(DAY)
    assert await process.sent() == []


async def test_an_end_that_was_put_off_meanwhile_is_not_told(made: World) -> None:
    process = await begun(made)
    await made.write(role("mira", end_date="2027-02-15"))
    made.clock.pass_(DAY)
    await process.notices.round()
    await made.write(role("mira", end_date="2028-02-15"))
    assert await process.sent() == []


async def test_a_provisioning_tokens_end_is_told_to_owners_thirty_and_seven_days_before(made: World) -> None:
    """D60: owners read and create tokens."""
    process = await begun(made)
    now = int(made.clock())
    token = RegisteredProvisioningToken(
        token_id="t1", entity_id=HARBOUR, name="HR system", token_hash="h", created_at=now,
        expires_at=now + 40 * DAY, created_by="user:id-olivia",
    )  # fmt: skip
    await made.write(token)
    found = []
    for _ in range(40):
        made.clock.pass_(DAY)
        found += [(each.to, int(made.clock() - now) // DAY) for each in await process.sent(later=0)]
    assert found == [("olivia@harbour.example", 10), ("olivia@harbour.example", 33)]


async def test_a_review_is_told_to_owners_when_it_is_due_and_a_month_later(made: World) -> None:
    process = await begun(made)
    await access_review.ReviewDates(made.provider.registry).round(now=made.clock())
    assert await process.sent() == []
    made.clock.pass_(YEAR_SECONDS)
    [due] = await process.sent(later=1)
    assert (due.to, due.subject) == ("olivia@harbour.example", f"The access review of {NAME} is due")
    assert f"{BASE}{MANAGE_PATH}/access-review?of={HARBOUR}\n" in due.text
    made.clock.pass_(REMIND_SECONDS)
    [again] = await process.sent(later=1)
    assert again.subject == f"The access review of {NAME} is overdue"
    made.clock.pass_(YEAR_SECONDS)
    assert await process.sent(later=1) == []


async def test_an_email_is_sent_once_by_several_processes(made: World) -> None:
    first = await begun(made)
    second = Process(made=made, postbox=first.postbox)
    await change(made, given(role("mira")))
    await asyncio.gather(first.notices.round(), second.notices.round())
    made.clock.pass_(COLLECTED_SECONDS)
    await asyncio.gather(first.emails.round(), second.emails.round())
    assert [each.subject for each in first.postbox.emails] == [GIVEN]


async def test_what_a_dead_process_took_is_sent_by_another_one(made: World) -> None:
    process = await begun(made)
    await change(made, given(role("mira")))
    await process.notices.round()
    made.clock.pass_(COLLECTED_SECONDS)
    group = NoticeGroup(user_id="id-mira", kind="access", entity_id=HARBOUR)
    assert await made.provider.registry.notices.take(group, by="dead", now=made.clock())
    assert await process.sent(later=0) == []
    made.clock.pass_(SENDING_SECONDS)
    assert [each.subject for each in await process.sent(later=0)] == [GIVEN]


async def test_a_person_gets_few_emails_a_day_and_the_rest_in_one(made: World) -> None:
    process = await begun(made)
    count = 0
    for number in range(NOTICES_PER_PERSON + 3):
        await change(made, given(role("mira", f"Role{number}")))
        count += len(await process.sent())
    assert count == NOTICES_PER_PERSON
    assert process.counted[-1] == "put off"
    made.clock.pass_(DAY)
    [sent] = await process.sent()
    for number in range(NOTICES_PER_PERSON, NOTICES_PER_PERSON + 3):
        assert f"Given: Role{number} at Permits" in sent.text


async def changed_for(made: World, number: int) -> None:
    """Give so many new people a role each."""
    people = [f"p{each}" for each in range(number)]
    users = [await made.provider.registry.directory.user("id-mira")]
    await made.write(
        *(replace(users[0], user_id=f"id-{who}", user_name=who, email=f"{who}@harbour.example") for who in people),
        *(Membership(user_id=f"id-{who}", entity_id=HARBOUR) for who in people),
    )
    await change(made, *(given(role(who)) for who in people), actor=COMMAND)


async def test_many_changes_leave_at_the_rate_of_the_deployment(made: World) -> None:
    """A CSV of thousands of people is queued."""
    process = await begun(made)
    await changed_for(made, NOTICES_PER_MINUTE + 20)
    await process.notices.round()
    made.clock.pass_(COLLECTED_SECONDS)
    for _ in range(10):
        await process.emails.round()
    assert len(process.postbox.emails) == NOTICES_PER_MINUTE
    made.clock.pass_(60)
    for _ in range(3):
        await process.emails.round()
    assert len(process.postbox.emails) == NOTICES_PER_MINUTE + 20


async def test_a_request_does_not_wait_for_the_emails_of_an_import(made: World) -> None:
    """docs/decisions/0022: those that somebody waits for leave first."""
    process = await begun(made, approvals="all")
    await changed_for(made, 3 * NOTICES_PER_MINUTE)
    await process.notices.round()
    made.clock.pass_(COLLECTED_SECONDS)
    await ask(made, given(role("mira")))
    await process.notices.round()
    await process.emails.round()
    assert [each.to.partition("@")[0] for each in process.postbox.emails if each.subject.startswith("Request")] == [
        "adam"
    ]


@pytest.mark.parametrize(
    ("refusal", "later", "outcomes"),
    [
        (MailRefused("no such mailbox"), DAY, ["refused"]),
        (EmailDelayed("greylisted"), 3600, ["delayed", "sent"]),
        (MailDelayed("down"), 900, ["delayed", "sent"]),
    ],
)
async def test_what_the_mail_server_says_decides_what_follows(
    made: World, refusal: Exception, later: float, outcomes: list[str]
) -> None:
    process = await begun(made)
    await change(made, given(role("mira")))
    process.postbox.refuses.append(refusal)
    assert await process.sent() == []
    made.clock.pass_(later)
    await process.sent(later=0)
    assert process.counted == outcomes


async def test_who_stopped_administering_before_the_email_left_is_told_nothing(made: World) -> None:
    """D53, D61: an e-mail can wait for days, and tells who may do what, who asks for what, and why."""
    process = await begun(made, approvals="all")
    await ask(made, given(role("mira")))
    await made.write(role("mira", "Checker", end_date="2027-02-15"))
    made.clock.pass_(DAY)
    await change(made, given(owner_level("mira")), actor=COMMAND)
    await process.notices.round()
    [adam] = (await made.provider.registry.directory.read(Administrator, [("id-adam", HARBOUR)])).values()
    await change(made, taken(adam), actor=COMMAND)
    sent = [each.subject for each in await process.sent() if each.to.startswith("adam")]
    assert sent == [CHANGED]  # of his own level


async def test_what_waited_for_a_week_is_no_longer_sent(made: World) -> None:
    process = await begun(made)
    await change(made, given(role("mira")))
    assert await process.sent(later=LONGEST_WAIT_SECONDS + 1) == []
    assert process.counted == ["dropped"]


async def test_who_cannot_sign_in_gets_none(made: World) -> None:
    process = await begun(made)
    await change(made, given(role("mira")))
    await made.disable("mira")
    assert await process.sent() == []


async def test_no_notice_has_a_link_that_does_anything(made: World) -> None:
    """Only to a page of the account, or of the administrators of that entity."""
    process = await begun(made, approvals="roles")
    request = await ask(made, given(role("mira")))
    await change(made, given(owner_level("mira")), actor=COMMAND)
    sent = await process.sent()
    assert {each.email.to for each in sent} == {f"{who}@harbour.example" for who in ("adam", "mira", "olivia")}
    for each in sent:
        [url] = [part.url for part in each.email.parts if hasattr(part, "url")]
        pages = (f"requests/{request.request_id}", "administrators")
        assert url in {f"{BASE}/account/access", *(f"{BASE}{MANAGE_PATH}/{each}?of={HARBOUR}" for each in pages)}
