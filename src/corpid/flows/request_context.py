"""The context of a request, made once at the edge."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from corpid.flows.limit_counts import LimitCounts
from corpid.rules.audit_records import AuditEvent
from corpid.rules.authentication import devices

if TYPE_CHECKING:
    from datetime import date
    from typing import Literal

    from corpid.flows.operations.signing_keys import ServerKeys
    from corpid.flows.provider import Provider
    from corpid.rules.audit_actions import AuditAction
    from corpid.rules.directory.actors import Actor

_VALUE: Final = itemgetter(1)


@dataclass(slots=True, kw_only=True, eq=False)
class RequestContext:
    """The provider, the moment, and the origin of one request.

    Nothing changes it, except `counts`; it is not frozen, because every request makes one and that would triple the
    cost.

    `now` is the request's one reading of the clock, in epoch seconds (D49); `keys` are the keys of that
    moment; `request_id` is the reference in errors (D28).
    """

    provider: Provider
    keys: ServerKeys
    now: float
    request_id: str
    address: str
    user_agent: str = ""
    """of a page's reader; empty for a request of a client"""
    counts: LimitCounts = field(default_factory=LimitCounts)
    """what the request has counted at limits so far"""

    @property
    def device(self) -> str:
        """Browser and system of a page's reader, empty if unknown.

        Source: RFC 9110 §10.1.5
        """
        return devices.device(self.user_agent) if self.user_agent else ""

    @property
    def day(self) -> date:
        """The day in the deployment's time zone (D23)."""
        return self.provider.policy.calendar.day(self.now)

    @property
    def today(self) -> str:
        """The day in the deployment's time zone, YYYY-MM-DD (D23)."""
        return self.provider.policy.calendar.today(self.now)

    def event(
        self,
        actor: Actor,
        action: AuditAction,
        *,
        subject: str = "",
        client_id: str = "",
        entity_id: str = "",
        outcome: Literal["ok", "refused"] = "ok",
        **detail: str,
    ) -> AuditEvent:
        """An audit event of this request, with address and device.

        A further issuer is named, too. `subject` is what the action was done to. Empty details are omitted. Source:
        SECURITY.md, D62
        """
        policy = self.provider.policy
        issuer = "" if policy.is_first else policy.issuer_id
        known = {"address": self.address, "device": self.device, "issuer": issuer, **detail}
        return AuditEvent(
            actor=actor.name,
            action=action,
            object=subject,
            client_id=client_id,
            entity_id=entity_id,
            outcome=outcome,
            request_id=self.request_id,
            detail=dict(filter(_VALUE, known.items())),
        )


async def request_context(
    provider: Provider, *, request_id: str, address: str, user_agent: str = "", counts: LimitCounts | None = None
) -> RequestContext:
    """A new request's context: the clock, and the keys of that moment.

    `counts` are those of the request, if its endpoint has begun one before. Raises StoreUnavailable; ValueError if no
    key may sign. Source: D42, D49
    """
    now = provider.clock()
    return RequestContext(
        provider=provider,
        keys=provider.signing_keys.fresh(now) or await provider.signing_keys.keys_at(now),
        now=now,
        request_id=request_id,
        address=address,
        user_agent=user_agent,
        counts=counts or LimitCounts(),
    )
