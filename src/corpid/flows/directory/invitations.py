"""Open invitations of an entity: limits, list, sending again (D60)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace

from corpid.flows.directory.actors import check_still_acting
from corpid.flows.directory.lists import ListPage, cut_page
from corpid.flows.directory.write import Refused, audit_event, guard_records, is_of_entity
from corpid.flows.namespaces import INVITATIONS, count_each
from corpid.flows.rate_limits import LimitCounts
from corpid.rules.audit import AuditAction
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.memberships import is_invitation, is_redirection, name_invitation
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.records import DUE, Change, Membership
from corpid.rules.limits import INVITATIONS_PER_ADDRESS, INVITATIONS_PER_DAY, MINUTE, RESEND_SECONDS
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpid.flows.request_context import RequestContext
    from corpid.stores.sql.registry import Registry
    from corpid.stores.transient import TransientStore

RETRY_SECONDS: Final = 3600
"""after which a client that has sent too many invitations may try again"""


class TooManyInvitations(Exception):
    """An entity has sent too many invitations today; the text says so."""

    def __init__(self, text: str, *, to_address: bool) -> None:
        super().__init__(text)
        self.to_address = to_address
        """whether it is the limit of one address"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationLimit:
    """Counters of invitations; `issuer` names the deployment."""

    transient: TransientStore
    issuer: str
    counts: LimitCounts = field(default_factory=LimitCounts)
    """those of the request that invites"""

    @classmethod
    def for_request(cls, context: RequestContext) -> Self:
        """The counters of the deployment, which note what a request raises."""
        provider = context.provider
        return cls(transient=provider.transient, issuer=provider.policy.deployment_url, counts=context.counts)

    async def count_changes(self, actor: Actor, changes: Iterable[Change], *, now: float) -> None:
        """Count the e-mails of invitations that changes make due.

        Raises as `count`. Source: D60
        """
        for change in changes:
            before, member = change.before, change.after
            if is_invitation(before, member):
                due = change.record.email if change.record.invitation_sent_at == DUE else ""
                await self.count(actor, change.record.entity_id, due, now=now)
            elif is_redirection(before, member) and change.record.email and change.record.invitation_sent_at == DUE:
                await self.count(actor, change.record.entity_id, change.record.email, now=now)

    async def count(self, actor: Actor, entity_id: str, email: str, *, now: float) -> None:
        """Count an invitation of an entity, unless an operator makes it.

        `email` is empty if no e-mail is to be sent. `now` is in epoch seconds. Raises TooManyInvitations,
        StoreUnavailable. Source: D60
        """
        if not is_of_entity(actor):
            return
        entries = [INVITATIONS.entry(self.issuer, entity_id)]
        entries += [INVITATIONS.entry(self.issuer, entity_id, fold_text(email))] if email else []
        async with self.transient.batch(now) as batch:
            counts = await count_each(batch, entries)
        for each in entries:
            self.counts.note_raised(each)
        if counts[0] > INVITATIONS_PER_DAY:
            raise TooManyInvitations(
                f"an entity invites at most {INVITATIONS_PER_DAY:,} people a day: go on tomorrow, or ask an operator",
                to_address=False,
            )
        if len(counts) > 1 and counts[1] > INVITATIONS_PER_ADDRESS:
            raise TooManyInvitations(
                f"at most {INVITATIONS_PER_ADDRESS} invitations a day go to one address: go on tomorrow",
                to_address=True,
            )


async def list_open_invitations(
    registry: Registry, entity_id: str, *, actor: Actor, after: str, limit: int
) -> ListPage[Membership]:
    """List open invitations of an entity.

    In the order of their identifiers, `after` one. Raises access.Forbidden, StoreUnavailable. Source: D59, D60
    """
    authorise(actor, "read", Object(kind="membership", entity_id=entity_id))
    found = await registry.invitations.of_entity(entity_id, after=after, limit=limit + 1)
    return cut_page(found, limit, [each.membership_id for each in found])


async def send_invitation_again(
    registry: Registry, limit: InvitationLimit, invited: Membership, *, actor: Actor, now: float
) -> Membership:
    """Have an invitation sent again, with a new link.

    The earlier link works until the e-mail is sent. Raises Refused, TooManyInvitations, ChangedMeanwhile,
    access.Forbidden, StoreUnavailable. Source: D53, D60
    """
    authorise(actor, "write", Object(kind="invitation", entity_id=invited.entity_id, user_id=invited.user_id))
    guards = await check_still_acting(registry, actor)
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
    named = name_invitation(becomes)
    event = audit_event(
        actor, AuditAction.MEMBERSHIP_RESEND, "/".join(becomes.key), entity_id=becomes.entity_id, **named
    )
    change = Change(invited, becomes, event)
    await registry.directory.write([*guards, *guard_records([change]), change])
    return becomes
