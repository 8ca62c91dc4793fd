"""The operations of the admin API, as data: one row for each (D59).

Routes, scopes, rate limits, the OpenAPI document and the tests of access follow from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from corpid.rules.directory.approvals import OF_ENTITIES
from corpid.rules.directory.lists import FILTERS
from corpid.rules.directory.objects import CLIENT, RESOURCES, Resource
from corpid.rules.directory.records import RequestState
from corpid.rules.hourly_counts import Period
from corpid.web.api import approvals, deployment, objects, people

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.responses import Response

    from corpid.rules.oauth.api_client import ApiScope
    from corpid.web.api.calls import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    name: str
    description: str
    kind: Any = str
    default: Any = None
    needed: bool = False
    least: int | None = None
    most: int | None = None


def _switch(name: str, description: str) -> Query:
    return Query(name=name, description=description, kind=bool, default=False)


CURSOR: Final = Query(name="cursor", description="The member `next` of the previous page.")
LIMIT: Final = Query(name="limit", description="Number of objects per page.", kind=int, default=50, least=1, most=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: its name, its parameters, and who may call it."""

    route: str
    """its method and path below that of the API; `{id}` names an object"""
    summary: str
    description: str
    scope: ApiScope | Literal[""]
    """empty: it needs no token"""
    run: Callable[[Call], Awaitable[Response]]
    named: str = ""
    """its operationId, if it is not the name of its function"""
    queries: tuple[Query, ...] = ()
    body: str = ""
    """the schema of its body; empty: it takes none"""
    media_types: tuple[str, ...] = ("application/json",)
    answer: str = ""
    """the schema of its answer; empty: it has no body"""
    answer_type: str = "application/json"
    csv: bool = False
    """whether it also answers in CSV"""
    adds: bool = False
    """whether its answer is an object that was added (201)"""
    errors: tuple[int, ...] = ()
    """further than those that follow from the rest"""
    conditional: bool = False
    """whether it demands If-Match"""
    requested: bool = False
    """whether it is requested if it needs approval (202)"""
    repeatable: bool = False
    """whether an Idempotency-Key makes it safe to send again"""
    bound: bool = True
    """whether clients that are bound to an entity may call it at all"""
    in_maintenance: bool = False
    """whether it is carried out while maintenance is on"""
    tag: str = ""
    """the list of objects that it belongs to; empty: its path begins with it"""

    @property
    def name(self) -> str:
        """Its operationId."""
        return self.named or self.run.__name__

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @property
    def status(self) -> int:
        return 201 if self.adds else 200 if self.answer else 204

    @property
    def takes_object(self) -> bool:
        """True if its path names an object."""
        return "{id}" in self.path


_SORT: Final = "The order, with `-` before it from the end."
_COUNTED: Final = "`true`: also count the objects of all pages, up to 10,000."
_TOTAL: Final = Query(name="total", description=_COUNTED, kind=bool, default=False)
_FILE: Final = "`csv`: all pages as one CSV file (RFC 4180), of at most 100,000 objects (else 422). One at a time."
_FORMAT: Final = Query(name="format", description=_FILE, kind=Literal["json", "csv"], default="json")


