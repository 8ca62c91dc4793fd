"""Invitations in the admin API: made, read, sent again and revoked (D59, D60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from corpid.flows.directory import invitations, member_changes, objects
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access import Object, refuse_early
from corpid.rules.directory.actors import ALL_SCOPES
from corpid.rules.directory.invitations import email_state, was_invitation
from corpid.rules.directory.member_details import MemberDetails
from corpid.rules.directory.nodes import SHOWN
from corpid.rules.directory.objects import RESOURCES, InvalidObject, MemberFault, object_id, unknown_member
from corpid.rules.directory.records import ChangeRequest, Membership
from corpid.rules.oauth.api_server import API_PATH
from corpid.web.api import approvals
from corpid.web.api.calls import JSON, Answer, cursor, parse_json, place, plain

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.rules.directory.nodes import Json
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.web.api.calls import Call

_TEXTS: Final = ("entity", "user_name", "external_id", "name", "email")
_MEMBERS: Final = (*_TEXTS, "send")
_ACCEPTED: Final = 202
_MEMBERSHIPS: Final = next(each for each in RESOURCES if each.record is Membership)


async def list_invitations(call: Call) -> Response:
    """A page of an entity's open invitations."""
    entity_id = call.given["entity"] or call.actor.entity_id
    if not entity_id:
        raise InvalidObject([MemberFault("/entity", "entity is required: the entity that invites")])
    after = place(call.given["cursor"], 1)[0] if call.given["cursor"] is not None else ""
    page = await invitations.list_open_invitations(
        call.provider.registry, entity_id, actor=call.actor, after=after, limit=call.given["limit"]
    )
    content: dict[str, Any] = {"items": [_members(call, each) for each in page.found]}
    if page.after:
        content["next"] = cursor((page.after,))
    return plain(Answer(body=content))


async def read_invitation(call: Call) -> Response:
    """One invitation, also after it was accepted."""
    return plain(_shown(call, await _named(call, call.given["id"])))


async def add_invitation(call: Call) -> Response:
    """Invite a person, or request it if that needs approval (D55, D60)."""
    refuse_early(call.actor, "write", Object(kind="membership", entity_id=call.actor.entity_id))
    body = await call.body(JSON)
    entity_id, details, send = _wanted(call, parse_json(body))
    refuse_early(call.actor, "write", Object(kind="membership", entity_id=entity_id))

    async def add() -> Answer:
        made = await member_changes.submit_invitation(
            call.provider.registry, _limit(call), details, actor=call.actor, entity_id=entity_id, send=send,
            reason=call.actor.reason, now=call.context.now, new_id=call.web.new_user_id,
        )  # fmt: skip
        if isinstance(made, ChangeRequest):
            return await approvals.approval_response(call, made)
        shown = _shown(call, made)
        location = f"{call.provider.policy.base_url}{API_PATH}/invitations/{quote(made.membership_id, safe='')}"
        return Answer(
            body=shown.body, status=201, headers={**shown.headers, "Location": location}, shows=made.membership_id
        )

    async def again(first: StoredResponse) -> Answer:
        if first.status == _ACCEPTED:
            return await approvals.read_request(call, first.shown)
        return _shown(call, await _named(call, first.shown))

    return await call.carried_out(body, add, again)


async def resend_invitation(call: Call) -> Response:
    """Send an invitation again."""
    found = await _named(call, call.given["id"])

    async def resend() -> Answer:
        sent = await invitations.send_invitation_again(
            call.provider.registry, _limit(call), found, actor=call.actor, now=call.context.now
        )
        return Answer(body=_members(call, sent), shows=sent.membership_id)

    async def again(first: StoredResponse) -> Answer:
        return Answer(body=_members(call, await _named(call, first.shown)))

    return await call.carried_out(b"", resend, again)


async def revoke_invitation(call: Call) -> Response:
    """Revoke an invitation, or request it if that needs approval (D55)."""
    found = await _named(call, call.given["id"])
    if not call.matches(call.tag(found)):
        raise objects.ObjectChanged
    if not found.invited:
        raise Refused("the invitation has been accepted: remove the membership")
    request = await objects.remove_object(
        call.administration, _MEMBERSHIPS, object_id(found.key), matches=lambda tag: tag == call.tag(found)
    )
    call.provider.registry_cache.drop()
    return plain(Answer(status=204) if request is None else await approvals.approval_response(call, request))


async def _named(call: Call, membership_id: str) -> Membership:
    """An invitation that the caller may know of, whatever its token allows."""
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        found = (await load_member(call.provider.registry, membership_id, actor=everything)).membership
    except UnknownMember:
        raise objects.ObjectNotFound from None
    if not was_invitation(found):
        raise objects.ObjectNotFound
    return found


def _limit(call: Call) -> InvitationLimit:
    return InvitationLimit(
        transient=call.provider.transient, issuer=call.provider.policy.deployment_url, counts=call.context.counts
    )


def _wanted(call: Call, value: Json) -> tuple[str, MemberDetails, bool]:
    """Entity, details, and whether an e-mail is sent."""
    if not isinstance(value, dict):
        raise InvalidObject([MemberFault("", "a JSON object is expected here: an invitation")])
    faults = [
        MemberFault(f"/{name}", unknown_member(name, _MEMBERS, "an invitation"))
        for name in value
        if name not in _MEMBERS
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


def _shown(call: Call, membership: Membership) -> Answer:
    members = _members(call, membership)
    return Answer(body=members, headers={"ETag": members["etag"]})


def _members(call: Call, membership: Membership) -> dict[str, Any]:
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
