"""Changes that need approval: requested, read and withdrawn by a client, decided by people (D55, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from corpid.flows.directory import approvals
from corpid.flows.directory.write import Refused, RequestDetails, write_changes
from corpid.flows.operations.idempotency import run_once
from corpid.rules.directory.access import CommandLine
from corpid.rules.oauth.api_client import StoredResponse
from tests.adapters.conftest import place
from tests.adapters.stored_records import write
from tests.adapters.test_approvals import CLIENT, EVERYBODY, GIVEN
from tests.api.calling import HARBOUR, ORCHARD, Api, bound, calling, pointers
from tests.api.test_conditions import NOW, raced
from tests.protocol import directory
from tests.protocol.api_callers import registered
from tests.protocol.deployment import ISSUER

if TYPE_CHECKING:
    from corpid.rules.directory.records import ChangeRequest
    from corpid.stores.sql.open import SqlStores
    from tests.adapters.databases import Place
    from tests.protocol.provider import World

__all__ = ["place"]

ROLE = {"user": "alice", "entity": HARBOUR, "service": "PERMITS", "role": "Checker", "ref": "from the API"}
OPERATOR = CommandLine(by="lee@node1", reason="Ticket 4711")


@pytest.fixture
def own(world: World) -> Api:
    """A client that is bound to an entity whose roles need approval."""
    world.writes(replace(directory.HARBOUR, approvals="roles"))
    return bound(world)


def requested(api: Api, **more: Any) -> Any:
    answer = api.post("/assignments", {**ROLE, **more}, change_reason="A new colleague")
    assert answer.status_code == 202, answer.text
    return answer.json()


def approve(world: World, request: Any) -> ChangeRequest:
    return world.run(
        approvals.approve_request(
            world.provider.registry, request["id"], actor=OPERATOR, reason="Seen", now=world.clock.now
        )
    )


def test_what_needs_approval_is_requested_and_made_when_it_is_approved(world: World, own: Api) -> None:
    """D55: 202 with the request and its place, for each verb."""
    before = own.every("/assignments")
    answer = own.post("/assignments", ROLE, change_reason="Covers for S%C3%B8ren")
    assert answer.status_code == 202, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"{ISSUER}/api/v1/approvals/{made['id']}"
    assert (made["state"], made["requester"], made["reason"]) == ("pending", "client:bound-1", "Covers for Søren")
    [change] = made["changes"]
    assert (change["sign"], change["subject"].partition(":")[0]) == ("+", "assignment")
    assert "Checker" in change["subject"]
    assert own.every("/assignments") == before
    assert own.get(f"/approvals/{made['id']}").json() == made
    assert approve(world, made).state == "approved"
    [given] = [each for each in own.every("/assignments") if each not in before]
    assert own.get(f"/approvals/{made['id']}").json()["state"] == "approved"
    path = f"/assignments/{given['id']}"
    for answer in (
        own.patch(path, {"end_date": "2030-12-31"}, if_match=given["etag"], change_reason="Longer"),
        own.delete(path, if_match=given["etag"], change_reason="Left"),
    ):
        assert answer.status_code == 202, answer.text
    assert own.patch(path, {"end_date": "2030-12-31"}, if_match='"other"', change_reason="Longer").status_code == 412
    assert own.get(path).json() == given


def test_a_request_needs_a_reason_and_a_change_without_approval_keeps_one_for_the_history(api: Api, own: Api) -> None:
    """D55, D57."""
    refused = own.post("/assignments", ROLE)
    assert (refused.status_code, "Change-Reason" in refused.json()["detail"]) == (422, True)
    for wrong in ("%0A", "%FF", "x" * 501, "caf\u00e9".encode("latin-1")):
        assert own.post("/assignments", ROLE, change_reason=wrong).status_code == 400, wrong
    assert own.every("/approvals") == []
    api.post("/services", {"service_id": "S", "name": "S", "roles": ["R"]}, change_reason="Ticket%2012")
    entry = api.get("/audit?action=service.add&limit=1").json()["items"][0]
    assert entry["detail"]["reason_given"] == "Ticket 12"


def test_a_key_repeats_the_request_and_makes_no_other_one(own: Api) -> None:
    """D59: another reason under it is another request."""
    sent: dict[str, Any] = {"idempotency_key": "a key", "change_reason": "A new colleague"}
    first, again = (own.post("/assignments", ROLE, **sent) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert (first.content, first.headers["location"]) == (again.content, again.headers["location"])
    assert again.headers["idempotent-replayed"] == "true"
    assert own.post("/assignments", ROLE, **{**sent, "change_reason": "Another"}).status_code == 422
    assert len(own.every("/approvals")) == 1


def test_a_client_takes_its_own_request_back_and_never_decides(world: World, api: Api, own: Api) -> None:
    """D55, D59."""
    made = requested(own)
    path = f"/approvals/{made['id']}"
    for state in ("approved", "declined"):
        for client in (own, api):
            answer = client.patch(path, {"state": state}, if_match="*", change_reason="Yes")
            assert answer.status_code == 403, answer.text
    assert api.patch(path, {"state": "withdrawn"}, if_match="*").status_code == 403
    assert own.patch(path, {"state": "withdrawn"}).status_code == 428
    assert own.patch(path, {"state": "withdrawn"}, if_match='"other"').status_code == 412
    wrong: list[Any] = [{}, [], {"state": "pending"}, {"state": "withdrawn", "reason": "x"}]
    assert all(own.patch(path, each, if_match="*").status_code == 422 for each in wrong)
    writer = calling(world, "bound-1", scopes=["directory.write"], entity_id=HARBOUR)
    answer = writer.patch(path, {"state": "withdrawn"}, if_match=made["etag"], change_reason="Not needed")
    assert (answer.status_code, answer.json()["state"], answer.json()["decided_reason"]) == (
        200, "withdrawn", "Not needed",
    )  # fmt: skip
    assert own.patch(path, {"state": "withdrawn"}, if_match="*").status_code == 409
    with pytest.raises(Refused, match="withdrawn by"):
        approve(world, made)


def test_a_bound_client_sees_its_entitys_requests_only(world: World, api: Api, own: Api) -> None:
    """D59, D61: another entity's request is the same 404 as none."""
    mine = sorted(requested(own, ref=str(number))["id"] for number in range(3))
    world.writes(replace(directory.CLIENT_ENTITY, approvals="all"))
    member = {"user": "carol", "entity": ORCHARD}
    theirs = api.post("/memberships", member, change_reason="Works there").json()
    assert theirs["requester"] == "client:api-1"
    assert [each["id"] for each in own.every("/approvals")] == mine
    assert [each["id"] for each in own.every("/approvals?state=pending")] == mine
    assert own.every("/approvals?state=declined") == []
    assert {each["entity"] for each in api.every("/approvals")} == {HARBOUR, ORCHARD}
    refused = [own.get(f"/approvals?entity={entity}") for entity in (ORCHARD, "NOWHERE")]
    assert [each.status_code for each in refused] == [403, 403]
    assert pointers(own.get("/approvals?state=some")).keys() == {"state"}
    assert own.get("/approvals?cursor=bm8").status_code == 400
    for path in (theirs["id"], "nothing", "a/b"):
        answers = [own.get(f"/approvals/{path}"), own.patch(f"/approvals/{path}", {"state": "withdrawn"}, if_match="*")]
        assert [each.status_code for each in answers] == [404, 404]
    assert api.get("/approvals/nothing").status_code == 404


