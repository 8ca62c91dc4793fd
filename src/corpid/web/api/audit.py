"""The audit in the admin API: entries, verification, public keys (D57, D58)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.operations import audit, audit_seals
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory import audit_reading
from corpid.web.api.calls import Answer, cursor, number, place, plain
from corpid.web.api.operation import CURSOR, LIMIT, Operation, Query
from corpid.web.api.problems import Problem
from corpid.web.http.documents import PublicDocument

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.signing_keys import ProviderKey
    from corpid.web.api.calls import Call

_KEYS_CACHED_SECONDS: Final = 300
KEY_SET: Final = "application/jwk-set+json"


async def list_audit(call: Call) -> Response:
    """Audit entries, the latest first (D57)."""
    limit, after = call.given["limit"], call.given["cursor"]
    query = await _query(call, before=number(place(after, 1)[0]) if after is not None else 0)
    found = await audit.read_part(call.provider.registry, query, limit=limit, actor=call.actor)
    content: dict[str, Any] = {"items": [msgspec.structs.asdict(entry) for entry in found.entries]}
    if found.before:
        content["next"] = cursor((str(found.before),))
    return plain(Answer(body=content))


async def verify_audit(call: Call) -> Response:
    """Compare a part of the audit with its seals (D58).

    One part of a client at a time, of so many seals that nobody else waits for long.
    """
    with call.exclude_others("verification"):
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
    keys = await audit_seals.stored_audit_keys(call.provider.registry)
    return _key_set(tuple(keys)).response(call.request, cache_seconds=_KEYS_CACHED_SECONDS)


@lru_cache(maxsize=4)
def _key_set(keys: tuple[ProviderKey, ...]) -> PublicDocument:
    """The document of some keys, each of which takes time to open."""
    return PublicDocument(msgspec.json.encode(audit_seals.public_keys(keys)), KEY_SET)


async def _query(call: Call, *, before: int) -> AuditQuery:
    """The query of the filters that were sent."""
    given = {name: value for name, value in call.given.items() if isinstance(value, str)}
    try:
        actions = audit_reading.find_actions(given["action"]) if "action" in given else ()
    except audit_reading.InvalidFilter as error:
        raise _not_understood("action", error) from None
    try:
        zone = call.provider.policy.timezone
        since = audit_reading.parse_moment(given["since"], now=call.context.now, zone=zone) if "since" in given else 0
    except audit_reading.InvalidFilter as error:
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


OPERATIONS: Final = (
    Operation(
        name="list_audit",
        method="GET",
        path="/audit",
        tag="audit",
        summary="List audit entries",
        description="Audit entries, latest first, with members before and after. A client bound to an entity sees "
        "the entries of that entity, without addresses.",
        scope="audit.read",
        run=list_audit,
        queries=(
            Query(
                name="user",
                description="Entries by and about this person: current user name, or identifier.",
            ),
            Query(name="entity", description="Entries about this entity."),
            Query(name="client", description="Entries about this client."),
            Query(name="action", description="An action, or the start of several: `membership.`"),
            Query(name="object", description="Entries about the record with this key."),
            Query(name="since", description="Only later entries: 30m, 2h, 3d, 1w, a day, or a time."),
            LIMIT,
            CURSOR,
        ),
        answer="AuditPage",
    ),
    Operation(
        name="verify_audit",
        method="GET",
        path="/audit/verification",
        tag="audit",
        summary="Compare the audit with its seals",
        description="Verifies some seals, with up to 1,000 entries each, and names each entry that was changed, "
        "removed, inserted or moved. Send `next` as `after` for the next part; the last part counts the entries "
        "without a seal. One verification at a time for each client. The public keys of the seals are at "
        "`/audit/keys`, without a token. Not for clients bound to an entity.",
        scope="audit.read",
        run=verify_audit,
        queries=(
            Query(
                name="after",
                description="The member `next` of the previous part; 0 to start.",
                kind=int,
                default=0,
                least=0,
                most=2**53 - 1,
            ),
            Query(name="limit", description="Number of seals in this part.", kind=int, default=20, least=1, most=50),
        ),
        answer="AuditVerification",
        errors=(409,),
        bound=False,
    ),
    Operation(
        name="audit_keys",
        method="GET",
        path="/audit/keys",
        tag="audit",
        summary="Read the public audit keys",
        description="The keys that sign the audit's seals, as a JWK Set (RFC 7517), to verify an export. No key is "
        "ever removed. Also available during maintenance. Send If-None-Match to receive 304 if nothing has changed.",
        scope="",
        run=audit_keys,
        answer="KeySet",
        answer_type=KEY_SET,
        in_maintenance=True,
    ),
)
"""what the admin API offers on the audit"""
