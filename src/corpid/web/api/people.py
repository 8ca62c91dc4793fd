"""People in the admin API: their records, invitations and reviews.

Reviews are read only, since people decide. Source: D30, D45, D57, D59, D60, D61
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.authentication.throttle import LINK_GUESSES, UNKNOWN_BROWSERS
from corpid.flows.directory import access_review, invitations, members, objects, people
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import list_with_records
from corpid.flows.directory.members import UnknownMember, load_member
from corpid.flows.directory.objects import ObjectChanged, ObjectNotFound
from corpid.flows.directory.write import Refused, RequestDetails
from corpid.flows.operations import erasure
from corpid.rules.directory import memberships
from corpid.rules.directory.access import ALL_SCOPES, Object, refuse_early
from corpid.rules.directory.lists import DELETION_REQUESTS
from corpid.rules.directory.members import visible_members
from corpid.rules.directory.memberships import details_of, email_state, was_invitation
from corpid.rules.directory.names import is_storable
from corpid.rules.directory.nodes import SHOWN, Json
from corpid.rules.directory.objects import ENTITY, RESOURCES, InvalidObject, MemberFault, object_id
from corpid.rules.directory.records import (
    Assignment,
    ChangeRequest,
    MemberDetails,
    Membership,
    ThirdPartyAssignment,
    User,
)
from corpid.rules.readers import unknown_field
from corpid.web.api import approvals
from corpid.web.api.calls import (
    JSON,
    Answer,
    Call,
    Problem,
    parse_json,
    read_cursor,
    read_number,
    respond,
    respond_page,
    show,
    write_cursor,
)

if TYPE_CHECKING:
    from starlette.responses import Response

    from corpid.flows.directory.access_review import ReviewedPerson
    from corpid.rules.authentication.records import Session
    from corpid.rules.oauth.api_client import StoredResponse
    from corpid.rules.oauth.consent import Consent

_WHERE: Final = {UNKNOWN_BROWSERS: "new", LINK_GUESSES: "link"}
"""group of browsers → its word, as the audit has it; any other is a known browser"""


_TEXTS: Final = ("entity", *MemberDetails.__struct_fields__)
_NEW_MEMBERS: Final = (*_TEXTS, "send")
_MEMBERSHIPS: Final = next(each for each in RESOURCES if each.record is Membership)


async def list_sessions(call: Call) -> Response:
    """A page of a person's sessions, the latest first."""
    registry, limit, after = call.registry, call.given["limit"], call.after(2)
    start = (-read_number(after[0]), after[1]) if after else None
    user, found = await people.list_sessions(registry, call.given["user"], actor=call.actor, now=call.context.now)
    if user is None:
        return respond_page([])
    rest = sorted((each for each in found if start is None or _session_order(each) > start), key=_session_order)
    last = _session_order(rest[limit - 1]) if len(rest) > limit else None
    items = [_session_members(call, user, each) for each in rest[:limit]]
    return respond_page(items, (str(-last[0]), last[1]) if last else "")


async def read_session(call: Call) -> Response:
    user, found = await _session(call)
    return respond(show(_session_members(call, user, found)))


async def end_session(call: Call) -> Response:
    _, found = await _session(call)
    if not call.matches(_session_tag(call, found)):
        raise ObjectChanged
    if not await people.end_session(call.registry, found, actor=call.actor):
        raise ObjectNotFound
    return respond(Answer(status=204))


async def end_sessions(call: Call) -> Response:
    if not await people.end_sessions(call.registry, call.given["user"], actor=call.actor):
        raise ObjectNotFound
    return respond(Answer(status=204))


async def list_locks(call: Call) -> Response:
    """The pauses after wrong codes that hold for a person."""
    registry = call.registry
    user, found = await people.list_locks(registry, call.given["user"], actor=call.actor, now=call.context.now)
    if user is None:
        return respond_page([])
    items = [
        {
            "user": user.user_name,
            "user_id": user.user_id,
            "browser": _WHERE.get(each.browser, "known"),
            "guesses": each.guesses,
            "ends_at": each.paused_until,
        }
        for each in found
    ]
    return respond_page(items)


