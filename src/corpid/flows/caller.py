"""The caller of a request and its time, read once at the edge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from corpid.ports import AuditEvent

if TYPE_CHECKING:
    from typing import Literal

    from corpid.rules.directory.access import Actor


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """`now` is the request's one reading of the clock (D49); `request_id` is the reference in errors (D28)."""

    request_id: str
    address: str
    now: float
    device: str = ""
    """of a page's reader: browser and system, if known"""

    def event(
        self,
        actor: Actor,
        action: str,
        *,
        subject: str = "",
        client_id: str = "",
        entity_id: str = "",
        outcome: Literal["ok", "refused"] = "ok",
        **detail: str,
    ) -> AuditEvent:
        """An audit event for this request's action on `subject`, with address and device.

        Of the detail what is empty is left out. Source: DESIGN, Security
        """
        told = {"address": self.address, "device": self.device, **detail}
        return AuditEvent(
            actor=actor.name,
            action=action,
            object=subject,
            client_id=client_id,
            entity_id=entity_id,
            outcome=outcome,
            request_id=self.request_id,
            detail={name: value for name, value in told.items() if value},
        )
