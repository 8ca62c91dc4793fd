"""Members of an entity in the admin API (D59, D60).

Invitations, and access reviews, which are read only, since people decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory import access_review, invitations, member_changes, objects
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.write import Refused
from corpid.rules.directory import names
from corpid.rules.directory.access import Object, refuse_early
from corpid.rules.directory.actors import ALL_SCOPES
from corpid.rules.directory.invitations import email_state, was_invitation
from corpid.rules.directory.member_details import MemberDetails
from corpid.rules.directory.members import without_bookkeeping
from corpid.rules.directory.nodes import SHOWN
from corpid.rules.directory.objects import ENTITY, RESOURCES, InvalidObject, MemberFault, object_id, unknown_member
from corpid.rules.directory.records import ChangeRequest, Membership
from corpid.web.api import approvals
from corpid.web.api.calls import JSON, Answer, parse_json, respond, respond_page, show

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.directory.access_review import ReviewedPerson
    from corpid.rules.directory.nodes import Json
    from corpid.rules.directory.records import Assignment, ThirdPartyAssignment
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.web.api.calls import Call

_TEXTS: Final = ("entity", "user_name", "external_id", "name", "email")
_NEW_MEMBERS: Final = (*_TEXTS, "send")
_MEMBERSHIPS: Final = next(each for each in RESOURCES if each.record is Membership)


async def list_invitations(call: Call) -> Response:
    """A page of an entity's open invitations."""
    entity_id = call.given["entity"] or call.actor.entity_id
    if not entity_id:
        raise InvalidObject([MemberFault("/entity", "entity is required: the entity that invites")])
    after, limit = "".join(call.after(1)), call.given["limit"]
    found = await invitations.list_open_invitations(
        call.provider.registry, entity_id, actor=call.actor, after=after, limit=limit
    )
    return respond_page(
        [_invitation_members(call, each) for each in found.found], (found.after,) if found.after else None
    )


async def read_invitation(call: Call) -> Response:
    """One invitation, also after it was accepted."""
    return respond(show(_invitation_members(call, await _invitation(call, call.given["id"]))))


async def add_invitation(call: Call) -> Response:
    """Invite a person, or request it if that needs approval (D55, D60)."""
    refuse_early(call.actor, "write", Object(kind="membership", entity_id=call.actor.entity_id))
    body = await call.body(JSON)
    entity_id, details, send = _read_invitation(call, parse_json(body))
    refuse_early(call.actor, "write", Object(kind="membership", entity_id=entity_id))

    async def add() -> Answer:
        made = await member_changes.submit_invitation(
            call.provider.registry, _invitation_limit(call), details, actor=call.actor, entity_id=entity_id, send=send,
            reason=call.actor.reason, now=call.context.now, new_id=call.web.new_user_id,
        )  # fmt: skip
        if isinstance(made, ChangeRequest):
            return await approvals.approval_response(call, made)
        location = call.location("invitations", made.membership_id)
        return show(_invitation_members(call, made), location=location, shows=made.membership_id)

    async def again(first: StoredResponse) -> Answer:
        if first.status == approvals.ACCEPTED:
            return await approvals.read_request(call, first.shown)
        return show(_invitation_members(call, await _invitation(call, first.shown)))

    return await call.carry_out(body, add, again)


async def resend_invitation(call: Call) -> Response:
    """Send an invitation again."""
    found = await _invitation(call, call.given["id"])

    async def resend() -> Answer:
        sent = await invitations.send_invitation_again(
            call.provider.registry, _invitation_limit(call), found, actor=call.actor, now=call.context.now
        )
        return Answer(body=_invitation_members(call, sent), shows=sent.membership_id)

    async def again(first: StoredResponse) -> Answer:
        return Answer(body=_invitation_members(call, await _invitation(call, first.shown)))

    return await call.carry_out(b"", resend, again)


async def revoke_invitation(call: Call) -> Response:
    """Revoke an invitation, or request it if that needs approval (D55)."""
    found = await _invitation(call, call.given["id"])
    if not call.matches(call.tag(found)):
        raise objects.ObjectChanged
    if not found.invited:
        raise Refused("the invitation has been accepted: remove the membership")
    request = await objects.remove_object(
        call.administration, _MEMBERSHIPS, object_id(found.key), matches=lambda tag: tag == call.tag(found)
    )
    call.provider.registry_cache.drop()
    return respond(Answer(status=204) if request is None else await approvals.approval_response(call, request))


