"""The queue of notices and access reviews, on both engines: each once, whatever the number of processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from corpid.rules.directory import access_review
from corpid.rules.directory.access_review import ReviewDecision
from corpid.rules.directory.memberships import SENDING_SECONDS
from corpid.rules.directory.notices import HEAD_START_SECONDS, WAITED_FOR, NoticeGroup, QueuedNotice
from corpid.rules.directory.provisioning_tokens import RegisteredProvisioningToken
from corpid.rules.directory.records import Assignment, ChangedMeanwhile, Membership, User
from tests.adapters.opened import NOW
from tests.adapters.stored_records import BOOKS, write
from tests.adapters.test_acting_administrators import FIRM, PLAIN
from tests.adapters.test_administrators import LIM_OWNS, PEOPLE

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place

NOTICE: Final = QueuedNotice(
    user_id="u2", kind="access", entity_id="E1", subject="1", facts={"change": "given"}, created_at=int(NOW),
    due_at=int(NOW),
)  # fmt: skip
GROUP: Final = NoticeGroup(user_id="u2", kind="access", entity_id="E1")
PERSONS: Final = tuple(each for each in PEOPLE if isinstance(each, User))
MEMBERS: Final = tuple(Membership(user_id=user.user_id, entity_id="E1") for user in PERSONS)
ROUNDS: Final = 5


async def prepared(stores: SqlStores) -> None:
    await write(stores, *PEOPLE, BOOKS, FIRM, PLAIN, *MEMBERS, LIM_OWNS)


async def queued(stores: SqlStores, *notices: QueuedNotice, seen: str = "0", becomes: str = "1") -> bool:
    assert await stores.registry.notices.position("p", first="0")
    return await stores.registry.notices.queue(notices, position="p", seen=seen, becomes=becomes)


async def true_once(*work: Awaitable[object]) -> None:
    assert sum(map(bool, await asyncio.gather(*work))) == 1


async def test_an_occasion_is_queued_once_by_those_who_saw_it_at_the_same_moment(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        for number in range(ROUNDS):
            notice = replace(NOTICE, subject=str(number))
            at = {"seen": str(number), "becomes": str(number + 1)}
            await true_once(*(queued(stores, notice, **at) for _ in range(3)))
        assert len(await stores.registry.notices.take(GROUP, by="me", now=NOW)) == ROUNDS


async def test_a_repeated_occasion_and_people_who_are_gone_are_left_out(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        gone = replace(NOTICE, user_id="nobody"), replace(NOTICE, entity_id="E9")
        assert await queued(stores, NOTICE, NOTICE, *gone)
        assert await stores.registry.notices.due(now=NOW, limit=10) == [GROUP]
        assert await stores.registry.notices.take(GROUP, by="me", now=NOW) == [NOTICE]


async def test_of_several_processes_one_takes_a_group(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        assert await queued(stores, NOTICE, replace(NOTICE, subject="2"))
        notices = stores.registry.notices
        await true_once(*(notices.take(GROUP, by=f"p{number}", now=NOW) for number in range(4)))
        assert await notices.due(now=NOW, limit=10) == []
        later = NOW + SENDING_SECONDS
        assert await notices.due(now=later, limit=10) == [GROUP], "the process that took it may have died"
        assert len(await notices.take(GROUP, by="other", now=later)) == 2


async def test_what_was_sent_is_sent_no_more_and_what_was_put_off_is_later(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        assert await queued(stores, NOTICE)
        notices = stores.registry.notices
        await notices.take(GROUP, by="me", now=NOW)
        await notices.settle(GROUP, by="another", sent_at=int(NOW))
        await notices.settle(GROUP, by="me", due_at=int(NOW) + 60)
        assert await notices.due(now=NOW, limit=10) == []
        assert await notices.due(now=NOW + 60, limit=10) == [GROUP]
        await notices.take(GROUP, by="me", now=NOW + 60)
        await notices.settle(GROUP, by="me", sent_at=int(NOW) + 60)
        assert await notices.due(now=NOW + 10**6, limit=10) == []
        assert await notices.sweep(before=NOW + 60) == 0
        assert await notices.sweep(before=NOW + 61) == 1


async def test_a_notice_that_somebody_waits_for_leaves_before_all_of_the_hour_before(place: Place) -> None:
    """docs/decisions/0022: a request does not wait for the e-mails of an import, and no others wait for ever."""
    async with place.opened() as stores:
        await prepared(stores)
        notices, now = stores.registry.notices, int(NOW)
        old, new = (
            replace(NOTICE, user_id=who, due_at=now - at) for who, at in (("u1", HEAD_START_SECONDS + 1), ("u2", 60))
        )
        asked = [replace(NOTICE, user_id="u3", kind=kind) for kind in WAITED_FOR]
        assert await queued(stores, new, *asked, old)
        found = await notices.due(now=NOW, limit=10)
        assert [(each.user_id, each.kind) for each in found[:1] + found[-1:]] == [("u1", "access"), ("u2", "access")]
        assert {each.kind for each in found[1:-1]} == set(WAITED_FOR)


async def test_ending_roles_are_paged_by_day_and_entity(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        role = Assignment(user_id="u2", entity_id="E1", service_id="plain")
        days = ("2027-02-01", "2027-02-02", "2027-02-02", "2027-03-01", "9999-12-31")
        rows = [replace(role, role=f"r{number}", end_date=day) for number, day in enumerate(days)]
        await write(stores, *rows)
        found: list[Assignment] = []
        place_: tuple[str, ...] = ("2027-01-31", "\U0010ffff", "", "", "", "", "")
        while page := await stores.registry.notices.ending(Assignment, until="2027-02-28", place=place_, limit=2):
            found += page
            last = page[-1]
            place_ = (last.end_date, "E1", "u2", *last.key[2:])
        assert found == rows[:3]
        assert await stores.registry.notices.ending_on(Assignment, "E1", "2027-02-02", limit=1) == ([rows[1]], 2)


async def test_expiring_tokens_are_found_by_their_end(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        token = RegisteredProvisioningToken(
            token_id="t1", entity_id="E1", name="HR", token_hash="h1", created_at=1, expires_at=100, created_by="x"
        )
        await write(stores, token, replace(token, token_id="t2", token_hash="h2", expires_at=200))
        found = await stores.registry.notices.expiring_tokens(after=100, until=200, limit=10)
        assert [each.token_id for each in found] == ["t2"]


async def test_a_review_is_begun_once_and_signed_off_once(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        reviews = stores.registry.access_reviews
        assert await reviews.unscheduled(after="", limit=10) == [("E1", True)]
        first = access_review.first("E1", now=NOW)
        await reviews.add([first, first])
        assert await reviews.unscheduled(after="", limit=10) == [("E1", False)]
        begun = access_review.begin_review(first, by="user:u2", now=NOW)
        keep = ReviewDecision(
            entity_id="E1", user_id="u2", decision="keep", seen="s", decided_at=int(NOW), decided_by="user:u3"
        )

        async def outcome(work: Awaitable[object]) -> bool:
            try:
                await work
            except ChangedMeanwhile:
                return False
            return True

        await true_once(*(outcome(reviews.decide(first, begun, [keep])) for _ in range(3)))
        assert (await reviews.decisions("E1", ["u2", "u3"]), await reviews.counts("E1")) == ({"u2": keep}, (3, 1))
        left = [user.user_id for _, user in await reviews.undecided("E1", after="", limit=10)]
        assert sorted(left) == sorted(user.user_id for user in PERSONS if user.user_id != "u2")
        done = access_review.signed_off(begun, by="user:u2", kept=1, ended=0, now=NOW)
        ends = [outcome(reviews.sign_off(begun, done, actions=("assignment.add",), after=0)) for _ in range(3)]
        await true_once(*ends, outcome(reviews.decide(first, begun, [])))
        assert await reviews.find("E1") == done


async def test_a_decision_that_was_made_again_meanwhile_is_not_forgotten(place: Place) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        reviews = stores.registry.access_reviews
        review = access_review.begin_review(access_review.first("E1", now=NOW), by="user:u2", now=NOW)
        keep = ReviewDecision(
            entity_id="E1", user_id="u2", decision="keep", seen="old", decided_at=int(NOW), decided_by="user:u3"
        )
        await reviews.decide(None, review, [keep])
        await reviews.decide(review, review, [replace(keep, seen="new")])
        await reviews.forget([keep])
        assert (await reviews.all_decisions("E1"))["u2"].seen == "new"
        await reviews.forget([replace(keep, seen="new")])
        assert await reviews.all_decisions("E1") == {}


async def test_decisions_of_a_large_entity_are_read_in_parts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part lets a sign-in of the same process have its turn."""
    monkeypatch.setattr("corpid.stores.sql.notices._READ_AT_ONCE", 1)

    async with place.opened() as stores:
        await prepared(stores)
        reviews = stores.registry.access_reviews
        assert await reviews.all_decisions("E1") == {}
        made = [
            ReviewDecision(
                entity_id="E1",
                user_id=user.user_id,
                decision="keep",
                seen="s",
                decided_at=int(NOW),
                decided_by="user:x",
            )
            for user in PERSONS
        ]
        begun = access_review.begin_review(access_review.first("E1", now=NOW), by="user:x", now=NOW)
        await reviews.decide(None, begun, made)
        assert await reviews.all_decisions("E1") == {each.user_id: each for each in made}
        assert len(made) > 1


@pytest.mark.parametrize("now", [NOW, NOW + 10])
async def test_the_owners_are_reminded_once(place: Place, now: float) -> None:
    async with place.opened() as stores:
        await prepared(stores)
        reviews = stores.registry.access_reviews
        first = replace(access_review.first("E1", now=NOW), due_at=int(NOW), remind_at=int(NOW))
        await reviews.add([first])
        assert await reviews.due(now=now, limit=10) == [first]
        becomes = access_review.note_reminder(first, now=now)
        await true_once(*(reviews.remind(first, becomes, [NOTICE]) for _ in range(3)))
        assert await reviews.due(now=now, limit=10) == []
        assert await stores.registry.notices.due(now=now, limit=10) == [GROUP]
