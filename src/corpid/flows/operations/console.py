"""Sign-ins to the console: an operator of the deployment (D53, D54)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpid.flows.account.own_sessions import OwnVisit
from corpid.flows.directory.administrators import acting_operator
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.actors import Operating


class NeedsPasskey(Exception):
    """Operators sign in with a passkey here, and this one did not."""


@dataclass(frozen=True, kw_only=True)
class ConsoleVisit(OwnVisit):
    """An operator in the console."""

    actor: Operating


async def arrived(context: RequestContext, visit: OwnVisit, *, needs_passkey: bool) -> ConsoleVisit:
    """The person as an operator.

    Raises access.Forbidden if they are none, NeedsPasskey, StoreUnavailable. Source: D50, D53
    """
    session = visit.session
    actor = await acting_operator(
        context.provider.registry, visit.user.user_id, auth_time=session.auth_time, now=context.now
    )
    if needs_passkey and tuple(session.amr) != acr.PASSKEY:
        raise NeedsPasskey
    return ConsoleVisit(user=visit.user, browser=visit.browser, session=session, actor=actor)
