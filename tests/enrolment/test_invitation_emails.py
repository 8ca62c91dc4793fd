"""E-mails of invitations: each once, at a limited rate, with nothing in them that the inviter wrote (D60)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from corpid.flows.account import links
from corpid.rules.authentication import records
from corpid.rules.directory.memberships import REFUSED, SENDING_SECONDS
from corpid.rules.directory.records import DUE, NOT_TO_BE_SENT
from corpid.rules.failures import EmailDelayed, MailDelayed, MailRefused, SenderRefused
from corpid.rules.limits import DAY, EMAILS_PER_ADDRESS, INVITATIONS_PER_MINUTE, MEMBERSHIP_LINK_SECONDS
from corpid.web.directory.member_texts import EACH_GETS
from scripts.documentation import DOCS
from tests.enrolment import invited, newcomer
from tests.enrolment.invited import HARBOUR, MAILBOX, NAME, WAITING, Sender
from tests.postbox import Postbox
from tests.sign_in.test_entity_selection import statements
from tests.sign_in.world import World, entity, new_world


async def mark(made: World, waiting: str = WAITING) -> int:
    return (await invited.of(made, waiting)).membership.invitation_sent_at


async def valid(made: World, url: str) -> bool:
    """Whether a link opens something."""
    return (
        await links.find_valid_link(made.provider.registry, records.hash_code(url.partition("#")[2]), now=made.clock())
    ) is not None


async def test_an_email_names_the_entity_and_holds_nothing_that_the_inviter_wrote() -> None:
    """D60: no free text; lesson 27: the link is in the e-mail only."""
    written = {"name": "Win a prize at evil.example", "user_name": "evil.example/prize", "external_id": "evil-7"}

    async with new_world() as made:
        await invited.invite(made, **written)
        sender = Sender(made=made)
        assert await sender.round() == 1
        [email] = sender.postbox.emails
        assert (email.to, str(email.subject)) == (MAILBOX, f"Invitation to act for {NAME}")
        for text in written.values():
            assert text not in email.text
        url = newcomer.link_in(sender.postbox)
        assert await valid(made, url)
        code = records.canonical(url)
        [event] = await made.audit("link.membership")
        assert (event.actor, event.entity_id, event.object) == ("system", HARBOUR, WAITING)
        assert code not in str(event).upper().replace("-", "")
        assert (sender.told, sender.counted) == ([], ["sent"])
        assert await mark(made) == int(made.clock())
        assert await sender.round() == 0


async def test_an_email_is_the_same_whether_its_reader_has_an_account_or_not() -> None:
    """D60: e-mail, statements and what remains in the store."""

    async def of(made: World, address: str) -> tuple[list[str], str, Any]:
        await invited.invite(made, email=address)
        sender = Sender(made=made)
        with statements(made) as heard:
            await sender.round()
        [email] = sender.postbox.emails
        link = newcomer.link_in(sender.postbox)
        text = email.text.replace(link, "").replace(link.partition("#")[2], "")
        return [said.split("'")[0].split("VALUES")[0] for said in heard], text, await made.audit("link.membership")

    seen = []
    for address in ("alice@example.org", "nobody@example.org"):
        async with new_world() as made:
            await made.person("alice", email="alice@example.org")
            heard, text, events = await of(made, address)
            seen.append((heard, text, [(each.actor, each.object, each.detail) for each in events]))
    [with_account, without] = seen
    assert [len(heard) for heard, _, _ in seen] == [len(with_account[0])] * 2
    assert with_account[0] == without[0]
    assert with_account[1] == without[1]
    (first,), (second,) = with_account[2], without[2]
    assert first[:2] == second[:2]
    assert first[2].keys() == second[2].keys()


@pytest.mark.parametrize("change", ["not to be sent", "suspended", "entity disabled"])
async def test_nothing_is_sent_that_is_not_wanted_or_cannot_be_accepted(made: World, change: str) -> None:
    """D60: `--no-invite`; what is suspended waits until it is restored."""
    members: dict[str, dict[str, Any]] = {
        "not to be sent": {"invitation_sent_at": NOT_TO_BE_SENT},
        "suspended": {"enabled": False},
    }
    await invited.invite(made, **members.get(change, {}))
    if change == "entity disabled":
        await made.write(entity(HARBOUR, NAME, enabled=False))
    sender = Sender(made=made)
    assert await sender.round() == 0
    assert sender.postbox.emails == []


async def test_two_processes_send_an_email_once(made: World) -> None:
    """D60: each takes an e-mail before it sends it."""
    await invited.invite(made)
    senders = [Sender(made=made) for _ in range(3)]
    sent = await asyncio.gather(*(sender.round() for sender in senders))
    assert sorted(sent) == [0, 0, 1]
    assert sum(len(sender.postbox.emails) for sender in senders) == 1


async def test_a_process_that_dies_while_sending_leaves_an_email_that_another_sends_after_a_while(made: World) -> None:
    """D60: at most once too often, and then the earlier link is void."""
    await invited.invite(made)
    dying = Sender(made=made, postbox=Postbox(refuses=[asyncio.CancelledError()]))
    with pytest.raises(asyncio.CancelledError):
        await dying.round()
    other = Sender(made=made)
    assert await other.round() == 0
    made.clock.pass_(SENDING_SECONDS - 1)
    assert await other.round() == 0
    made.clock.pass_(1)
    assert await other.round() == 1
    assert await other.round() == 0
    assert len(other.postbox.emails) == 1


async def test_of_two_emails_only_the_link_of_the_later_works() -> None:
    """D60: a sender died after the mail server had the first one."""

    class Late(Postbox):
        async def deliver(self, email: Any) -> None:
            self.post(email)
            raise asyncio.CancelledError

    async with new_world() as made:
        await invited.invite(made)
        first = Sender(made=made, postbox=Late())
        with pytest.raises(asyncio.CancelledError):
            await first.round()
        made.clock.pass_(SENDING_SECONDS)
        second = Sender(made=made)
        assert await second.round() == 1
        assert not await valid(made, newcomer.link_in(first.postbox))
        assert await valid(made, newcomer.link_in(second.postbox))


async def test_while_the_mail_server_is_away_emails_stay_due_and_attempts_become_rare(made: World) -> None:
    """D60: kept and tried again; the log says so and names nobody."""
    await invited.invite(made)
    attempts = EMAILS_PER_ADDRESS + 1
    sender = Sender(made=made, postbox=Postbox(refuses=[MailDelayed("ConnectionRefusedError")] * attempts))
    for attempt in range(1, attempts + 1):
        assert await sender.round() == 0
        assert len(sender.told) == attempt
        assert await sender.round() == 0
        assert len(sender.told) == attempt
        made.clock.pass_(max(SENDING_SECONDS, 320))
    assert [detail.partition("; ")[2] for _, detail in sender.told] == [
        f"the next attempt follows in {seconds} seconds" for seconds in (10, 20, 40, 80, 160, 320)
    ]
    assert {event for event, _ in sender.told} == {"invitation_delayed"}
    assert MAILBOX not in str(sender.told)
    assert sender.emails.pause_seconds == 320, "the alert CorpidEmailsNotSent fires"
    assert await sender.round() == 1
    assert sender.emails.pause_seconds == 0
    assert sender.counted == ["delayed"] * attempts + ["sent"]


async def test_a_server_that_refuses_the_deployment_is_told_once_and_asked_once_a_day_in_the_end(made: World) -> None:
    """D60: an operator has to change something; a restart tries at once, and no e-mail is lost."""
    await invited.invite(made)
    attempts = EMAILS_PER_ADDRESS + 3
    refusal = SenderRefused("SMTPAuthenticationError 535")
    sender = Sender(made=made, postbox=Postbox(refuses=[refusal] * attempts))
    for hours in (1, 2, 4, 8, 16, 24, 24):
        assert await sender.round() == 0
        tried = len(sender.counted)
        made.clock.pass_(hours * 3600 - 1)
        assert await sender.round() == 0
        assert len(sender.counted) == tried
        made.clock.pass_(1)
    [(event, detail)] = sender.told
    assert (event, "mail_url" in detail, MAILBOX in detail) == ("invitations_stopped", True, False)
    restarted = Sender(made=made)
    assert await restarted.round() == 1


async def test_an_email_that_alone_is_not_taken_keeps_no_other_waiting_and_is_tried_again_in_an_hour(
    made: World,
) -> None:
    """D60: an entity whose e-mail a server refuses stops nobody else's invitations."""
    for each in range(4):
        waiting = f"00000000-0000-4000-8000-{each:012}"
        await invited.invite(made, waiting, email=f"p@d{each}.example", user_name=f"p{each}")
    refusals = [EmailDelayed("SMTPRecipientsRefused 554")] * 3
    sender = Sender(made=made, postbox=Postbox(refuses=list(refusals)))
    assert await sender.round() == 1
    assert {event for event, _ in sender.told} == {"invitation_delayed"}
    assert await sender.round() == 0
    made.clock.pass_(3600)
    assert await sender.round() == 3
    assert sender.counted == ["delayed"] * 3 + ["sent"] * 4