@pytest.mark.parametrize(
    ("since", "reason"),
    [
        ({"enabled": False}, "no longer has permission here"),
        ({"entity_id": ""}, "no longer has permission here"),
        (
            {"scopes": ("directory.read",)},
            "no longer has permission for this: the token lacks the scope directory.write",
        ),
    ],
)
def test_a_client_that_lost_its_right_meanwhile_makes_its_request_stale(
    world: World, own: Api, since: dict[str, Any], reason: str
) -> None:
    """D55: with a sentence; an operator declines it."""
    made = requested(own)
    world.writes(replace(registered("bound-1", entity_id=HARBOUR), **since))
    with pytest.raises(Refused, match=reason):
        approve(world, made)
    registry = world.provider.registry
    world.run(approvals.decline_request(registry, made["id"], actor=OPERATOR, reason="Too late", now=world.clock.now))


def test_a_whole_document_requests_nothing(world: World, api: Api, own: Api) -> None:
    """D55: the operator's client is told that it needs approval."""
    answer = api.post("/directory", {"assignments": [ROLE]}, change_reason="x")
    assert (answer.status_code, "approval" in answer.json()["detail"]) == (403, True)
    assert own.every("/approvals") == []


# --- two at the same moment, on both engines


async def prepared(stores: SqlStores) -> None:
    await write(stores, *EVERYBODY)


async def call(stores: SqlStores, _: None) -> Any:
    async def ask() -> StoredResponse:
        made = await write_changes(
            stores.registry, CLIENT, [GIVEN], asking=RequestDetails("A colleague", NOW, str(id(stores)))
        )
        assert made is not None
        return StoredResponse(request="mac", status=202, headers={}, body=made.request_id)

    return await run_once(stores.registry, "c", "key", "mac", ask, now=NOW)


def test_of_two_posts_with_one_key_one_makes_a_request_and_both_get_it(place: Place) -> None:
    """D55, D59."""
    (first, repeated), (second, also) = raced(place, prepared, call)
    assert first == second
    assert sorted([repeated, also]) == [False, True]
    assert [key for (key,) in place.sql("SELECT request_id FROM change_requests")] == [first.body]


def test_who_decided_is_named_as_far_as_the_caller_may_know(world: World, own: Api, api: Api) -> None:
    """D61, D68: beside the actor of the audit; a client bound to the entity is told what its pages say."""
    made = requested(own)
    assert (made["decided_by"], made["decided_by_name"]) == ("", "")
    approve(world, made)
    told = (own, "The program bound-1", "The operator"), (api, "client:bound-1", OPERATOR.name)
    for caller, *names in told:
        shown = caller.get(f"/approvals/{made['id']}").json()
        assert [shown["requester_name"], shown["decided_by_name"]] == names
        assert (shown["requester"], shown["decided_by"]) == ("client:bound-1", OPERATOR.name)
