"""Reasons that operators give for what they do, which the audit keeps (D54, D57)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.texts import phrase

if TYPE_CHECKING:
    from corpid.rules.directory.actors import DeploymentOperator
    from corpid.web.operations.page_context import ConsoleContext

REASON: Final = "reason"
"""the field"""


def acting(at: ConsoleContext) -> DeploymentOperator:
    """The operator with the reason that was sent. Raises InvalidInput."""
    reason = " ".join(at.form.get(REASON, "").split())
    if not reason:
        raise InvalidInput(phrase("Say why. The audit keeps your reason."), field=REASON)
    if len(reason) > MOST_REASON_CHARACTERS or not reason.isprintable():
        raise InvalidInput(phrase("Use at most {count} characters.", count=MOST_REASON_CHARACTERS), field=REASON)
    return replace(at.actor, reason=reason)