async def end_locks(call: Call) -> Response:
    """End the pauses and delays of a person."""
    provider = call.provider
    ended = await people.end_locks(
        provider.registry, provider.transient, provider.policy.deployment_url, call.given["user"],
        actor=call.actor, now=call.context.now,
    )  # fmt: skip
    if not ended:
        raise ObjectNotFound
    return respond(Answer(status=204))


async def list_consents(call: Call) -> Response:
    """A page of what a person agreed to share."""
    registry, limit, after = call.registry, call.given["limit"], call.after(4)
    user, found = await people.list_consents_by_name(registry, call.actor, call.given["user"], now=call.context.now)
    rest = sorted((each for each in found if _consent_place(each) > after), key=_consent_place)
    items = [_consent_members(user, each) for each in rest[:limit] if user is not None]
    return respond_page(items, _consent_place(rest[limit - 1]) if len(rest) > limit else "")


async def list_deletion_requests(call: Call) -> Response:
    """A page of people who asked to be deleted."""
    after, limit = "".join(call.after(1)), call.given["limit"]
    registry, actor = call.registry, call.actor
    found = await list_with_records(registry, actor, DELETION_REQUESTS, {}, after=after, limit=limit)
    items = [
        {"user": each.user.user_name, "user_id": each.user.user_id, "requested_at": each.requested_at}
        for each in found.found
    ]
    return respond_page(items, found.after)


async def erase_user(call: Call) -> Response:
    """Erase a person; again after an interruption."""
    provider, user_id = call.provider, call.given["id"]
    if not is_storable(user_id) or not await erasure.is_known(provider.registry, user_id):
        raise ObjectNotFound

    async def erase() -> Answer:
        erased = await erasure.erase(
            provider.registry,
            user_id,
            actor=call.actor,
            now=call.context.now,
            mail=provider.mail,
            provider_name=provider.policy.name,
            unrequested=call.given["unrequested"],
        )
        return _erasure_answer(erased)

    async def again(first: StoredResponse) -> Answer:
        return _erasure_answer(erasure.ErasureResult(user_id=first.shown, details=0))

    return await call.carry_out(b"", erase, again)


async def list_invitations(call: Call) -> Response:
    """A page of an entity's open invitations."""
    entity_id = call.given["entity"] or call.actor.entity_id
    if not entity_id:
        raise InvalidObject([MemberFault("/entity", "entity is required: the entity that invites")])
    after, limit = "".join(call.after(1)), call.given["limit"]
    found = await invitations.list_open_invitations(
        call.registry, entity_id, actor=call.actor, after=after, limit=limit
    )
    return respond_page([_invitation_members(call, each) for each in found.found], found.after)


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
        made = await members.submit_invitation(
            call.registry, InvitationLimit.for_request(call.context), details, actor=call.actor, entity_id=entity_id, send=send,
            asking=RequestDetails(call.actor.reason, call.context.now, call.web.new_user_id()), new_id=call.web.new_user_id,
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
            call.registry,
            InvitationLimit.for_request(call.context),
            found,
            actor=call.actor,
            now=call.context.now,
        )
        return Answer(body=_invitation_members(call, sent), shows=sent.membership_id)

    async def again(first: StoredResponse) -> Answer:
        return Answer(body=_invitation_members(call, await _invitation(call, first.shown)))

    return await call.carry_out(b"", resend, again)


async def revoke_invitation(call: Call) -> Response:
    """Revoke an invitation, or request it if that needs approval (D55)."""
    found = await _invitation(call, call.given["id"])
    if not call.matches(call.tag(found)):
        raise ObjectChanged
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
    state = await access_review.load_review_state(call.registry, call.actor, call.given["id"])
    return respond(Answer(body=access_review.describe_review(call.given["id"], state)))


