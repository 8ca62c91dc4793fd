"""The deployment in the admin API.

Audit, refusals of clients, signing keys, maintenance and the overview (D28, D42, D53, D57, D58, Spec 7).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory import objects
from corpid.flows.operations import audit, audit_seals, buffers, readiness, signing_keys
from corpid.flows.operations.overview import overview
from corpid.rules import signing_keys as rules
from corpid.rules.audit import AuditQuery
from corpid.rules.directory import audit_reading
from corpid.rules.directory.nodes import SHOWN, Json, pointer
from corpid.rules.oauth.errors import reason_of
from corpid.rules.readers import unknown_field
from corpid.web.api.calls import JSON, Answer, Call, Problem, parse_json, read_number, respond, respond_page, show
from corpid.web.http.documents import PublicDocument

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.directory.objects import Resource
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.rules.signing_keys import ProviderKey

_KEYS_CACHED_SECONDS: Final = 300
KEY_SET: Final = "application/jwk-set+json"


async def list_audit(call: Call) -> Response:
    """Audit entries, the latest first (D57)."""
    after = call.after(1)
    query = await _audit_query(call, before=read_number(after[0]) if after else 0)
    found = await audit.read_part(call.registry, query, limit=call.given["limit"], actor=call.actor)
    names = await audit.read_names(call.registry, found.entries, actor=call.actor)
    shown = [{**msgspec.structs.asdict(entry), "people": audit.people_of(entry, names)} for entry in found.entries]
    return respond_page(shown, str(found.before or ""))


async def verify_audit(call: Call) -> Response:
    """Verify a part of the audit (D58).

    One part of a client at a time, of so many seals that nobody else waits for long.
    """
    with call.exclude_others("verification"):
        found = await audit_seals.verify(
            call.registry,
            call.actor,
            now=call.context.now,
            after=call.given["after"],
            most=call.given["limit"],
        )
    members = msgspec.to_builtins(found)
    del members["expected"]
    return respond(Answer(body={**members, "next": found.next or None}))


async def audit_keys(call: Call) -> Response:
    """The public audit keys, with which anybody verifies an export (D58, RFC 7517)."""
    keys = await audit_seals.stored_audit_keys(call.registry)
    return _key_set(tuple(keys)).response(call.request, cache_seconds=_KEYS_CACHED_SECONDS)


async def read_overview(call: Call) -> Response:
    """The overview, with the numbers of a period."""
    found = await overview(
        call.provider, call.actor, now=call.context.now, period=call.given["period"], rules=call.web.client_rules
    )
    return respond(Answer(body=msgspec.to_builtins(found)))


async def list_refusals(call: Call, resource: Resource) -> Response:
    """The latest refusals of a relying party (D28)."""
    found = await objects.read_object(call.administration, resource, call.given["id"])
    every = await buffers.list_refusals(call.registry, str(found.members["client_id"]), actor=call.actor)
    return respond_page([_refusal(each) for each in every])


async def list_keys(call: Call) -> Response:
    """Every signing key (D42)."""
    keys = await signing_keys.list_keys(call.registry, call.actor)
    return respond_page([_key(call, key) for key in keys])


async def read_key(call: Call) -> Response:
    """One signing key (D42)."""
    return respond(await _one_key(call, call.given["id"]))


async def rotate_key(call: Call) -> Response:
    """Make the next signing key (D42)."""
    body = await call.body(JSON)
    at_once = _flag(parse_json(body or b"{}"), "at_once")

    async def rotate() -> Answer:
        registry, now = call.registry, call.context.now
        try:
            key = await signing_keys.rotate(registry, call.actor, now=now, at_once=bool(at_once))
        except signing_keys.TooSoon as early:
            detail = "A key was created less than an hour ago: wait, or run `corpid key rotate`"
            raise Problem(429, detail, headers={"Retry-After": str(early.seconds)}) from None
        return show(_key(call, key), location=call.location("keys", key.kid), shows=key.kid)

    async def again(first: StoredResponse) -> Answer:
        return await _one_key(call, first.shown)

    with call.exclude_others("rotation"):
        return await call.carry_out(body, rotate, again)


async def read_maintenance(call: Call) -> Response:
    """The switch of maintenance (Spec 7)."""
    return respond(Answer(body={"maintenance": await readiness.maintenance(call.registry, actor=call.actor)}))


async def switch_maintenance(call: Call) -> Response:
    """Switch maintenance on or off (Spec 7)."""
    on = _flag(await call.json(), "maintenance")
    if on is None:
        raise Problem(
            422,
            "maintenance is required",
            faults=[{"pointer": "/maintenance", "detail": "maintenance is required: true or false"}],
        )
    await readiness.switch_maintenance(call.registry, on=on, actor=call.actor)
    call.provider.registry_cache.drop()
    return respond(Answer(body={"maintenance": on}))


@lru_cache(maxsize=4)
def _key_set(keys: tuple[ProviderKey, ...]) -> PublicDocument:
    """The document of some keys, each of which takes time to open."""
    return PublicDocument(msgspec.json.encode(audit_seals.public_keys(keys)), KEY_SET)


async def _audit_query(call: Call, *, before: int) -> AuditQuery:
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
    user_id = await audit.known_person(call.registry, given["user"]) if "user" in given else ""
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


def _refusal(refusal: ClientRefusal) -> dict[str, Json]:
    return {
        "client": refusal.client_id,
        "claimed": refusal.claimed,
        "at": int(refusal.at),
        "reference": refusal.request_id,
        "method": refusal.method,
        "path": refusal.path,
        "reason": refusal.reason,
        "detail": refusal.detail,
        "remedy": reason_of(refusal.reason).value.remedy,
    }


async def _one_key(call: Call, kid: str) -> Answer:
    for key in await signing_keys.list_keys(call.registry, call.actor):
        if key.kid == kid:
            return show(_key(call, key))
    raise objects.ObjectNotFound


def _key(call: Call, key: ProviderKey) -> dict[str, Any]:
    """A signing key as it is shown: without its secret."""
    shown = {
        "id": key.kid,
        "state": rules.state(key, call.context.now),
        "created_at": key.created_at,
        "signs_from": rules.signs_from(key),
        "retired_at": rules.retires_at(key),
        "revoked_at": key.revoked_at,
    }
    public = msgspec.structs.replace(key, secret="", certificate_chain=None)
    return {**shown, "etag": call.tag(public)}


def _flag(value: Json, name: str) -> bool | None:
    """The one member of an object, true or false."""
    if not isinstance(value, dict):
        raise Problem(
            422, "A JSON object is expected", faults=[{"pointer": "", "detail": "a JSON object is expected here"}]
        )
    unknown = [each for each in value if each != name]
    faults = [{"pointer": pointer(each), "detail": unknown_field(each, (name,))} for each in unknown[:SHOWN]]
    found = value.get(name)
    if name in value and not isinstance(found, bool):
        faults.append({"pointer": f"/{name}", "detail": "true or false is expected here"})
    if faults:
        raise Problem(422, "The body is not valid: see errors", faults=faults)
    return found if isinstance(found, bool) else None
