"""A signed-off access review counts the people who are there, as its page said (D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory import access_review
from corpid.flows.directory.members import end_membership
from corpid.rules.directory.records import Membership
from tests.manage.access_scene import checker, confirm, employed, staffed
from tests.manage.scene import ACME, in_portal
from tests.manage.test_access_review_page import colleague
from tests.manage.test_who_is_meant import owner

if TYPE_CHECKING:
    from tests.sign_in.world import World


async def keep(made: World, by: str, people: set[str]) -> None:
    registry = made.provider.registry
    page = await access_review.list_reviewed_people(
        registry, owner(made, by), ACME, unreviewed=False, after="", limit=50
    )
    wanted = [
        access_review.KeepDecision(user_id=each.user.user_id, seen=each.seen)
        for each in page.found
        if each.user.user_id in people
    ]
    await access_review.keep_access(registry, owner(made, by), ACME, wanted, now=made.clock())


async def test_a_review_counts_those_who_are_there_when_it_is_signed_off(made: World) -> None:
    await staffed(made)
    await colleague(made, "owner")
    await made.write(checker())
    registry = made.provider.registry
    await keep(made, "alice", {"id-marcus", "id-nadia", "id-bob"})
    await keep(made, "bob", {"id-alice"})
    left = await registry.directory.find(Membership, "id-marcus", ACME)
    assert left is not None
    await end_membership(registry, left, actor=owner(made, "alice"))
    said = (await access_review.load_review_state(registry, owner(made, "alice"), ACME)).kept
    assert said == 3
    done = await access_review.sign_off_review(registry, owner(made, "alice"), ACME, now=made.clock())
    assert done.kept == said


async def test_a_review_is_signed_off_for_as_many_as_the_page_said(made: World) -> None:
    await staffed(made)
    await colleague(made, "owner")
    await keep(made, "alice", {"id-marcus", "id-nadia", "id-bob"})
    await keep(made, "bob", {"id-alice"})
    browser = await in_portal(made, "access-review/sign-off")
    assert "The access of 4 people stays" in browser.page.text
    await employed(made, "eve", "Eve")
    await keep(made, "bob", {"id-eve"})
    await confirm(browser)
    review = await made.provider.registry.access_reviews.find(ACME)
    assert review is not None
    assert not review.signed_off_at
