"""Endpoints of the admin API: call → flow → answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from corpid.flows.directory import apply, objects
from corpid.flows.large import in_thread_if_many, without_collector
from corpid.flows.oauth import api_tokens
from corpid.flows.operations import buffers, readiness, signing_keys
from corpid.rules import signing_keys as rules
from corpid.rules.directory.access import Object, refuse_early
from corpid.rules.directory.document import from_nodes, parse
from corpid.rules.directory.nodes import MOST_NODES, SHOWN, DirectoryError, nodes, pointer
from corpid.rules.directory.nodes import Problem as Fault
from corpid.rules.directory.objects import InvalidObject, unknown_member
from corpid.rules.directory.records import ChangeRequest, User
from corpid.rules.directory.sections import KINDS
from corpid.rules.limits import BODY_BYTES, BULK_BODY_BYTES
from corpid.rules.oauth.api_server import API_PATH
from corpid.rules.oauth.errors import reason_of
from corpid.web.api import approvals
from corpid.web.api.calls import JSON, MERGE_PATCH, Answer, cursor, parse_json, place, plain
from corpid.web.api.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.responses import Response

    from corpid.flows.directory.objects import ApiObject
    from corpid.rules.directory.document import Document
    from corpid.rules.directory.nodes import Json, JsonDocument
    from corpid.rules.directory.objects import Resource
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.rules.oauth.refusals import ClientRefusal
    from corpid.rules.signing_keys import ProviderKey
    from corpid.web.api.calls import Call

YAML: Final = "application/yaml"
_BYTES_OF_AN_ENTRY: Final = 100
"""of the text of a document, about"""


async def list_objects(call: Call, resource: Resource) -> Response:
    """A page of objects (D59)."""
    wanted = {name: str(call.given[name]) for name in resource.filters if call.given[name] is not None}
    if "name" in wanted and (len(wanted) > 1 or call.actor.entity_id):
        detail = "name cannot be combined with other filters, and clients bound to an entity cannot use it"
        raise Problem(400, "A query parameter is not valid", faults=[{"parameter": "name", "detail": detail}])
    by, limit = call.administration, call.given["limit"]
    after = _after(call, objects.count_place_parts(by, resource, wanted))
    page = await objects.list_objects(by, resource, wanted, after=after, limit=limit)
    content: dict[str, Any] = {"items": [found.members for found in page.found]}
    if page.after:
        content["next"] = cursor(page.after)
    return plain(Answer(body=content))


async def read_object(call: Call, resource: Resource) -> Response:
    """One object (D59)."""
    return plain(_shown(await objects.read_object(call.administration, resource, call.given["id"])))


async def add_object(call: Call, resource: Resource) -> Response:
    """Add an object (D59)."""
    body = await call.body(JSON)
    value = parse_json(body)

    async def add() -> Answer:
        found = await objects.add_object(call.administration, resource, value)
        if isinstance(found, ChangeRequest):
            return await approvals.approval_response(call, found)
        location = f"{call.provider.policy.base_url}{API_PATH}/{resource.path}/{quote(found.id, safe='')}"
        return Answer(body=found.members, status=201, headers={"ETag": found.tag, "Location": location}, shows=found.id)

    async def again(first: StoredResponse) -> Answer:
        if first.status == _ACCEPTED:
            return await approvals.read_request(call, first.shown)
        return _shown(await objects.read_written(call.administration, resource, first.shown))

    return await call.carried_out(body, add, again)


async def change_object(call: Call, resource: Resource) -> Response:
    """Change an object by a merge patch (RFC 7396, D59)."""
    patch = await call.json(MERGE_PATCH, JSON)
    found = await objects.change_object(call.administration, resource, call.given["id"], patch, matches=call.matches)
    call.provider.registry_cache.drop()
    return plain(await approvals.approval_response(call, found) if isinstance(found, ChangeRequest) else _shown(found))


async def remove_object(call: Call, resource: Resource) -> Response:
    """Remove an object (D59)."""
    request = await objects.remove_object(call.administration, resource, call.given["id"], matches=call.matches)
    call.provider.registry_cache.drop()
    return plain(Answer(status=204) if request is None else await approvals.approval_response(call, request))


async def apply_directory(call: Call) -> Response:
    """Apply a directory document, or show what it would change (D59)."""
    call.key()
    with call.exclude_others("directory"):
        body = await call.body(YAML, JSON, most=BULK_BODY_BYTES)

        async def carry_out(save: Callable[[Answer], Awaitable[None]] | None) -> Answer:
            async def within(applied: apply.ApplyResult) -> None:
                if save is not None:
                    await save(Answer(shows="written" if applied.written else ""))

            async with _room(call, body):
                # Body and wait may have taken minutes, and the right may have ended in them (D50).
                await api_tokens.refuse_ended(call.context, call.actor, now=call.provider.clock())
                applied = await _applied(call, body, within)
                content = await in_thread_if_many(
                    lambda: msgspec.Raw(msgspec.json.encode(_applied_members(applied))), len(applied.differences)
                )
            return Answer(body=content)

        async def again(first: StoredResponse) -> Answer:
            return Answer(body={**_NOTHING_APPLIED, "written": bool(first.shown)})

        if call.given["dry_run"]:
            return plain(await carry_out(None))
        return await call.carried_out_at_end(body, carry_out, again)


_ACCEPTED: Final = 202
_NOTHING_APPLIED: Final[dict[str, Any]] = {"changes": [], "kept": [], "written": False, "warnings": []}
"""the stored response to a document, without its long lists"""


@asynccontextmanager
async def _room(call: Call, body: bytes) -> AsyncIterator[None]:
    """Wait until no other large document is carried out by this process."""
    if len(body) <= BODY_BYTES:
        yield
        return
    async with call.web.large_documents:
        with without_collector():
            yield


def _applied_members(applied: apply.ApplyResult) -> dict[str, Any]:
    names = ("verb", "subject", "members", "sources", "by")
    return {
        "changes": applied.differences,
        "kept": [{name: getattr(each, name) for name in names} for each in applied.kept],
        "written": applied.written,
        "warnings": [problem.reason for problem in applied.warnings],
    }


async def _applied(
    call: Call, body: bytes, within: Callable[[apply.ApplyResult], Awaitable[None]]
) -> apply.ApplyResult:
    document, read = await in_thread_if_many(lambda: _read(call, body), len(body) // _BYTES_OF_AN_ENTRY)
    try:
        _refuse_kinds(call, document)
        await _refuse_chosen_ids(call, document)
        return await apply.apply_document(
            call.provider.registry,
            call.provider.passwords,
            body,
            file="API",
            document=document,
            actor=call.actor,
            new_user_id=call.web.new_user_id,
            rules=call.web.client_rules,
            prune=call.given["prune"],
            take_over=call.given["take_over"],
            dry_run=call.given["dry_run"],
            within=within,
        )
    except DirectoryError as error:
        raise _unfit(error, read) from None


def _read(call: Call, body: bytes) -> tuple[Document, JsonDocument | None]:
    """The document, and of one in JSON its nodes."""
    read = nodes(parse_json(body)) if call.media_type(YAML, JSON) == JSON else None
    try:
        document = from_nodes(read.root, "") if read is not None else parse(body, "API", most_nodes=MOST_NODES)
    except DirectoryError as error:
        raise _unfit(error, read) from None
    return document, read


def _unfit(error: DirectoryError, read: JsonDocument | None) -> Exception:
    if read is not None:
        return InvalidObject.from_directory_error(error, read)
    faults = [{"line": str(problem.line), "detail": problem.reason} for problem in error.problems[:SHOWN]]
    return Problem(422, "The document cannot be applied: see errors", faults=faults)


def _refuse_kinds(call: Call, document: Document) -> None:
    """Refuse a document with kinds that the client may not write.

    Also with `dry_run`, since the result shows what there is.
    """
    for kind in KINDS:
        if kind in document.complete or document.entries_of(kind):
            refuse_early(call.actor, "write", Object(kind=kind))


async def _refuse_chosen_ids(call: Call, document: Document) -> None:
    """Refuse a new person with a chosen `id`.

    Of a person who was removed it would give what they were at every relying party to somebody else.
    """
    named = [entry for entry in document.entries_of("user").values() if "user_id" in entry.fields]
    known = await call.provider.registry.directory.read(User, [(str(entry.fields["user_id"]),) for entry in named])
    chosen = [
        Fault(entry.line_of("user_id"), "there is no person with this id: omit it, and a new person gets one")
        for entry in named
        if (entry.fields["user_id"],) not in known
    ]
    if chosen:
        raise DirectoryError("", chosen)


async def list_refusals(call: Call, resource: Resource) -> Response:
    """The latest refusals of a relying party (D28)."""
    found = await objects.read_object(call.administration, resource, call.given["id"])
    every = await buffers.list_refusals(call.provider.registry, str(found.members["client_id"]), actor=call.actor)
    return plain(Answer(body={"items": [_refusal(each) for each in every]}))


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


async def list_keys(call: Call) -> Response:
    """Every signing key (D42)."""
    keys = await signing_keys.list_keys(call.provider.registry, call.actor)
    return plain(Answer(body={"items": [_key(call, key) for key in keys]}))


async def read_key(call: Call) -> Response:
    """One signing key (D42)."""
    return plain(await _one_key(call, call.given["id"]))


async def _one_key(call: Call, kid: str) -> Answer:
    for key in await signing_keys.list_keys(call.provider.registry, call.actor):
        if key.kid == kid:
            shown = _key(call, key)
            return Answer(body=shown, headers={"ETag": shown["etag"]})
    raise objects.ObjectNotFound


async def rotate_key(call: Call) -> Response:
    """Make the next signing key (D42)."""
    body = await call.body(JSON)
    at_once = _flag(parse_json(body or b"{}"), "at_once")

    async def rotate() -> Answer:
        registry, now = call.provider.registry, call.context.now
        try:
            key = await signing_keys.rotate(registry, call.actor, now=now, at_once=bool(at_once))
        except signing_keys.TooSoon as early:
            detail = "A key was created less than an hour ago: wait, or run `corpid key rotate`"
            raise Problem(429, detail, headers={"Retry-After": str(early.seconds)}) from None
        shown = _key(call, key)
        location = f"{call.provider.policy.base_url}{API_PATH}/keys/{key.kid}"
        return Answer(body=shown, status=201, headers={"ETag": shown["etag"], "Location": location}, shows=key.kid)

    async def again(first: StoredResponse) -> Answer:
        return await _one_key(call, first.shown)

    with call.exclude_others("rotation"):
        return await call.carried_out(body, rotate, again)


async def read_maintenance(call: Call) -> Response:
    """The switch of maintenance (Spec 7)."""
    return plain(Answer(body={"maintenance": await readiness.maintenance(call.provider.registry, actor=call.actor)}))


async def switch_maintenance(call: Call) -> Response:
    """Switch maintenance on or off (Spec 7)."""
    on = _flag(await call.json(), "maintenance")
    if on is None:
        raise Problem(
            422,
            "maintenance is required",
            faults=[{"pointer": "/maintenance", "detail": "maintenance is required: true or false"}],
        )
    await readiness.switch_maintenance(call.provider.registry, on=on, actor=call.actor)
    call.provider.registry_cache.drop()
    return plain(Answer(body={"maintenance": on}))


def _shown(found: ApiObject) -> Answer:
    return Answer(body=found.members, headers={"ETag": found.tag})


def _after(call: Call, width: int) -> tuple[str, ...]:
    sent = call.given["cursor"]
    return place(sent, width) if sent is not None else ()


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
    faults = [{"pointer": pointer(each), "detail": unknown_member(each, (name,))} for each in unknown[:SHOWN]]
    found = value.get(name)
    if name in value and not isinstance(found, bool):
        faults.append({"pointer": f"/{name}", "detail": "true or false is expected here"})
    if faults:
        raise Problem(422, "The body is not valid: see errors", faults=faults)
    return found if isinstance(found, bool) else None
