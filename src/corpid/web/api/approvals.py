"""Requests for approval in the admin API (D55, D59).

A client reads them and takes its own back. People decide, elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from corpid.flows.directory import approvals
from corpid.flows.directory.objects import ObjectChanged, ObjectNotFound
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.actors import ALL_SCOPES
from corpid.rules.directory.approvals import LIFETIME_SECONDS, ApprovalState
from corpid.rules.directory.objects import unknown_member
from corpid.rules.oauth.api_server import API_PATH
from corpid.web.api.calls import JSON, MERGE_PATCH, Answer, cursor, place, plain
from corpid.web.api.problems import Problem

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.directory.approvals import RequestSummary
    from corpid.rules.directory.nodes import Json
    from corpid.rules.directory.records import ChangeRequest
    from corpid.web.api.calls import Call

_DECISIONS: Final = {
    ApprovalState.APPROVED.value: approvals.approve,
    ApprovalState.DECLINED.value: approvals.decline,
    ApprovalState.WITHDRAWN.value: approvals.withdraw,
}
"""state that a request is given → how; the rules of access refuse clients all but the last"""


async def approval_response(call: Call, request: ChangeRequest) -> Answer:
    """The answer to a change that was requested, not made.

    Source: D55, RFC 9110 §15.3.3
    """
    found = await approvals.summarise_request(call.provider.registry, request, call.context.now)
    location = f"{call.provider.policy.base_url}{API_PATH}/approvals/{quote(request.request_id, safe='')}"
    return Answer(body=_members(call, found), status=202, headers={"Location": location}, shows=request.request_id)


async def read_request(call: Call, request_id: str) -> Answer:
    """A request again, as it is now.

    Raises objects.ObjectNotFound if it is there no more. Source: D55, D59
    """
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        found = await approvals.read_request(call.provider.registry, everything, request_id, now=call.context.now)
    except (Forbidden, approvals.NoRequest):
        raise ObjectNotFound from None
    return Answer(body=_members(call, found))


async def list_approvals(call: Call) -> Response:
    """A page of requests, the oldest first (D55)."""
    after = place(call.given["cursor"], 1)[0] if call.given["cursor"] is not None else ""
    page = await approvals.list_requests(
        call.provider.registry,
        call.actor,
        entity_id=call.given["entity"] or call.actor.entity_id,
        state=call.given["state"] or "",
        now=call.context.now,
        after=quote(after, safe=""),
        limit=call.given["limit"],
    )
    content: dict[str, Any] = {"items": [_members(call, found) for found in page.found]}
    if page.after:
        content["next"] = cursor((page.after,))
    return plain(Answer(body=content))


async def read_approval(call: Call) -> Response:
    """One request (D55)."""
    return plain(_answer(call, await _visible(call)))


async def change_approval(call: Call) -> Response:
    """Take one's own request back (D55, D59)."""
    patch = await call.json(MERGE_PATCH, JSON)
    found = await _visible(call)
    if not call.matches(call.tag(found.request)):
        raise ObjectChanged
    decide = _DECISIONS[_state(patch)]
    after = await decide(
        call.provider.registry,
        found.request.request_id,
        actor=call.actor,
        reason=call.actor.reason,
        now=call.context.now,
    )
    call.provider.registry_cache.drop()
    return plain(_answer(call, await approvals.summarise_request(call.provider.registry, after, call.context.now)))


async def _visible(call: Call) -> RequestSummary:
    """A request that the caller may know of, whatever its token allows."""
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        return await approvals.read_request(call.provider.registry, everything, call.given["id"], now=call.context.now)
    except Forbidden:
        raise ObjectNotFound from None


def _state(patch: Json) -> str:
    """The one member of a change."""
    if not isinstance(patch, dict):
        faults = [{"pointer": "", "detail": "a JSON object is expected here"}]
    else:
        state = patch.get("state")
        faults = [
            {"pointer": f"/{name}", "detail": unknown_member(name, ("state",))} for name in patch if name != "state"
        ]
        if not isinstance(state, str) or state not in _DECISIONS:
            faults.append({"pointer": "/state", "detail": "state is required: withdrawn"})
        elif not faults:
            return state
    raise Problem(422, "The body is not valid: see errors", faults=faults)


def _answer(call: Call, found: RequestSummary) -> Answer:
    members = _members(call, found)
    return Answer(body=members, headers={"ETag": members["etag"]})


def _members(call: Call, found: RequestSummary) -> dict[str, Any]:
    request = found.request
    return {
        "id": request.request_id,
        "entity": request.entity_id,
        "state": found.state,
        "requester": request.requester,
        "requester_name": found.requester,
        "reason": request.reason,
        "changes": msgspec.to_builtins(found.differences),
        "created_at": request.created_at,
        "expires_at": request.created_at + LIFETIME_SECONDS,
        "decided_at": request.decided_at or None,
        "decided_by": request.decided_by,
        "decided_reason": request.decided_reason,
        "etag": call.tag(request),
    }
