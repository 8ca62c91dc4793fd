"""Answers to invitations: accept with an account or as new, decline.

The link leads to the invitation, and a person decides. A person with an account answers while signed in with both
factors; a person without one sets it up first. Declining needs no account, and the history names the placeholder, so
that the inviter learns nothing about accounts (D60).

Each answer is one transaction that rests on the invitation as it was seen: of two answers, or an answer and a
revocation, at the same moment one is carried out. Every transaction locks a membership before its placeholder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import enrolment_steps, enrolments
from corpid.flows.account.enrolments import Enrolment, EnrolmentContext, NotHere, OpenedLink
from corpid.flows.account.links import EnrolmentStep
from corpid.flows.directory.write import audit_event
from corpid.rules.audit import INVITATION, AuditAction, AuditEvent
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import Action, Actor, Object, Person, authorise
from corpid.rules.directory.memberships import OpenInvitation, accepted_by, account, name_invitation, shown_invitation
from corpid.rules.directory.records import (
    Accept,
    Administrator,
    Change,
    ChangedMeanwhile,
    Conflict,
    Entity,
    Membership,
    NameTaken,
    Precondition,
    User,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.stores.sql.registry import Registry

Outcome: TypeAlias = Literal["accepted", "declined"]
_ATTEMPTS: Final = 3
"""if the invitation changes meanwhile, e.g. since its e-mail is sent"""


class InvitationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation that was answered in this browser."""

    browser_id: str
    outcome: Outcome
    entity: str
    """its name"""
    administers: bool = False
    """whether the person has a level there"""
    new: bool = False
    """whether they set up their sign-in to answer"""


_ANSWERED: Final = namespaces.ANSWERED_INVITATION.with_record(InvitationAnswer)
_GONE: Final = "the invitation is no longer as it was shown: open its link again"


class AlreadyBelongs(Exception):
    """The person belongs to the entity already."""


async def find_invitation(
    context: RequestContext, browser: Browser | None, opened_id: str
) -> tuple[OpenedLink, OpenInvitation]:
    """The invitation of a link that this browser has opened.

    Spends nothing. Raises NotOpened, NotHere, InvitationExpired. Source: D34, D60
    """
    found = await enrolments.find_opened_link(context, browser, opened_id)
    if found.invited is None:
        raise NotHere
    return found, found.invited


async def find_answer(context: RequestContext, browser_id: str, opened_id: str) -> InvitationAnswer | None:
    """The answer that this browser gave; None without one.

    A form that is sent twice leads to the same page. Source: D15
    """
    found = await _locate_answer(context, opened_id).read(context.provider.transient, now=context.now)
    return found if found is not None and found.browser_id == browser_id else None


async def find_answer_of(context: RequestContext, enrolment: Enrolment) -> InvitationAnswer | None:
    """The answer that a finished enrolment gave; None without one. Source: D60"""
    opened_id = enrolments.derive_opened_id(context, enrolment.browser_id, enrolment.link_hash)
    return await find_answer(context, enrolment.browser_id, opened_id)


async def is_member(context: RequestContext, user_id: str, entity_id: str) -> bool:
    """Return whether a person belongs to an entity, if only suspended (D60)."""
    key = (user_id, entity_id)
    return bool(await context.provider.registry.directory.read(Membership, [key]))


async def accept_invitation(context: RequestContext, visit: AccountRequest, opened_id: str) -> None:
    """Accept an invitation with the account that is signed in here.

    No factor of the account changes. Raises NotOpened, NotHere, AlreadyBelongs, StaleStep. Source: D60
    """
    registry, user = context.provider.registry, visit.user
    invited = await _answer(
        context,
        visit.browser,
        opened_id,
        lambda found: accept_with_account(registry, found.membership, user, now=context.now),
    )
    await _note(context, visit.browser.browser_id, opened_id, invited, user.user_id)
    notifications.notify(context, user, notifications.notify_joined(invited.entity))


async def decline_invitation(context: RequestContext, browser: Browser, opened_id: str) -> None:
    """Decline an invitation, which ends it.

    Raises NotOpened, NotHere, StaleStep. Source: D60
    """
    registry = context.provider.registry
    invited = await _answer(context, browser, opened_id, lambda found: decline_membership(registry, found.membership))
    await _note(context, browser.browser_id, opened_id, invited)


