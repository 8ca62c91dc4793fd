"""Sign-ins to the console: an operator of the deployment (D53, D54)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from corpid.flows.account.own_sessions import SelfServiceRequest
from corpid.flows.directory.actors import load_operator
from corpid.rules.directory.access import Forbidden, Object, authorise
from corpid.rules.oauth import acr

if TYPE_CHECKING:
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.access import Action, ObjectKind
    from corpid.rules.directory.actors import DeploymentOperator


class NeedsPasskey(Exception):
    """Operators sign in with a passkey here, and this one did not."""


@dataclass(frozen=True, kw_only=True)
class ConsoleRequest(SelfServiceRequest):
    """An operator in the console."""

    actor: DeploymentOperator


async def admit_operator(context: RequestContext, visit: SelfServiceRequest, *, needs_passkey: bool) -> ConsoleRequest:
    """The person as an operator.

    Raises access.Forbidden if they are none, NeedsPasskey, StoreUnavailable. Source: D50, D53
    """
    session = visit.session
    actor = await load_operator(
        context.provider.registry,
        visit.user.user_id,
        auth_time=session.auth_time,
        now=context.now,
        request=context.request_id,
        address=context.address,
    )
    if needs_passkey and tuple(session.amr) not in acr.BY_PASSKEY:
        raise NeedsPasskey
    return ConsoleRequest(user=visit.user, browser=visit.browser, session=session, actor=actor)


def is_allowed(actor: DeploymentOperator, action: Action, kind: ObjectKind, *, operates: bool = False) -> bool:
    """Return whether an operator may do this after a recent sign-in.

    `operates`: whether the person it is about is an operator. For what is offered on a page: each change asks again.
    Source: D53, D54
    """
    somebody = Object(kind=kind, user_id="?", operates=operates)
    try:
        authorise(replace(actor, auth_time=actor.now), action, somebody)
    except Forbidden:
        return False
    return True
