"""Answers to invitations, their list, and sending them again (D60).

Each is one transaction that rests on the invitation as it was seen: of two answers, or an answer and a revocation, at
the same moment one is carried out. Every transaction locks a membership before its placeholder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.directory.administrators import still_acting
from corpid.flows.directory.lists import cut_page
from corpid.flows.directory.write import Refused, audit_event
from corpid.rules.audit_actions import INVITED_PERSON, AuditAction
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.changes import Accept, ChangedMeanwhile, Delete, Precondition, Upsert
from corpid.rules.directory.invitations import accepted_by, account, shown_invitation
from corpid.rules.directory.records import DUE, Entity, Membership, User
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.flows.directory.invitation_limits import InvitationLimit
    from corpid.flows.directory.lists import ListPage
    from corpid.rules.audit_records import AuditEvent
    from corpid.rules.directory.access import Action
    from corpid.rules.directory.actors import Actor
    from corpid.stores.sql.registry import Registry

_GONE: Final = "the invitation is no longer as it was shown: open its link again"


class AlreadyBelongs(Exception):
    """The person belongs to the entity already."""


async def accept_with_account(registry: Registry, invited: Membership, user: User, *, now: float) -> None:
    """Make an invited membership that of a signed-in person.

    Level and roles go with it; no factor and no member of the person changes. `invited` and `user` are as the person
    saw them, `now` in epoch seconds. Raises AlreadyBelongs, ChangedMeanwhile, access.Forbidden, StoreUnavailable.
    Source: D60
    """
    actor = Person(user.user_id)
    _authorise(actor, "write", invited)
    if user.placeholder or not user.enabled:
        raise ChangedMeanwhile(_GONE)
    key = (user.user_id, invited.entity_id)
    if await registry.directory.read(Membership, [key]):
        raise AlreadyBelongs
    becomes = accepted_by(invited, user.user_id, now=int(now))
    event = _event(actor, AuditAction.MEMBERSHIP_ACCEPT, becomes, invited_as=invited.user_id)
    guards = [
        Precondition(User, user.key, user),
        Precondition(Membership, key, None),
        *await _entity(registry, invited),
    ]
    await registry.directory.write([*guards, Accept(invited, becomes, event)])


async def accept_with_new_account(
    registry: Registry, invited: Membership, user_id: str, *, user_name: str, name: str, language: str, now: float
) -> None:
    """Add a new person, and make an invited membership theirs.

    The caller has seen that the person reads the address of `invited`, and sets factors in the same transaction.
    `user_id` is new, and not the placeholder's; `now` is in epoch seconds. Raises NameTaken, NameRefused,
    ChangedMeanwhile, access.Forbidden, StoreUnavailable. Source: D51, D60
    """
    person = account(user_id, user_name=user_name, name=name, email=invited.email, language=language)
    added = audit_event(Person(user_id), AuditAction.USER_ADD, user_id)
    async with registry.invitations.transaction():
        await registry.directory.write([Precondition(User, person.key, None), Upsert(person, added)])
        await accept_with_account(registry, invited, person, now=now)


async def decline(registry: Registry, invited: Membership) -> None:
    """Decline an invitation, which ends with its level and roles.

    The history names only the placeholder, never an account. Raises ChangedMeanwhile, access.Forbidden,
    StoreUnavailable. Source: D60
    """
    actor = Person(invited.user_id)
    _authorise(actor, "delete", invited)
    event = _event(actor, AuditAction.MEMBERSHIP_DECLINE, invited)
    await registry.directory.write([Precondition(Membership, invited.key, invited), Delete(invited, event)])


async def open_invitations(
    registry: Registry, entity_id: str, *, actor: Actor, after: str, limit: int
) -> ListPage[Membership]:
    """List open invitations of an entity.

    In the order of their identifiers, `after` one. Raises access.Forbidden, StoreUnavailable. Source: D59, D60
    """
    authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    found = await registry.invitations.of_entity(entity_id, after=after, limit=limit + 1)
    return cut_page(found, limit, [each.membership_id for each in found])


async def send_again(
    registry: Registry, limit: InvitationLimit, invited: Membership, *, actor: Actor, now: float
) -> Membership:
    """Have an invitation sent again, with a new link.

    The earlier link works until the e-mail is sent. Raises Refused, TooManyInvitations, ChangedMeanwhile,
    access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    authorise(actor, "write", Object(kind="invitation", entity_id=invited.entity_id, user_id=invited.user_id))
    guards = await still_acting(registry, actor)
    if not invited.invited:
        raise Refused(phrase("the invitation was accepted: there is nothing to send"))
    if not invited.email:
        raise Refused(phrase("email: the invitation has no address to go to"))
    if abs(invited.invitation_sent_at) > now - RESEND_SECONDS:
        raise Refused(
            phrase(
                "the e-mail was sent less than {count} minutes ago: wait, and ask the person to check their spam folder",
                count=RESEND_SECONDS // MINUTE,
            )
        )
    await limit.count(actor, invited.entity_id, invited.email, now=now)
    becomes = replace(invited, invitation_sent_at=DUE)
    event = _event(actor, AuditAction.MEMBERSHIP_RESEND, becomes)
    await registry.directory.write([*guards, Precondition(Membership, invited.key, invited), Upsert(becomes, event)])
    return becomes


def _authorise(actor: Person, action: Action, invited: Membership) -> None:
    """Authorise an answer by the invitation's link."""
    thing = Object(kind="membership", entity_id=invited.entity_id, user_id=actor.user_id, answers=invited.invited)
    authorise(actor, action, thing)


async def _entity(registry: Registry, invited: Membership) -> list[Precondition]:
    """A guard of the entity, which must be enabled."""
    key = (invited.entity_id,)
    found = (await registry.directory.read(Entity, [key])).get(key)
    if found is None or not found.enabled:
        raise ChangedMeanwhile(_GONE)
    return [Precondition(Entity, key, found)]


def _event(actor: Actor, action: AuditAction, membership: Membership, **detail: str) -> AuditEvent:
    named = {INVITED_PERSON: shown_invitation(membership)} if membership.invited else {}
    return audit_event(actor, action, "/".join(membership.key), entity_id=membership.entity_id, **named, **detail)