async def test_a_server_that_takes_no_email_for_several_domains_refuses_the_deployment(made: World) -> None:
    """D60: one that may not relay gets the same answer for each."""
    for each in range(3):
        waiting = f"00000000-0000-4000-8000-{each:012}"
        await invited.invite(made, waiting, email=f"p@d{each}.example", user_name=f"p{each}")
    sender = Sender(made=made, postbox=Postbox(refuses=[EmailDelayed("SMTPRecipientsRefused 550")] * 3))
    assert await sender.round() == 0
    assert [event for event, _ in sender.told].count("invitations_stopped") == 1
    made.clock.pass_(3600)
    assert await sender.round() == 3


async def test_an_address_that_does_not_exist_is_told_and_not_tried_again(made: World) -> None:
    """D60: and the others get theirs; D48: the log names the membership, not the address."""
    await invited.invite(made)
    sender = Sender(made=made, postbox=Postbox(refuses=[MailRefused("SMTPRecipientsRefused 550")]))
    assert await sender.round() == 0
    [(event, detail)] = sender.told
    assert event == "invitation_refused"
    assert (await invited.of(made)).membership.membership_id in detail
    assert MAILBOX not in detail
    assert await mark(made) == REFUSED
    made.clock.pass_(SENDING_SECONDS)
    assert await sender.round() == 0
    assert sender.counted == ["refused"]