async def list_reviewed_people(call: Call) -> Response:
    """A page of an entity's people, with what they may do."""
    await objects.read_object(call.administration, ENTITY, call.given["id"])
    found = await access_review.list_reviewed_people(
        call.registry,
        call.actor,
        call.given["id"],
        unreviewed=call.given["unreviewed"],
        after="".join(call.after(1)),
        limit=call.given["limit"],
    )
    return respond_page([_reviewed_members(each) for each in found.found], found.after)


async def _session(call: Call) -> tuple[User, Session]:
    try:
        user_id, name = read_cursor(call.given["id"], 2)
    except Problem:
        raise ObjectNotFound from None
    found = await people.find_session(call.registry, user_id, name, actor=call.actor, now=call.context.now)
    if found is None:
        raise ObjectNotFound
    return found


def _session_order(session: Session) -> tuple[int, str]:
    return -session.auth_time, people.derive_session_name(session)


def _session_tag(call: Call, session: Session) -> str:
    """Of members that use of the session does not change."""
    return call.tag(msgspec.structs.replace(session, seen_at=0, entity_id=""))


def _session_members(call: Call, user: User, session: Session) -> dict[str, Any]:
    return {
        "id": write_cursor((user.user_id, people.derive_session_name(session))),
        "user": user.user_name,
        "user_id": user.user_id,
        "purpose": session.purpose,
        "entity": session.entity_id,
        "device": session.device,
        "amr": list(session.amr),
        "signed_in_at": session.auth_time,
        "seen_at": session.seen_at or session.auth_time,
        "expires_at": session.expires_at,
        "etag": _session_tag(call, session),
    }


def _consent_place(consent: Consent) -> tuple[str, ...]:
    return consent.entity_id, consent.client_id, consent.issuer_id, " ".join(consent.scopes)


def _consent_members(user: User, consent: Consent) -> dict[str, Any]:
    return {
        "user": user.user_name,
        "user_id": user.user_id,
        "client": consent.client_id,
        "entity": consent.entity_id,
        "issuer": consent.issuer_id,
        "scopes": list(consent.scopes),
        "since": consent.given_at,
        "until": consent.expires_at,
    }


def _erasure_answer(erased: erasure.ErasureResult) -> Answer:
    body = {"user_id": erased.user_id, "details": erased.details, "remarks": list(erased.remarks)}
    return Answer(body=body, shows=erased.user_id)


async def _invitation(call: Call, membership_id: str) -> Membership:
    """An invitation that the caller may know of, whatever its token allows."""
    everything = msgspec.structs.replace(call.actor, scopes=ALL_SCOPES)
    try:
        found = (await load_member(call.registry, membership_id, actor=everything)).membership
    except UnknownMember:
        raise ObjectNotFound from None
    if not was_invitation(found):
        raise ObjectNotFound
    return found


def _read_invitation(call: Call, value: Json) -> tuple[str, MemberDetails, bool]:
    """Entity, details, and whether an e-mail is sent."""
    if not isinstance(value, dict):
        raise InvalidObject([MemberFault("", "a JSON object is expected here: an invitation")])
    faults = [
        MemberFault(f"/{name}", unknown_field(name, _NEW_MEMBERS, "an invitation"))
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
        **msgspec.structs.asdict(details_of(membership)),
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
        "user": memberships.identity(membership, found.user),
        "name": memberships.member_full_name(membership, found.user),
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
        "decided_by_name": str(found.decided_by),
        "seen": found.seen,
    }


def _role_members(row: Assignment | ThirdPartyAssignment) -> dict[str, Any]:
    members = visible_members(row)
    return {
        name.removesuffix("_id"): msgspec.to_builtins(value)
        for name, value in members.items()
        if name not in {"user_id", "entity_id"}
    }
