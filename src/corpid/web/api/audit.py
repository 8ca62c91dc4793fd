"""The audit in the admin API: entries, verification, public keys (D57, D58)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from corpid.flows.oauth import rate_limits
from corpid.flows.operations import audit, audit_seals
from corpid.ports import AuditQuery
from corpid.rules.directory import audit_questions
from corpid.web.api.calls import Answer, cursor, place, plain
from corpid.web.api.problems import Problem
from corpid.web.http.requests import client_request

if TYPE_CHECKING:
    from starlette.requests import Request

    from corpid.web.api.calls import Call
    from corpid.web.context import WebContext

_NUMBER_DIGITS: Final = 18
_KEYS_CACHED_SECONDS: Final = 300


async def list_audit(call: Call) -> Response:
    """Audit entries, the latest first (D57)."""
    limit, after = call.given["limit"], call.given["cursor"]
    query = await _question(call, before=_number(place(after, 1)) if after is not None else 0)
    if query is None:
        return plain(Answer(body={"items": []}))
    found = await audit.latest(call.provider.registry, query, limit=limit + 1, actor=call.actor)
    content: dict[str, Any] = {"items": [msgspec.structs.asdict(entry) for entry in found[:limit]]}
    if len(found) > limit:
        content["next"] = cursor((str(found[limit - 1].number),))
    return plain(Answer(body=content))


async def verify_audit(call: Call) -> Response:
    """Compare a part of the audit with its seals (D58).

    One part of a client at a time, of so many seals that nobody else waits for long.
    """
    with call.alone("verification"):
        found = await audit_seals.verify(
            call.provider.registry, call.actor, after=call.given["after"], most=call.given["limit"]
        )
    told = msgspec.to_builtins(found)
    del told["expected"]
    return plain(Answer(body={**told, "next": found.next or None}))


async def audit_keys(request: Request, web: WebContext) -> Response:
    """The public audit keys, for everybody: whoever has an export verifies it (D58, RFC 7517)."""
    context = await client_request(request, web.provider)
    await web.provider.rate_limits.address(rate_limits.API, context.address, context.now)
    keys = await audit_seals.audit_keys(web.provider.registry)
    cached = {"Cache-Control": f"public, max-age={_KEYS_CACHED_SECONDS}"}
    return Response(msgspec.json.encode(keys), 200, cached, "application/jwk-set+json")


def _number(after: tuple[str, ...]) -> int:
    number = after[0]
    return (
        int(number) if number.isascii() and number.isdigit() and len(number) <= _NUMBER_DIGITS else int(*place("", 1))
    )


async def _question(call: Call, *, before: int) -> AuditQuery | None:
    """The question to the audit.

    None if it names a person who never was.
    """
    given = {name: value for name, value in call.given.items() if isinstance(value, str)}
    try:
        actions = audit_questions.actions(given["action"]) if "action" in given else ()
    except audit_questions.NotUnderstood as error:
        raise _not_understood("action", error) from None
    try:
        zone = call.provider.policy.timezone
        since = audit_questions.moment(given["since"], now=call.context.now, zone=zone) if "since" in given else 0
    except audit_questions.NotUnderstood as error:
        raise _not_understood("since", error) from None
    entity_id = given.get("entity", call.actor.entity_id)
    user_id = await audit.known_person(call.provider.registry, given["user"]) if "user" in given else ""
    if user_id is None:
        return None
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
    return Problem(400, "A query parameter is not understood", faults=[{"parameter": name, "detail": str(error)}])
