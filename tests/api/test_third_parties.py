"""Grants to third parties by clients of either side, and by one that speaks for both (D56, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from corpid.rules.directory.records import ThirdPartyGrant
from tests.api.calling import HARBOUR, ORCHARD, Api, bound, calling
from tests.protocol import directory

if TYPE_CHECKING:
    from tests.protocol.provider import World

GRANTS = "/third-party-grants"
GRANT = {"client_entity": HARBOUR, "third_party": ORCHARD, "service": "PERMITS", "role": "Checker"}
TERMS = {"end_date": "2030-12-31"}


@pytest.fixture
def offers(world: World) -> Api:
    """A client of the client entity."""
    return bound(world)


@pytest.fixture
def accepts(world: World) -> Api:
    """A client of the third party."""
    return calling(world, "bound-2", entity_id=ORCHARD)


def actions(api: Api, latest: int) -> list[str]:
    """What was done to grants: so many events, the earliest first."""
    entries = api.get(f"/audit?entity={HARBOUR}&action=grant.&limit={latest}").json()["items"]
    return [each["action"] for each in reversed(entries)]


def test_one_side_offers_the_other_accepts_and_either_ends(api: Api, offers: Api, accepts: Api) -> None:
    """D56: each step stands in the history as what it is."""
    offered = offers.added(GRANTS, {**GRANT, **TERMS})
    assert offered["state"] == "offered"
    path = f"{GRANTS}/{offered['id']}"
    assert accepts.get(path).json()["id"] == offered["id"]
    accepted = accepts.patch(path, {"state": "accepted"}, if_match=offered["etag"])
    assert (accepted.status_code, accepted.json()["state"]) == (200, "accepted")
    narrowed = offers.patch(path, {"end_date": "2029-12-31"}, if_match=accepted.headers["etag"])
    assert narrowed.json()["state"] == "accepted"
    wider = {"end_date": "2031-12-31"}
    assert offers.patch(path, wider, if_match="*").status_code == 403
    assert offers.patch(path, {**wider, "state": "offered"}, if_match="*").json()["state"] == "offered"
    assert accepts.delete(path, if_match="*").status_code == 204
    again = offers.added(GRANTS, GRANT)
    assert offers.delete(path, if_match=again["etag"]).status_code == 204
    for ends in (offers, accepts):
        made = offers.added(GRANTS, GRANT)
        assert accepts.patch(path, {"state": "accepted"}, if_match=made["etag"]).status_code == 200
        assert ends.delete(path, if_match="*").status_code == 204
    assert actions(api, 13) == [
        "grant.offer", "grant.accept", "grant.update", "grant.offer", "grant.decline", "grant.offer", "grant.withdraw",
        *["grant.offer", "grant.accept", "grant.end"] * 2,
    ]  # fmt: skip


def test_no_side_speaks_for_the_other(offers: Api, accepts: Api) -> None:
    """D56."""
    assert offers.post(GRANTS, {**GRANT, "state": "accepted"}).status_code == 403
    assert accepts.post(GRANTS, GRANT).status_code == 403
    offered = offers.added(GRANTS, {**GRANT, **TERMS})
    path = f"{GRANTS}/{offered['id']}"
    assert offers.patch(path, {"state": "accepted"}, if_match="*").status_code == 403
    assert accepts.patch(path, {"end_date": "2031-12-31"}, if_match="*").status_code == 403
    assert accepts.patch(path, {"end_date": "2031-12-31", "state": "accepted"}, if_match="*").status_code == 403
    assert offers.patch(path, {"end_date": "2029-12-31"}, if_match=offered["etag"]).status_code == 200
    assert accepts.patch(path, {"state": "accepted"}, if_match=offered["etag"]).status_code == 412
    assert offers.get(path).json()["state"] == "offered"


def test_a_client_of_neither_side_learns_nothing_and_one_that_is_bound_to_none_speaks_for_both(
    world: World, api: Api, offers: Api
) -> None:
    """D56, D59: as the operator does."""
    stranger = calling(world, "bound-3", entity_id=directory.FOREIGN.entity_id)
    offered = offers.added(GRANTS, GRANT)
    path = f"{GRANTS}/{offered['id']}"
    answers = (
        stranger.get(path),
        stranger.patch(path, {"state": "accepted"}, if_match="*"),
        stranger.delete(path, if_match="*"),
    )
    assert [each.status_code for each in answers] == [404, 404, 404]
    assert api.patch(path, {"state": "accepted"}, if_match="*").json()["state"] == "accepted"
    assert api.delete(path, if_match="*").status_code == 204
    assert api.added(GRANTS, GRANT)["state"] == "accepted"
    assert actions(api, 4) == ["grant.offer", "grant.update", "grant.remove", "grant.add"]


def test_a_side_that_wants_approval_requests_its_acceptance_and_ends_at_once(
    world: World, offers: Api, accepts: Api
) -> None:
    """D55, D56: the third party's own administrators approve it."""
    world.writes(replace(directory.CLIENT_ENTITY, approvals="roles"))
    offered = offers.added(GRANTS, GRANT)
    path = f"{GRANTS}/{offered['id']}"
    waits = accepts.patch(path, {"state": "accepted"}, if_match="*", change_reason="As agreed")
    assert (waits.status_code, waits.json()["entity"]) == (202, ORCHARD)
    assert offers.get(path).json()["state"] == "offered"
    assert accepts.delete(path, if_match="*").status_code == 204


def test_the_grant_of_a_role_is_found_among_many_of_the_same_parties(world: World, api: Api) -> None:
    """D56, docs/costs.md: grants are read by their parties, all of them and no others."""
    world.writes(
        *(
            ThirdPartyGrant(
                client_entity_id=ORCHARD, entity_id=HARBOUR, service_id="PERMITS", role=role, ref=f"{number:04}"
            )
            for number, role in enumerate(["Checker"] * 250 + ["Maker"])
        )
    )
    role = {
        "user": "alice", "third_party": HARBOUR, "client_entity": ORCHARD, "service": "PERMITS", "role": "Maker",
    }  # fmt: skip
    assert api.post("/third-party-assignments", role).status_code == 201
    assert api.post("/third-party-assignments", {**role, "client_entity": "nothing"}).status_code == 422