def _of(resource: Resource) -> Iterator[Operation]:
    """The five operations on a kind of record."""
    read: ApiScope = "clients.read" if resource.kind == "client" else "directory.read"
    write: ApiScope = "clients.write" if resource.kind == "client" else "directory.write"
    plural = resource.path.replace("-", " ")
    sorts = {each.name: each for listed in resource.lists for each in listed.orders}
    sort = Literal[(*sorts, *(f"-{name}" for name in sorts))]  # type: ignore[valid-type]  # a table
    one, title = f"/{resource.path}/{{id}}", resource.title
    bound = resource.kind != "client"
    requested = resource.kind in OF_ENTITIES
    yield Operation(
        named=f"list_{resource.path.replace('-', '_')}",
        route=f"GET /{resource.path}",
        summary=f"List {plural}",
        description=f"A page of {plural}, sorted by key; people by user name, people of an entity by membership, unless `sort` says otherwise.",
        scope=read,
        run=partial(objects.list_objects, resource=resource),
        queries=(
            *(Query(name=name, description=FILTERS[name]) for name in resource.filters),
            Query(name="sort", description=_SORT, kind=sort),
            _TOTAL,
            _FORMAT,
            LIMIT,
            CURSOR,
        ),
        answer=f"{title}Page",
        csv=True,
        bound=bound,
    )
    yield Operation(
        named=f"add_{resource.singular}",
        route=f"POST /{resource.path}",
        summary=f"Add {resource.noun}",
        description=f"Adds {resource.noun} by the rules of a directory file (docs/directory.md), completely or not at all.",
        scope=write,
        run=partial(objects.add_object, resource=resource),
        body=f"New{title}",
        answer=title,
        adds=True,
        repeatable=True,
        requested=requested,
        bound=bound,
    )
    yield Operation(
        named=f"read_{resource.singular}",
        route=f"GET {one}",
        summary=f"Read {resource.noun}",
        description=f"Shows {resource.noun} with its entity tag.",
        scope=read,
        run=partial(objects.read_object, resource=resource),
        answer=title,
        bound=bound,
    )
    yield Operation(
        named=f"change_{resource.singular}",
        route=f"PATCH {one}",
        summary=f"Change {resource.noun}",
        description="Takes a JSON merge patch (RFC 7396): the members to change; null resets a member to its default.",
        scope=write,
        run=partial(objects.change_object, resource=resource),
        body=f"{title}Patch",
        media_types=("application/merge-patch+json", "application/json"),
        answer=title,
        conditional=True,
        requested=requested,
        bound=bound,
    )
    yield Operation(
        named=f"remove_{resource.singular}",
        route=f"DELETE {one}",
        summary=f"Remove {resource.noun}",
        description=f"Removes {resource.noun}, with everything that depends on it.",
        scope=write,
        run=partial(objects.remove_object, resource=resource),
        errors=(409,),
        conditional=True,
        requested=requested,
        bound=bound,
    )


