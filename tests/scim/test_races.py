"""Requests at the same moment: one outcome, and nothing half done (RFC 7644 §3.5.2, D60)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from tests.scim.calling import PATCH, ROOT, USER, Scim, address_of

if TYPE_CHECKING:
    import httpx


def at_once(scim: Scim, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
    """The answers to requests that are sent together."""
    headers = {"authorization": f"Bearer {scim.token}", "content-type": "application/scim+json"}

    async def send() -> list[httpx.Response]:
        sent = [
            scim.world.http.request(
                method, f"{ROOT}{path}", content=json.dumps(body) if body is not None else None, headers=headers
            )
            for method, path, body in requests
        ]
        return await asyncio.gather(*sent)

    return scim.world.run(send())


def patch(where: str, /, **operation: Any) -> tuple[str, str, Any]:
    return "PATCH", where, {"schemas": [PATCH], "Operations": [operation]}


def test_of_two_users_with_one_name_one_is_made(scim: Scim) -> None:
    """RFC 7644 §3.3: 409 for the others."""
    post = "POST", "/Users", {"schemas": [USER], "userName": "mei", **address_of("mei")}
    assert sorted(answer.status_code for answer in at_once(scim, *[post] * 5)) == [201, 409, 409, 409, 409]
    assert len(scim.found("Users", 'userName eq "mei"')) == 1


def test_changes_of_one_user_are_all_carried_out(scim: Scim) -> None:
    """RFC 7644 §3.5.2: without a version, each on what the one before has left."""
    where = f"/Users/{scim.added('mei')['id']}"
    answers = at_once(
        scim,
        patch(where, op="add", path="displayName", value="Mei"),
        patch(where, op="add", path="externalId", value="7"),
        patch(where, op="replace", path="active", value=False),
    )
    assert {answer.status_code for answer in answers} == {200}
    user = scim.get(where).json()
    assert (user["displayName"], user["externalId"], user["active"]) == ("Mei", "7", False)


def test_a_user_who_ends_meanwhile_is_changed_or_gone(scim: Scim) -> None:
    """D60: one of two outcomes, and never a 500."""
    for number in range(5):
        where = f"/Users/{scim.added(f'mei{number}')['id']}"
        group = f"/Groups/{scim.group()['id']}"
        member = {"value": where.rpartition("/")[2]}
        answers = at_once(
            scim,
            patch(where, op="add", path="displayName", value="Mei"),
            ("DELETE", where, None),
            patch(group, op="add", path="members", value=[member]),
        )
        assert {answer.status_code for answer in answers} <= {200, 204, 400, 404, 409}
        assert scim.get(where).status_code == 404
        assert member["value"] not in scim.members()


def test_members_who_come_and_go_at_once_do_not_hide_each_other(scim: Scim) -> None:
    """RFC 7644 §3.5.2: a group is changed member by member."""
    users = [scim.added(f"user{number}")["id"] for number in range(6)]
    where = f"/Groups/{scim.group()['id']}"
    answers = at_once(scim, *[patch(where, op="add", path="members", value=[{"value": each}]) for each in users])
    assert {answer.status_code for answer in answers} == {204}
    assert scim.members() == set(users)
    answers = at_once(scim, *[patch(where, op="remove", path=f'members[value eq "{each}"]') for each in users[:3]])
    assert {answer.status_code for answer in answers} == {204}
    assert scim.members() == set(users[3:])
