"""Daily limits of invitations, by entity and by address (D60)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corpid.flows.directory.write import is_of_entity
from corpid.flows.limit_counts import LimitCounts
from corpid.flows.namespaces import INVITATIONS, count_each
from corpid.rules.directory.names import fold_text
from corpid.rules.limits import INVITATIONS_PER_ADDRESS, INVITATIONS_PER_DAY

if TYPE_CHECKING:
    from corpid.rules.directory.actors import Actor
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