async def finish_enrolment(context: RequestContext, loaded: EnrolmentContext, *, language: str) -> None:
    """Make a new member with the factors of the enrolment.

    `language` is a tag, that of their e-mails. Person, membership and factors are written in one transaction. If
    somebody else has taken the user name meanwhile, the page that asks for it is shown again. Raises NotHere,
    StaleStep. Source: D60
    """
    factors, enrolment, registry = (
        await enrolment_steps.to_write(context, loaded),
        loaded.enrolment,
        context.provider.registry,
    )
    if factors.invited is None:
        raise NotHere
    try:
        async with registry.transaction():
            await accept_with_new_account(
                registry,
                factors.invited.membership,
                enrolment.user_id,
                user_name=enrolment.user_name,
                name=enrolment.name,
                language=language,
                now=context.now,
            )
            if not await registry.factors.change(factors.change, factors.event):
                raise NotHere
    except NameTaken:
        without = tuple(step for step in enrolment.done if step is not EnrolmentStep.PROFILE)
        again = msgspec.structs.replace(enrolment, serial=enrolment.serial + 1, done=without, name_taken=True)
        async with context.provider.transient.batch(context.now) as batch:
            await enrolments.save(context, batch, again)
        raise StaleStep from None
    except Conflict:
        # The page looks again: the invitation is gone, or it can be saved now.
        raise StaleStep from None
    opened_id = enrolments.derive_opened_id(context, enrolment.browser_id, enrolment.link_hash)
    await _note(context, enrolment.browser_id, opened_id, factors.invited, enrolment.user_id, new=True)
    await enrolment_steps.end_written(context, loaded)


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
    event = _event(
        actor,
        AuditAction.MEMBERSHIP_ACCEPT,
        becomes,
        invited_as=invited.user_id,
        **{INVITATION: shown_invitation(invited)},
    )
    entity = await registry.directory.find(Entity, invited.entity_id)
    if entity is None or not entity.enabled:
        raise ChangedMeanwhile(_GONE)
    guards = [
        Precondition(User, user.key, user),
        Precondition(Membership, key, None),
        Precondition(Entity, entity.key, entity),
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
    async with registry.transaction():
        await registry.directory.write([Precondition(User, person.key, None), Change(None, person, added)])
        await accept_with_account(registry, invited, person, now=now)


async def decline_membership(registry: Registry, invited: Membership) -> None:
    """Decline an invitation, which ends with its level and roles.

    The history names only the placeholder, never an account. Raises ChangedMeanwhile, access.Forbidden,
    StoreUnavailable. Source: D60
    """
    actor = Person(invited.user_id)
    _authorise(actor, "delete", invited)
    event = _event(actor, AuditAction.MEMBERSHIP_DECLINE, invited)
    await registry.directory.write([Precondition(Membership, invited.key, invited), Change(invited, None, event)])


async def _answer(
    context: RequestContext, browser: Browser, opened_id: str, once: Callable[[OpenInvitation], Awaitable[None]]
) -> OpenInvitation:
    for _ in range(_ATTEMPTS):
        _, invited = await find_invitation(context, browser, opened_id)
        try:
            await once(invited)
        except ChangedMeanwhile:
            continue
        return invited
    raise StaleStep


async def _note(
    context: RequestContext,
    browser_id: str,
    opened_id: str,
    invited: OpenInvitation,
    user_id: str = "",
    *,
    new: bool = False,
) -> None:
    """Note the answer to an invitation: accepted by a person, or declined."""
    key = (user_id, invited.entity.entity_id)
    answer = InvitationAnswer(
        browser_id=browser_id,
        outcome="accepted" if user_id else "declined",
        entity=invited.entity.name,
        administers=bool(user_id and await context.provider.registry.directory.read(Administrator, [key])),
        new=new,
    )
    async with context.provider.transient.batch(context.now) as batch:
        await _locate_answer(context, opened_id).put(batch, answer)


def _locate_answer(context: RequestContext, opened_id: str) -> Entry[InvitationAnswer]:
    return _ANSWERED.entry(context.provider.policy.base_url, opened_id)


def _authorise(actor: Person, action: Action, invited: Membership) -> None:
    """Authorise an answer by the invitation's link."""
    thing = Object(kind="membership", entity_id=invited.entity_id, user_id=actor.user_id, answers=invited.invited)
    authorise(actor, action, thing)


def _event(actor: Actor, action: AuditAction, membership: Membership, **detail: str) -> AuditEvent:
    detail |= name_invitation(membership)
    return audit_event(actor, action, "/".join(membership.key), entity_id=membership.entity_id, **detail)
