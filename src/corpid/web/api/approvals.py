"""Requests for approval in the admin API (D55, D59).

A client reads them and takes its own back. People decide, elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from corpid.flows.directory import approvals
from corpid.flows.directory.objects import ObjectChanged, ObjectNotFound
from corpid.rules.directory.access import ALL_SCOPES, Forbidden
from corpid.rules.directory.approvals import LIFETIME_SECONDS, ApprovalState
from corpid.rules.readers import unknown_field
from corpid.web.api.calls import JSON, MERGE_PATCH, Answer, Call, Problem, respond, respond_page, show

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.directory.approvals import RequestSummary
    from corpid.rules.directory.nodes import Json
    from corpid.rules.directory.records import ChangeRequest

ACCEPTED: Final = 202
_DECISIONS: Final = {
    ApprovalState.APPROVED.value: approvals.approve_request,
    ApprovalState.DECLINED.value: approvals.decline_request,
    ApprovalState.WITHDRAWN.value: approvals.withdraw_request,
}
"""state that a request is given → how; the rules of access refuse clients all but the last"""


async def approval_response(call: Call, request: ChangeRequest) -> Answer:
    """The answer to a change that was requested, not made.

    Source: D55, RFC 9110 §15.3.3
    """
    found = await approvals.summarise_request(call.registry, request, call.actor, call.context.now)
    headers = {"Location": call.location("approvals", request.request_id)}
    return Answer(body=_approval_members(call, found), status=ACCEPTED, headers=headers, shows=request.request_id)


async def read_request(call: Call, request_id: str) -> Answer:
    """A request again, as it is now.

    Raises objects.ObjectNotFound if it is there no more. Source: D55, D59
    """
    return Answer(body=_approval_members(call, await _visible_request(call, request_id)))


async def list_approvals(call: Call) -> Response:
    """A page of requests, the oldest first (D55)."""
    found = await approvals.list_requests(
        call.registry,
        call.actor,
        entity_id=call.given["entity"] or call.actor.entity_id,
        state=call.given["state"] or "",
        now=call.context.now,
        after=quote("".join(call.after(1)), safe=""),
        limit=call.given["limit"],
    )
    return respond_page([_approval_members(call, each) for each in found.found], found.after)


async def read_approval(call: Call) -> Response:
    """One request (D55)."""
    return respond(show(_approval_members(call, await _visible_request(call, call.given["id"]))))


async def change_approval(call: Call) -> Response:
    """Take one's own request back (D55, D59)."""
    patch = await call.json(MERGE_PATCH, JSON)
    found = await _visible_request(call, call.given["id"])
    if not call.matches(call.tag(found.request)):
        raise ObjectChanged
    decide = _DECISIONS[_state(patch)]
    after = await decide(
        call.registry,
        found.request.request_id,
        actor=call.actor,
        reason=call.actor.reason,
        now=call.context.now,
    )
    call.provider.registry_cache.drop()
    summary = await approvals.summarise_request(call.registry, after, call.actor, call.context.now)
    return respond(show(_approval_members(call, summary)))


async def _visible_request(call: Call, request_id: str) -> RequestSummary:
    """A request that the caller may know of, whatever its token allows."""
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        return await approvals.read_request(call.registry, everything, request_id, now=call.context.now)
    except (Forbidden, approvals.NoRequest):
        raise ObjectNotFound from None


def _state(patch: Json) -> str:
    """The one member of a change."""
    if not isinstance(patch, dict):
        faults = [{"pointer": "", "detail": "a JSON object is expected here"}]
    else:
        state = patch.get("state")
        faults = [
            {"pointer": f"/{name}", "detail": unknown_field(name, ("state",))} for name in patch if name != "state"
        ]
        if not isinstance(state, str) or state not in _DECISIONS:
            faults.append({"pointer": "/state", "detail": "state is required: withdrawn"})
        elif not faults:
            return state
    raise Problem(422, "The body is not valid: see errors", faults=faults)


def _approval_members(call: Call, found: RequestSummary) -> dict[str, Any]:
    request = found.request
    return {
        "id": request.request_id,
        "entity": request.entity_id,
        "state": found.state,
        "requester": request.requester,
        "requester_name": str(found.requester),
        "reason": request.reason,
        "changes": msgspec.to_builtins(found.differences),
        "created_at": request.created_at,
        "expires_at": request.created_at + LIFETIME_SECONDS,
        "decided_at": request.decided_at or None,
        "decided_by": request.decided_by,
        "decided_by_name": str(found.decided_by),
        "decided_reason": request.decided_reason,
        "comments": approvals.encode_comments(found),
        "etag": call.tag(request),
    }
