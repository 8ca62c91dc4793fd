"""Changes that forms make, and their errors for people (D54, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory.approvals import AlreadyDecided, NamesChanged, StaleRequest
from corpid.flows.directory.person_names import known_name, names_digest
from corpid.flows.directory.write import NoReason, Refused, write_or_request
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.approvals import MOST_REASON_CHARACTERS
from corpid.rules.directory.changes import Conflict
from corpid.texts import phrase
from corpid.web.pages.refusals import refusal_of
from corpid.web.sites import CHANGED_MEANWHILE, FormResult, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from corpid.flows.directory.members import Member
    from corpid.rules.directory.changes import Precondition
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import ChangeRequest
    from corpid.web.directory.page_context import PortalContext

T = TypeVar("T")

NO_REASON: Final = phrase("Say why, for the person who approves it.")
NAMES_CHANGED: Final = phrase("Names have changed since you looked. Check who is meant, and decide again.")
REQUEST_SENT: Final = phrase("Your request has been sent. Nothing changes until it is approved.")
"""the note after a change that needs approval"""
REQUESTED: Final = "requested"
"""its key, wherever the form was sent"""


async def await_change(at: PortalContext, writing: Awaitable[T]) -> T:
    """Await a change; what was decided from a cache is read again.

    Raises InvalidInput with a sentence for a person. Source: D50, D55
    """
    made = await await_plan(writing)
    at.context.provider.registry_cache.drop()
    return made


async def await_plan(deciding: Awaitable[T]) -> T:
    """Await what would change. Raises InvalidInput as `await_change`. Source: D50, D55"""
    try:
        return await deciding
    except NoReason:
        raise InvalidInput(NO_REASON, field="reason") from None
    except AlreadyDecided:
        raise InvalidInput(phrase("This request was decided meanwhile, or has expired.")) from None
    except NamesChanged:
        raise InvalidInput(NAMES_CHANGED) from None
    except StaleRequest:
        raise InvalidInput(
            phrase(
                "What this request changes is no longer as it was when it was made. Decline it; it has to be requested again."
            )
        ) from None
    except (Refused, Forbidden) as refused:
        raise InvalidInput(refusal_of(refused)) from None
    except Conflict:
        raise InvalidInput(CHANGED_MEANWHILE) from None


def names_shown(*people: Member) -> str:
    """A digest of people as a page shows them, for its frame. Source: D68"""
    return names_digest(known_name(each.user, each.membership) for each in people)


def check_names(at: PortalContext, names: str) -> None:
    """Raise InvalidInput if the form was shown for other people. Source: D68"""
    if at.form.get("names", "") != names:
        raise InvalidInput(NAMES_CHANGED)


async def await_page(reading: Awaitable[T]) -> T:
    """Await a page of a list.

    Raises NotFound for a place that is in no list.
    """
    try:
        return await reading
    except Refused:
        raise NotFound from None


async def submit_changes(
    at: PortalContext, changes: Sequence[Change], saved: FormResult, *, seen: Sequence[Precondition] = ()
) -> FormResult:
    """Write changes, or request them.

    Returns `saved`, or the page of the request. The reason is that of the form. Raises InvalidInput as `await_change`.
    Source: D55
    """
    writing = write_or_request(
        at.context.provider.registry,
        at.actor,
        changes,
        reason=reason(at),
        now=at.context.now,
        unique=at.context.provider.new_id(),
        seen=seen,
    )
    made = await await_change(at, writing)
    return saved_or_requested(made, saved)


def saved_or_requested(request: ChangeRequest | None, saved: FormResult) -> FormResult:
    """The page after a change, or that of its request. Source: D55"""
    return saved if request is None else FormResult(REQUESTED, f"requests/{request.request_id}")


def reason(at: PortalContext) -> str:
    """The reason in the form, in one line. Raises InvalidInput. Source: D55"""
    typed = " ".join(at.form.get("reason", "").split())
    if len(typed) > MOST_REASON_CHARACTERS or not typed.isprintable():
        raise InvalidInput(phrase("Write at most {count} characters.", count=MOST_REASON_CHARACTERS), field="reason")
    return typed
