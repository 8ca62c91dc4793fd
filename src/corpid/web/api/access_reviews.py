"""Access reviews of entities in the admin API.

They are read only, since people decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory import access_review, objects
from corpid.rules.directory import names
from corpid.rules.directory.members import without_bookkeeping
from corpid.rules.directory.objects import ENTITY
from corpid.web.api.calls import Answer, cursor, place, plain
from corpid.web.api.operation import CURSOR, LIMIT, Operation, Query

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.directory.access_review import ReviewedPerson
    from corpid.rules.directory.records import Assignment, ThirdPartyAssignment
    from corpid.web.api.calls import Call


async def read_access_review(call: Call) -> Response:
    """The last review of an entity, and the next one."""
    await objects.read_object(call.administration, ENTITY, call.given["id"])
    state = await access_review.current(call.provider.registry, call.actor, call.given["id"])
    return plain(Answer(body=access_review.describe_review(call.given["id"], state)))


async def list_reviewed_people(call: Call) -> Response:
    """A page of an entity's people, with what they may do."""
    await objects.read_object(call.administration, ENTITY, call.given["id"])
    after = place(call.given["cursor"], 1)[0] if call.given["cursor"] is not None else ""
    page = await access_review.people(
        call.provider.registry,
        call.actor,
        call.given["id"],
        unreviewed=call.given["unreviewed"],
        after=after,
        limit=call.given["limit"],
    )
    content: dict[str, Any] = {"items": [_members(each) for each in page.found]}
    if page.after:
        content["next"] = cursor((page.after,))
    return plain(Answer(body=content))


def _members(found: ReviewedPerson) -> dict[str, Any]:
    """A person as they are shown, by what identifies them."""
    access, decision = found.access, found.decision
    membership, held = access.membership, access.administrator
    return {
        "membership": membership.membership_id,
        "user_id": found.user.user_id,
        "user": names.identity(membership, found.user),
        "name": names.member_full_name(membership, found.user),
        "enabled": membership.enabled,
        "invited": membership.invited,
        "level": held.level if held else "",
        "services": held.services if held else [],
        "roles": [_role(row) for row in access.roles],
        "third_party_roles": [_role(row) for row in access.third_party_roles],
        "reviewed": found.reviewed,
        "decision": decision.decision if decision else "",
        "decided_at": decision.decided_at if decision else None,
        "decided_by": decision.decided_by if decision else "",
        "seen": found.seen,
    }


def _role(row: Assignment | ThirdPartyAssignment) -> dict[str, Any]:
    members = without_bookkeeping(row)
    return {
        name.removesuffix("_id"): msgspec.to_builtins(value)
        for name, value in members.items()
        if name not in {"user_id", "entity_id"}
    }


_ENTITY_OF: Final[dict[str, Any]] = {"method": "GET", "tag": "entities", "scope": "directory.read"}

OPERATIONS: Final = (
    Operation(
        name="read_access_review",
        path="/entities/{id}/access-review",
        summary="Read an entity's access review",
        description="When the yearly access review is due, how far the open one is, and who signed off the last one. "
        "Only owners and administrators decide and sign off; clients of the API read.",
        run=read_access_review,
        answer="AccessReview",
        **_ENTITY_OF,
    ),
    Operation(
        name="list_reviewed_people",
        path="/entities/{id}/access-review/people",
        summary="List the people of an access review",
        description="The people of an entity with what they may do, and the decision about each in the open review, by "
        "membership.",
        run=list_reviewed_people,
        queries=(
            Query(
                name="unreviewed",
                description="`true`: only people who were not kept yet. Those who changed since come back when the "
                "review is to be signed off, in an entity of at most 1,000 people at once.",
                kind=bool,
                default=False,
            ),
            LIMIT,
            CURSOR,
        ),
        answer="ReviewedPersonPage",
        **_ENTITY_OF,
    ),
)
