"""A person's request to be deleted: made and withdrawn in the account (D61).

Nothing ends before an operator erases the person (`flows.operations.erasure`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpid.flows import notifications
from corpid.flows.account import account_sessions
from corpid.rules.audit_actions import AuditAction
from corpid.rules.authentication.sign_in import StaleStep
from corpid.rules.directory.access import Object, authorise
from corpid.rules.directory.actors import Person
from corpid.rules.directory.changes import ChangedMeanwhile, Delete, MissingReference, Precondition, Upsert
from corpid.rules.directory.records import DeletionRequest

if TYPE_CHECKING:
    from corpid.flows.account.account_sessions import AccountRequest
    from corpid.flows.request_context import RequestContext
    from corpid.rules.directory.access import Action
    from corpid.rules.directory.changes import Change


async def find_request(context: RequestContext, visit: AccountRequest) -> DeletionRequest | None:
    """Return the person's request; None if there is none (D61)."""
    _authorise(visit, "read")
    key = (visit.user.user_id,)
    return (await context.provider.registry.directory.read(DeletionRequest, [key])).get(key)


async def request(context: RequestContext, visit: AccountRequest) -> None:
    """Request the person's deletion, and confirm it by e-mail.

    Raises StaleStep if it was requested before, Throttled, TooOld. Source: D45, D61
    """
    await account_sessions.admit(context, visit)
    _authorise(visit, "write")
    made = DeletionRequest(user_id=visit.user.user_id, requested_at=int(context.now))
    event = account_sessions.event(context, visit, AuditAction.USER_REQUEST_DELETION)
    await _write(context, Precondition(DeletionRequest, made.key, None), Upsert(made, event))
    await account_sessions.close(context, visit)
    notifications.notify(context, visit.user, notifications.DELETION_REQUESTED)


async def withdraw(context: RequestContext, visit: AccountRequest) -> None:
    """Withdraw the person's request, and confirm it by e-mail.

    Raises StaleStep if there is none, Throttled, TooOld. Source: D45, D61
    """
    await account_sessions.admit(context, visit)
    _authorise(visit, "delete")
    found = await find_request(context, visit)
    if found is None:
        raise StaleStep
    event = account_sessions.event(context, visit, AuditAction.USER_WITHDRAW_DELETION)
    await _write(context, Precondition(DeletionRequest, found.key, found), Delete(found, event))
    await account_sessions.close(context, visit)
    notifications.notify(context, visit.user, notifications.DELETION_WITHDRAWN)


async def _write(context: RequestContext, *changes: Change) -> None:
    try:
        await context.provider.registry.directory.write(changes)
    except (ChangedMeanwhile, MissingReference):  # done on another page, or the person was erased at this moment
        raise StaleStep from None


def _authorise(visit: AccountRequest, action: Action) -> None:
    user_id = visit.user.user_id
    authorise(Person(user_id=user_id), action, Object(kind="deletion request", user_id=user_id))
