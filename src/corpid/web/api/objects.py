"""Records in the admin API: single objects, and directory documents (D59)."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from corpid.flows.directory import apply, objects
from corpid.flows.directory.lists import UnknownPlace, UnknownSort
from corpid.flows.large import in_thread_if_many, without_collector
from corpid.flows.oauth import token
from corpid.rules.directory.access import Object, refuse_early
from corpid.rules.directory.document import KINDS, DirectoryDocument, from_nodes, parse
from corpid.rules.directory.lists import MOST_COUNTED, MOST_EXPORTED
from corpid.rules.directory.nodes import MOST_NODES, SHOWN, DirectoryError, FileProblem, JsonDocument, nodes
from corpid.rules.directory.objects import InvalidObject, Resource
from corpid.rules.directory.records import ChangeRequest, User
from corpid.rules.limits import BODY_BYTES, BULK_BODY_BYTES
from corpid.web.api import approvals
from corpid.web.api.calls import (
    JSON,
    MERGE_PATCH,
    Answer,
    Call,
    Problem,
    parse_json,
    read_cursor,
    respond,
    show,
    unknown_cursor,
    write_cursor,
)
from corpid.web.pages.responses import CsvFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from corpid.rules.oauth.api_client import StoredResponse

YAML: Final = "application/yaml"
BACKWARDS: Final = "~"
"""before a cursor that leads back"""
_NOTHING_APPLIED: Final[dict[str, Any]] = {"changes": [], "kept": [], "written": False, "warnings": []}
"""the stored response to a document, without its long lists"""
_EXPORTED_AT_ONCE: Final = 200
_BYTES_OF_AN_ENTRY: Final = 100
"""of the text of a document, about"""


async def list_objects(call: Call, resource: Resource) -> Response:
    """A page of objects (D59)."""
    wanted = {name: str(call.given[name]) for name in resource.filters if call.given[name] is not None}
    if "name" in wanted and (len(wanted) > 1 or call.actor.entity_id):
        detail = "name cannot be combined with other filters, and clients bound to an entity cannot use it"
        raise Problem(400, "A query parameter is not valid", faults=[{"parameter": "name", "detail": detail}])
    if call.given["format"] == "csv":
        return await _respond_export(call, resource, wanted)
    sent = call.given["cursor"] or ""
    [place] = read_cursor(sent.removeprefix(BACKWARDS), 1) if sent else ("",)
    back = sent.startswith(BACKWARDS)
    try:
        page = await objects.list_objects(
            call.administration, resource, wanted, sort=call.given["sort"] or "", after="" if back else place,
            before=place if back else "", limit=call.given["limit"], count_to=MOST_COUNTED if call.given["total"] else 0,
        )  # fmt: skip
    except UnknownSort as error:
        raise _unknown_sort(error) from None
    except UnknownPlace:
        raise unknown_cursor() from None
    body: dict[str, Any] = {"items": [each.members for each in page.found]}
    if page.after:
        body["next"] = write_cursor((page.after,))
    if page.before:
        body["previous"] = BACKWARDS + write_cursor((page.before,))
    if page.total is not None:
        body |= {"total": page.total.count, "total_is_exact": page.total.exact}
    return respond(Answer(body=body))


class _Export(StreamingResponse):
    """A stream that ends with its response.

    Also where the client leaves early: the next export of the same client waits for it.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]  # made by a generator
            await super().__call__(scope, receive, send)


async def _respond_export(call: Call, resource: Resource, wanted: dict[str, str]) -> Response:
    pieces = _export(call, resource, wanted)
    first = await anext(pieces)  # a refusal is a response

    async def every() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    headers = {"Content-Disposition": f'attachment; filename="{resource.path}.csv"', "Cache-Control": "no-store"}
    return _Export(every(), 200, headers, "text/csv; charset=utf-8")


