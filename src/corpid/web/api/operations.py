"""The operations of the admin API, as data: one row for each (D59).

Routes, scopes, rate limits, the OpenAPI document and the tests of access follow from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from corpid.flows.directory.object_lists import FILTERS
from corpid.rules.directory.objects import RESOURCES
from corpid.web.api import endpoints

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.responses import Response

    from corpid.rules.directory.actors import Scope
    from corpid.rules.directory.objects import Resource
    from corpid.web.api.calls import Call

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query parameter."""

    name: str
    description: str
    kind: Any = str
    default: Any = None
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: its name, its parameters, and who may call it."""

    name: str
    """its operationId"""
    method: Method
    path: str
    """below the path of the API; `{id}` names an object"""
    tag: str
    summary: str
    description: str
    scope: Scope
    run: Callable[[Call], Awaitable[Response]]
    queries: tuple[Query, ...] = ()
    body: str = ""
    """the schema of its body; empty: it takes none"""
    media_types: tuple[str, ...] = ("application/json",)
    answer: str = ""
    """the schema of its answer; empty: it has no body"""
    status: int = 200
    errors: tuple[int, ...] = ()
    """further than those of every operation"""
    conditional: bool = False
    """whether it demands If-Match"""
    repeatable: bool = False
    """whether an Idempotency-Key makes it safe to send again"""
    bound: bool = True
    """whether clients that are bound to an entity may call it at all"""
    in_maintenance: bool = False
    """whether it is carried out while maintenance is on"""

    @property
    def takes_object(self) -> bool:
        """True if its path names an object."""
        return self.path.endswith("{id}")


_CURSOR: Final = Query(name="cursor", description="The member `next` of the page before.")
_LIMIT: Final = Query(name="limit", description="Objects of a page.", kind=int, default=50, least=1, most=200)
_FILTERS: Final = {
    "search": "The beginning of the identifier, of a person of the user name.",
    "user": "A user name.",
    "entity": "The identifier of an entity.",
    "service": "The identifier of a service.",
    "client_entity": "The entity that grants.",
    "third_party": "The entity that is granted something.",
}


def _of(resource: Resource) -> Iterator[Operation]:
    """The five operations on a kind of record."""
    subject = "clients" if resource.kind == "client" else "directory"
    read: Scope = "clients.read" if resource.kind == "client" else "directory.read"
    write: Scope = "clients.write" if resource.kind == "client" else "directory.write"
    plural = resource.path.replace("-", " ")
    one, title = f"/{resource.path}/{{id}}", resource.title
    bound = resource.kind != "client"
    common: dict[str, Any] = {"tag": resource.path, "bound": bound}
    yield Operation(
        name=f"list_{resource.path.replace('-', '_')}",
        method="GET",
        path=f"/{resource.path}",
        summary=f"List {plural}",
        description=f"A page of {plural}, in the order of their keys (of people, by user name).",
        scope=read,
        run=partial(endpoints.list_objects, resource=resource),
        queries=(*(Query(name=name, description=_FILTERS[name]) for name in FILTERS[resource.record]), _LIMIT, _CURSOR),
        answer=f"{title}Page",
        **common,
    )
    yield Operation(
        name=f"add_{_singular(resource)}",
        method="POST",
        path=f"/{resource.path}",
        summary=f"Add {resource.noun}",
        description=f"Adds {resource.noun} by the rules of a directory file (docs/directory.md), all of it or nothing.",
        scope=write,
        run=partial(endpoints.add_object, resource=resource),
        body=f"New{title}",
        answer=title,
        status=201,
        errors=(409, 422),
        repeatable=True,
        **common,
    )
    yield Operation(
        name=f"read_{_singular(resource)}",
        method="GET",
        path=one,
        summary=f"Read {resource.noun}",
        description=f"Shows {resource.noun} with its entity tag. Belongs to the {subject}.",
        scope=read,
        run=partial(endpoints.read_object, resource=resource),
        answer=title,
        **common,
    )
    yield Operation(
        name=f"change_{_singular(resource)}",
        method="PATCH",
        path=one,
        summary=f"Change {resource.noun}",
        description="Takes a JSON merge patch (RFC 7396): the members to change; null gives a member its default again.",
        scope=write,
        run=partial(endpoints.change_object, resource=resource),
        body=f"{title}Patch",
        media_types=("application/merge-patch+json", "application/json"),
        answer=title,
        errors=(409, 422),
        conditional=True,
        **common,
    )
    yield Operation(
        name=f"remove_{_singular(resource)}",
        method="DELETE",
        path=one,
        summary=f"Remove {resource.noun}",
        description=f"Removes {resource.noun}, with everything that rests on it.",
        scope=write,
        run=partial(endpoints.remove_object, resource=resource),
        status=204,
        errors=(409,),
        conditional=True,
        **common,
    )


def _singular(resource: Resource) -> str:
    return {"entities": "entity"}.get(resource.path, resource.path.removesuffix("s")).replace("-", "_")


_OTHERS: Final = (
    Operation(
        name="apply_directory",
        method="POST",
        path="/directory",
        tag="directory",
        summary="Apply a directory document",
        description="Takes a directory document (docs/directory.md) in YAML, or the same in JSON, and answers what "
        "`corpid apply --json` prints. What the document does not name stays as it is, unless `prune` is set, "
        "and what others than clients of the API have written does, too, unless `take_over` is: `kept` lists it. "
        "One at a time for each client. Not for clients that are bound to an entity.",
        scope="directory.write",
        run=endpoints.apply_directory,
        queries=(
            Query(name="dry_run", description="Whether to tell only what would change.", kind=bool, default=False),
            Query(
                name="prune",
                description="Whether what the document does not name is removed, in the sections that it has.",
                kind=bool,
                default=False,
            ),
            Query(
                name="take_over",
                description="Whether what others than clients of the API have written is changed and removed, too.",
                kind=bool,
                default=False,
            ),
        ),
        body="DirectoryDocument",
        media_types=("application/yaml", "application/json"),
        answer="Applied",
        errors=(409, 422),
        repeatable=True,
        bound=False,
    ),
    Operation(
        name="list_keys",
        method="GET",
        path="/keys",
        tag="keys",
        summary="List signing keys",
        description="Every signing key with its calendar, oldest first; never a private key.",
        scope="operations",
        run=endpoints.list_keys,
        answer="KeyPage",
        bound=False,
    ),
    Operation(
        name="rotate_key",
        method="POST",
        path="/keys",
        tag="keys",
        summary="Make a new signing key",
        description="The key is published now and signs in two hours, when the present one retires; with `at_once` it "
        "signs now, which is for emergencies.",
        scope="operations",
        run=endpoints.rotate_key,
        body="NewKey",
        answer="Key",
        status=201,
        errors=(409, 422),
        repeatable=True,
        bound=False,
    ),
    Operation(
        name="read_key",
        method="GET",
        path="/keys/{id}",
        tag="keys",
        summary="Read a signing key",
        description="One signing key by its kid.",
        scope="operations",
        run=endpoints.read_key,
        answer="Key",
        bound=False,
    ),
    Operation(
        name="list_audit",
        method="GET",
        path="/audit",
        tag="audit",
        summary="List audit entries",
        description="What was done, the latest first, with members before and after. A client that is bound to an "
        "entity sees what concerns that entity, without addresses.",
        scope="audit.read",
        run=endpoints.list_audit,
        queries=(
            Query(name="user", description="What this person did, and what was done to them: user name or identifier."),
            Query(name="entity", description="What concerns this entity."),
            Query(name="client", description="What concerns this client."),
            Query(name="action", description="An action, or the start of several: `membership.`"),
            Query(name="object", description="What was done to the record with this key."),
            Query(name="since", description="Only later entries: 30m, 2h, 3d, 1w, a day, or a time."),
            _LIMIT,
            _CURSOR,
        ),
        answer="AuditPage",
    ),
    Operation(
        name="read_maintenance",
        method="GET",
        path="/maintenance",
        tag="maintenance",
        summary="Read whether maintenance is on",
        description="Also answered while it is on.",
        scope="operations",
        run=endpoints.read_maintenance,
        answer="Maintenance",
        bound=False,
        in_maintenance=True,
    ),
    Operation(
        name="switch_maintenance",
        method="PUT",
        path="/maintenance",
        tag="maintenance",
        summary="Switch maintenance on or off",
        description="Running servers follow within five seconds. Also carried out while maintenance is on.",
        scope="operations",
        run=endpoints.switch_maintenance,
        body="Maintenance",
        answer="Maintenance",
        errors=(422,),
        bound=False,
        in_maintenance=True,
    ),
)

OPERATIONS: Final = (*(operation for resource in RESOURCES for operation in _of(resource)), *_OTHERS)
