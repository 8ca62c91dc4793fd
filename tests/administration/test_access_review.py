"""The yearly access review of an entity: what was not seen is not signed off (docs/decisions/0022)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory import access_review, approvals
from corpid.flows.directory.access_review import MOST_DECISIONS, KeepDecision, ReviewDates, ReviewedPerson
from corpid.flows.directory.write import Refused, RequestDetails
from corpid.rules.directory.access import Actor, ApiClient, CommandLine, Forbidden
from corpid.rules.directory.access_review import YEAR_SECONDS
from corpid.rules.directory.records import Administrator, ChangedMeanwhile, ChangeRequest, Membership
from tests.administration.scene import HARBOUR, acting, change, given, peopled, role

if TYPE_CHECKING:
    from tests.sign_in.world import World

COMMAND = CommandLine(by="lee@node1")
EVERYBODY = ["adam", "mira", "olivia"]


async def listed(
    made: World, *, unreviewed: bool = True, limit: int = 50, actor: Actor = COMMAND
) -> list[ReviewedPerson]:
    """The list, page by page."""
    found: list[ReviewedPerson] = []
    after, more = "", True
    while more:
        page = await access_review.list_reviewed_people(
            made.provider.registry, actor, HARBOUR, unreviewed=unreviewed, after=after, limit=limit
        )
        found += page.found
        after, more = page.after, bool(page.after)
    return sorted(found, key=lambda each: each.user.user_name)


async def names(made: World) -> list[str]:
    return [each.user.user_name for each in await listed(made)]


async def kept(made: World, *who: str, by: str = "olivia") -> None:
    """These people are kept as they are."""
    shown = [each for each in await listed(made, unreviewed=False) if each.user.user_name in who]
    wanted = [KeepDecision(user_id=each.user.user_id, seen=each.seen) for each in shown]
    await access_review.keep_access(made.provider.registry, await acting(made, by), HARBOUR, wanted, now=made.clock())


async def ended(made: World, who: str, *, by: str = "olivia", reason: str = "") -> ChangeRequest | None:
    return await access_review.end_access(
        made.provider.registry, await acting(made, by), HARBOUR, f"id-{who}", RequestDetails(reason, made.clock(), "1")
    )


async def signed_off(made: World, by: str = "olivia") -> Any:
    return await access_review.sign_off_review(
        made.provider.registry, await acting(made, by), HARBOUR, now=made.clock()
    )


async def test_a_review_is_due_a_year_after_the_first_administrators_and_after_each_that_was_signed_off(
    made: World,
) -> None:
    registry = made.provider.registry
    await peopled(made)
    assert (await access_review.load_review_state(registry, COMMAND, HARBOUR)).review is None
    await ReviewDates(registry).round(now=made.clock())
    state = await access_review.load_review_state(registry, COMMAND, HARBOUR)
    assert state.review is not None
    assert (state.review.due_at, state.people) == (int(made.clock()) + YEAR_SECONDS, 3)
    made.clock.pass_(YEAR_SECONDS)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    await signed_off(made)
    after = (await access_review.load_review_state(registry, COMMAND, HARBOUR)).review
    assert after is not None
    assert (after.due_at, after.signed_off_by, after.began_at) == (
        int(made.clock()) + YEAR_SECONDS,
        "user:id-olivia",
        0,
    )


async def test_everybody_is_in_the_list_with_what_they_may_do(made: World) -> None:
    await peopled(made)
    await made.write(role("mira"), role("mira", "Checker"))
    found = await listed(made, limit=2)
    assert [each.user.user_name for each in found] == EVERYBODY
    assert [len(each.access.roles) for each in found] == [0, 2, 0]
    assert [each.access.administrator.level if each.access.administrator else "" for each in found] == [
        "administrator", "", "owner",
    ]  # fmt: skip


async def test_a_review_is_signed_off_with_counts_once_everybody_was_decided_on(made: World) -> None:
    await peopled(made)
    with pytest.raises(Refused, match="begins with the first decision"):
        await signed_off(made)
    await kept(made, "adam")
    assert await names(made) == ["mira", "olivia"]
    assert await ended(made, "mira") is None
    with pytest.raises(Refused, match="what they may do now: olivia"):
        await signed_off(made)
    await kept(made, "olivia", by="adam")
    review = await signed_off(made)
    assert (review.kept, review.ended) == (2, 1)
    [event] = await made.audit("access_review.sign_off")
    assert (event.entity_id, event.detail) == (HARBOUR, {"kept": "2", "ended": "1"})
    assert len(await made.audit("access_review.begin")) == 1
    assert len(await made.audit("access_review.keep")) == 2
    assert [each.object for each in await made.audit("membership.remove")] == [f"id-mira/{HARBOUR}"]
    assert await made.provider.registry.directory.acting("id-mira", HARBOUR) is None


async def test_who_was_added_or_changed_after_they_were_kept_is_in_the_list_again(made: World) -> None:
    await peopled(made)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    await change(made, given(role("mira")))
    await made.write(Membership(user_id="id-alice", entity_id=HARBOUR))
    with pytest.raises(Refused, match="what they may do now"):
        await signed_off(made)
    assert await names(made) == ["alice", "mira"]
    await kept(made, "alice", "mira")
    assert (await signed_off(made)).kept == 4


@pytest.mark.parametrize("becomes", [{"end_date": "2027-12-31"}, {"role": "Checker"}])
async def test_nobody_is_kept_with_something_else_than_was_shown(made: World, becomes: dict[str, str]) -> None:
    await peopled(made)
    await made.write(role("mira"))
    [shown] = [each for each in await listed(made) if each.user.user_name == "mira"]
    await made.write(replace(role("mira"), **becomes))
    wanted = [KeepDecision(user_id="id-mira", seen=shown.seen)]
    with pytest.raises(Refused, match="has changed since it was shown"):
        await access_review.keep_access(made.provider.registry, await acting(made), HARBOUR, wanted, now=made.clock())


async def test_a_change_at_the_moment_of_the_signing_off_stops_it(made: World) -> None:
    """It is looked for in the transaction that signs off."""
    await peopled(made)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    registry = made.provider.registry
    review = await registry.access_reviews.find(HARBOUR)
    settled = await registry.seals.settled_number()
    await change(made, given(role("mira")))
    with pytest.raises(ChangedMeanwhile):
        await registry.access_reviews.sign_off(
            review, replace(review, began_at=0), actions=("assignment.add",), after=settled
        )
    assert (await registry.access_reviews.find(HARBOUR)).began_at == review.began_at


async def test_two_administrators_sign_off_once(made: World) -> None:
    await peopled(made)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    done = await asyncio.gather(signed_off(made), signed_off(made, by="adam"), return_exceptions=True)
    assert sum(isinstance(each, (Refused, ChangedMeanwhile)) for each in done) == 1
    assert len(await made.audit("access_review.sign_off")) == 1


async def test_two_administrators_decide_at_the_same_moment_in_one_review(made: World) -> None:
    await peopled(made)
    await asyncio.gather(
        kept(made, "mira"), kept(made, "adam", by="olivia"), kept(made, "olivia", by="adam"), return_exceptions=True
    )
    for who, by in (("mira", "olivia"), ("adam", "olivia"), ("olivia", "adam")):
        await kept(made, who, by=by)
    assert len(await made.audit("access_review.begin")) == 1
    assert (await signed_off(made)).kept == 3


async def test_a_decision_on_a_review_that_was_signed_off_meanwhile_begins_no_other(made: World) -> None:
    await peopled(made)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    seen = await made.provider.registry.access_reviews.find(HARBOUR)
    await signed_off(made)
    with pytest.raises(ChangedMeanwhile):
        await made.provider.registry.access_reviews.decide(seen, seen, [])


async def test_nobody_keeps_their_own_access_if_somebody_else_can(made: World) -> None:
    """D54."""
    await peopled(made)
    with pytest.raises(Forbidden, match="has to review your own access"):
        await kept(made, "olivia")
    await made.disable("adam")
    await kept(made, "olivia")


async def test_an_end_that_needs_approval_leaves_the_person_in_the_list_until_it_is_given(made: World) -> None:
    """D55."""
    await peopled(made, approvals="all")
    await kept(made, "adam")
    await kept(made, "olivia", by="adam")
    with pytest.raises(Refused, match="say why"):
        await ended(made, "mira")
    request = await ended(made, "mira", reason="Left in March")
    assert request is not None
    with pytest.raises(Refused, match="mira"):
        await signed_off(made)
    await approvals.approve_request(
        made.provider.registry, request.request_id, actor=await acting(made, "adam"), reason="Yes", now=made.clock()
    )
    review = await signed_off(made)
    assert (review.kept, review.ended) == (2, 1)


async def test_an_administrator_ends_no_owner_in_a_review(made: World) -> None:
    """D53."""
    await peopled(made)
    with pytest.raises(Forbidden):
        await ended(made, "olivia", by="adam")
    assert await made.audit("access_review.begin") == []


@pytest.mark.parametrize(
    "actor",
    [COMMAND, ApiClient(client_id="c", scopes=frozenset({"directory.read", "directory.write"}), entity_id=HARBOUR)],
)
async def test_only_people_who_administer_the_entity_decide(made: World, actor: Actor) -> None:
    """D59: a client of the API reads."""
    await peopled(made)
    [mira] = [each for each in await listed(made, actor=actor) if each.user.user_name == "mira"]
    registry, wanted = made.provider.registry, [KeepDecision(user_id="id-mira", seen=mira.seen)]
    for work in (
        access_review.keep_access(registry, actor, HARBOUR, wanted, now=made.clock()),
        access_review.sign_off_review(registry, actor, HARBOUR, now=made.clock()),
        access_review.end_access(registry, actor, HARBOUR, "id-mira", RequestDetails("", made.clock(), "1")),
    ):
        with pytest.raises(Forbidden):
            await work


async def test_an_administrator_of_another_entity_or_with_an_old_sign_in_decides_nothing(made: World) -> None:
    """D54."""
    await peopled(made)
    olivia = await acting(made)
    wanted = [KeepDecision(user_id="id-mira", seen="x")]
    for actor in (replace(olivia, entity_id="200000001A"), replace(olivia, auth_time=made.clock() - 901)):
        with pytest.raises(Forbidden):
            await access_review.keep_access(made.provider.registry, actor, HARBOUR, wanted, now=made.clock())
    with pytest.raises(Forbidden):
        await listed(made, actor=replace(olivia, entity_id="200000001A"))


async def test_a_call_keeps_a_page_of_people_and_no_more(made: World) -> None:
    await peopled(made)
    for number in (0, MOST_DECISIONS + 1):
        wanted = [KeepDecision(user_id=f"id-{n}", seen="x") for n in range(number)]
        with pytest.raises(Refused, match="one call keeps"):
            await access_review.keep_access(
                made.provider.registry, await acting(made), HARBOUR, wanted, now=made.clock()
            )


async def test_an_ended_level_decides_nothing(made: World) -> None:
    """D53: the right is read again where it is written."""
    await peopled(made)
    adam = await acting(made, "adam")
    [mira] = [each for each in await listed(made) if each.user.user_name == "mira"]
    await made.write(Administrator(user_id="id-adam", entity_id=HARBOUR, level="sub_administrator"))
    with pytest.raises(Forbidden):
        await access_review.keep_access(
            made.provider.registry, adam, HARBOUR, [KeepDecision(user_id="id-mira", seen=mira.seen)], now=made.clock()
        )


async def test_a_new_review_begins_with_an_empty_list_of_decisions(made: World) -> None:
    await peopled(made)
    await kept(made, "adam", "mira")
    await kept(made, "olivia", by="adam")
    await signed_off(made)
    made.clock.pass_(60)
    await kept(made, "adam")
    assert await names(made) == ["mira", "olivia"]