_PERSON: Final = Query(name="user", description="The user name of the person.", needed=True)
_operating: Final = partial(Operation, scope="operations", bound=False)
_reading: Final = partial(Operation, scope="directory.read")
_writing: Final = partial(Operation, scope="directory.write")
_OTHERS: Final = (
    _writing(
        route="POST /directory",
        summary="Apply a directory document",
        description="Takes a directory document (docs/directory.md) in YAML or JSON, and returns what `corpid apply "
        "--json` prints. Records that the document does not name stay, unless you set `prune`. Records that "
        "others than clients of the API have written stay, unless you set `take_over`; `kept` lists them. One "
        "document at a time for each client. Not for clients bound to an entity.",
        run=objects.apply_directory,
        queries=(
            _switch("dry_run", "Whether only to report what would change."),
            _switch("prune", "Whether to remove records that the document does not name, in the sections that it has."),
            _switch(
                "take_over",
                "Whether also to change and remove records that others than clients of the API have written.",
            ),
        ),
        body="DirectoryDocument",
        media_types=("application/yaml", "application/json"),
        answer="Applied",
        repeatable=True,
        bound=False,
    ),
    _reading(
        route="GET /invitations",
        summary="List invitations",
        description="Open invitations of an entity, sorted by identifier. A client bound to an entity omits `entity`.",
        run=people.list_invitations,
        queries=(Query(name="entity", description="The entity that invites."), LIMIT, CURSOR),
        answer="InvitationPage",
        errors=(422,),
    ),
    _writing(
        route="POST /invitations",
        summary="Invite somebody",
        description="Invites a person to act for an entity, as `corpid membership invite` does. The response is the "
        "same whether or not the person has an account. The invitation has no effect until they accept it. At "
        "most 25,000 invitations of an entity a day, and 5 to one address (429).",
        run=people.add_invitation,
        body="NewInvitation",
        answer="Invitation",
        adds=True,
        repeatable=True,
        requested=True,
    ),
    _reading(
        route="GET /invitations/{id}",
        summary="Read an invitation",
        description="Shows an invitation with its entity tag, even after it was accepted, as long as the membership "
        "exists. The membership names the person who accepted it.",
        run=people.read_invitation,
        answer="Invitation",
    ),
    _writing(
        route="POST /invitations/{id}/resend",
        summary="Send an invitation again",
        description="Sends the e-mail again, with a new link; the earlier link then ends. At the earliest 30 minutes "
        "after the last e-mail (409).",
        run=people.resend_invitation,
        answer="Invitation",
        repeatable=True,
    ),
    _writing(
        route="DELETE /invitations/{id}",
        summary="Revoke an invitation",
        description="Ends an invitation, with the level and roles given with it. You cannot revoke an accepted "
        "invitation (409): remove the membership.",
        run=people.revoke_invitation,
        conditional=True,
        requested=True,
    ),
    _reading(
        route="GET /approvals",
        summary="List requests for approval",
        description="Changes that wait for another administrator's approval, and those already decided, oldest "
        "first. A client bound to an entity sees that entity's requests.",
        run=approvals.list_approvals,
        queries=(
            Query(name="entity", description="The entity whose administrators decide."),
            Query(name="state", description="The state of the requests.", kind=RequestState),
            LIMIT,
            CURSOR,
        ),
        answer="ApprovalPage",
    ),
    _reading(
        route="GET /approvals/{id}",
        summary="Read a request for approval",
        description="Shows a request, what it changes, and whether it has been decided.",
        run=approvals.read_approval,
        answer="Approval",
    ),
    _writing(
        route="PATCH /approvals/{id}",
        summary="Withdraw a request for approval",
        description="Takes a merge patch with the state `withdrawn`: a client withdraws its own request. Clients of "
        "the API never approve or decline.",
        run=approvals.change_approval,
        body="ApprovalPatch",
        media_types=("application/merge-patch+json", "application/json"),
        answer="Approval",
        conditional=True,
    ),
    Operation(
        named="list_client_refusals",
        route="GET /clients/{id}/refusals",
        summary="List the latest refusals of a client",
        description="Its latest 100 refused requests, and 20 that only claim to be its; docs/reference/errors.md has the reasons.",
        scope="clients.read",
        run=partial(deployment.list_refusals, resource=CLIENT),
        answer="ClientRefusalPage",
        bound=False,
    ),
    _operating(
        route="GET /keys",
        summary="List signing keys",
        description="Every signing key with its dates, oldest first; never a private key.",
        run=deployment.list_keys,
        answer="KeyPage",
    ),
    _operating(
        route="POST /keys",
        summary="Let the next signing key sign",
        description="The standby key, which is published already, signs in two hours, when the current key retires. With "
        "`at_once` it signs within five seconds; use this only in emergencies. Another standby key is created, unless one "
        "is left. At most once an hour (429).",
        run=deployment.rotate_key,
        body="NewKey",
        answer="Key",
        adds=True,
        repeatable=True,
    ),
    _operating(
        route="GET /keys/{id}",
        summary="Read a signing key",
        description="One signing key by its kid.",
        run=deployment.read_key,
        answer="Key",
    ),
    _operating(
        route="GET /sessions",
        summary="List a person's sessions",
        description="Where a person is signed in, latest first. Not for people who operate the deployment.",
        run=people.list_sessions,
        queries=(_PERSON, LIMIT, CURSOR),
        answer="SessionPage",
    ),
    _operating(
        route="DELETE /sessions",
        summary="End all sessions of a person",
        description="Signs a person out everywhere, and removes none of their factors.",
        run=people.end_sessions,
        queries=(_PERSON,),
        errors=(404,),
    ),
    _operating(
        route="GET /sessions/{id}",
        summary="Read a session",
        description="Shows a session with its entity tag. Use of the session does not change the tag.",
        run=people.read_session,
        answer="Session",
    ),
    _operating(
        route="DELETE /sessions/{id}",
        summary="End a session",
        description="Signs a person out of one browser.",
        run=people.end_session,
        conditional=True,
    ),
    _operating(
        route="GET /locks",
        summary="List a person's locks",
        description="Current pauses after too many wrong codes. Delays of at most five minutes after wrong passwords "
        "belong to addresses and are not listed. Not for people who operate the deployment.",
        run=people.list_locks,
        queries=(_PERSON,),
        answer="LockPage",
    ),
    _operating(
        route="DELETE /locks",
        summary="End the locks of a person",
        description="Ends pauses after wrong codes and delays after wrong passwords, as `corpid user unlock` does.",
        run=people.end_locks,
        queries=(_PERSON,),
        errors=(404,),
    ),
    _reading(
        route="GET /entities/{id}/access-review",
        summary="Read an entity's access review",
        description="When the yearly access review is due, how far the open one is, and who signed off the last one. "
        "Only owners and administrators decide and sign off; clients of the API read.",
        run=people.read_access_review,
        answer="AccessReview",
    ),
    _reading(
        route="GET /entities/{id}/access-review/people",
        summary="List the people of an access review",
        description="The people of an entity with what they may do, and the decision about each in the open review, by "
        "membership.",
        run=people.list_reviewed_people,
        queries=(
            _switch(
                "unreviewed",
                "`true`: only people who were not kept yet. Those who changed since come back when the "
                "review is to be signed off, in an entity of at most 1,000 people at once.",
            ),
            LIMIT,
            CURSOR,
        ),
        answer="ReviewedPersonPage",
    ),
    _reading(
        route="GET /consents",
        tag="users",
        summary="List a person's consents",
        description="What a person agreed to share and is not asked again: with which relying party, for which entity, at "
        "which issuer, since when and until when. Only the person ends it.",
        run=people.list_consents,
        queries=(_PERSON, LIMIT, CURSOR),
        answer="ConsentPage",
        bound=False,
    ),
    _reading(
        route="GET /deletion-requests",
        tag="users",
        summary="List requests to be deleted",
        description="People who asked in their account to be deleted, by their identifiers. `erase_user` carries it out.",
        run=people.list_deletion_requests,
        queries=(LIMIT, CURSOR),
        answer="DeletionRequestPage",
        bound=False,
    ),
    _operating(
        route="POST /users/{id}/erase",
        summary="Erase a person",
        description="Removes a person who asked to be deleted, with everything that rests on them, and then their names and "
        "addresses from the audit, as `corpid user erase` does; needs the scope `directory.write`, too. Without their "
        "request 409. Call it again if it was interrupted.",
        run=people.erase_user,
        queries=(_switch("unrequested", "Whether also a person is erased who has not asked for it."),),
        answer="Erased",
        repeatable=True,
    ),
    Operation(
        route="GET /audit",
        summary="List audit entries",
        description="Audit entries, latest first, with members before and after. A client bound to an entity sees "
        "the entries of that entity, without addresses.",
        scope="audit.read",
        run=deployment.list_audit,
        queries=(
            Query(name="user", description="Entries by and about this person: current user name, or identifier."),
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
        route="GET /audit/verification",
        summary="Verify the audit",
        description="Verifies some seals, with up to 1,000 entries each, and names each entry that was changed, "
        "removed, inserted or moved. Send `next` as `after` for the next part; the last part counts the entries "
        "without a seal. One verification at a time for each client. The public keys of the seals are at "
        "`/audit/keys`, without a token. Not for clients bound to an entity.",
        scope="audit.read",
        run=deployment.verify_audit,
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
        route="GET /audit/keys",
        summary="Read the public audit keys",
        description="The keys that sign the audit's seals, as a JWK Set (RFC 7517), to verify an export. No key is "
        "ever removed. Also available during maintenance. Send If-None-Match to receive 304 if nothing has changed.",
        scope="",
        run=deployment.audit_keys,
        answer="KeySet",
        answer_type=deployment.KEY_SET,
        in_maintenance=True,
    ),
    _operating(
        route="GET /maintenance",
        summary="Read whether maintenance is on",
        description="Also available while it is on.",
        run=deployment.read_maintenance,
        answer="Maintenance",
        in_maintenance=True,
    ),
    _operating(
        route="PUT /maintenance",
        summary="Turn maintenance on or off",
        description="Running servers follow within five seconds. Also available while maintenance is on.",
        run=deployment.switch_maintenance,
        body="Maintenance",
        answer="Maintenance",
        in_maintenance=True,
    ),
    _operating(
        route="GET /overview",
        summary="Read the overview of the deployment",
        description="Completed sign-ins and refusals of a period by hour or day, by client and by reason, and those of the "
        "last 7 days and of the 7 before; dates of signing keys, clients whose generation or exception ends, the serving processes, and what `corpid doctor` "
        "would find. Needs the scope `clients.read`, too.",
        queries=(
            Query(
                name="period", description="By hour: `today`, `7d`; by day: `30d`, `90d`.", kind=Period, default="7d"
            ),
        ),
        run=deployment.read_overview,
        answer="Overview",
        in_maintenance=True,
    ),
)

OPERATIONS: Final = (*(operation for resource in RESOURCES for operation in _of(resource)), *_OTHERS)
