"""Help with sign-in for members, by administrators of their entity (D69).

An administrator asks, and learns nothing of the account: what is asked is authorised by what the entity knows, and
stands in its history. What depends on the account is done later, and recorded for operators alone. A link or an
unlocking never goes to an operator of the deployment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows import namespaces, notifications
from corpid.flows.account import enrolments, links
from corpid.flows.authentication import factors
from corpid.flows.directory import people
from corpid.flows.directory.actors import check_still_acting
from corpid.flows.directory.write import Refused, audit_event
from corpid.rules.audit import AuditAction, AuditEvent
from corpid.rules.directory.access import (
    BELOW,
    SYSTEM,
    Action,
    Condition,
    EntityAdministrator,
    Forbidden,
    ObjectKind,
    authorise,
    find_obstacle,
)
from corpid.rules.directory.records import Administrator, Conflict, Entity, Membership, Operator, Precondition, User
from corpid.rules.failures import StoreUnavailable
from corpid.rules.limits import HELP_LINKS_PER_MEMBER, HELP_LINKS_PER_PERSON, HELP_PER_ENTITY, UNLOCKS_PER_DAY
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.request_context import RequestContext

RenewalPurpose: TypeAlias = Literal["password", "second_factor"]
Help: TypeAlias = RenewalPurpose | Literal["unlock"]


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    action: Action
    kind: ObjectKind
    asked: AuditAction
    """of the entity's history"""
    done: AuditAction
    """of what came of it, for operators"""


def _link(purpose: RenewalPurpose, asked: AuditAction) -> _Rule:
    of_link = links.PURPOSES[purpose]
    return _Rule(action="write", kind=of_link.object_kind, asked=asked, done=of_link.made)


_RULES: Final[Mapping[Help, _Rule]] = {
    "password": _link("password", AuditAction.MEMBERSHIP_SEND_PASSWORD_LINK),
    "second_factor": _link("second_factor", AuditAction.MEMBERSHIP_SEND_SECOND_FACTOR_LINK),
    "unlock": _Rule(action="delete", kind="lock", asked=AuditAction.MEMBERSHIP_UNLOCK, done=AuditAction.USER_UNLOCK),
}


def find_refusal(of: Membership, held: Administrator | None, *, actor: EntityAdministrator) -> Condition | None:
    """The condition that keeps an actor from helping a member.

    `held` is the member's level. None if nothing does, but perhaps a sign-in that is too old. The same whatever else
    the member is. Source: D69
    """
    found = (
        find_obstacle(actor, each.action, links.help_object(each.kind, of, held), unruled=BELOW)
        for each in _RULES.values()
    )
    return next((each for each in found if each is not None), None)


async def request_help(context: RequestContext, of: Membership, asked: Help, *, actor: EntityAdministrator) -> None:
    """Record that an administrator helps a member, within the limits.

    `of` is the membership as the administrator saw it; `carry_out_help` follows. Raises Refused at a limit,
    access.Forbidden, ChangedMeanwhile, StoreUnavailable. Source: D47, D54, D57, D69
    """
    registry, rule = context.provider.registry, _RULES[asked]
    held = await registry.directory.find(Administrator, *of.key)
    authorise(actor, rule.action, links.help_object(rule.kind, of, held))
    guards = await check_still_acting(registry, actor)
    await _count(context, of, asked)
    event = audit_event(actor, rule.asked, "/".join(of.key), entity_id=of.entity_id)
    seen = [Precondition(Membership, of.key, of), Precondition(Administrator, of.key, held)]
    try:
        await registry.directory.write([*guards, *seen], event)
    except Conflict:
        await context.counts.take_back(context.provider.transient, now=context.now)  # nothing was recorded
        raise


async def _count(context: RequestContext, of: Membership, asked: Help) -> None:
    """Count what the entity knows of."""
    url = context.provider.policy.deployment_url
    async with context.provider.transient.batch(context.now) as batch:
        if await context.counts.count(batch, namespaces.HELP_BY_ENTITY.entry(url, of.entity_id)) > HELP_PER_ENTITY:
            raise Refused(
                phrase(
                    "an organisation can help at most {count} times a day: continue tomorrow, or ask the operator",
                    count=HELP_PER_ENTITY,
                )
            )
        if asked == "unlock":
            unlock = namespaces.HELP_UNLOCK_OF_MEMBER.entry(url, of.entity_id, of.user_id)
            if not await unlock.add(batch):
                raise Refused(phrase("an account is unlocked at most once an hour: wait, or send a link"))
            context.counts.note(unlock, unlock.take)
            unlocks = namespaces.HELP_UNLOCKS_OF_MEMBER.entry(url, of.entity_id, of.user_id)
            if await context.counts.count(batch, unlocks) > UNLOCKS_PER_DAY:
                raise Refused(
                    phrase(
                        "an account is unlocked at most {count} times a day: send a link, or ask the operator",
                        count=UNLOCKS_PER_DAY,
                    )
                )
        elif (
            await context.counts.count(batch, namespaces.HELP_LINKS_TO_MEMBER.entry(url, of.entity_id, of.user_id))
            > HELP_LINKS_PER_MEMBER
        ):
            raise Refused(
                phrase(
                    "one person gets at most {count} links a day: ask them to check their spam folder, and continue "
                    "tomorrow",
                    count=HELP_LINKS_PER_MEMBER,
                )
            )