async def test_a_deployment_sends_so_many_emails_a_minute_whatever_its_processes() -> None:
    """D60: invitations leave at a limited rate."""
    number = INVITATIONS_PER_MINUTE + 15

    async def rounds(senders: list[Sender]) -> int:
        sent = 0
        while more := sum([await sender.round() for sender in senders]):
            sent += more
        return sent

    async with new_world() as made:
        made.clock.pass_(60 - made.clock() % 60)
        for each in range(number):
            waiting = f"00000000-0000-4000-8000-{each:012}"
            await invited.invite(made, waiting, email=f"p{each}@example.org", user_name=f"p{each}")
        senders = [Sender(made=made) for _ in range(2)]
        assert await rounds(senders) == INVITATIONS_PER_MINUTE
        made.clock.pass_(60)
        assert await rounds(senders) == number - INVITATIONS_PER_MINUTE
        every = [email.to for sender in senders for email in sender.postbox.emails]
        assert len(set(every)) == len(every) == number


async def test_one_address_gets_five_emails_a_day_from_all_entities(made: World) -> None:
    """D60: the others wait until the next day, and keep nobody else's waiting."""
    made.clock.pass_(86400 - made.clock() % 86400)
    for each in range(EMAILS_PER_ADDRESS + 2):
        waiting = f"00000000-0000-4000-8000-{each:012}"
        address = MAILBOX.upper() if each % 2 else MAILBOX
        await invited.invite(made, waiting, email=address, user_name=f"p{each}")
    await invited.invite(made, email="another@harbour.example", user_name="another", waiting=WAITING[:-1] + "f")
    sender = Sender(made=made)
    await sender.round()
    assert len([email for email in sender.postbox.emails if email.to.lower() == MAILBOX]) == EMAILS_PER_ADDRESS
    assert len(sender.postbox.emails) == EMAILS_PER_ADDRESS + 1
    assert sender.counted.count("put off") == 2
    made.clock.pass_(86399)
    assert await sender.round() == 0
    assert sender.counted.count("put off") == 2
    made.clock.pass_(1)
    assert await sender.round() == 2


async def test_without_a_mail_server_nothing_is_taken(made: World) -> None:
    """D60: what is due waits for one."""
    await invited.invite(made)
    sender = Sender(made=made, postbox=Postbox(works=False))
    assert await sender.round() == 0
    assert await mark(made) == DUE


async def test_an_email_speaks_the_language_of_the_placeholder(made: World) -> None:
    """D60: that of the invited person, as far as it is known."""
    await invited.invite(made)
    sender = Sender(made=made)
    await sender.round()
    assert [email.language for email in sender.postbox.emails] == ["en"]


async def test_email_page_and_documents_say_how_long_the_link_works(made: World) -> None:
    """D60: as long as it does (the next test); one constant says it everywhere."""
    days = f"{MEMBERSHIP_LINK_SECONDS // DAY} days"
    await invited.invite(made)
    sender = Sender(made=made)
    await sender.round()
    assert f"Use this link within {days} to accept or decline." in sender.postbox.emails[0].text
    assert f"works for {days}." in EACH_GETS
    for document, sentence in {
        "portal": f"a link that works for {days}",
        "accounts": f"It works for {days}, at most once",
        "administration": f"its link expires after {days}",
    }.items():
        assert sentence in (DOCS / f"{document}.md").read_text(encoding="utf-8"), document


async def test_a_link_lasts_a_week_and_ends_when_the_address_changes(made: World) -> None:
    """D60: an e-mail to an earlier address opens nothing."""
    await invited.invite(made)
    url = await invited.link(made)
    made.clock.pass_(MEMBERSHIP_LINK_SECONDS - 1)
    assert await valid(made, url)
    made.clock.pass_(1)
    assert not await valid(made, url)
    await invited.invite(made, "00000000-0000-4000-8000-000000000002", user_name="second")
    other = await invited.link(made)
    assert await valid(made, other)
    found = await invited.of(made, "00000000-0000-4000-8000-000000000002")
    await made.write(msgspec.structs.replace(found.membership, email="another@harbour.example"))
    assert not await valid(made, other)