async def _export(call: Call, resource: Resource, wanted: dict[str, str]) -> AsyncGenerator[bytes, None]:
    """The whole of a list as CSV, some objects at a time (D83)."""
    table, after, count_to = CsvFile(), "", MOST_EXPORTED
    table.write(resource.columns)
    with call.exclude_others("export"):
        while True:
            await token.refuse_ended(call.context, call.actor, now=call.provider.clock())
            try:
                page = await objects.list_objects(
                    call.administration, resource, wanted, sort=call.given["sort"] or "", after=after,
                    limit=_EXPORTED_AT_ONCE, count_to=count_to,
                )  # fmt: skip
            except UnknownSort as error:
                raise _unknown_sort(error) from None
            if page.total is not None and not page.total.exact:
                raise Problem(422, f"An export has at most {MOST_EXPORTED:,} objects: narrow the list by its filters")
            for each in page.found:
                table.write(resource.row(each.members))
            yield table.take()
            after, count_to = page.after, 0
            if not after:
                return


def _unknown_sort(error: UnknownSort) -> Problem:
    fault = {"parameter": "sort", "detail": f"With these filters {error}"}
    return Problem(400, "A query parameter is not valid", faults=[fault])


async def read_object(call: Call, resource: Resource) -> Response:
    """One object (D59)."""
    return respond(show((await objects.read_object(call.administration, resource, call.given["id"])).members))


async def add_object(call: Call, resource: Resource) -> Response:
    """Add an object (D59)."""
    body = await call.body(JSON)
    value = parse_json(body)

    async def add() -> Answer:
        found = await objects.add_object(call.administration, resource, value)
        if isinstance(found, ChangeRequest):
            return await approvals.approval_response(call, found)
        return show(found.members, location=call.location(resource.path, found.id), shows=found.id)

    async def again(first: StoredResponse) -> Answer:
        if first.status == approvals.ACCEPTED:
            return await approvals.read_request(call, first.shown)
        return show((await objects.read_written(call.administration, resource, first.shown)).members)

    return await call.carry_out(body, add, again)


async def change_object(call: Call, resource: Resource) -> Response:
    """Change an object by a merge patch (RFC 7396, D59)."""
    patch = await call.json(MERGE_PATCH, JSON)
    found = await objects.change_object(call.administration, resource, call.given["id"], patch, matches=call.matches)
    call.provider.registry_cache.drop()
    if isinstance(found, ChangeRequest):
        return respond(await approvals.approval_response(call, found))
    return respond(show(found.members))


async def remove_object(call: Call, resource: Resource) -> Response:
    """Remove an object (D59)."""
    request = await objects.remove_object(call.administration, resource, call.given["id"], matches=call.matches)
    call.provider.registry_cache.drop()
    return respond(Answer(status=204) if request is None else await approvals.approval_response(call, request))


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
                await token.refuse_ended(call.context, call.actor, now=call.provider.clock())
                applied = await _applied(call, body, within)
                content = await in_thread_if_many(
                    lambda: msgspec.Raw(msgspec.json.encode(_applied_members(applied))), len(applied.differences)
                )
            return Answer(body=content)

        async def again(first: StoredResponse) -> Answer:
            return Answer(body={**_NOTHING_APPLIED, "written": bool(first.shown)})

        if call.given["dry_run"]:
            return respond(await carry_out(None))
        return await call.carry_out_at_end(body, carry_out, again)


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
        # Refuse a document with kinds that the client may not write. Also with `dry_run`, since the result shows what
        # there is.
        for kind in KINDS:
            if kind in document.complete or document.entries_of(kind):
                refuse_early(call.actor, "write", Object(kind=kind))
        # Refuse a new person with a chosen `id`. Of a person who was removed it would give what they were at every
        # relying party to somebody else.
        named = [entry for entry in document.entries_of("user").values() if "user_id" in entry.fields]
        known = await call.registry.directory.read(User, [(str(entry.fields["user_id"]),) for entry in named])
        chosen = [
            FileProblem(entry.line_of("user_id"), "there is no person with this id: omit it, and a new person gets one")
            for entry in named
            if (entry.fields["user_id"],) not in known
        ]
        if chosen:
            raise DirectoryError("", chosen)
        return await apply.apply_document(
            call.registry,
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


def _read(call: Call, body: bytes) -> tuple[DirectoryDocument, JsonDocument | None]:
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
