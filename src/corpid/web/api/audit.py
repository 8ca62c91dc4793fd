"""The audit in the admin API: entries, verification, public keys (D57, D58)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from corpid.flows.operations import audit, audit_seals
from corpid.ports import AuditQuery
from corpid.rules.directory import audit_filters
from corpid.web.api.calls import Answer, cursor, number, place, plain
from corpid.web.api.problems import Problem

if TYPE_CHECKING:
    from corpid.web.api.calls import Call

_KEYS_CACHED_SECONDS: Final = 300
KEY_SET: Final = "application/jwk-set+json"


async def list_audit(call: Call) -> Response:
    """Audit entries, the latest first (D57)."""
    limit, after = call.given["limit"], call.given["cursor"]
    query = await _query(call, before=number(place(after, 1)[0]) if after is not None else 0)
    found = await audit.part(call.provider.registry, query, limit=limit, actor=call.actor)
    content: dict[str, Any] = {"items": [msgspec.structs.asdict(entry) for entry in found.entries]}
    if found.before:
        content["next"] = cursor((str(found.before),))
    return plain(Answer(body=content))


async def verify_audit(call: Call) -> Response:
    """Compare a part of the audit with its seals (D58).

    One part of a client at a time, of so many seals that nobody else waits for long.
    """
    with call.alone("verification"):
        found = await audit_seals.verify(
            call.provider.registry,
            call.actor,
            now=call.context.now,
            after=call.given["after"],
            most=call.given["limit"],
        )
    members = msgspec.to_builtins(found)
    del members["expected"]
    return plain(Answer(body={**members, "next": found.next or None}))


async def audit_keys(call: Call) -> Response:
    """The public audit keys, with which anybody verifies an export (D58, RFC 7517)."""
    keys = await audit_seals.audit_keys(call.provider.registry)
    cached = {"Cache-Control": f"public, max-age={_KEYS_CACHED_SECONDS}"}
    return Response(msgspec.json.encode(keys), 200, cached, KEY_SET)


async def _query(call: Call, *, before: int) -> AuditQuery:
    """The query of the filters that were sent."""
    given = {name: value for name, value in call.given.items() if isinstance(value, str)}
    try:
        actions = audit_filters.actions(given["action"]) if "action" in given else ()
    except audit_filters.MalformedFilter as error:
        raise _not_understood("action", error) from None
    try:
        zone = call.provider.policy.timezone
        since = audit_filters.moment(given["since"], now=call.context.now, zone=zone) if "since" in given else 0
    except audit_filters.MalformedFilter as error:
        raise _not_understood("since", error) from None
    entity_id = given.get("entity", call.actor.entity_id)
    user_id = await audit.known_person(call.provider.registry, given["user"]) if "user" in given else ""
    return AuditQuery(
        user_id=user_id,
        entity_id=entity_id,
        client_id=given.get("client", ""),
        actions=actions,
        object=given.get("object", ""),
        since=max(since, 0),
        before=before,
    )


def _not_understood(name: str, error: Exception) -> Problem:
    return Problem(400, "A query parameter is not valid", faults=[{"parameter": name, "detail": str(error)}])
