"""Access reviews of entities, seen by a program (docs/decisions/0022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows.directory.access_review import ReviewDates
from corpid.rules.directory.access_review import YEAR_SECONDS, AccessReview
from corpid.rules.directory.records import Administrator, Change
from tests.api.calling import HARBOUR, Api, bound, calling
from tests.protocol.directory import ALICE, BOB

if TYPE_CHECKING:
    from tests.protocol.provider import World


def test_a_review_and_its_people_are_read(world: World, api: Api) -> None:
    entity = api.get("/memberships?user=alice").json()["items"][0]["entity"]
    assert api.get(f"/entities/{entity}/access-review").json()["due_at"] is None
    level = Administrator(user_id=ALICE.user_id, entity_id=entity, level="owner")
    world.run(world.provider.registry.directory.write([Change(None, level)]))
    world.run(ReviewDates(world.provider.registry).round(now=world.clock.now))
    shown = api.get(f"/entities/{entity}/access-review").json()
    assert (shown["due_at"], shown["began_at"]) == (int(world.clock.now) + YEAR_SECONDS, None)
    people = api.every(f"/entities/{entity}/access-review/people")
    assert len(people) == shown["people"]
    [alice] = [each for each in people if each["user_id"] == ALICE.user_id]
    assert (alice["level"], alice["reviewed"], alice["decision"]) == ("owner", False, "")


def test_who_reviewed_is_named_by_their_account(world: World, api: Api) -> None:
    """D61, D68: beside the actor of the audit, and no operator to the entity's own client."""
    owner, operator = f"user:{ALICE.user_id}", f"operator:{BOB.user_id}"
    registry = world.provider.registry
    level = Administrator(user_id=ALICE.user_id, entity_id=HARBOUR, level="owner")
    world.run(registry.directory.write([Change(None, level)]))
    review = AccessReview(entity_id=HARBOUR, due_at=1, remind_at=1, began_at=1, began_by=owner, signed_off_by=operator)
    world.run(registry.access_reviews.add([review]))
    path = f"/entities/{HARBOUR}/access-review"
    for caller, name in ((api, "bob"), (bound(world), "The operator")):
        shown = caller.get(path).json()
        assert (shown["began_by"], shown["began_by_name"]) == (owner, f"alice ({ALICE.name})")
        assert (shown["signed_off_by"], shown["signed_off_by_name"]) == (operator, name)


def test_an_entity_reads_its_own_review_only(world: World, api: Api) -> None:
    """D59: of another one it learns as much as of none."""
    other = next(each["entity_id"] for each in api.every("/entities") if each["entity_id"] != HARBOUR)
    own, writes = bound(world), calling(world, "writes", scopes=["directory.write"])
    for path in ("access-review", "access-review/people"):
        assert [own.get(f"/entities/{each}/{path}").status_code for each in (HARBOUR, other, "missing")] == [
            200,
            404,
            404,
        ]
        assert writes.get(f"/entities/{HARBOUR}/{path}").status_code == 403