async def read_access_review(call: Call) -> Response:
    """The last review of an entity, and the next one."""
    await objects.read_object(call.administration, ENTITY, call.given["id"])
    state = await access_review.current(call.provider.registry, call.actor, call.given["id"])
    return respond(Answer(body=access_review.describe_review(call.given["id"], state)))


async def list_reviewed_people(call: Call) -> Response:
    """A page of an entity's people, with what they may do."""
    await objects.read_object(call.administration, ENTITY, call.given["id"])
    found = await access_review.people(
        call.provider.registry,
        call.actor,
        call.given["id"],
        unreviewed=call.given["unreviewed"],
        after="".join(call.after(1)),
        limit=call.given["limit"],
    )
    return respond_page([_reviewed_members(each) for each in found.found], (found.after,) if found.after else None)


async def _invitation(call: Call, membership_id: str) -> Membership:
    """An invitation that the caller may know of, whatever its token allows."""
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        found = (await load_member(call.provider.registry, membership_id, actor=everything)).membership
    except UnknownMember:
        raise objects.ObjectNotFound from None
    if not was_invitation(found):
        raise objects.ObjectNotFound
    return found


def _invitation_limit(call: Call) -> InvitationLimit:
    return InvitationLimit(
        transient=call.provider.transient, issuer=call.provider.policy.deployment_url, counts=call.context.counts
    )


def _read_invitation(call: Call, value: Json) -> tuple[str, MemberDetails, bool]:
    """Entity, details, and whether an e-mail is sent."""
    if not isinstance(value, dict):
        raise InvalidObject([MemberFault("", "a JSON object is expected here: an invitation")])
    faults = [
        MemberFault(f"/{name}", unknown_member(name, _NEW_MEMBERS, "an invitation"))
        for name in value
        if name not in _NEW_MEMBERS
    ][:SHOWN]
    faults += [
        MemberFault(f"/{name}", "a text is expected here")
        for name in _TEXTS
        if name in value and not isinstance(value[name], str)
    ]
    send = value.get("send", True)
    if not isinstance(send, bool):
        faults.append(MemberFault("/send", "true or false is expected here"))
    texts = {name: str(value.get(name, "")) for name in _TEXTS}
    entity_id = texts.pop("entity") or call.actor.entity_id
    needed = {"entity": entity_id, "name": texts["name"], "email": texts["email"]}
    faults += [
        MemberFault(f"/{name}", f"{name} is required in an invitation")
        for name, text in needed.items()
        if not text and isinstance(value.get(name, ""), str)
    ]
    if faults:
        raise InvalidObject(faults)
    return entity_id, MemberDetails(**texts), bool(send)


def _invitation_members(call: Call, membership: Membership) -> dict[str, Any]:
    """An invitation as shown: the data from the entity."""
    sent_at = membership.invitation_sent_at
    state = email_state(membership, mail_works=call.provider.mail.works)
    return {
        "id": membership.membership_id,
        "entity": membership.entity_id,
        "user_name": membership.user_name,
        "external_id": membership.external_id,
        "name": membership.name,
        "email": membership.email,
        "state": "invited" if membership.invited else "accepted",
        "email_state": state,
        "email_sent_at": sent_at if state == "sent" else None,
        "created_at": membership.created_at,
        "etag": call.tag(membership),
    }


def _reviewed_members(found: ReviewedPerson) -> dict[str, Any]:
    """A person as they are shown, by what identifies them."""
    access, decision = found.access, found.decision
    membership, held = access.membership, access.administrator
    return {
        "membership": membership.membership_id,
        "user_id": found.user.user_id,
        "user": names.identity(membership, found.user),
        "name": names.member_full_name(membership, found.user),
        "enabled": membership.enabled,
        "invited": membership.invited,
        "level": held.level if held else "",
        "services": held.services if held else [],
        "roles": [_role_members(row) for row in access.roles],
        "third_party_roles": [_role_members(row) for row in access.third_party_roles],
        "reviewed": found.reviewed,
        "decision": decision.decision if decision else "",
        "decided_at": decision.decided_at if decision else None,
        "decided_by": decision.decided_by if decision else "",
        "seen": found.seen,
    }


def _role_members(row: Assignment | ThirdPartyAssignment) -> dict[str, Any]:
    members = without_bookkeeping(row)
    return {
        name.removesuffix("_id"): msgspec.to_builtins(value)
        for name, value in members.items()
        if name not in {"user_id", "entity_id"}
    }
