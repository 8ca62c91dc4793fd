"""Answers to invitations: accept with an account or as new, decline.

The link leads to the invitation, and a person decides. A person with an account answers while signed in with both
factors; a person without one sets it up first. Declining needs no account, and the history names the placeholder, so
that the inviter learns nothing about accounts (D60).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import enrolments, set_factor
from corpid.flows.account.enrolments import NotHere
from corpid.flows.account.links import EnrolmentStep
from corpid.flows.directory import invitations
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.changes import ChangedMeanwhile, Conflict, NameTaken
from corpid.rules.directory.records import Administrator, Membership

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.account.enrolments import Enrolment, EnrolmentContext, OpenedLink
    from corpid.flows.authentication.browsers import Browser
    from corpid.flows.namespaces import Entry
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.invitations import OpenInvitation

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


_ANSWERED: Final = namespaces.ANSWERED_INVITATION.holding(InvitationAnswer)


async def find_invitation(
    context: RequestContext, browser: Browser | None, opened_id: str
) -> tuple[OpenedLink, OpenInvitation]:
    """The invitation of a link that this browser has opened.

    Spends nothing. Raises NotOpened, NotHere, InvitationExpired. Source: D34, D60
    """
    found = await enrolments.opened_link(context, browser, opened_id)
    if found.invited is None:
        raise NotHere
    return found, found.invited


async def find_answer(context: RequestContext, browser_id: str, opened_id: str) -> InvitationAnswer | None:
    """The answer that this browser gave; None without one.

    A form that is sent twice leads to the same page. Source: D15
    """
    found = await _entry(context, opened_id).read(context.provider.transient, now=context.now)
    return found if found is not None and found.browser_id == browser_id else None


async def answered_by(context: RequestContext, enrolment: Enrolment) -> InvitationAnswer | None:
    """The answer that a finished enrolment gave; None without one. Source: D60"""
    opened_id = enrolments.derive_opened_id(context, enrolment.browser_id, enrolment.link_hash)
    return await find_answer(context, enrolment.browser_id, opened_id)


async def belongs(context: RequestContext, user_id: str, entity_id: str) -> bool:
    """Return whether a person belongs to an entity, if only suspended (D60)."""
    key = (user_id, entity_id)
    return bool(await context.provider.registry.directory.read(Membership, [key]))


async def accept(context: RequestContext, visit: AccountRequest, opened_id: str) -> None:
    """Accept an invitation with the account that is signed in here.

    No factor of the account changes. Raises NotOpened, NotHere, AlreadyBelongs, StaleStep. Source: D60
    """

    async def once(invited: OpenInvitation) -> None:
        await invitations.accept_with_account(
            context.provider.registry, invited.membership, visit.user, now=context.now
        )

    invited = await _answer(context, visit.browser, opened_id, once)
    await _note_accepted(context, visit.browser.browser_id, opened_id, invited, visit.user.user_id)
    notifications.notify(context, visit.user, notifications.notify_joined(invited.entity))


async def decline(context: RequestContext, browser: Browser, opened_id: str) -> None:
    """Decline an invitation, which ends it.

    Raises NotOpened, NotHere, StaleStep. Source: D60
    """

    async def once(invited: OpenInvitation) -> None:
        await invitations.decline(context.provider.registry, invited.membership)

    invited = await _answer(context, browser, opened_id, once)
    done = InvitationAnswer(browser_id=browser.browser_id, outcome="declined", entity=invited.entity.name)
    await _note(context, opened_id, done)


async def finish(context: RequestContext, visit: EnrolmentContext, *, language: str) -> None:
    """Make a new member with the factors of the enrolment.

    `language` is a tag, that of their e-mails. Person, membership and factors are written in one transaction. If
    somebody else has taken the user name meanwhile, the page that asks for it is shown again. Raises NotHere,
    StaleStep. Source: D60
    """
    factors, enrolment, registry = await set_factor.to_write(context, visit), visit.enrolment, context.provider.registry
    if factors.invited is None:
        raise NotHere
    try:
        async with registry.invitations.transaction():
            await invitations.accept_with_new_account(
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
    await _note_accepted(context, enrolment.browser_id, opened_id, factors.invited, enrolment.user_id, new=True)
    await set_factor.end_written(context, visit)


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


async def _note_accepted(
    context: RequestContext,
    browser_id: str,
    opened_id: str,
    invited: OpenInvitation,
    user_id: str,
    *,
    new: bool = False,
) -> None:
    key = (user_id, invited.entity.entity_id)
    administers = bool(await context.provider.registry.directory.read(Administrator, [key]))
    done = InvitationAnswer(
        browser_id=browser_id, outcome="accepted", entity=invited.entity.name, administers=administers, new=new
    )
    await _note(context, opened_id, done)


async def _note(context: RequestContext, opened_id: str, found: InvitationAnswer) -> None:
    async with context.provider.transient.batch(context.now) as batch:
        await _entry(context, opened_id).put(batch, found)


def _entry(context: RequestContext, opened_id: str) -> Entry[InvitationAnswer]:
    return _ANSWERED.entry(context.provider.policy.base_url, opened_id)