class HelpRefusal(Exception):
    """The account cannot be helped; `reason` is for operators."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def carry_out_help(context: RequestContext, of: Membership, asked: Help, *, actor: EntityAdministrator) -> None:
    """Help a member whose account can be helped, after `request_help`.

    The person gets an e-mail that says who asked: without an address nobody is helped. Operators read in the audit what
    came of it. Raises StoreUnavailable. Source: D45, D53, D69
    """
    registry = context.provider.registry
    user, by = [await registry.directory.user(each) for each in (of.user_id, actor.user_id)]
    entity = await registry.directory.find(Entity, of.entity_id)
    if user is None or by is None or entity is None:
        return
    asked_by = notifications.asked_by(by, entity)
    done = AuditEvent(
        actor=SYSTEM,  # an administrator can read the outcome of what they do themselves
        action=_RULES[asked].done,
        object=user.user_id,
        request_id=actor.request_id,
        detail={"requested_by": actor.name},
    )
    try:
        await _check(context, of, asked, actor=actor)
        if not user.email:
            raise HelpRefusal("the account has no e-mail address")
        if not user.enabled:
            raise _referral(context, user, asked_by, "the account is disabled")
        if asked == "unlock":
            await _unlock(context, user, done, asked_by)
        else:
            await _send(context, user, asked, done, asked_by, actor)
    except (Forbidden, HelpRefusal) as error:
        refused = msgspec.structs.replace(done, outcome="refused", detail=done.detail | {"reason": str(error.reason)})
        await registry.audit.write(refused, now=context.now)
    except StoreUnavailable:
        await context.counts.take_back(context.provider.transient, now=context.now)
        raise


async def _check(context: RequestContext, of: Membership, asked: Help, *, actor: EntityAdministrator) -> None:
    """Raise Forbidden or HelpRefusal for what the entity must not know."""
    registry, rule, user_id = context.provider.registry, _RULES[asked], of.user_id
    operates = await registry.directory.read(Operator, [(user_id,)])
    level = await registry.directory.find(Administrator, *of.key)
    authorise(actor, rule.action, links.help_object(rule.kind, of, level, operates=bool(operates)))
    url = context.provider.policy.deployment_url
    async with context.provider.transient.batch(context.now) as batch:
        if asked == "unlock":
            unlock = namespaces.HELP_UNLOCK_OF_PERSON.entry(url, user_id)
            if not await unlock.add(batch):
                raise HelpRefusal("another entity had the account unlocked less than an hour ago")
            context.counts.note(unlock, unlock.take)
            unlocks = namespaces.HELP_UNLOCKS_OF_PERSON.entry(url, user_id)
            if await context.counts.count(batch, unlocks) > UNLOCKS_PER_DAY:
                raise HelpRefusal("the account was unlocked too often today")
        elif (
            await context.counts.count(batch, namespaces.HELP_LINKS_TO_PERSON.entry(url, user_id))
            > HELP_LINKS_PER_PERSON
        ):
            raise HelpRefusal("the person was sent too many links today")


def _referral(context: RequestContext, user: User, asked_by: Phrase, reason: str) -> HelpRefusal:
    """The refusal, once the person is told to ask the operator."""
    notifications.no_help(context, user, asked_by)
    return HelpRefusal(reason)


async def _unlock(context: RequestContext, user: User, done: AuditEvent, asked_by: Phrase) -> None:
    provider = context.provider
    issuer = provider.policy.deployment_url
    await people.unlock_account(provider.registry, provider.transient, issuer, user, event=done, now=context.now)
    notifications.tell(provider, user, notifications.notify_unlocked(asked_by), now=context.now)


async def _send(
    context: RequestContext, user: User, purpose: RenewalPurpose, done: AuditEvent, asked_by: Phrase,
    helper: EntityAdministrator,
) -> None:  # fmt: skip
    """Send the link to the account's own address."""
    provider, texts = context.provider, links.PURPOSES[purpose]
    held = await factors.held_factors(provider.registry, user.user_id)
    can_prove = held.second_factor if purpose == "password" else held.password
    if not can_prove:
        raise _referral(context, user, asked_by, f"the account has no {texts.asks_for}")
    link = await links.write_link(
        provider.registry, user, purpose, event=done, base_url=provider.policy.deployment_url, now=context.now,
        new_id=provider.new_id, spared=await enrolments.under_way(context, user, purpose), helper=helper,
    )  # fmt: skip
    notifications.link(
        provider.mail, user, link, heading=texts.heading, lead=texts.lead, provider_name=provider.policy.name,
        asked=asked_by,
    )  # fmt: skip
