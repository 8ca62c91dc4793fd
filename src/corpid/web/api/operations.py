"""The operations of the admin API, as data: one row for each (D59).

Routes, scopes, rate limits, the OpenAPI document and the tests of access follow from this table.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from corpid.rules.directory.approvals import OF_ENTITIES
from corpid.rules.directory.objects import CLIENT, RESOURCES
from corpid.rules.directory.records import RequestState
from corpid.web.api import (
    access_reviews,
    approvals,
    audit,
    consents,
    endpoints,
    erasure,
    invitations,
    overview,
    sessions,
)
from corpid.web.api.operation import CURSOR, LIMIT, Operation, Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.rules.directory.objects import Resource
    from corpid.rules.oauth.api_client import ApiScope

_FILTERS: Final = {
    "search": "The beginning of the identifier; for people, of the user name.",
    "name": "The beginning of a person's name; the list is sorted by name. Not with `search` or `entity`.",
    "user": "A user name.",
    "entity": "The identifier of an entity.",
    "service": "The identifier of a service.",
    "client_entity": "The entity that grants.",
    "third_party": "The entity that receives the grant.",
}


def _of(resource: Resource) -> Iterator[Operation]:
    """The five operations on a kind of record."""
    read: ApiScope = "clients.read" if resource.kind == "client" else "directory.read"
    write: ApiScope = "clients.write" if resource.kind == "client" else "directory.write"
    plural = resource.path.replace("-", " ")
    one, title = f"/{resource.path}/{{id}}", resource.title
    bound = resource.kind != "client"
    common: dict[str, Any] = {"tag": resource.path, "bound": bound}
    requested = resource.kind in OF_ENTITIES
    yield Operation(
        name=f"list_{resource.path.replace('-', '_')}",
        method="GET",
        path=f"/{resource.path}",
        summary=f"List {plural}",
        description=f"A page of {plural}, sorted by key; people by user name, people of an entity by membership.",
        scope=read,
        run=partial(endpoints.list_objects, resource=resource),
        queries=(*(Query(name=name, description=_FILTERS[name]) for name in resource.filters), LIMIT, CURSOR),
        answer=f"{title}Page",
        **common,
    )
    yield Operation(
        name=f"add_{resource.singular}",
        method="POST",
        path=f"/{resource.path}",
        summary=f"Add {resource.noun}",
        description=f"Adds {resource.noun} by the rules of a directory file (docs/directory.md), completely or not at all.",
        scope=write,
        run=partial(endpoints.add_object, resource=resource),
        body=f"New{title}",
        answer=title,
        status=201,
        errors=(409, 422),
        repeatable=True,
        requested=requested,
        **common,
    )
    yield Operation(
        name=f"read_{resource.singular}",
        method="GET",
        path=one,
        summary=f"Read {resource.noun}",
        description=f"Shows {resource.noun} with its entity tag.",
        scope=read,
        run=partial(endpoints.read_object, resource=resource),
        answer=title,
        **common,
    )
    yield Operation(
        name=f"change_{resource.singular}",
        method="PATCH",
        path=one,
        summary=f"Change {resource.noun}",
        description="Takes a JSON merge patch (RFC 7396): the members to change; null resets a member to its default.",
        scope=write,
        run=partial(endpoints.change_object, resource=resource),
        body=f"{title}Patch",
        media_types=("application/merge-patch+json", "application/json"),
        answer=title,
        errors=(409, 422),
        conditional=True,
        requested=requested,
        **common,
    )
    yield Operation(
        name=f"remove_{resource.singular}",
        method="DELETE",
        path=one,
        summary=f"Remove {resource.noun}",
        description=f"Removes {resource.noun}, with everything that depends on it.",
        scope=write,
        run=partial(endpoints.remove_object, resource=resource),
        status=204,
        errors=(409, 422) if requested else (409,),
        conditional=True,
        requested=requested,
        **common,
    )


_PERSON: Final = Query(name="user", description="The user name of the person.", needed=True)
_OTHERS: Final = (
    Operation(
        name="apply_directory",
        method="POST",
        path="/directory",
        tag="directory",
        summary="Apply a directory document",
        description="Takes a directory document (docs/directory.md) in YAML or JSON, and returns what `corpid apply "
        "--json` prints. Records that the document does not name stay, unless you set `prune`. Records that "
        "others than clients of the API have written stay, unless you set `take_over`; `kept` lists them. One "
        "document at a time for each client. Not for clients bound to an entity.",
        scope="directory.write",
        run=endpoints.apply_directory,
        queries=(
            Query(name="dry_run", description="Whether only to report what would change.", kind=bool, default=False),
            Query(
                name="prune",
                description="Whether to remove records that the document does not name, in the sections that it has.",
                kind=bool,
                default=False,
            ),
            Query(
                name="take_over",
                description="Whether also to change and remove records that others than clients of the API have written.",
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
        name="list_invitations",
        method="GET",
        path="/invitations",
        tag="invitations",
        summary="List invitations",
        description="Open invitations of an entity, sorted by identifier. A client bound to an entity omits `entity`.",
        scope="directory.read",
        run=invitations.list_invitations,
        queries=(Query(name="entity", description="The entity that invites."), LIMIT, CURSOR),
        answer="InvitationPage",
        errors=(422,),
    ),
    Operation(
        name="add_invitation",
        method="POST",
        path="/invitations",
        tag="invitations",
        summary="Invite somebody",
        description="Invites a person to act for an entity, as `corpid membership invite` does. The response is the "
        "same whether or not the person has an account. The invitation has no effect until they accept it. At "
        "most 25,000 invitations of an entity a day, and 5 to one address (429).",
        scope="directory.write",
        run=invitations.add_invitation,
        body="NewInvitation",
        answer="Invitation",
        status=201,
        errors=(409, 422),
        repeatable=True,
        requested=True,
    ),
    Operation(
        name="read_invitation",
        method="GET",
        path="/invitations/{id}",
        tag="invitations",
        summary="Read an invitation",
        description="Shows an invitation with its entity tag, even after it was accepted, as long as the membership "
        "exists. The membership names the person who accepted it.",
        scope="directory.read",
        run=invitations.read_invitation,
        answer="Invitation",
    ),
    Operation(
        name="resend_invitation",
        method="POST",
        path="/invitations/{id}/resend",
        tag="invitations",
        summary="Send an invitation again",
        description="Sends the e-mail again, with a new link; the earlier link then ends. At the earliest 30 minutes "
        "after the last e-mail (409).",
        scope="directory.write",
        run=invitations.resend_invitation,
        answer="Invitation",
        errors=(409, 422),
        repeatable=True,
    ),
    Operation(
        name="revoke_invitation",
        method="DELETE",
        path="/invitations/{id}",
        tag="invitations",
        summary="Revoke an invitation",
        description="Ends an invitation, with the level and roles given with it. You cannot revoke an accepted "
        "invitation (409): remove the membership.",
        scope="directory.write",
        run=invitations.revoke_invitation,
        status=204,
        errors=(409, 422),
        conditional=True,
        requested=True,
    ),
    Operation(
        name="list_approvals",
        method="GET",
        path="/approvals",
        tag="approvals",
        summary="List requests for approval",
        description="Changes that wait for another administrator's approval, and those already decided, oldest "
        "first. A client bound to an entity sees that entity's requests.",
        scope="directory.read",
        run=approvals.list_approvals,
        queries=(
            Query(name="entity", description="The entity whose administrators decide."),
            Query(name="state", description="The state of the requests.", kind=RequestState),
            LIMIT,
            CURSOR,
        ),
        answer="ApprovalPage",
    ),
    Operation(
        name="read_approval",
        method="GET",
        path="/approvals/{id}",
        tag="approvals",
        summary="Read a request for approval",
        description="Shows a request, what it changes, and whether it has been decided.",
        scope="directory.read",
        run=approvals.read_approval,
        answer="Approval",
    ),
    Operation(
        name="change_approval",
        method="PATCH",
        path="/approvals/{id}",
        tag="approvals",
        summary="Withdraw a request for approval",
        description="Takes a merge patch with the state `withdrawn`: a client withdraws its own request. Clients of "
        "the API never approve or decline.",
        scope="directory.write",
        run=approvals.change_approval,
        body="ApprovalPatch",
        media_types=("application/merge-patch+json", "application/json"),
        answer="Approval",
        errors=(409, 422),
        conditional=True,
    ),
    Operation(
        name="list_client_refusals",
        method="GET",
        path="/clients/{id}/refusals",
        tag="clients",
        summary="List the latest refusals of a client",
        description="Its latest 100 refused requests, and 20 that only claim to be its; docs/reference/errors.md has the reasons.",
        scope="clients.read",
        run=partial(endpoints.list_refusals, resource=CLIENT),
        answer="ClientRefusalPage",
        bound=False,
    ),
    Operation(
        name="list_keys",
        method="GET",
        path="/keys",
        tag="keys",
        summary="List signing keys",
        description="Every signing key with its dates, oldest first; never a private key.",
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
        summary="Let the next signing key sign",
        description="The standby key, which is published already, signs in two hours, when the current key retires. With "
        "`at_once` it signs within five seconds; use this only in emergencies. Another standby key is created, unless one "
        "is left. At most once an hour (429).",
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
        name="list_sessions",
        method="GET",
        path="/sessions",
        tag="sessions",
        summary="List a person's sessions",
        description="Where a person is signed in, latest first. Not for people who operate the deployment.",
        scope="operations",
        run=sessions.list_sessions,
        queries=(_PERSON, LIMIT, CURSOR),
        answer="SessionPage",
        bound=False,
    ),
    Operation(
        name="end_sessions",
        method="DELETE",
        path="/sessions",
        tag="sessions",
        summary="End all sessions of a person",
        description="Signs a person out everywhere, and removes none of their factors.",
        scope="operations",
        run=sessions.end_sessions,
        queries=(_PERSON,),
        status=204,
        errors=(404,),
        bound=False,
    ),
    Operation(
        name="read_session",
        method="GET",
        path="/sessions/{id}",
        tag="sessions",
        summary="Read a session",
        description="Shows a session with its entity tag. Use of the session does not change the tag.",
        scope="operations",
        run=sessions.read_session,
        answer="Session",
        bound=False,
    ),
    Operation(
        name="end_session",
        method="DELETE",
        path="/sessions/{id}",
        tag="sessions",
        summary="End a session",
        description="Signs a person out of one browser.",
        scope="operations",
        run=sessions.end_session,
        status=204,
        conditional=True,
        bound=False,
    ),
    Operation(
        name="list_locks",
        method="GET",
        path="/locks",
        tag="locks",
        summary="List a person's locks",
        description="Current pauses after too many wrong codes. Delays of at most five minutes after wrong passwords "
        "belong to addresses and are not listed. Not for people who operate the deployment.",
        scope="operations",
        run=sessions.list_locks,
        queries=(_PERSON,),
        answer="LockPage",
        bound=False,
    ),
    Operation(
        name="end_locks",
        method="DELETE",
        path="/locks",
        tag="locks",
        summary="End the locks of a person",
        description="Ends pauses after wrong codes and delays after wrong passwords, as `corpid user unlock` does.",
        scope="operations",
        run=sessions.end_locks,
        queries=(_PERSON,),
        status=204,
        errors=(404,),
        bound=False,
    ),
    *access_reviews.OPERATIONS,
    *consents.OPERATIONS,
    *erasure.OPERATIONS,
    *audit.OPERATIONS,
    Operation(
        name="read_maintenance",
        method="GET",
        path="/maintenance",
        tag="maintenance",
        summary="Read whether maintenance is on",
        description="Also available while it is on.",
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
        summary="Turn maintenance on or off",
        description="Running servers follow within five seconds. Also available while maintenance is on.",
        scope="operations",
        run=endpoints.switch_maintenance,
        body="Maintenance",
        answer="Maintenance",
        errors=(422,),
        bound=False,
        in_maintenance=True,
    ),
    overview.OPERATION,
)

OPERATIONS: Final = (*(operation for resource in RESOURCES for operation in _of(resource)), *_OTHERS)
