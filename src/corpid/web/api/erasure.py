"""Requests to be deleted, and erasing a person, in the admin API (D57, D59, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpid.flows.directory import person_records
from corpid.flows.directory.objects import ObjectNotFound
from corpid.flows.operations import erasure
from corpid.rules.directory.names import is_storable
from corpid.web.api.calls import Answer, cursor, place, plain
from corpid.web.api.operation import CURSOR, LIMIT, Operation, Query

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.web.api.calls import Call


async def list_deletion_requests(call: Call) -> Response:
    """A page of people who asked to be deleted."""
    sent, limit = call.given["cursor"], call.given["limit"]
    after = place(sent, 1)[0] if sent is not None else ""
    found = await person_records.list_deletion_requests(call.provider.registry, call.actor, after=after, limit=limit)
    content: dict[str, Any] = {
        "items": [
            {"user": each.user.user_name, "user_id": each.user.user_id, "requested_at": each.requested_at}
            for each in found.found
        ]
    }
    if found.after:
        content["next"] = cursor((found.after,))
    return plain(Answer(body=content))


async def erase_user(call: Call) -> Response:
    """Erase a person; again after an interruption."""
    provider, user_id = call.provider, call.given["id"]
    if not is_storable(user_id) or not await erasure.is_known(provider.registry, user_id):
        raise ObjectNotFound

    async def erase() -> Answer:
        erased = await erasure.erase(
            provider.registry,
            provider.erase_details,
            user_id,
            actor=call.actor,
            now=call.context.now,
            mail=provider.mail,
            provider_name=provider.policy.name,
            unrequested=call.given["unrequested"],
        )
        return _answer(erased)

    async def again(first: StoredResponse) -> Answer:
        return _answer(erasure.ErasureResult(user_id=first.shown, details=0))

    return await call.carried_out(b"", erase, again)


def _answer(erased: erasure.ErasureResult) -> Answer:
    body = {"user_id": erased.user_id, "details": erased.details, "remarks": list(erased.remarks)}
    return Answer(body=body, shows=erased.user_id)


OPERATIONS: Final = (
    Operation(
        name="list_deletion_requests",
        method="GET",
        path="/deletion-requests",
        tag="users",
        summary="List requests to be deleted",
        description="People who asked in their account to be deleted, by their identifiers. `erase_user` carries it out.",
        scope="directory.read",
        run=list_deletion_requests,
        queries=(LIMIT, CURSOR),
        answer="DeletionRequestPage",
        bound=False,
    ),
    Operation(
        name="erase_user",
        method="POST",
        path="/users/{id}/erase",
        tag="users",
        summary="Erase a person",
        description="Removes a person who asked to be deleted, with everything that rests on them, and then their names and "
        "addresses from the audit, as `corpid user erase` does; needs the scope `directory.write`, too. Without their "
        "request 409. Call it again if it was interrupted.",
        scope="operations",
        run=erase_user,
        queries=(
            Query(
                name="unrequested",
                description="Whether also a person is erased who has not asked for it.",
                kind=bool,
                default=False,
            ),
        ),
        answer="Erased",
        errors=(409, 422),
        repeatable=True,
        bound=False,
    ),
)
