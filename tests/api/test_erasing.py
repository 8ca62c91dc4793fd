"""Requests to be deleted, and erasing people, by a program (D57, D59, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.rules.directory.records import DeletionRequest, Operator, User
from tests.api.calling import Api, bound, calling
from tests.protocol.directory import ALICE, CAROL

if TYPE_CHECKING:
    from tests.protocol.provider import World


def test_requests_are_listed_in_pages(world: World, api: Api) -> None:
    """D61: with whom and when."""
    assert api.every("/deletion-requests") == []
    people = [User(user_id=f"u{number}", user_name=f"person{number}", name="P") for number in range(5)]
    world.writes(*people, *(DeletionRequest(user_id=each.user_id, requested_at=1795000000) for each in people))
    listed = api.every("/deletion-requests")
    assert [each["user_id"] for each in listed] == [each.user_id for each in people]
    assert listed[0] == {"user": "person0", "user_id": "u0", "requested_at": 1795000000}
    assert bound(world).get("/deletion-requests").status_code == 403


def test_a_person_who_asked_is_erased_once_and_again_for_what_is_left(world: World, api: Api) -> None:
    """D57: their record, and their details in the audit."""
    user = api.added("/users", {"user_name": "vexley", "name": "Qwertine Vexley"})
    path = f"/users/{user['id']}/erase"
    assert api.post(path).status_code == 409
    assert api.get(f"/users/{user['id']}").status_code == 200
    world.writes(DeletionRequest(user_id=user["id"], requested_at=1))
    erased = api.post(path).json()
    assert (erased["user_id"], erased["remarks"]) == (user["id"], [])
    assert erased["details"] > 0
    assert api.get(f"/users/{user['id']}").status_code == 404
    assert "vexley" not in api.get("/audit?limit=200").text.lower()
    assert api.post(path).status_code == 200
    assert api.post("/users/00000000-0000-4000-8000-000000000000/erase").status_code == 404
    assert api.post("/users/%00/erase").status_code == 404


def test_it_takes_both_scopes_and_reaches_no_operator_and_no_entitys_client(world: World) -> None:
    """D53, D59: who may not do all of it does nothing of it."""
    world.writes(DeletionRequest(user_id=CAROL.user_id, requested_at=1))
    for scopes in (["operations"], ["operations", "directory.read"], ["directory.write"]):
        caller = calling(world, f"with-{len(scopes)}-{scopes[0][0]}", scopes=scopes)
        assert caller.post(f"/users/{CAROL.user_id}/erase").status_code == 403
    assert bound(world).post(f"/users/{CAROL.user_id}/erase").status_code == 403
    world.writes(Operator(user_id=ALICE.user_id, level="support"))
    both = calling(world, "both", scopes=["operations", "directory.write"])
    assert both.post(f"/users/{ALICE.user_id}/erase?unrequested=true").status_code == 403
    assert world.run(world.provider.registry.directory.user(CAROL.user_id)) is not None
    assert world.run(world.provider.registry.directory.user(ALICE.user_id)) is not None
