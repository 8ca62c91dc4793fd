"""Comments on requests that wait: who may write them, who reads them, and when no more (D55)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.flows.directory.approvals import (
    AlreadyDecided,
    NoRequest,
    approve_request,
    comment_on_request,
    decline_request,
    read_request,
)
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Actor, CommandLine, Forbidden
from corpid.rules.directory.approvals import MOST_COMMENTS
from corpid.rules.directory.records import ChangeRequest, Conflict
from tests.manage.scene import ACME, BANYAN, appoint, go, in_portal
from tests.manage.test_requests import acme, requested, state
from tests.manage.test_who_is_meant import owner
from tests.manage.walking import follow
from tests.sign_in.world import World, entity, form_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def comment(made: World, request: ChangeRequest, text: str, *, actor: Actor | None = None) -> ChangeRequest:
    return await comment_on_request(
        made.provider.registry, request.request_id, actor=actor or owner(made, "alice"), text=text, now=made.clock()
    )


async def test_approver_and_requester_comment_on_the_page_and_both_read_it(made: World) -> None:
    """It changes nothing else; the history says that it was written, not what."""
    await acme(made)
    request = await requested(made)
    browser = await in_portal(made, f"requests/{request.request_id}")
    await browser.fill_and_submit("comment", comment=" Since when does she work here? ")
    assert "Your comment has been sent." in browser.page.text
    assert "Since when does she work here? You," in browser.page.text
    theirs = await in_portal(made, who="bob")
    assert "Somebody has commented on 1 request of yours." in theirs.page.text
    await go(made, theirs, "requests")
    assert "1 comment" in theirs.page.text
    await go(made, theirs, f"requests/comment/{request.request_id}")
    assert "Since when does she work here? alice (Alice Tan)" in theirs.page.text
    await theirs.fill_and_submit("comment", comment="Since May.")
    await go(made, browser, f"requests/decide/{request.request_id}")
    assert "Since May. bob (Bob Lim)" in browser.page.text
    events = await made.audit("approval.comment")
    assert [(each.actor, each.object, each.entity_id) for each in events] == [
        ("user:id-alice", request.request_id, ACME),
        ("user:id-bob", request.request_id, ACME),
    ]
    assert "May" not in f"{events}"
    await go(made, browser, f"history/{events[0].number}")
    await follow(browser, "See the request")
    assert browser.url.endswith(request.request_id)
    await go(made, browser, f"requests/decide/{request.request_id}")
    await browser.fill_and_submit(button="approve", reason="")
    assert "The request has been approved" in browser.page.text
    await go(made, browser, f"requests/{request.request_id}")
    assert "Since May." in browser.page.text
    assert browser.page.form_with("comment") is None


@pytest.mark.parametrize("text", [" ", "a" * 501, "a\nb"])
async def test_a_comment_is_one_line(made: World, text: str) -> None:
    await acme(made)
    request = await requested(made)
    with pytest.raises(Refused, match="one line of at most 500 characters"):
        await comment(made, request, text)
    assert (await comment(made, request, "a" * 500)).comments[0].text == "a" * 500


async def test_a_comment_that_is_too_long_is_kept_on_the_page_with_what_is_wrong(made: World) -> None:
    await acme(made)
    request = await requested(made)
    browser = await in_portal(made, f"requests/comment/{request.request_id}")
    await browser.fill_and_submit("comment", comment="x" * 501)
    assert "at most 500 characters" in browser.page.text
    assert form_of(browser, "comment")["comment"] == "x" * 501
    await browser.fill_and_submit("comment", comment="")
    assert "Enter a comment of one line" in browser.page.text


async def test_nobody_comments_on_what_they_cannot_decide_and_have_not_requested(made: World) -> None:
    """D53: a sub-administrator of another service, an administrator of another entity."""
    await acme(made)
    request = await requested(made)
    await made.person("eve", entity(BANYAN, "Banyan Trading"))
    await appoint(made, BANYAN, who="eve")
    for actor in (
        replace(owner(made, "cora"), level="sub_administrator", services=("TAX",)),
        replace(owner(made, "eve"), entity_id=BANYAN),
    ):
        with pytest.raises(Forbidden):
            await comment(made, request, "Hm", actor=actor)
    with pytest.raises((NoRequest, Forbidden)):
        await comment_on_request(
            made.provider.registry, "6b49d200-none", actor=owner(made, "alice"), text="Hm", now=made.clock()
        )


@pytest.mark.parametrize("decide", [approve_request, decline_request])
async def test_what_was_decided_takes_no_comment(made: World, decide: Callable[..., Awaitable[ChangeRequest]]) -> None:
    await acme(made)
    request = await requested(made)
    await decide(
        made.provider.registry, request.request_id, actor=owner(made, "alice"), reason="Seen", now=made.clock()
    )
    with pytest.raises(AlreadyDecided):
        await comment(made, request, "Wait")


async def test_a_request_expires_with_its_comments_and_has_a_limit_of_them(made: World) -> None:
    await acme(made)
    request = await requested(made)
    for number in range(MOST_COMMENTS):
        await comment(made, request, f"{number}")
    with pytest.raises(Refused, match="at most 50 comments"):
        await comment(made, request, "One more")
    made.clock.pass_(14 * 86400)
    with pytest.raises(AlreadyDecided):
        await comment(made, request, "Late")


async def test_of_comments_and_decisions_at_the_same_moment_none_is_lost_silently(made: World) -> None:
    """Each is kept, or refused."""
    await acme(made)
    request = await requested(made)
    writing = [
        comment(made, request, f"{number}", actor=owner(made, who)) for number, who in enumerate(("alice", "bob"))
    ]
    found = await asyncio.gather(*writing, return_exceptions=True)
    kept = [each for each in found if not isinstance(each, BaseException)]
    assert all(isinstance(each, Conflict) for each in found if isinstance(each, BaseException))
    operator = CommandLine(by="lee@node1", reason="look")
    shown = await read_request(made.provider.registry, operator, request.request_id, now=made.clock())
    assert len(shown.comments) == len(kept) >= 1


async def test_a_requester_answers_at_a_service_that_is_no_longer_theirs(made: World) -> None:
    """D53: as they withdraw it."""
    await acme(made)
    request = await requested(made)
    bob = replace(owner(made), level="sub_administrator", services=("TAX",))
    assert [each.text for each in (await comment(made, request, "She joins in May", actor=bob)).comments] == [
        "She joins in May"
    ]


async def test_who_approves_has_read_what_was_written_meanwhile(made: World) -> None:
    """D55: a comment since the page was shown is shown first."""
    await acme(made)
    request = await requested(made)
    browser = await in_portal(made, f"requests/{request.request_id}")
    await comment(made, request, "Stop: this is not our Cora", actor=owner(made, "bob"))
    await browser.fill_and_submit(button="approve")
    assert "Something changed while you were on this page." in browser.page.text
    assert "Stop: this is not our Cora" in browser.page.text
    assert await state(made, request) == "pending"
    await browser.fill_and_submit(button="approve")
    assert await state(made, request) == "approved"
