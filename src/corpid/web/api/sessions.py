"""Sessions and locks of a person in the admin API (D30, D45, D59)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.authentication.throttle import LINK_GUESSES, UNKNOWN_BROWSERS
from corpid.flows.directory import person_records
from corpid.flows.directory.objects import ObjectChanged, ObjectNotFound
from corpid.web.api.calls import Answer, cursor, number, place, plain
from corpid.web.api.problems import Problem

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.authentication.records import Session
    from corpid.rules.directory.records import User
    from corpid.web.api.calls import Call

_WHERE: Final = {UNKNOWN_BROWSERS: "new", LINK_GUESSES: "link"}
"""group of browsers → its word, as the audit has it; any other is a known browser"""


async def list_sessions(call: Call) -> Response:
    """A page of a person's sessions, the latest first."""
    registry, limit = call.provider.registry, call.given["limit"]
    after = _after(call.given["cursor"]) if call.given["cursor"] is not None else None
    user, found = await person_records.list_sessions(
        registry, call.given["user"], actor=call.actor, now=call.context.now
    )
    if user is None:
        return plain(Answer(body={"items": []}))
    ordered = sorted(found, key=_order)
    rest = ordered if after is None else [each for each in ordered if _order(each) > after]
    content: dict[str, Any] = {"items": [_members(call, user, each) for each in rest[:limit]]}
    if len(rest) > limit:
        signed_in_at, name = _order(rest[limit - 1])
        content["next"] = cursor((str(-signed_in_at), name))
    return plain(Answer(body=content))


async def read_session(call: Call) -> Response:
    user, found = await _named(call)
    return plain(Answer(body=_members(call, user, found), headers={"ETag": _tag(call, found)}))


async def end_session(call: Call) -> Response:
    _, found = await _named(call)
    if not call.matches(_tag(call, found)):
        raise ObjectChanged
    if not await person_records.end_session(call.provider.registry, found, actor=call.actor):
        raise ObjectNotFound
    return plain(Answer(status=204))


async def end_sessions(call: Call) -> Response:
    if not await person_records.end_sessions(call.provider.registry, call.given["user"], actor=call.actor):
        raise ObjectNotFound
    return plain(Answer(status=204))


async def list_locks(call: Call) -> Response:
    """The pauses after wrong codes that hold for a person."""
    registry = call.provider.registry
    user, found = await person_records.list_locks(registry, call.given["user"], actor=call.actor, now=call.context.now)
    items = [
        {
            "user": user.user_name,
            "user_id": user.user_id,
            "browser": _WHERE.get(each.browser, "known"),
            "guesses": each.guesses,
            "ends_at": each.paused_until,
        }
        for each in (found if user is not None else ())
        if user is not None
    ]
    return plain(Answer(body={"items": items}))


async def end_locks(call: Call) -> Response:
    """End the pauses and delays of a person."""
    provider = call.provider
    ended = await person_records.end_locks(
        provider.registry, provider.transient, provider.policy.deployment_url, call.given["user"],
        actor=call.actor, now=call.context.now,
    )  # fmt: skip
    if not ended:
        raise ObjectNotFound
    return plain(Answer(status=204))


async def _named(call: Call) -> tuple[User, Session]:
    try:
        user_id, name = place(call.given["id"], 2)
    except Problem:
        raise ObjectNotFound from None
    found = await person_records.find_session(
        call.provider.registry, user_id, name, actor=call.actor, now=call.context.now
    )
    if found is None:
        raise ObjectNotFound
    return found


def _order(session: Session) -> tuple[int, str]:
    return -session.auth_time, person_records.derive_session_name(session)


def _after(sent: str) -> tuple[int, str]:
    """The place that a cursor means."""
    at, name = place(sent, 2)
    return -number(at), name


def _tag(call: Call, session: Session) -> str:
    """Of members that use of the session does not change."""
    return call.tag(msgspec.structs.replace(session, seen_at=0, entity_id=""))


def _members(call: Call, user: User, session: Session) -> dict[str, Any]:
    return {
        "id": cursor((user.user_id, person_records.derive_session_name(session))),
        "user": user.user_name,
        "user_id": user.user_id,
        "purpose": session.purpose,
        "entity": session.entity_id,
        "device": session.device,
        "amr": list(session.amr),
        "signed_in_at": session.auth_time,
        "seen_at": session.seen_at or session.auth_time,
        "expires_at": session.expires_at,
        "etag": _tag(call, session),
    }
