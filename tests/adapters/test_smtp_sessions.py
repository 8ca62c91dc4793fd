"""Sessions with a mail server: one for several e-mails; no e-mail is lost with one, and none sent twice (RFC 5321)."""

from __future__ import annotations

import asyncio
from email.headerregistry import Address
from typing import Any

import aiosmtplib
import pytest

from corpid.outbound.smtp import SmtpSessions
from corpid.rules.failures import EmailDelayed, MailRefused
from tests.adapters.test_smtp import PERSON, PostOffice, here, mail, mail_log, new_email, post_office

SENDER = Address(addr_spec="sign-in@corp.example")
MESSAGE = b"Subject: Hi\r\n\r\n.Hello\r\n"


def sessions(office: PostOffice, **more: Any) -> SmtpSessions:
    return SmtpSessions(here(office), sender=SENDER, **more)


async def until_left(office: PostOffice, count: int) -> None:
    async with asyncio.timeout(20):
        while office.left < count:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.001)


async def test_emails_that_follow_one_another_share_a_session_which_is_left_at_the_end() -> None:
    """RFC 5321 §3.3, §4.1.1.10"""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                for number in range(3):
                    await opened.deliver(new_email(f"nina{number}@example.org"))
                assert (office.greeted, office.left) == (1, 0)
            assert [to for to, _ in office.taken] == [[f"nina{number}@example.org"] for number in range(3)]
            assert len({message["Message-ID"] for _, message in office.taken}) == 3
            assert (office.greeted, office.left) == (1, 1)
    assert logged == []


async def test_emails_at_the_same_time_have_sessions_of_their_own() -> None:
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                await asyncio.gather(*(opened.deliver(new_email()) for _ in range(3)))
                await opened.deliver(new_email())
            assert (len(office.taken), office.greeted, office.left) == (4, 3, 3)
    assert logged == []


async def test_a_session_that_the_server_has_ended_is_replaced_at_once() -> None:
    """RFC 5321 §3.8: whether the client has noticed already, or notices with its next command."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                for pause in (0.0, 0.05):
                    await opened.deliver(new_email())
                    office.hang_up()
                    await asyncio.sleep(pause)
                await opened.deliver(new_email())
            assert (len(office.taken), office.greeted) == (3, 3)
    assert logged == []


@pytest.mark.parametrize("answer", ["421 too many", "452 4.5.3 too many", "550 5.7.0 too many"])
async def test_a_session_that_takes_no_further_sender_is_replaced_at_once(answer: str) -> None:
    """RFC 5321 §4.2.2: servers limit the e-mails of a session, and say so in several ways."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                await opened.deliver(new_email())
                office.senders = [answer]
                await opened.deliver(new_email())
            assert (office.tried, len(office.taken), office.greeted) == (2, 2, 2)
    assert logged == []


async def test_a_server_that_goes_away_before_the_message_is_asked_again_at_once() -> None:
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                await opened.deliver(new_email())
                office.recipients = ["421 going down"]
                await opened.deliver(new_email())
            assert (len(office.taken), office.greeted) == (2, 2)
    assert logged == []


@pytest.mark.parametrize(
    ("recipient", "data", "outcome", "tried"),
    [("550 5.1.1 unknown", "", MailRefused, 1), ("450 busy", "", EmailDelayed, 1), ("", "451 later", EmailDelayed, 2)],
)
async def test_what_a_server_says_of_an_email_counts_in_a_further_one_of_a_session_too(
    recipient: str, data: str, outcome: type[Exception], tried: int
) -> None:
    """It is asked once, and the next e-mail begins afresh."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                await opened.deliver(new_email())
                office.recipients, office.replies = [recipient] if recipient else [], [data] if data else []
                with pytest.raises(outcome):
                    await opened.deliver(new_email())
                assert (office.tried, len(office.taken), office.recipients) == (tried, 1, [])
                await until_left(office, 1)
                await opened.deliver(new_email())
            assert (len(office.taken), office.greeted, office.left) == (2, 2, 2)
    assert logged == []


@pytest.mark.parametrize("further", [False, True])
async def test_a_message_without_an_answer_is_sent_again_after_a_pause_in_any_session(*, further: bool) -> None:
    """RFC 5321 §4.5.3.2.6: the server may have it. So it is tried as often as before, with the log's word for it."""
    with mail_log() as logged:
        async with post_office() as office:
            async with mail(here(office)) as opened:
                if further:
                    await opened.deliver(new_email("first@example.org"))
                office.cut = True
                opened.post(new_email())
            assert office.greeted == 2
            assert office.tried == 2 + further
            assert len({message["Message-ID"] for to, message in office.taken if to == [PERSON]}) == 1
    [entry] = logged
    assert entry["event"] == "mail_delayed"


async def test_an_idle_session_is_left_and_so_is_an_old_one() -> None:
    with mail_log():
        async with post_office() as office:
            idle = sessions(office, idle_seconds=0.001)
            await idle.send(MESSAGE, PERSON)
            await until_left(office, 1)
            old = sessions(office, age_seconds=0.0)
            for _ in range(2):
                await old.send(MESSAGE, PERSON)
            await until_left(office, 3)
            await asyncio.gather(idle.close(), old.close())
            assert (len(office.taken), office.greeted, office.left) == (3, 3, 3)
            assert office.raw == [MESSAGE] * 3


async def test_a_server_that_does_not_answer_at_the_end_holds_nobody_up() -> None:
    with mail_log():
        async with post_office() as office:
            opened = sessions(office)
            await opened.send(MESSAGE, PERSON)
            [line] = office.lines
            line.pause_reading()
            async with asyncio.timeout(10):
                await opened.close()
            office.hang_up()
            assert office.left == 0


async def test_a_server_of_the_first_kind_is_greeted_as_it_knows() -> None:
    """RFC 5321 §3.2: HELO"""
    with mail_log():
        async with post_office() as office:
            office.knows_ehlo = False
            opened = sessions(office)
            for _ in range(2):
                await opened.send(MESSAGE, PERSON)
            await opened.close()
            assert (len(office.taken), office.greeted, office.left) == (2, 1, 1)


async def test_a_server_that_refuses_the_sender_is_asked_once_in_a_new_session() -> None:
    with mail_log():
        async with post_office() as office:
            office.senders = ["550 no"] * 2
            opened = sessions(office)
            with pytest.raises(aiosmtplib.SMTPSenderRefused):
                await opened.send(MESSAGE, PERSON)
            assert office.senders == ["550 no"]
            await opened.close()
            assert (office.greeted, office.left) == (1, 1)
